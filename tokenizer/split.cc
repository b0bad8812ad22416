// The table of split patterns by name, run by PCRE2.
#include "tokenizer/split.h"

#include <bitset>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "gguf/error.h"
#include "gguf/utf8.h"
#include "tokenizer/characters.h"
#include "tokenizer/unicode_data.h"

namespace tokenizer {
namespace {

using std::string_view;

// The patterns of the models' own tokenizers.

constexpr string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Digits in groups of three; line ends belong to the punctuation before them.
constexpr string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Like Llama 3, with single digits.
constexpr string_view kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                               R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Like tekken, with "'s" and the like at the end of a word, and digits in groups of three.
constexpr string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Words with their marks, Latin ones with a sign before them; punctuation with the line ends after.
constexpr string_view kDeepSeek3 =
    R"([!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr string_view kChineseJapanese = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)";
constexpr string_view kChineseJapaneseKorean =
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

// Words end at a space or a mark of punctuation, of Arabic and Hindi, too.
constexpr string_view kBloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";

constexpr SplitRule kRules[] = {
    // names, patterns, ignore_merges, add_bos, add_sep
    {{"llama-bpe", "llama3", "llama-v3", "falcon3", "lfm2", "pixtral", "midm-2.0", "falcon-h1",
      "jina-v5-nano"},
     {kLlama3},
     true,
     true},
    {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {kLlama3}},
    {{"gpt-2", "phi-2", "exaone4", "granite-docling", "a.x-4.0", "mellum", "trillion", "gigachat",
      "jais", "mpt", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de"},
     {kGpt2}},
    {.names = {"olmo", "modern-bert"}, .patterns = {kGpt2}, .composes = true},
    {{"roberta-bpe", "jina-v1-en", "jina-v2-code"}, {kGpt2}, false, false, true},
    {.names = {"qwen2", "deepseek-r1-qwen", "f2llmv2", "megrez"},
     .patterns = {kQwen2},
     .composes = true},
    {{"stablelm2", "hunyuan", "kormo", "grok-2", "solar-open"}, {kQwen2}},
    // Like Qwen 2, but marks (accents, vowel signs) belong to the words of their letters.
    {.names = {"qwen35"},
     .patterns = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
                  R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
     .composes = true},
    // Like Qwen 2, but line ends are separate from the punctuation before them.
    {{"seed-coder"},
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
      R"( ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
    // Splits off single digits, then splits the rest like GPT-2.
    {{"smollm", "starcoder", "refact", "command-r", "minerva-7b", "exaone", "codeshell", "mellum2"},
     {R"(\p{N})", kGpt2}},
    // Words also end before an upper-case letter that follows a lower-case one; single digits; a
    // slash belongs to the punctuation before it.
    {{"tekken"},
     {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
      R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
     true,
     true},
    {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {kGpt4o}},
    {{"granite-embed-multi-97m"}, {kGpt4o}, true},
    // Line ends; words of the scripts with upper case (as that tokenizer lists them); punctuation,
    // also full-width; spaces at the end; Chinese, Japanese, Korean; digits.
    {{"deepseek-llm"},
     {R"([\r\n])",
      R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
      R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})"
      R"(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
      R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
      R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
      R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
      R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
      R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
      R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
      R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
      R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
      R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
      R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
      R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
      R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
      R"(\x{1E900}-\x{1E943}]+)",
      R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
      R"(\s+$)", kChineseJapaneseKorean, R"(\p{N})"}},
    // For code: any letters, and Unicode's punctuation.
    {{"deepseek-coder"},
     {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kChineseJapaneseKorean, R"(\p{N})"}},
    // Digits in groups of three; then Chinese and Japanese.
    {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
     {R"(\p{N}{1,3})", kChineseJapanese, kDeepSeek3}},
    // Single digits, and line ends are words alone.
    {{"spark2_5"},
     {R"(\p{N})", kChineseJapanese,
      R"([!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
      R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)"}},
    // Like Qwen 2, without "'s" and the like.
    {{"ufakzeka"},
     {R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
    // First punctuation, then as GPT-2, then numbers in groups of three digits.
    {{"default"}, {R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"}},
    // First digits in groups of three, then as Llama 3.
    {{"minicpm5"}, {R"(\p{N}{1,3})", kLlama3}, true},
    // Like Qwen 2 on each line, and on each run of line ends.
    {{"laguna"}, {R"([^\n]+|\n+)", kQwen2}},
    // Like Qwen 2, but possessive: punctuation keeps its match, and line ends are words of their
    // own.
    {{"bailingmoe", "bailingmoe2", "llada-moe"},
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}|)"
      R"( ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    // Like Qwen 2, but words with their marks and the single spaces between them are one word.
    {{"exaone-moe"},
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|)"
      R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    // Like Llama 3, with runs of spaces in powers of two.
    {{"jais-2"},
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
      R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|)"
      R"(\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"}},
    // Splits off punctuation, with the grave accent; then splits like GPT-2; then digits in threes.
    {{"falcon"}, {R"([\p{P}$+<=>^~|`]+)", kGpt2, R"([0-9][0-9][0-9])"}},
    {{"bloom", "poro-chat", "gpt3-finnish"}, {kBloom}},
    {{"viking"}, {kBloom, R"(\p{N})"}},
    // Runs of Chinese, spelt out since versions of PCRE2 differ in \p{Han}; words as in GPT-4o,
    // without Chinese; line ends belong to punctuation.
    {{"kimi-k2"},
     {R"(([\x{2E80}-\x{2E99}\x{2E9B}-\x{2EF3}\x{2F00}-\x{2FD5}\x{3005}\x{3007}\x{3021}-\x{3029})"
      R"(\x{3038}-\x{303B}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FA6D}\x{FA70}-\x{FAD9})"
      R"(\x{16FE2}\x{16FE3}\x{16FF0}\x{16FF1}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B739})"
      R"(\x{2B740}-\x{2B81D}\x{2B820}-\x{2CEA1}\x{2CEB0}-\x{2EBE0}\x{2EBF0}-\x{2EE5D})"
      R"(\x{2F800}-\x{2FA1D}\x{30000}-\x{3134A}\x{31350}-\x{323AF}])(?1)*|)"
      R"([^\r\n\p{L}\p{N}]?(?:(?!(?1))[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
      R"((?:(?!(?1))[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"([^\r\n\p{L}\p{N}]?(?:(?!(?1))[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
      R"((?:(?!(?1))[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
    // Korean, full-width punctuation, Bopomofo, Chinese, Japanese; then as GPT-4o; then digits.
    {{"youtu"},
     {R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019})"
      R"(\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|)"
      R"([\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)",
      kGpt4o, R"(\p{N})"},
     true},
    // Numbers apart, their digits in groups of three from the right; words and spaces together. The
    // first alternative is the second's result after a group, without counting all digits again.
    {{"superbpe"},
     {R"(\p{N}+)", R"(\G(?<=\p{Nd})\p{Nd}{3}|(?s:.)(?:(?!(?:\p{Nd}{3})++(?!\p{Nd}))(?s:.))*+)"}},
    // Digits in such groups where no letter follows, then as GPT-4o. The last alternative fails,
    // too, but skips all digits at once: otherwise the search for the letter would restart at each
    // digit.
    {{"tiny_aya", "cohere2moe"},
     {R"(\G(?<=\p{Nd})\p{Nd}{3}|\p{Nd}{1,3}(?=(?:\p{Nd}{3})*+\b)|\p{Nd}++(*SKIP)(*FAIL))", kGpt4o}},
    // Markers of images, white space, digits and punctuation apart, then as GPT-2.
    {{"chameleon"},
     {R"(<sentinel:[0-9]+>)", R"(IMGIMG[A-I]{1,4}Z)", R"([\t\n]|    |  )", R"(\p{N})",
      R"([\p{P}!-/:-@\[-`{-~])", kGpt2},
     false,
     true},
    // The text between white space, which is dropped.
    {.names = {"whitespace"}, .patterns = {R"(\S+)"}, .drops_rest = true},
    // Digits in such groups; then scripts without spaces between words; then as DeepSeek-V3.
    {{"afmoe"},
     {R"(\G(?<=\p{Nd})\p{Nd}{3}|\p{Nd}{1,3}(?=(?:\p{Nd}{3})*+(?!\p{Nd})))",
      R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F})"
      R"(\x{2F00}-\x{2FDF}\x{E40}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
      R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)",
      kDeepSeek3}},
};

// Replaces characters that an older PCRE2 does not know, each by one of its class and length: all
// versions split texts as Unicode 16 does. Replaced() is empty without any.
class NewerCharacters {
 public:
  NewerCharacters() {
    for (HexReader reader(kNewerCharacters); !reader.AtEnd(); reader.Skip(' ')) {
      const char32_t first = reader.Number();
      const char32_t last = reader.Skip('-') ? reader.Number() : first;
      reader.Skip(':');
      runs_.push_back({first, last, reader.Number()});
      for (char32_t page = first >> 8; page <= last >> 8; ++page) pages_.set(page);
    }
  }

  std::string Replaced(string_view text) const {
    // The first such character takes three bytes.
    const auto* const first =
        std::ranges::find_if(text, [](char c) { return static_cast<uint8_t>(c) >= 0xE0; });
    std::string out;
    const char* const begin = text.data();
    const auto n_before = static_cast<size_t>(first - text.begin());
    for (const auto& [c, bytes] : gguf::Characters(text.substr(n_before))) {
      if (c >> 8 >= pages_.size() || !pages_[c >> 8]) continue;
      const auto run = std::ranges::lower_bound(runs_, c, {}, &Run::last);
      if (run == runs_.end() || run->first > c) continue;
      if (out.empty()) out = text;
      out.replace(static_cast<size_t>(bytes.data() - begin), bytes.size(), gguf::ToUtf8(run->like));
    }
    return out;
  }

 private:
  struct Run {
    char32_t first, last, like;
  };
  std::vector<Run> runs_;
  std::bitset<0x324> pages_;  // pages of 256 characters
};

// In the patterns \s means Unicode's White_Space; PCRE2's \s also has U+180E. So \s is written out
// (inside brackets without its own brackets).
std::string SpellOutSpaces(string_view pattern) {
  constexpr string_view kSpaces =
      R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const string_view two = pattern.substr(i, 2);
    if (two == "\\s" || two == "\\S") {
      if (!in_class) out += two == "\\S" ? "[^" : "[";
      out += kSpaces;
      if (!in_class) out += ']';
      ++i;
    } else {
      if (pattern[i] == '[') in_class = true;
      if (pattern[i] == ']') in_class = false;
      out += pattern[i];
    }
  }
  return out;
}

[[noreturn]] void FailPcre(int code) {
  char message[128];
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof(message));
  throw gguf::Fault("PCRE2: ", message);
}

PCRE2_SPTR Bytes(string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

template <auto function>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    function(object);
  }
};
using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>>;

}  // namespace

std::span<const SplitRule> SplitRules() { return kRules; }

const SplitRule* FindSplitRule(string_view name) {
  for (const SplitRule& rule : kRules) {
    if (std::ranges::count(rule.Names(), name) > 0) return &rule;
  }
  return nullptr;
}

std::string SplitRuleNames() {
  std::string names;
  for (const SplitRule& rule : kRules) {
    for (const string_view name : rule.Names()) {
      if (!names.empty()) names += ", ";
      names += name;
    }
  }
  return names;
}

struct Splitter::Pattern {
  explicit Pattern(string_view source) {
    const std::string expression = SpellOutSpaces(source);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code.reset(pcre2_compile(Bytes(expression), expression.size(), PCRE2_UTF | PCRE2_UCP, &error,
                             &offset, nullptr));
    if (code == nullptr) FailPcre(error);
    // Without a just-in-time compiler PCRE2 interprets the pattern, which is slower.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  }
  Code code;
};

// One pass of a text through all patterns.
struct Splitter::Run {
  Run(const Splitter& the_splitter, bool keeps_rest, std::function<void(string_view)> the_word)
      : splitter(the_splitter),
        rest_is_cut(keeps_rest),
        word(std::move(the_word)),
        context(pcre2_match_context_create(nullptr)),
        match(pcre2_match_data_create(1, nullptr)) {
    if (context == nullptr || match == nullptr) throw std::bad_alloc();
    // The interpreter counts a long run of spaces as many steps: only the text's length limits it.
    pcre2_set_match_limit(context.get(), UINT32_MAX);
  }

