// Tables of the flags and subcommands of llama.cpp and Ollama, and the answers to unknown words.
#include "cli/options/other_programs.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/model_stores.h"
#include "cli/output/text.h"
#include "gguf/error.h"

namespace cli {
namespace {

// Other programs' words for one of ours, separated by spaces.
struct Synonyms {
  std::string_view meaning, words;
};

// The flags of llama.cpp and its relatives, by our long names for the same.
constexpr Synonyms kLongNames[] = {
    {"--threads-batch", "-tb"},
    {"--ubatch-size", "-ub"},
    {"--cache-type-k", "-ctk"},
    {"--cache-type-v", "-ctv"},
    {"--system", "-sys"},
    {"--special", "-sp"},
    {"--json-schema", "-jf"},
    {"--logit-bias", "-l"},
    {"--single-turn", "-st"},
    {"--conversation", "-cnv -i --interactive -if --interactive-first"},
    {"--no-conversation", "-no-cnv"},
    {"--prompt-gen", "-pg"},
    {"--output-err", "-oe"},
    {"--output", "--output-file"},
    {"--parallel", "-np -npl"},
    {"--model-draft", "-md --spec-draft-model"},
    {"--draft", "--draft-n"},
    {"--draft-max", "--draft-n-max --spec-draft-n-max"},
    {"--model", "-hf -hfr --hf-repo"},  // found if it was downloaded before
    {"--reverse-prompt", "--stop"},
    {"--template", "--chat-template-file"},
    {"--think", "-rea --reasoning --reasoning-effort"},
    {"--verbose", "--log-verbose"},
    {"--help", "--usage"},
};

enum class Takes { kNone, kOne, kMaybe };  // kMaybe: yes or no, in some of llama.cpp's programs

// Flags that would change nothing here, by reason. Scripts that give them keep working.
struct Idle {
  std::string_view why;
  Takes takes;
  std::string_view words;
};

constexpr Idle kIdle[] = {
    {"CPU only", Takes::kOne,
     "-ngl --gpu-layers --n-gpu-layers -dev --device -sm --split-mode -ts --tensor-split -mg "
     "--main-gpu --max-gpu -ncmoe --n-cpu-moe -ncffn --n-cpu-ffn --moe-cache-mib -ot "
     "--override-tensor -fitt --fit-target -fitc --fit-ctx --fit-margin -gfm --gpu-fit-margin "
     "-cuda --cuda-params -op --offload-policy -grt --graph-reduce-type -gap "
     "--graph-attn-precision -ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl -devd "
     "--device-draft --spec-draft-device -otd --override-tensor-draft "
     "--spec-draft-override-tensor -ncmoed --n-cpu-moe-draft --spec-draft-n-cpu-moe "
     "--spec-draft-ncmoe"},
    {"CPU only", Takes::kMaybe,
     "-nkvo --no-kv-offload -kvo --kv-offload -cmoe --cpu-moe -nopo --no-op-offload --op-offload "
     "--no-host -fit --fit"},
    {"CPU only", Takes::kNone,
     "-cmoed --cpu-moe-draft --spec-draft-cpu-moe -bs --backend-sampling "
     "--spec-draft-backend-sampling --no-spec-draft-backend-sampling -smf16 --split-mode-f16 "
     "-smf32 --split-mode-f32 -smgs --split-mode-graph-scheduling -sas --scheduler-async "
     "--scheduler_async -ooae --offload-only-active-experts -no-ooae "
     "--no-offload-only-active-experts"},
    {"always so", Takes::kMaybe, "-fa --flash-attn"},
    {"always so", Takes::kNone,
     "--jinja --no-escape --no-context-shift --allow-requantize --no-mmproj --no-mmproj-auto "
     "--mmproj-auto --offline --display-prompt --no-skip-chat-parsing --penalize-nl --spec-default "
     "--spec-autotune --peg"},
    {"templates are always Jinja", Takes::kNone, "--no-jinja"},
    {"attention has one form", Takes::kNone, "-no-fa --no-flash-attn"},
    {"attention has one form", Takes::kOne, "-mla --mla-use -amb --attention-max-batch"},
    {"the kernels arrange weights as they need them", Takes::kNone,
     "--repack -rtr --run-time-repack -mqkv --merge-qkv -muge --merge-up-gate-experts"},
    {"operations are fused where it helps", Takes::kNone,
     "-fmoe --fused-moe -no-fmoe --no-fused-moe -fug --fused-up-gate -no-fug --no-fused-up-gate "
     "-no-mmad --no-fused-mul-multiadd -ger --grouped-expert-routing -no-ger "
     "--no-grouped-expert-routing -gr --graph-reuse -no-gr --no-graph-reuse -rcache --rope-cache"},
    {"operations are fused where it helps", Takes::kOne,
     "-fdn --fused-delta-net -wgt --worst-graph-tokens -mea --max-extra-alloc -mtprot "
     "--mtp-requantize-output-tensor"},
    {"the file is mapped", Takes::kMaybe, "--mmap --no-mmap -mmp -dio --direct-io -nr --no-repack"},
    {"the file is mapped", Takes::kOne, "-lm --load-mode -lzm --lazy-mode"},
    {"the file is mapped", Takes::kNone, "-thp --transparent-huge-pages --defer-experts"},
    {"the cache keeps what attention reads", Takes::kNone,
     "--swa-full -kvu --kv-unified -no-kvu --no-kv-unified"},
    {"the cache keeps what attention reads", Takes::kOne,
     "-dt --defrag-thold -ctxcp --ctx-checkpoints --swa-checkpoints --ctx-checkpoints-interval "
     "--ctx-checkpoints-tolerance --recurrent-ckpt-mode"},
    {"--kv sets the cache's type", Takes::kNone,
     "-khad --k-cache-hadamard -vhad --v-cache-hadamard"},
    {"a draft has the settings of its model", Takes::kOne,
     "-td --threads-draft --spec-draft-threads -tbd --threads-batch-draft "
     "--spec-draft-threads-batch -cd --ctx-size-draft --spec-draft-n-ubatch -ctkd "
     "--cache-type-k-draft --spec-draft-type-k -ctvd --cache-type-v-draft --spec-draft-type-v -Cd "
     "--cpu-mask-draft --spec-draft-cpu-mask -Crd --cpu-range-draft --spec-draft-cpu-range "
     "--cpu-strict-draft --spec-draft-cpu-strict --prio-draft --spec-draft-prio --poll-draft "
     "--spec-draft-poll -Cbd --cpu-mask-batch-draft --spec-draft-cpu-mask-batch "
     "--cpu-strict-batch-draft --spec-draft-cpu-strict-batch --prio-batch-draft "
     "--spec-draft-prio-batch --poll-batch-draft --spec-draft-poll-batch "
     "--cpu-range-batch-draft"},
    {"run has none, bench needs one", Takes::kNone, "--warmup --no-warmup -wb --warmup-batch"},
    {"no log is kept", Takes::kNone,
     "--log-disable --log-enable --log-append --log-new --log-test --log-prefix --no-log-prefix "
     "--log-timestamps --no-log-timestamps --log-jsonl --no-log-jsonl --minilog"},
    {"no log is kept", Takes::kOne,
     "-lv --verbosity --log-verbosity --log-format -ld --logdir --log-prompts-dir"},
    {"as the terminal has it", Takes::kMaybe, "-co --color --log-colors"},
    {"without a terminal it is always so", Takes::kNone, "--simple-io"},
    {"-v prints timings", Takes::kNone, "--perf --no-perf --show-timings --no-show-timings"},
    {"-v prints timings", Takes::kOne, "-ptc --print-token-count"},
    {"thinking is always separated", Takes::kOne, "--reasoning-format --reasoning-tokens"},
    {"prompts are batched as they come", Takes::kNone,
     "-cb --cont-batching -nocb --no-cont-batching"},
    {"nice does that", Takes::kOne, "--prio --prio-batch"},
    {"taskset does that", Takes::kOne,
     "-C --cpu-mask -Cr --cpu-range --cpu-strict -Cb --cpu-mask-batch -Crb --cpu-range-batch "
     "--cpu-strict-batch"},
    {"threads spin a little, then sleep", Takes::kOne, "--poll --poll-batch"},
};

// Other programs' names of our subcommands.
constexpr Synonyms kOtherCommands[] = {{"list", "ls"},
                                       {"inspect", "show info"},
                                       {"run", "generate complete"},
                                       {"completion", "completions"},
                                       {"man", "manual"},
                                       {"--version", "version"}};

constexpr std::string_view kNoDownloads =
    "pronk opens no connection: 'pronk pull OWNER/REPO' prints the line that downloads a model, "
    "and -m takes its name";

// Ollama's subcommands without an equivalent here, by reason.
constexpr Synonyms kForeignCommands[] = {
    {"pronk opens no network connection", "push"},
    {"pronk is not a server, and a model is in memory only while a command runs; pronk.h is for "
     "programs",
     "serve ps stop"},
    {"'pronk convert' and 'pronk quantize' make models", "create"},
    {"only ./pronk, in a checkout, does that", "test fuzz clean"},
    {"models are files: cp copies them", "cp"},
    {"models are files: 'pronk list' shows where they are, and rm removes them", "rm"},
};

// Flags without an equivalent here, by reason.
constexpr Synonyms kForeign[] = {
    {kNoDownloads,
     "-hff --hf-file -mu --model-url -hft --hf-token -dr --docker-repo -hfd -hfrd --hf-repo-draft "
     "--spec-draft-hf --gpt-oss-20b-default --gpt-oss-120b-default --vision-gemma-4b-default "
     "--vision-gemma-12b-default"},
    {"this subcommand does not keep the weights in memory; run and chat do", "--mlock"},
    {"pronk reads no adapters: merge them into the model",
     "--lora --lora-scaled --lora-init-without-apply --control-vector --control-vector-scaled "
     "--control-vector-layer-range"},
    {"pronk chat converses, and pronk run completes a text", "-no-cnv --no-conversation"},
    {"pronk reads text only",
     "-mm --mmproj -mmu --mmproj-url --mmproj-offload --no-mmproj-offload -mmdev --mmproj-device "
     "--mtmd-kq-type --image --audio --video --image-min-tokens --image-max-tokens --video-fps "
     "--video-timestamp-interval --video-ffmpeg-dir -tm --threads-mtmd"},
    {"pronk uses one model at a time", "-md --model-draft"},
    {"the number of drafted tokens follows from the gain; --draft N sets it",
     "--draft-min --draft-n-min --draft-p-min --draft-p-split --spec-draft-n-min "
     "--spec-draft-p-min --spec-draft-p-split -ps --p-split"},
    {"guesses come from the text and from a small model: --draft auto|off|N, and -md MODEL",
     "--spec-type --spec-stage --spec-replace --spec-draft-sampling --spec-synth-len "
     "--spec-synth-rates --spec-ngram-size-n --spec-ngram-size-m --spec-ngram-min-hits "
     "--spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match "
     "--spec-ngram-simple-size-n --spec-ngram-simple-size-m --spec-ngram-simple-min-hits "
     "--spec-ngram-map-k-size-n --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits "
     "--spec-ngram-map-k4v-size-n --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits "
     "--suffix-pattern-len --suffix-max-depth --suffix-corpus -lcs --lookup-cache-static -lcd "
     "--lookup-cache-dynamic -mtp --multi-token-prediction -no-mtp --no-multi-token-prediction "
     "-draft --draft-params"},
    {"pronk keeps no log; -v says what was chosen and why", "--log-file"},
    {"numactl places a program on the nodes of a machine", "--numa"},
    {"pronk computes on this machine's CPU only", "--rpc --list-devices"},
    {"the context does not shift: run ends where it is full, chat forgets the oldest messages",
     "--context-shift --keep"},
    {"the file says how positions are scaled: --override-kv ARCH.rope.freq_base=float:N (or "
     "ARCH.rope.scaling.type=str:yarn, ARCH.rope.scaling.factor=float:N, "
     "ARCH.rope.scaling.original_context_length=int:N) changes it",
     "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "
     "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast -gan --grp-attn-n "
     "-gaw --grp-attn-w"},
    {"--override-kv ARCH.expert_used_count=int:N sets how many experts a token takes",
     "-ser --smart-expert-reduction"},
    {"all layers' keys and values have one type: --kv sets it",
     "-ctk-first --cache-type-k-first -ctk-last --cache-type-k-last -ctv-first "
     "--cache-type-v-first -ctv-last --cache-type-v-last"},
    {"--save-logits FILE keeps predictions, and --kl FILE compares with them; both are flags of "
     "pronk perplexity",
     "--kl-divergence --kl-divergence-base --save-all-logits"},
    {"'pronk perplexity' measures how well a text is predicted",
     "--perplexity --all-logits --ppl-stride --ppl-output-type --chunks --hellaswag "
     "--hellaswag-tasks --winogrande --winogrande-tasks --multiple-choice --multiple-choice-tasks"},
    {"--template takes a file", "--chat-template"},
    {"--template-var NAME=JSON does that",
     "--chat-template-kwargs --reasoning-preserve "
     "--no-reasoning-preserve"},
    {"the model's chat template frames what is typed; --template FILE takes another",
     "--in-prefix --in-suffix --in-prefix-bos"},
    {"without --chat, pronk run shows a text as the model writes it", "--skip-chat-parsing"},
    {"--system \"$(cat FILE)\" does that", "-sysf --system-prompt-file -spf"},
    {"-f FILE takes a text; one line feed at its end is left out", "-bf --binary-file --in-file"},
    {"'pronk tokenize' shows a prompt's tokens", "--verbose-prompt"},
    {"in pronk chat, \"\"\" before and after it encloses a text of several lines",
     "-mli --multiline-input"},
    {"--prompt-cache FILE keeps the prompt; 'pronk chat' saves conversations",
     "--prompt-cache-all"},
    {"--prompt-cache FILE writes the file if the prompt is longer: give it a copy",
     "--prompt-cache-ro"},
    {"--samplers takes names: 'top_k;top_p;temperature'", "--sampler-seq --sampling-seq"},
    {"pronk has no such sampler: --mirostat 2 aims at a surprisal, --xtc-probability at variety",
     "--adaptive-target --adaptive-decay --adaptive-updt-w-cur"},
    {"pronk has no such sampler: --min-p cuts off the tail", "--tfs"},
    {"penalties hold for line ends as well; --logit-bias ID+BIAS favours a token",
     "--no-penalize-nl"},
    {"pronk runs only one prompt",
     "--cfg-negative-prompt "
     "--cfg-negative-prompt-file --cfg-scale"},
    {"--logit-bias ID-inf forbids a token, and --grammar says what may be written",
     "--banned-string-file --banned-n --allowlist-unicode-rule --allowlist-pieces "
     "--allowlist-keyword --allowlist-keyword-delay --expiring-logit-bias-file"},
    {"--special reads the tokens of a prompt to fill in, such as <|fim_prefix|>, in -p",
     "--infill --spm-infill"},
    {"'pronk inspect --check' reads every tensor", "--check-tensors -vq --validate-quants"},
    {"'pronk inspect' shows a file without running it", "--dry-run"},
    {"'pronk list' shows the models on this machine", "-cl --cache-list"},
    {"'pronk completion bash' prints it", "--completion-bash"},
    {"'pronk embed' makes vectors of texts",
     "--embedding --embeddings --embd-normalize --embd-output-format --embd-separator --pooling "
     "--attention"},
    {"'pronk bench' measures speeds: -p, -n and -r set the tests",
     "-npp -ntg -pps -nrep --n-repetitions -ns --sequences --output-format"},
    {"pronk is not a server, and uses none",
     "--server-base --host --port --path --webui --webui-mcp-proxy --ui-mcp-proxy --api-key "
     "--api-key-file --ssl-key-file --ssl-cert-file -to --timeout --threads-http --send-done "
     "--metrics --no-slots --slot-save-path -sps --slot-prompt-similarity -cram --cache-ram -crs "
     "--cache-ram-similarity -cram-n-min --cache-ram-n-min --sql-save-file "
     "--sqlite-zstd-ext-file -a --alias --no-prefill-assistant --parallel-tool-calls"},
    {"it belongs to another of llama.cpp's programs; 'pronk --help' lists what there is here",
     "-dkvc --dump-kv-cache --context-file --chunk-size --chunk-separator --junk --pos "
     "--output-draft --draft-output --draft-output-file -ofreq --output-frequency "
     "--save-frequency --process-output --output-tensor-name --no-ppl --chunk --from-chunk "
     "--positive-file --negative-file --pca-batch --pca-iter --method"},
};

// The row that has the word; nullptr if no row has it.
template <class Rows>
auto RowOf(const Rows& table, const std::string& word) -> decltype(std::data(table)) {
  if (word.find(' ') != std::string::npos) return nullptr;
  for (const auto& row : table) {
    const std::string words = " " + std::string(row.words) + " ";
    if (words.find(" " + word + " ") != std::string::npos) return &row;
  }
  return nullptr;
}

// "" if no row has the word.
std::string Find(std::span<const Synonyms> table, const std::string& word) {
  const Synonyms* const row = RowOf(table, word);
  return row != nullptr ? std::string(row->meaning) : "";
}

// "on", or "0,1" as in llama-bench.
bool IsYesOrNo(const std::string& text) {
  constexpr auto kWords = std::to_array<std::string_view>({"on", "off", "auto", "true", "false"});
  return std::ranges::find(kWords, text) != kWords.end() ||
         (!text.empty() && text.find_first_not_of("01,") == std::string::npos);
}

}  // namespace

std::string Guess(std::string_view typed, const std::vector<std::string>& words) {
  constexpr size_t kLongest = 40;  // letters; longer words are not typos, and comparing takes time
  const std::string* best = nullptr;
  size_t least = std::clamp<size_t>(typed.size() / 3, 2, 3) + 1;
  for (const std::string& word : words) {
    if (typed.size() > kLongest || word.size() < 3) continue;  // one letter is like any other
    const size_t distance = word.starts_with(typed) ? 1 : EditDistance(typed, word);
    if (distance < std::min(least, typed.size())) {
      least = distance;
      best = &word;
    }
  }
  return best != nullptr ? ": did you mean " + *best + "? " : ": ";
}

std::string OurFlag(const std::string& name) {
  const std::string ours = Find(kLongNames, name);
  return ours.empty() ? name : ours;
}

std::string OurCommand(const CommandLine& line, std::span<const std::string> args) {
  if (args[0] == "pull") {
    throw UsageError("pull: pronk opens no connection; this line does: ",
                     args.size() > 1 ? PullLine(args[1]) : SuggestedModel().line);
  }
  if (args[0] != "run") return args[0];
  for (size_t i = 1; i < args.size() && args[i] != "--"; ++i) {
    const std::string name = OurFlag(args[i]);
    if (name == "--conversation") return "chat";
    const auto has_value = [&](const Flag& flag) {
      return std::ranges::count(flag.names, name) > 0 && !flag.is_switch() && !flag.may_be_alone;
    };
    const auto run = std::ranges::find(line.commands(), "run", &Command::name);
    if (std::ranges::any_of(run->flags, has_value)) ++i;
  }
  return "run";
}

bool IsImplied(const Command& command, const std::string& flag) {
  return (command.name == "chat" && (flag == "--conversation" || flag == "--no-display-prompt")) ||
         (command.name == "run" && flag == "--no-conversation");
}

size_t TakeIdleFlag(std::span<const std::string> args, Command& command) {
  const std::string name = args[0].substr(0, args[0].find('='));
  const Idle* const idle = RowOf(kIdle, name);
  if (idle == nullptr || command.Find("--model") == nullptr) return 0;
  command.idle.push_back(name + " (" + std::string(idle->why) + ")");
  const bool is_apart = name == args[0] && args.size() > 1;
  const bool has_value = is_apart && (idle->takes == Takes::kOne ||
                                      (idle->takes == Takes::kMaybe && IsYesOrNo(args[1])));
  return has_value ? 2 : 1;
}

void RefuseFlag(const CommandLine& line, const Command& command, const std::string& name) {
  const std::string why = Find(kForeign, name);
  if (!why.empty()) throw UsageError(name, ": ", why);
  const std::string ours = OurFlag(name);
  for (const Command& other : line.commands()) {
    const auto has = [&](const Flag& flag) { return std::ranges::count(flag.names, ours) > 0; };
    if (&other == &command || std::ranges::none_of(other.flags, has)) continue;
    throw UsageError("pronk ", command.typed, " has no flag ", gguf::Quoted(name), ", but pronk ",
                     other.name, " has: 'pronk ", command.name, " --help' lists them");
  }
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  throw UsageError("pronk ", command.typed, " has no flag ", gguf::Quoted(name), Guess(name, names),
                   "'pronk ", command.name, " --help' lists them");
}

void RefuseCommand(const CommandLine& line, const std::string& name) {
  const std::string ours = Find(kOtherCommands, name), why = Find(kForeignCommands, name);
  if (!why.empty()) throw UsageError(name, ": ", why);
  std::vector<std::string> names = {"help"};
  for (const Command& command : line.commands()) names.push_back(command.name);
  throw UsageError("there is no subcommand ", gguf::Quoted(name),
                   (ours.empty() ? Guess(name, names) : ": did you mean " + ours + "? "),
                   "'pronk --help' lists them");
}

}  // namespace cli
