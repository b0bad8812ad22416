// What every operation of the plain pass (engine/plain.h) gives, as a file for NumPy:
//
//   plain_operations MODEL.gguf OUT.npz ID...
//
// OUT has an array of f64, [rows][cols], for each operation: "blk.0.attn_q" and so on, and those
// outside of the layers by their name alone. compare.py reads it.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"
#include "engine/plain.h"

namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

std::string Number(uint64_t value, size_t bytes) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

// The check sum of zip files (CRC-32 of ISO 3309), a bit at a time.
uint32_t Crc(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

// NumPy's format 1.0: the shape as a Python literal, padded to 64 bytes, and the numbers.
std::string Npy(const engine::Rows& rows) {
  std::string head = "{'descr': '<f8', 'fortran_order': False, 'shape': (" +
                     std::to_string(rows.rows) + ", " + std::to_string(rows.cols) + "), }";
  head.append(63 - (10 + head.size()) % 64, ' ').append("\n");
  const std::span values = std::as_bytes(std::span(rows.values));
  return "\x93NUMPY" + std::string("\1\0", 2) + Number(head.size(), 2) + head +
         std::string(reinterpret_cast<const char*>(values.data()), values.size());
}

// Arrays in a zip file without compression (PKWARE's APPNOTE: local headers, then the directory).
class Npz {
 public:
  void Add(const std::string& name, const engine::Rows& rows) {
    const std::string data = Npy(rows), file = name + ".npy";
    // Version 2.0, no flags, stored, no time; then what follows.
    const std::string common = Number(20, 2) + Number(0, 2) + Number(0, 2) + Number(0x210000, 4) +
                               Number(Crc(data), 4) + Number(data.size(), 4) +
                               Number(data.size(), 4) + Number(file.size(), 2) + Number(0, 2);
    directory_ +=
        "PK\1\2" + Number(20, 2) + common + std::string(10, '\0') + Number(bytes_.size(), 4) + file;
    bytes_ += "PK\3\4" + common + file + data;
    ++n_;
  }
  std::string Finish() const {
    return bytes_ + directory_ + "PK\5\6" + Number(0, 4) + Number(n_, 2) + Number(n_, 2) +
           Number(directory_.size(), 4) + Number(bytes_.size(), 4) + Number(0, 2);
  }

 private:
  std::string bytes_, directory_;
  size_t n_ = 0;
};

void Write(const std::string& path, const std::string& out, std::span<char*> numbers) {
  std::vector<tokenizer::TokenId> ids;
  for (const char* const number : numbers) ids.push_back(std::atoi(number));
  Npz npz;
  const engine::Model model = engine::Model::Load(path);
  engine::PlainModel plain(
      model, [&](std::string_view name, size_t layer, const engine::Rows& rows) {
        const bool outside = layer == engine::PlainModel::kNoLayer;
        npz.Add((outside ? "" : "blk." + std::to_string(layer) + ".") + std::string(name), rows);
      });
  plain.Forward(ids);
  std::ofstream file(out, std::ios::binary);
  if (!(file << npz.Finish()).flush()) throw std::runtime_error(out + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    Write(argv[1], argv[2], std::span(argv, static_cast<size_t>(argc)).subspan(3));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plain_operations: %s\n", error.what());
    return 1;
  }
}