  int Match(const pcre2_code* code, string_view text, size_t from) {
    return pcre2_match(code, Bytes(text), text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                       match.get(), context.get());
  }

  void Cut(string_view text, size_t pattern) {
    if (text.empty()) return;
    if (pattern == splitter.patterns_.size()) {
      word(text);
      return;
    }
    const pcre2_code* code = splitter.patterns_[pattern]->code.get();
    const bool keeps = rest_is_cut || pattern + 1 < splitter.patterns_.size();
    size_t done = 0;
    while (done < text.size()) {
      // Without NO_UTF_CHECK every match would check the whole text, which is quadratic.
      int count = Match(code, text, done);
      if (count == PCRE2_ERROR_JIT_STACKLIMIT && stack_is_for < text.size()) {
        // A repeated group takes up to 40 bytes a letter (superbpe's are long); PCRE2 has 32 KB.
        stack.reset(pcre2_jit_stack_create(1 << 16, 64 * text.size() + (1 << 16), nullptr));
        if (stack == nullptr) throw std::bad_alloc();
        stack_is_for = text.size();
        pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
        count = Match(code, text, done);
      }
      if (count == PCRE2_ERROR_NOMATCH) break;
      if (count < 0) FailPcre(count);
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
      const size_t begin = bounds[0];
      const size_t end = bounds[1];
      if (keeps) Cut(text.substr(done, begin - done), pattern + 1);
      Cut(text.substr(begin, end - begin), pattern + 1);
      done = end;
    }
    if (keeps) Cut(text.substr(done), pattern + 1);
  }

