// Finds the files that describe the tokenizer, and derives the keys.
#include "convert/hf_tokenizer.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "gguf/error.h"
#include "gguf/number.h"
#include "tokenizer/normalizer.h"

namespace convert {
namespace {

using tokenizer::TokenType;

constexpr float kAddedScore = -1000;

// A folder's names of special tokens, and the keys of their ids.
constexpr std::pair<const char*, const char*> kSpecials[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {"sep_token", "tokenizer.ggml.seperator_token_id"},  // spelt so
    {"cls_token", "tokenizer.ggml.cls_token_id"},
    {"mask_token", "tokenizer.ggml.mask_token_id"},
};

// Ways in which added tokens are found, as folders name them; the keys have a prefix.
constexpr std::pair<const char*, tokenizer::AddedToken> kAddedKeys[] = {
    {"lstrip", tokenizer::kLstrip},
    {"rstrip", tokenizer::kRstrip},
    {"single_word", tokenizer::kSingleWord},
    {"normalized", tokenizer::kNormalized},
};

class TokenizerWriter {
 public:
  TokenizerWriter(const Source& source, OutModel& model)
      : source_(source),
        model_(model),
        config_(model.folder.Object("tokenizer_config.json")),
        map_(model.folder.Object("special_tokens_map.json")),
        json_(model.folder.Object("tokenizer.json")),
        generation_(model.folder.Object("generation_config.json")) {}

  void Write(uint64_t n_rows) {
    if (n_rows > kMaxVocabularySize) {  // a sparse file can have many rows in few bytes
      model_.config.Fail("vocab_size", "expected an embedding of at most ", kMaxVocabularySize,
                         " rows, found ", n_rows);
    }
    ReadVocabulary();
    AddTokens();
    if (from_sentencepiece_ && json_.is_there()) ReadPipeline(json_, vocab_);
    DropAddedAfter(n_rows);
    vocab_.Pad(n_rows);
    for (size_t i = 0; i < vocab_.tokens.size(); ++i) ids_.emplace(vocab_.tokens[i], i);
    WriteVocabulary();
    WriteSpecials();
    WriteTemplate();
  }

 private:
  void ReadVocabulary() {
    const auto spm = model_.folder.Find("tokenizer.model");
    if (spm && !source_.hf.raw_bpe) {
      vocab_ = ReadSentencePiece(*spm, *model_.folder.Text("tokenizer.model"));
      from_sentencepiece_ = true;
    } else if (json_.is_there()) {
      vocab_ = ReadTokenizerJson(json_, source_.family.name, source_.hf.raw_bpe);
    } else if (const auto ranks = model_.folder.Find("tiktoken.model")) {
      ExpectClass("TikTokenTokenizer");  // its program has the split pattern
      vocab_ = ReadTiktoken(*ranks, *model_.folder.Text("tiktoken.model"));
    } else if (const auto pieces = model_.folder.Find("sentencepiece.bpe.model")) {
      ExpectClass("XLMRobertaTokenizer");  // other files of that name have other ids
      vocab_ = ReadSentencePiece(*pieces, *model_.folder.Text("sentencepiece.bpe.model"),
                                 /*fairseq=*/true);
    } else {
      gguf::Fail(model_.folder.path(),
                 "expected tokenizer.model, tokenizer.json, tiktoken.model or "
                 "sentencepiece.bpe.model, found none");
    }
  }

  void ExpectClass(const std::string& known) const {
    const std::string found = ClassOr(known);
    if (found != known)
      config_.Fail("tokenizer_class", "expected ", known, ", found ", gguf::Quoted(found, 40));
  }

