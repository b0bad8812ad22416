// Unigram: the sentencepiece library does the work, on a model built here in memory.

#include <sentencepiece_processor.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>

#include "gguf/error.h"
#include "gguf/utf8.h"
#include "tokenizer/kinds.h"
#include "tokenizer/spelling.h"

namespace tokenizer {
namespace {

// sentencepiece needs about 150 bytes of memory per byte of text, so longer texts are passed in
// parts of at least kMinPart bytes, cut where no piece can span the cut (parts of 2 KiB take two
// thirds of the time of parts of 64 KiB). Without such a place a text is cut after kMaxPart bytes:
// sentencepiece makes one unknown token of a run of unknown characters, in time quadratic in its
// length, and texts may grow (kMaxGrowth).
constexpr size_t kMinPart = size_t{1} << 11;
constexpr size_t kMaxPart = size_t{1} << 14;

// Longer pieces are never matched: all pieces are tried at each byte of a text.
constexpr size_t kLongestMatched = 1024;

// Memory that sentencepiece needs for a vocabulary, besides 1.3 bytes per byte of the model: for
// each piece (219 to 227 bytes, measured with 1,000 to 1,000,000 pieces), and in any case.
constexpr size_t kBytesPerPiece = 256;
constexpr size_t kBytesForAny = size_t{1} << 16;
constexpr size_t kBytesPerByte = 256;  // bytes of memory for a byte of text

// A table of characters makes a text at most this many times as long. Unicode's longest is U+FDFA:
// 15 letters of two bytes, and three spaces of three as sentencepiece writes them, for three bytes.
constexpr size_t kMaxGrowth = 13;

// Throws std::bad_alloc if there is not this much memory: protobuf, which sentencepiece reads its
// model by, crashes in a destructor if an allocation of its own fails.
void NeedMemory(size_t bytes) {
  void* const room = ::operator new(bytes, std::nothrow);
  if (room == nullptr) throw std::bad_alloc();
  ::operator delete(room);
}

// The wire format of protocol buffers: a field is a varint of number * 8 + kind, and its value.
class ProtoWriter {
 public:
  void Number(uint32_t field, uint64_t value) {
    Varint(field << 3 | 0);
    Varint(value);
  }
  void Float(uint32_t field, float value) {
    Varint(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) out_ += static_cast<char>(bits >> shift & 0xFF);
  }
  void Bytes(uint32_t field, std::string_view value) {
    Varint(field << 3 | 2);
    Varint(value.size());
    out_ += value;
  }
  const std::string& out() const { return out_; }
  void clear() { out_.clear(); }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

// The file's table of characters and their replacements (NFKC and the like): the size of a trie
// (Darts, Yata 2007), the trie, and texts that end with NUL, whose offsets are the trie's values.
// sentencepiece trusts it, and has room for 32 results of a walk: so no walk may leave the trie or
// take more than 32 bytes, and no text may become much longer. Throws gguf::Error.
std::string ReadCharsmap(const gguf::Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  constexpr size_t kBlock = 256, kMaxBytes = size_t{1} << 20, kMaxDepth = 32;
  const gguf::Value* const table = metadata.Find(kKey);
  if (table == nullptr) return "";
  if (table->count > kMaxBytes) metadata.Fail(kKey, "expected at most 1 MB");
  std::string map;
  for (const int64_t byte : metadata.GetInts(kKey)) map += static_cast<char>(byte);
  const auto word = [&](size_t i) {
    uint32_t value = 0;
    if (map.size() >= 4 * (i + 1)) std::memcpy(&value, map.data() + 4 * i, sizeof(value));
    return value;
  };
  const size_t n = word(0) / 4, texts = 4 * (n + 1);
  const auto require = [&](bool is_sound) {
    if (!is_sound) metadata.Fail(kKey, "expected a table of characters, found a broken one");
  };
  require(n > 0 && n % kBlock == 0 && word(0) % 4 == 0 && texts < map.size() && map.back() == 0);
  const auto base_of = [&](uint32_t at) {
    const uint32_t unit = word(1 + at);
    return at ^ unit >> 10 << ((unit & 0x200) >> 6);
  };
  // Nodes may share successors, so a node may be at several depths: all walks advance one step at a
  // time. A table in use has a few nodes with the same base.
  std::vector<uint32_t> nodes = {0}, bases, next;
  size_t n_bases = 0;
  for (size_t depth = 0; !nodes.empty(); ++depth) {
    require(depth <= kMaxDepth);
    bases.clear();
    for (const uint32_t at : nodes) {
      const uint32_t base = bases.emplace_back(base_of(at));
      require(base < n);  // so its whole block is inside, too
      if ((word(1 + at) & 0x100) == 0) continue;
      const size_t text = texts + (word(1 + base) & INT32_MAX);
      require(text < map.size());
      const std::string_view becomes = &map[text];  // map ends with NUL
      const auto n_spaces = std::count(becomes.begin(), becomes.end(), ' ');
      require(becomes.size() + 2 * static_cast<size_t>(n_spaces) <= kMaxGrowth * depth);
    }
    std::sort(bases.begin(), bases.end());
    bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
    n_bases += bases.size();
    require(n_bases <= 4 * n);
    next.clear();
    for (const uint32_t base : bases) {
      for (uint32_t byte = 0; byte < kBlock; ++byte) {
        if ((word(1 + (base ^ byte)) & 0x800000FF) == byte) next.push_back(base ^ byte);
      }
    }
    nodes.swap(next);
  }
  return map;
}

class UnigramTokenizer final : public Tokenizer {
 public:
  UnigramTokenizer(const gguf::Metadata& metadata, size_t rows)
      : Tokenizer(
            ReadVocabulary(metadata, {.is_sentencepiece = true, .add_eos = true, .rows = rows})),
        trims_(metadata.GetBoolOr("tokenizer.ggml.remove_extra_whitespaces", false)),
        charsmap_(ReadCharsmap(metadata)),
        bytes_(FindByteTokens(metadata, vocab())) {
    for (size_t i = 0; i < vocab().size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (!IsMatchable(id)) continue;
      std::string_view text = Spelling(id);
      while (text.starts_with(kSpaceMark)) text.remove_prefix(kSpaceMark.size());
      words_apart_ &= text.find(kSpaceMark) == std::string_view::npos;
    }
    const bool all_bytes = std::find(bytes_.begin(), bytes_.end(), -1) == bytes_.end();
    const std::string model = SerializedModel(all_bytes);
    NeedMemory(kBytesForAny + kBytesPerPiece * pieces_.size() + 2 * model.size());
    const auto status = processor_.LoadFromSerializedProto(model);
    if (!status.ok()) {
      metadata.Fail(kTokensKey, "sentencepiece does not take them: ", status.message());
    }
    lines_apart_ = trims_ && processor_.EncodeAsIds("a\na") == processor_.EncodeAsIds("a a");
  }