  const Splitter& splitter;
  bool rest_is_cut;  // text between matches of the last pattern
  std::function<void(string_view)> word;
  JitStack stack;           // null: PCRE2's own
  size_t stack_is_for = 0;  // bytes of text
  MatchContext context;
  MatchData match;
};

// Jais 2 cuts a run of spaces into pieces. Behind a space no line end can follow in its run, or the
// run would have been one word up to there: without the lookbehind each piece would search the rest
// of the run. The table keeps the published pattern, by which files are recognized.
static std::string WithoutSearches(string_view pattern) {
  constexpr string_view kSlow = R"(|\s*[\r\n]+|\s{512})";
  std::string text(pattern);
  if (const size_t at = text.find(kSlow); at != text.npos)
    text.insert(at + 1, R"((?<!(?![\r\n])\s))");
  return text;
}

Splitter::Splitter(const SplitRule& rule) {
  for (const string_view pattern : rule.Patterns()) {
    patterns_.push_back(std::make_unique<Pattern>(WithoutSearches(pattern)));
  }
}

Splitter::~Splitter() = default;

void Splitter::Cut(string_view text, bool keeps_rest,
                   const std::function<void(string_view)>& word) const {
  static const NewerCharacters newer;
  const std::string older = newer.Replaced(text);
  if (older.empty()) return Run(*this, keeps_rest, word).Cut(text, 0);
  Run(*this, keeps_rest, [&](string_view of_older) {
    word(text.substr(static_cast<size_t>(of_older.data() - older.data()), of_older.size()));
  }).Cut(older, 0);
}

}  // namespace tokenizer
