// Writes and reads llama-perplexity's file of log probabilities.
#include "cli/prediction/base_logits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "cli/options/inputs.h"
#include "engine/sampling/log_probabilities.h"
#include "gguf/cursor.h"
#include "gguf/error.h"
#include "gguf/load.h"

namespace cli {
namespace {

constexpr std::string_view kMagic = "_logits_";
constexpr const char* kExpected = "a file of log-probabilities";
constexpr size_t kHeadCodes = 4;  // the two floats of a row, in u16
constexpr float kRange = 16;      // logits further below the largest one are stored as equal
constexpr float kMaxCode = 65535;

// Per prediction: two floats, then the codes, padded to an even number.
size_t RowCodes(size_t n_vocab) { return kHeadCodes + (n_vocab + 1) / 2 * 2; }

size_t RowBytes(size_t n_vocab) { return RowCodes(n_vocab) * sizeof(uint16_t); }

}  // namespace

BaseLogitsWriter::BaseLogitsWriter(const std::string& path, const TextWindows& windows,
                                   size_t n_vocab)
    : file_(path, Inputs()), row_(RowCodes(n_vocab)) {
  const std::array head = {static_cast<int32_t>(windows.length), static_cast<int32_t>(n_vocab),
                           static_cast<int32_t>(windows.count())};
  file_.Write(kMagic);
  file_.Write(std::as_bytes(std::span(head)));
  file_.Write(std::as_bytes(std::span(windows.ids)));
}

void BaseLogitsWriter::Write(std::span<const float> logits) {
  const auto [low, high] = std::minmax_element(logits.begin(), logits.end());
  const float least = std::max(*low, *high - kRange), scale = (*high - least) / kMaxCode;
  const std::array head = {scale, static_cast<float>(least - engine::LogSumExp(logits))};
  std::memcpy(row_.data(), head.data(), sizeof(head));
  for (size_t i = 0; i < logits.size(); ++i) {
    const float code = scale > 0 ? std::nearbyint((logits[i] - least) / scale) : 0;
    row_[kHeadCodes + i] = static_cast<uint16_t>(std::clamp(code, 0.0f, kMaxCode));
  }
  file_.Write(std::as_bytes(std::span(row_)));
}

BaseLogits::BaseLogits(const std::string& path, size_t n_vocab)
    : path_(path), file_(gguf::MappedFile::Open(path, kExpected)), row_(n_vocab) {
  CheckPrinted(path, {file_.id()});
  gguf::Cursor cursor(gguf::PrintablePath(path), file_.bytes());
  const std::byte* const magic = cursor.Take(kMagic.size(), "\"_logits_\"");
  if (std::memcmp(magic, kMagic.data(), kMagic.size()) != 0) {
    gguf::Fail(path, "expected ", kExpected, ", which begins with \"_logits_\"");
  }
  const auto n_ctx = cursor.Read<int32_t>("n_ctx"), vocab = cursor.Read<int32_t>("n_vocab"),
             n_chunk = cursor.Read<int32_t>("n_chunk");
  if (vocab < 0 || static_cast<size_t>(vocab) != n_vocab) {
    gguf::Fail(path, "expected predictions for the model's vocabulary of ", n_vocab,
               " tokens, found ", vocab);
  }
  if (n_ctx < 4 || n_chunk < 1) {
    gguf::Fail(path, "expected at least 1 window, of at least 4 tokens, found ", n_chunk, " of ",
               n_ctx);
  }
  windows_.length = static_cast<size_t>(n_ctx);
  // Cannot overflow: a window has at most 2^33 + 2^30 * 2^22 bytes.
  const uint64_t n = static_cast<uint64_t>(n_chunk);
  const uint64_t window_bytes =
      windows_.length * sizeof(int32_t) + windows_.counted() * RowBytes(n_vocab);
  if (cursor.remaining() % window_bytes != 0 || cursor.remaining() / window_bytes != n) {
    gguf::Fail(path, "expected ", n, " windows of ", window_bytes, " bytes after byte ",
               cursor.offset(), ", found ", cursor.remaining(), " bytes: was its writing cut off?");
  }
  windows_.n_tokens = n * windows_.length;
  windows_.ids.resize(windows_.n_tokens);
  for (tokenizer::TokenId& id : windows_.ids) {
    id = cursor.Read<int32_t>("a token");
    if (id >= 0 && static_cast<size_t>(id) < n_vocab) continue;
    cursor.Fail(
        cursor.offset() - sizeof(int32_t),
        "expected a token's id below " + std::to_string(n_vocab) + ", found " + std::to_string(id));
  }
  first_row_ = cursor.offset();
}

std::span<const float> BaseLogits::LogProbabilities(size_t i) {
  const size_t at = first_row_ + i * RowBytes(row_.size());
  const std::byte* const row = file_.bytes().data() + at;
  const auto scale = gguf::Load<float>(row), least = gguf::Load<float>(row + sizeof(float));
  // ln(probability) is at most 0; rounding may exceed that a little.
  if (!(scale >= 0) || !std::isfinite(least) || !(least + scale * kMaxCode < 1)) {
    gguf::Fail(path_, "byte ", at,
               ": expected a scale and a least log-probability of "
               "probabilities up to 1, found ",
               scale, " and ", least);
  }
  least_ = least;
  is_cut_ = scale * kMaxCode > 0.999f * kRange;
  const std::byte* const codes = row + kHeadCodes * sizeof(uint16_t);
  for (size_t id = 0; id < row_.size(); ++id) {
    row_[id] = least + scale * gguf::Load<uint16_t>(codes + id * sizeof(uint16_t));
  }
  return row_;
}

}  // namespace cli