  // Tokens added to the vocabulary after its training. Newer folders name them in tokenizer.json
  // alone, also beside a tokenizer.model, which lacks them.
  void AddTokens() {
    if (from_sentencepiece_ && json_.IsList("added_tokens")) {
      for (const Fields& token : json_.Objects("added_tokens")) {
        const std::string text = token.Text("content");
        AddToken(text, token.json()["id"].Unsigned().value_or(kMaxVocabularySize),
                 token.BoolOr("special", false) || LooksSpecial(text));
      }
    }
    const Fields added = model_.folder.Object("added_tokens.json");
    for (const auto& [token, number] : added.json()) {
      if (const auto id = number.Unsigned()) AddToken(token, *id, LooksSpecial(token));
    }
    const Fields decoder = config_.Object("added_tokens_decoder");
    for (const auto& [number, entry] : decoder.json()) {
      const auto id = gguf::NumberIn<uint64_t>(number);
      if (!id || !entry.IsObject()) decoder.Fail(number, "expected a token's number and the token");
      const Fields token(decoder.file(), entry, "added_tokens_decoder." + number + ".");
      const std::string text = token.Text("content");
      AddToken(text, *id, token.BoolOr("special", false) || LooksSpecial(text));
      if (json_.is_there()) continue;
      vocab_.added.resize(vocab_.tokens.size());
      for (const auto& [key, flag] : kAddedKeys) {
        if (flag == tokenizer::kNormalized || !token.BoolOr(key, false)) continue;
        vocab_.added[*id] = static_cast<uint8_t>(vocab_.added[*id] | flag);
      }
    }
  }

  void AddToken(const std::string& token, uint64_t id, bool special) {
    if (id >= kMaxVocabularySize) {
      config_.Fail("added_tokens_decoder", "expected numbers below ", kMaxVocabularySize);
    }
    vocab_.Grow(id + 1, kAddedScore);
    TokenType& type = vocab_.types[id];
    const bool is_there = vocab_.tokens[id] == token;
    vocab_.tokens[id] = token;
    // Sentencepiece's types unknown, control and byte are kept.
    if (is_there && type != TokenType::kNormal && type != TokenType::kUserDefined) return;
    if (is_there && type == TokenType::kNormal && IsSpaces(token)) return;  // merges find it
    type = special ? TokenType::kControl : TokenType::kUserDefined;
    if (!is_there && !vocab_.scores.empty()) vocab_.scores[id] = kAddedScore;
  }

  // Added tokens without an embedding, mostly for images and audio.
  void DropAddedAfter(uint64_t n_rows) {
    const size_t n_tokens = vocab_.tokens.size();
    while (vocab_.tokens.size() > n_rows && vocab_.types.back() != TokenType::kNormal) {
      vocab_.tokens.pop_back();
      vocab_.types.pop_back();
      if (!vocab_.scores.empty()) vocab_.scores.pop_back();
    }
    if (vocab_.tokens.size() > n_rows) {
      gguf::Fail(model_.folder.path(), "tokenizer: expected at most ", n_rows,
                 " tokens, the embedding's rows, found ", vocab_.tokens.size());
    }
    if (vocab_.tokens.size() < n_tokens) {
      model_.notes.push_back(std::to_string(n_tokens - vocab_.tokens.size()) +
                             " tokens have no row in the embedding and are left out");
    }
  }

  void WriteVocabulary() {
    gguf::Writer& keys = model_.keys;
    keys.Add("tokenizer.ggml.model", vocab_.model);
    if (!vocab_.pre.empty()) keys.Add("tokenizer.ggml.pre", vocab_.pre);
    WriteTexts("tokenizer.ggml.tokens", vocab_.tokens);
    if (!vocab_.scores.empty()) {
      keys.AddArray("tokenizer.ggml.scores", std::span<const float>(vocab_.scores));
    }
    std::vector<int32_t> types;
    for (const TokenType type : vocab_.types) types.push_back(static_cast<int32_t>(type));
    keys.AddArray("tokenizer.ggml.token_type", std::span<const int32_t>(types));
    if (!vocab_.merges.empty()) WriteTexts("tokenizer.ggml.merges", vocab_.merges);
    if (vocab_.model == "t5")
      keys.Add("tokenizer.ggml.remove_extra_whitespaces", vocab_.trims_spaces);
    WriteAdded();
    WriteNormalizer();
    if (vocab_.charsmap.empty()) return;
    const std::vector<uint8_t> bytes(vocab_.charsmap.begin(), vocab_.charsmap.end());
    keys.AddArray("tokenizer.ggml.precompiled_charsmap", std::span<const uint8_t>(bytes));
  }

