// Reads sentencepiece's file of a vocabulary, see hf_tokenizer.h.
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "convert/hf_tokenizer.h"
#include "gguf/error.h"

namespace convert {
namespace {

using tokenizer::TokenType;

// The wire format of protocol buffers: a field is a varint, number * 8 + kind, and its value.
class ProtoReader {
 public:
  ProtoReader(const std::string& path, std::string_view bytes) : path_(path), rest_(bytes) {}

  // False at the end.
  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t key = Varint();
    field_ = key >> 3;
    const uint64_t kind = key & 7;
    if (kind == 0) {
      number_ = Varint();
    } else if (kind == 1 || kind == 5) {
      bytes_ = Take(kind == 1 ? 8 : 4);
    } else if (kind == 2) {
      bytes_ = Take(Varint());
    } else {
      Fail();
    }
    return true;
  }
  uint64_t field() const { return field_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  float AsFloat() const {
    uint32_t bits = 0;
    if (bytes_.size() == sizeof(bits)) std::memcpy(&bits, bytes_.data(), sizeof(bits));
    return std::bit_cast<float>(bits);
  }
  [[noreturn]] void Fail() const {
    gguf::Fail(path_, "expected a model of sentencepiece, found something else or a part of one");
  }

 private:
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(Take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    Fail();
  }
  std::string_view Take(uint64_t n) {
    if (n > rest_.size()) Fail();
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  const std::string& path_;
  std::string_view rest_;
  uint64_t field_ = 0, number_ = 0;
  std::string_view bytes_;
};

void AddPiece(ProtoReader piece, Vocabulary& vocab) {
  std::string text;
  float score = 0;
  auto type = TokenType::kNormal;
  while (piece.Next()) {
    if (piece.field() == 1) text = piece.bytes();
    if (piece.field() == 2) score = piece.AsFloat();
    if (piece.field() == 3) {
      if (piece.number() < 1 || piece.number() > static_cast<uint64_t>(TokenType::kByte)) {
        piece.Fail();
      }
      type = static_cast<TokenType>(piece.number());  // same numbers in GGUF
    }
  }
  vocab.tokens.push_back(std::move(text));
  vocab.scores.push_back(score);
  vocab.types.push_back(type);
}

// XLM-RoBERTa's numbers are Fairseq's: other special tokens for the first three, and a mask last.
void RenumberForFairseq(const ProtoReader& model, Vocabulary& vocab) {
  constexpr size_t kReplaced = 3;
  if (vocab.tokens.size() <= kReplaced) model.Fail();
  const auto replace = [](auto& list, auto first, auto last) {
    list.erase(list.begin(), list.begin() + kReplaced);
    list.insert(list.begin(), first.begin(), first.end());
    list.push_back(last);
  };
  replace(vocab.tokens, std::array{"<s>", "<pad>", "</s>", "<unk>"}, "<mask>");
  replace(vocab.scores, std::array{0.f, 0.f, 0.f, 0.f}, 0.f);
  constexpr auto kControl = TokenType::kControl;
  replace(vocab.types, std::array{kControl, kControl, kControl, TokenType::kUnknown}, kControl);
  vocab.model = "t5";
}

}  // namespace

Vocabulary ReadSentencePiece(const std::string& path, std::string_view bytes, bool fairseq) {
  constexpr uint64_t kUnigram = 1, kBpe = 2;
  Vocabulary vocab;
  vocab.model = "llama";
  vocab.pre = "default";
  vocab.add_space_prefix = true;
  uint64_t type = kUnigram;
  ProtoReader model(path, bytes);
  while (model.Next()) {
    if (model.field() == 1) {
      AddPiece({path, model.bytes()}, vocab);
    } else if (model.field() == 2) {
      ProtoReader trainer(path, model.bytes());
      while (trainer.Next()) {
        if (trainer.field() == 3) type = trainer.number();
      }
    } else if (model.field() == 3) {
      ProtoReader normalizer(path, model.bytes());
      while (normalizer.Next()) {
        if (normalizer.field() == 2) vocab.charsmap = normalizer.bytes();
        if (normalizer.field() == 3) vocab.add_space_prefix = normalizer.number() != 0;
      }
    }
    if (vocab.tokens.size() > kMaxVocabularySize) model.Fail();
  }
  if (vocab.tokens.empty()) model.Fail();
  if (type != (fairseq ? kUnigram : kBpe)) {
    gguf::Fail(path, "expected a model of sentencepiece ",
               (fairseq ? "of pieces and their scores (Unigram)" : "that merges pairs (BPE)"),
               ", found another kind (type ", type, ")");
  }
  if (!fairseq && !vocab.charsmap.empty()) {
    gguf::Fail(path, "expected a model of sentencepiece that takes texts as they are (identity)");
  }
  if (fairseq) RenumberForFairseq(model, vocab);
  return vocab;
}

}  // namespace convert
