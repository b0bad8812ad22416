#include "convert/hf_tokenizer.h"

#include <map>
#include <span>
#include <utility>

#include "gguf/error.h"
#include "gguf/number.h"

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

// Some folders mark special tokens as ordinary ones.
bool LooksSpecial(std::string_view token) {
  const auto between = [&](std::string_view begin, std::string_view end) {
    return token.starts_with(begin) && token.ends_with(end);
  };
  return token == "<pad>" || token == "<mask>" || between("<|", "|>") || between("<｜", "｜>") ||
         between("<unused", ">");
}

class TokenizerWriter {
 public:
  TokenizerWriter(const Family& family, OutModel& model)
      : family_(family),
        model_(model),
        config_(model.folder.Object("tokenizer_config.json")),
        map_(model.folder.Object("special_tokens_map.json")),
        json_(model.folder.Object("tokenizer.json")),
        generation_(model.folder.Object("generation_config.json")) {}

  void Write(uint64_t n_rows) {
    if (n_rows > kMaxTokens) {  // a sparse file can have many rows in few bytes
      model_.config.Fail("vocab_size", "expected an embedding of at most ", kMaxTokens,
                         " rows, found ", n_rows);
    }
    ReadVocabulary();
    AddTokens();
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
    if (spm && !family_.raw_bpe) {
      vocab_ = ReadSentencePiece(*spm, *model_.folder.Text("tokenizer.model"));
    } else if (json_.is_there()) {
      vocab_ = ReadTokenizerJson(json_, family_);
    } else if (const auto ranks = model_.folder.Find("tiktoken.model")) {
      ExpectClass("TikTokenTokenizer");  // its program has the split pattern
      vocab_ = ReadTiktoken(*ranks, *model_.folder.Text("tiktoken.model"));
    } else if (const auto pieces = model_.folder.Find("sentencepiece.bpe.model")) {
      ExpectClass("XLMRobertaTokenizer");  // others of that name have other numbers
      vocab_ = ReadSentencePiece(*pieces, *model_.folder.Text("sentencepiece.bpe.model"),
                                 /*fairseq=*/true);
    } else {
      gguf::Fail(model_.folder.path(),
                 "expected tokenizer.model, tokenizer.json, tiktoken.model or "
                 "sentencepiece.bpe.model, found none");
    }
  }

  void ExpectClass(const std::string& known) const {
    std::string found = config_.TextOr("tokenizer_class", known);
    if (found.ends_with("Fast")) found.resize(found.size() - 4);
    if (found != known)
      config_.Fail("tokenizer_class", "expected ", known, ", found ", gguf::Quoted(found, 40));
  }