  void WriteAdded() {
    for (const auto& [key, flag] : kAddedKeys) {
      std::vector<int32_t> ids;
      for (size_t i = 0; i < std::min(vocab_.added.size(), vocab_.tokens.size()); ++i) {
        if ((vocab_.added[i] & flag) != 0) ids.push_back(static_cast<int32_t>(i));
      }
      if (ids.empty()) continue;
      model_.keys.AddArray(std::string("tokenizer.pronk.") + key, std::span<const int32_t>(ids));
    }
  }

  // Writes it only if it differs from the default of files without the key.
  void WriteNormalizer() {
    std::vector<std::string> usual;
    const tokenizer::SplitRule* const rule =
        vocab_.model == "gpt2" ? tokenizer::FindSplitRule(vocab_.pre) : nullptr;
    if (rule != nullptr && rule->composes) usual.emplace_back("NFC");
    if (vocab_.normalizer && *vocab_.normalizer != usual) {
      WriteTexts(std::string(tokenizer::kNormalizerKey).c_str(), *vocab_.normalizer);
    }
  }

  bool IsWordPiece() const { return vocab_.model == "bert"; }

  void WriteTexts(const char* key, const std::vector<std::string>& texts) {
    model_.keys.AddStrings(key, std::vector<std::string_view>(texts.begin(), texts.end()));
  }

  // Finds a token by its text, given as a string or in an object.
  std::optional<uint64_t> IdOf(const Fields& fields, const char* key) const {
    std::string text;
    if (fields.IsText(key)) text = fields.Text(key);
    if (fields.IsObject(key)) text = fields.Object(key).TextOr("content", "");
    const auto found = ids_.find(text);
    if (text.empty() || found == ids_.end()) return std::nullopt;
    return found->second;
  }

  // The ids of config.json's or generation_config.json's "..._token_id".
  std::vector<uint64_t> Ids(const Fields& fields, const std::string& key) const {
    std::vector<uint64_t> ids;
    for (const double id : fields.Numbers(key)) {
      if (id >= 0 && id < static_cast<double>(vocab_.tokens.size())) {
        ids.push_back(static_cast<uint64_t>(id));
      }
    }
    return ids;
  }

  std::optional<uint64_t> FindSpecial(const char* name) const {
    for (const Fields* fields : {&config_, &map_}) {
      if (const auto id = IdOf(*fields, name)) return id;
    }
    // Qwen's null says that it has none, though config.json has a number for training.
    if (name == std::string_view("bos_token") && config_.json()[name].text() == "null")
      return std::nullopt;
    const std::string key = std::string(name) + "_id";
    for (const Fields* fields : {static_cast<const Fields*>(&model_.config), &generation_}) {
      if (const auto ids = Ids(*fields, key); !ids.empty()) return ids[0];
    }
    return std::nullopt;
  }

  void WriteSpecials() {
    std::map<std::string_view, uint64_t> found;
    for (const auto& [name, key] : kSpecials) {
      if (const auto id = FindSpecial(name)) found[name] = *id;
    }
    if (IsWordPiece()) {
      const auto unknown = IdOf(json_.Object("model"), "unk_token");
      if (unknown) found["unk_token"] = *unknown;
    }
    const auto ends = EndsOfTemplate();
    // The token after every text is eos (Qwen3-Embedding), and the first token before it is bos
    // (GLM 4 has two), whatever config.json says. A WordPiece text is between cls and sep.
    const auto last = ends && !ends->after.empty() ? ids_.find(ends->after[0]) : ids_.end();
    if (last != ids_.end()) found[IsWordPiece() ? "sep_token" : "eos_token"] = last->second;
    if (ends && !ends->before.empty()) {
      found[IsWordPiece() ? "cls_token" : "bos_token"] = IdOfToken(ends->before[0]);
      std::vector<int32_t> more;
      for (size_t i = 1; i < ends->before.size(); ++i) {
        more.push_back(static_cast<int32_t>(IdOfToken(ends->before[i])));
      }
      if (!more.empty())
        model_.keys.AddArray("tokenizer.pronk.after_bos", std::span<const int32_t>(more));
    }
    if (IsWordPiece() && found.contains("cls_token")) found["bos_token"] = found["cls_token"];
    for (const auto& [name, key] : kSpecials) {
      if (found.contains(name)) model_.keys.Add(key, static_cast<uint32_t>(found[name]));
    }
    WriteEnds(found.contains("eos_token") ? std::optional(found["eos_token"]) : std::nullopt);
    const bool is_last = last != ids_.end() && !IsWordPiece();
    std::optional<bool> starts, separates;
    if (ends && !IsWordPiece()) starts = !ends->before.empty();
    if (is_last && found.contains("sep_token") && found["sep_token"] == last->second)
      separates = true;
    WriteFlag("add_bos_token", starts);
    WriteFlag("add_eos_token", is_last ? std::optional(true) : std::nullopt);
    WriteFlag("add_sep_token", separates);
    ReadBertFlags();
    WriteFlag("normalizer.lowercase", vocab_.lowers);
    WriteFlag("normalizer.strip_accents", vocab_.strips);
    WriteSpacePrefix();
    WriteOwn("clean_text", vocab_.cleans);
    WriteOwn("handle_chinese_chars", vocab_.splits_ideographs);
    WriteOwn("ignore_merges", vocab_.ignore_merges);
    if (vocab_.max_word_characters) {
      model_.keys.Add("tokenizer.pronk.max_word_characters",
                      static_cast<uint32_t>(*vocab_.max_word_characters));
    }
  }

