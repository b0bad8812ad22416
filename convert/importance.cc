// Readers of both forms of an importance matrix, and the writer.
#include "convert/importance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "gguf/cursor.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "gguf/mapped_file.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace convert {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

// A tensor's floats; its address may be unaligned.
std::vector<float> Floats(const gguf::TensorView& tensor) {
  std::vector<float> floats(tensor.elements());
  std::memcpy(floats.data(), tensor.data, floats.size() * sizeof(float));
  return floats;
}

[[noreturn]] void Fail(const std::string& path, std::string_view name, const std::string& what) {
  gguf::Fail(path, "importance of ", gguf::Quoted(name), ": ", what);
}

}  // namespace

void WriteImportance(const engine::SquaresByTensor& squares, const ImportanceSource& source,
                     gguf::OutputFile& out) {
  gguf::Writer writer;
  writer.Add("general.type", "imatrix");
  const std::array<std::string_view, 1> texts = {source.text};
  writer.AddStrings("imatrix.datasets", texts);
  writer.Add("imatrix.chunk_count", source.n_chunks);
  writer.Add("imatrix.chunk_size", source.chunk_tokens);
  std::vector<std::vector<float>> numbers;  // must live until the writer has read it
  numbers.reserve(2 * squares.size());
  for (const auto& [name, of] : squares) {
    const std::vector<float>& sums = numbers.emplace_back(of.sums.begin(), of.sums.end());
    const std::vector<float>& counts = numbers.emplace_back(of.counts.begin(), of.counts.end());
    writer.AddTensor(name + std::string(kSums), gguf::DType::kF32, {of.cols, counts.size()},
                     std::as_bytes(std::span(sums)));
    writer.AddTensor(name + std::string(kCounts), gguf::DType::kF32, {1, counts.size()},
                     std::as_bytes(std::span(counts)));
  }
  writer.WriteFile(out);
}

Importance Importance::Read(const std::string& path) {
  Importance importance;
  importance.path_ = path;
  const gguf::MappedFile file = gguf::MappedFile::Open(path, "an importance matrix");
  const std::span<const std::byte> bytes = file.bytes();
  const bool is_gguf = bytes.size() >= gguf::kMagic.size() &&
                       std::memcmp(bytes.data(), gguf::kMagic.data(), gguf::kMagic.size()) == 0;
  if (is_gguf) {
    importance.ReadGguf();
  } else {
    importance.ReadDat(bytes);
  }
  if (importance.means_.empty()) {
    gguf::Fail(path,
               "expected an importance matrix (tensors NAME.in_sum2 and NAME.counts, or "
               "llama.cpp's older .dat), found none");
  }
  return importance;
}

void Importance::ReadGguf() {
  const gguf::File file = gguf::File::Open(path_);
  for (const gguf::TensorView& sums : file.tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string_view name = sums.name.substr(0, sums.name.size() - kSums.size());
    const gguf::TensorView* const counts =
        file.FindTensor(std::string(name) + std::string(kCounts));
    if (sums.dtype != gguf::DType::kF32 || counts == nullptr ||
        counts->dtype != gguf::DType::kF32 || counts->elements() != sums.rows()) {
      Fail(path_, name, "expected F32 sums with a count for each matrix, found another shape");
    }
    std::vector<float> means = Floats(sums);
    const std::vector<float> n = Floats(*counts);
    for (size_t i = 0; i < means.size(); ++i) {
      const float count = n[i / sums.cols()];
      if (!(count >= 0)) Fail(path_, name, "expected counts of inputs, found others");
      means[i] = count > 0 ? means[i] / count : 0.0f;  // an expert that no token chose
    }
    Add(name, std::move(means));
  }
}

// i32 n, then n times: i32 length and name, i32 calls, i32 number of columns (of all matrices),
// that many f32: mean squares times calls. The name of the text may follow; it is ignored.
void Importance::ReadDat(std::span<const std::byte> bytes) {
  gguf::Cursor cursor(path_, bytes);
  const auto n = cursor.Read<int32_t>("number of entries");
  constexpr int32_t kMaxEntries = 1 << 20;
  if (n <= 0 || n > kMaxEntries) {
    cursor.Fail(0,
                "expected an importance matrix (GGUF, or llama.cpp's older .dat), found neither");
  }
  for (int32_t i = 0; i < n; ++i) {
    cursor.set_item({"entry", static_cast<uint64_t>(i), {}});
    const std::string_view name = cursor.ReadString<uint32_t>("name");
    cursor.set_item({"entry", static_cast<uint64_t>(i), name});
    const auto calls = cursor.Read<int32_t>("calls");
    const uint64_t at = cursor.offset();
    const auto n_columns = cursor.Read<int32_t>("number of columns");
    if (n_columns <= 0 || static_cast<uint64_t>(n_columns) > cursor.remaining() / sizeof(float)) {
      cursor.Fail(
          at, "expected 1 or more columns, all in the file, found " + std::to_string(n_columns));
    }
    std::vector<float> means(static_cast<size_t>(n_columns));
    std::memcpy(means.data(), cursor.Take(means.size() * sizeof(float), "columns"),
                means.size() * sizeof(float));
    for (float& mean : means) mean /= static_cast<float>(std::max(calls, 1));
    Add(name, std::move(means));
  }
}

void Importance::Add(std::string_view name, std::vector<float> means) {
  const auto is_square = [](float mean) { return mean >= 0 && std::isfinite(mean); };
  if (!std::ranges::all_of(means, is_square)) {
    Fail(path_, name, "expected mean squares, found numbers that are negative or none");
  }
  means_.insert_or_assign(std::string(name), std::move(means));
}

const float* Importance::Columns(const gguf::TensorView& tensor, uint64_t index) const {
  const auto found = means_.find(tensor.name);
  if (found == means_.end()) return nullptr;
  const uint64_t n_matrices = tensor.dims[2] * tensor.dims[3], cols = tensor.cols();
  const size_t n = found->second.size();
  if (n == cols) return found->second.data();  // one row for all matrices
  if (n / cols != n_matrices || n % cols != 0) {
    Fail(path_, tensor.name,
         "expected " + std::to_string(n_matrices) + " x " + std::to_string(cols) +
             " columns, as the model has, found " + std::to_string(n));
  }
  return found->second.data() + index * cols;
}

}  // namespace convert