  // Tokens added to the vocabulary after its training.
  void AddTokens() {
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
    }
  }

  void AddToken(const std::string& token, uint64_t id, bool special) {
    if (id >= kMaxTokens) {
      config_.Fail("added_tokens_decoder", "expected numbers below ", kMaxTokens);
    }
    vocab_.Grow(id + 1, kAddedScore);
    TokenType& type = vocab_.types[id];
    const bool is_there = vocab_.tokens[id] == token;
    vocab_.tokens[id] = token;
    // Sentencepiece's types unknown, control and byte are kept.
    if (is_there && type != TokenType::kNormal && type != TokenType::kUserDefined) return;
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
    if (vocab_.model == "t5") keys.Add("tokenizer.ggml.remove_extra_whitespaces", true);
    if (vocab_.charsmap.empty()) return;
    const std::vector<uint8_t> bytes(vocab_.charsmap.begin(), vocab_.charsmap.end());
    keys.AddArray("tokenizer.ggml.precompiled_charsmap", std::span<const uint8_t>(bytes));
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
    const auto ends = EndsOfTemplate();
    // The token after every text is its end, whatever config.json says (Qwen3-Embedding).
    const auto last = ends && !ends->second.empty() ? ids_.find(ends->second) : ids_.end();
    if (last != ids_.end()) found["eos_token"] = last->second;
    if (IsWordPiece() && found.contains("cls_token")) found["bos_token"] = found["cls_token"];
    for (const auto& [name, key] : kSpecials) {
      if (found.contains(name)) model_.keys.Add(key, static_cast<uint32_t>(found[name]));
    }
    // If several tokens end a text, the first one other than eos.
    for (const uint64_t id : Ids(generation_, "eos_token_id")) {
      if (!found.contains("eos_token") || id == found["eos_token"]) continue;
      model_.keys.Add("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(id));
      break;
    }
    const bool is_last = last != ids_.end();
    std::optional<bool> starts, separates;
    if (ends)
      starts = found.contains("bos_token") && ends->first == vocab_.tokens[found["bos_token"]];
    if (is_last && found.contains("sep_token") && found["sep_token"] == last->second)
      separates = true;
    WriteFlag("add_bos_token", starts);
    WriteFlag("add_eos_token", is_last ? std::optional(true) : std::nullopt);
    WriteFlag("add_sep_token", separates);
    WriteFlag("normalizer.lowercase", vocab_.lowers);
    WriteFlag("normalizer.strip_accents", vocab_.strips);
    WriteFlag("add_space_prefix", vocab_.add_space_prefix);
  }

  void WriteFlag(const std::string& name, std::optional<bool> otherwise) {
    if (config_.Has(name)) otherwise = config_.BoolOr(name, false);
    if (otherwise) model_.keys.Add("tokenizer.ggml." + name, *otherwise);
  }

  // The tokens that tokenizer.json puts before and after every text, "" for none; empty if it does
  // not say. Word pieces are always put between two.
  std::optional<std::pair<std::string, std::string>> EndsOfTemplate() const {
    if (vocab_.model == "t5" && !json_.is_there()) return std::pair("<s>", "</s>");
    if (!json_.is_there() || IsWordPiece()) return std::nullopt;
    const Fields post = json_.Object("post_processor");
    const std::vector<Fields> steps =
        post.IsList("processors") ? post.Objects("processors") : std::vector<Fields>{post};
    for (const Fields& step : steps) {
      if (step.TextOr("type", "") == "RobertaProcessing")
        return std::pair(TokenOf(step, "cls"), TokenOf(step, "sep"));
      if (step.TextOr("type", "") != "TemplateProcessing" || !step.IsList("single")) continue;
      const std::vector<Fields> parts = step.Objects("single");
      const auto id = [](const Fields& part) {
        return part.Object("SpecialToken").TextOr("id", "");
      };
      if (parts.empty()) continue;
      return std::pair(id(parts[0]), parts.size() > 1 ? id(parts.back()) : "");
    }
    // Byte-level tokenizers without such a step add none.
    return vocab_.model == "gpt2" ? std::optional(std::pair<std::string, std::string>())
                                  : std::nullopt;
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
    const Fields json = model_.folder.Object("chat_template.json");
    for (const Fields* fields : {&json, static_cast<const Fields*>(&config_)}) {
      if (!text && fields->IsText(kTemplate)) text = fields->Text(kTemplate);
      if (!text && fields->IsList(kTemplate)) text = DefaultTemplate(*fields);
    }
    if (text) model_.keys.Add("tokenizer.chat_template", *text);
  }

  // From [{"name": ..., "template": ...}, ...].
  static std::optional<std::string> DefaultTemplate(const Fields& fields) {
    for (const Fields& one : fields.Objects("chat_template")) {
      if (one.TextOr("name", "") == "default") return one.Text("template");
    }
    return std::nullopt;
  }

  const Family& family_;
  OutModel& model_;
  Fields config_, map_, json_, generation_;
  Vocabulary vocab_;
  std::map<std::string, uint64_t, std::less<>> ids_;
};

}  // namespace

void AddTokenizer(const Family& family, uint64_t n_rows, OutModel& model) {
  TokenizerWriter(family, model).Write(n_rows);
}

}  // namespace convert