  // The folder's class of tokenizer, without "Fast"; `otherwise` if it does not say.
  std::string ClassOr(const std::string& otherwise) const {
    std::string name = config_.TextOr("tokenizer_class", otherwise);
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    return name;
  }

  // These classes of transformers replace tokenizer.json's settings of a BertNormalizer.
  void ReadBertFlags() {
    const bool has_normalizer = json_.Object("normalizer").TextOr("type", "") == "BertNormalizer";
    const bool is_bert = model_.config.TextOr("model_type", "") == "bert";
    const std::string name = ClassOr(is_bert ? "BertTokenizer" : "");
    if (!has_normalizer || (name != "BertTokenizer" && name != "DistilBertTokenizer")) return;
    vocab_.lowers = config_.BoolOr("do_lower_case", true);
    vocab_.strips = config_.BoolOr("strip_accents", *vocab_.lowers);
    vocab_.splits_ideographs = config_.BoolOr("tokenize_chinese_chars", true);
  }

  // Whether tokenizer_config.json's add_bos_token and add_eos_token have an effect: other classes
  // of transformers follow tokenizer.json.
  bool HasFlags() const {
    const std::string name = ClassOr("LlamaTokenizer");
    return !json_.is_there() ||
           std::ranges::any_of(std::array{"Llama", "CodeLlama", "Gemma", "Cohere"},
                               [&](const char* first) { return name.starts_with(first); });
  }

  // All tokens that end a text: generation_config.json's, then config.json's.
  void WriteEnds(std::optional<uint64_t> eos) {
    std::vector<int32_t> ends;
    if (eos) ends.push_back(static_cast<int32_t>(*eos));
    for (const Fields* fields :
         {static_cast<const Fields*>(&generation_), static_cast<const Fields*>(&model_.config)}) {
      for (const uint64_t id : Ids(*fields, "eos_token_id")) {
        const auto end = static_cast<int32_t>(id);
        if (std::ranges::count(ends, end) == 0) ends.push_back(end);
      }
    }
    if (!eos || ends.size() < 2) return;
    model_.keys.Add("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(ends[1]));
    model_.keys.AddArray("tokenizer.ggml.eos_token_ids", std::span<const int32_t>(ends));
  }

  // tokenizer_config.json's add_prefix_space takes precedence over tokenizer.json. `legacy` says
  // how transformers makes a tokenizer.json of a Llama's tokenizer.model: false puts a space before
  // the text alone, not after special tokens.
  void WriteSpacePrefix() {
    const bool is_llama = config_.TextOr("tokenizer_class", "Llama").starts_with("Llama");
    if (from_sentencepiece_ && !json_.is_there() && is_llama && !config_.BoolOr("legacy", true) &&
        vocab_.add_space_prefix.value_or(true)) {
      vocab_.space_prefix = "first";
    }
    constexpr const char* kAdd = "add_prefix_space";
    if (config_.IsBool(kAdd) && vocab_.model != "bert" && vocab_.model != "gemma4") {
      const bool adds = config_.BoolOr(kAdd, false);
      if (vocab_.model == "gpt2") {
        vocab_.space_prefix = adds ? "always" : "";
      } else if (!adds) {
        vocab_.add_space_prefix = false;
        vocab_.space_prefix.clear();
      }
    }
    WriteFlag("add_space_prefix", vocab_.add_space_prefix);
    if (!vocab_.space_prefix.empty()) {
      model_.keys.Add("tokenizer.pronk.space_prefix", vocab_.space_prefix);
    }
  }

  // A flag that is true by default.
  void WriteOwn(const std::string& name, std::optional<bool> flag) {
    if (flag) model_.keys.Add("tokenizer.pronk." + name, *flag);
  }

  uint64_t IdOfToken(const std::string& token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) {
      json_.Fail("post_processor", "expected a token, found ", gguf::Quoted(token, 40));
    }
    return found->second;
  }