 private:
  void EncodeText(std::string_view text, bool space, IdList& out) const override {
    std::string prefixed;
    if (space && !trims_) {
      prefixed.reserve(text.size() + 1);
      prefixed += ' ';
      text = prefixed += text;
    }
    std::vector<int> ids;
    while (!text.empty()) {
      out.Check();
      const size_t length = PartLength(text);
      NeedMemory(kBytesForAny + kBytesPerByte * length * (charsmap_.empty() ? 1 : kMaxGrowth));
      const auto status = processor_.Encode(text.substr(0, length), &ids);
      if (!status.ok()) throw gguf::Fault("sentencepiece: ", status.message());
      for (const int id : ids) out.push_back(pieces_[static_cast<size_t>(id)]);
      text.remove_prefix(length);
    }
  }

  TokenId ByteToken(uint8_t byte) const override { return bytes_[byte]; }
  std::string TextOf(TokenId id) const override { return UnmarkSpaces(Spelling(id)); }

  // A sentencepiece ModelProto (sentencepiece_model.proto of that project). The vocabulary is
  // untrusted, and sentencepiece refuses a whole model for one empty or repeated piece: so only
  // pieces that text can become are used, and the required unknown piece comes last. Fills pieces_.
  std::string SerializedModel(bool byte_fallback) {
    constexpr char kHex[] = "0123456789ABCDEF";
    ProtoWriter model;
    ProtoWriter part;
    const auto add_piece = [&](std::string_view text, float score, TokenType type) {
      part.clear();
      part.Bytes(1, text);
      part.Float(2, score);
      part.Number(3, static_cast<uint64_t>(type));
      model.Bytes(1, part.out());
    };
    for (size_t i = 0; i < vocab().size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      const float score = vocab().scores[i];
      const int byte = TypeOf(id) == TokenType::kByte ? ByteOfToken(Spelling(id)) : -1;
      if (byte_fallback && byte >= 0 && bytes_[static_cast<size_t>(byte)] == id) {
        const char name[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
        add_piece({name, sizeof(name)}, score, TokenType::kByte);
        pieces_.push_back(id);
      } else if (IsMatchable(id)) {
        add_piece(Spelling(id), score, TypeOf(id));
        pieces_.push_back(id);
      }
    }
    add_piece("\xFFunknown", 0, TokenType::kUnknown);
    pieces_.push_back(vocab().unk);
    part.clear();
    part.Number(3, 1);  // trainer_spec.model_type: unigram
    part.Number(4, pieces_.size());
    part.Number(35, byte_fallback);
    part.Number(40, pieces_.size() - 1);  // unk_id
    model.Bytes(2, part.out());
    part.clear();
    part.Bytes(1, "identity");  // normalizer_spec
    if (!charsmap_.empty()) part.Bytes(2, charsmap_);
    // add_dummy_prefix: else EncodeText does it, since it knows where texts begin
    part.Number(3, trims_ && vocab().add_space_prefix);
    part.Number(4, trims_);  // remove_extra_whitespaces
    part.Number(5, 1);       // escape_whitespaces: ' ' to U+2581
    model.Bytes(3, part.out());
    return model.out();
  }

  // Whether text can become this token. Control and user-defined tokens are found before it.
  bool IsMatchable(TokenId id) const {
    const TokenType type = TypeOf(id);
    const std::string_view text = Spelling(id);
    return (type == TokenType::kNormal || type == TokenType::kUnused) &&
           text.size() <= kLongestMatched && !text.empty() &&
           gguf::ValidUtf8Prefix(text) == text.size() && Find(text) == id;
  }

  bool IsSpace(char c) const { return c == ' ' || (lines_apart_ && c == '\n'); }

  // The number of bytes to give to sentencepiece at once.
  size_t PartLength(std::string_view text) const {
    if (text.size() <= kMinPart) return text.size();
    const size_t max = std::min(text.size(), kMaxPart);
    if (words_apart_) {
      for (size_t at = kMinPart; at < max; ++at) {
        if (IsSpace(text[at]) && !IsSpace(text[at - 1]) &&
            !text.substr(0, at).ends_with(kSpaceMark)) {
          return at;
        }
      }
    }
    if (max == text.size()) return max;
    size_t at = max;
    while ((text[at] & 0xC0) == 0x80) --at;  // not within a character
    return at;
  }

  bool trims_;
  std::string charsmap_;
  sentencepiece::SentencePieceProcessor processor_;
  // The token of each of sentencepiece's pieces. Only pieces that text can become are included,
  // since sentencepiece stores each piece several times.
  std::vector<TokenId> pieces_;
  ByteTokens bytes_;
  bool words_apart_ = true;   // no piece has a space after anything else
  bool lines_apart_ = false;  // the end of a line becomes a space
};

}  // namespace

std::unique_ptr<Tokenizer> CreateUnigram(const gguf::Metadata& metadata, size_t rows) {
  return std::make_unique<UnigramTokenizer>(metadata, rows);
}

}  // namespace tokenizer