  void WriteFlag(const std::string& name, std::optional<bool> otherwise) {
    if (config_.Has(name) && HasFlags()) otherwise = config_.BoolOr(name, false);
    if (otherwise) model_.keys.Add("tokenizer.ggml." + name, *otherwise);
  }

  // The tokens that are put before and after every text; empty if the folder does not say.
  std::optional<Vocabulary::Around> EndsOfTemplate() const {
    if (vocab_.model == "t5" && !json_.is_there()) return Vocabulary::Around{{"<s>"}, {"</s>"}};
    if (!json_.is_there()) return std::nullopt;
    const Fields post = json_.Object("post_processor");
    const std::vector<Fields> steps =
        post.IsList("processors") ? post.Objects("processors") : std::vector<Fields>{post};
    for (const Fields& step : steps) {
      const std::string type = step.TextOr("type", "");
      if (type == "RobertaProcessing" || type == "BertProcessing") {
        return Vocabulary::Around{{TokenOf(step, "cls")}, {TokenOf(step, "sep")}};
      }
    }
    // Without such a step no tokens are added, except by classes that have a flag for it.
    if (!vocab_.around && (vocab_.model == "gpt2" || !HasFlags())) return Vocabulary::Around{};
    return vocab_.around;
  }

  // The token of [token, number].
  static std::string TokenOf(const Fields& step, const char* key) {
    for (const auto& [none, token] : step.json()[key]) {
      if (token.IsString()) return token.String();
    }
    step.Fail(key, "expected a token and its number");
  }

  void WriteTemplate() {
    constexpr const char* kTemplate = "chat_template";
    std::optional<std::string> text = model_.folder.Text("chat_template.jinja");
    std::optional<std::string> with_tools =
        model_.folder.Text("additional_chat_templates/tool_use.jinja");
    const Fields json = model_.folder.Object("chat_template.json");
    for (const Fields* fields : {&json, static_cast<const Fields*>(&config_)}) {
      if (!text && fields->IsText(kTemplate)) text = fields->Text(kTemplate);
      if (!fields->IsList(kTemplate)) continue;
      if (!text) text = NamedTemplate(*fields, "default");
      if (!with_tools) with_tools = NamedTemplate(*fields, "tool_use");
    }
    if (text) model_.keys.Add("tokenizer.chat_template", *text);
    if (with_tools) model_.keys.Add("tokenizer.chat_template.tool_use", *with_tools);
  }

  // Reads [{"name": ..., "template": ...}, ...].
  static std::optional<std::string> NamedTemplate(const Fields& fields, std::string_view name) {
    for (const Fields& one : fields.Objects("chat_template")) {
      if (one.TextOr("name", "") == name) return one.Text("template");
    }
    return std::nullopt;
  }

  const Source& source_;
  OutModel& model_;
  Fields config_, map_, json_, generation_;
  bool from_sentencepiece_ = false;
  Vocabulary vocab_;
  std::map<std::string, uint64_t, std::less<>> ids_;
};

}  // namespace

bool LooksSpecial(std::string_view token) {
  const auto between = [&](std::string_view begin, std::string_view end) {
    return token.starts_with(begin) && token.ends_with(end);
  };
  constexpr std::string_view kAlone[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
  return std::ranges::count(kAlone, token) > 0 || between("<|", "|>") || between("<｜", "｜>") ||
         between("<unused", ">");
}

void AddTokenizer(const Source& source, uint64_t n_rows, OutModel& model) {
  TokenizerWriter(source, model).Write(n_rows);
}

}  // namespace convert
