// The first bytes of files passed by mistake: other model formats, archives, failed downloads.
#include "gguf/format_guess.h"

#include <algorithm>
#include <cstdint>

#include "gguf/load.h"

namespace gguf {
namespace {

constexpr std::string_view kOldGgml =
    "a GGML file, the format before GGUF: get the model as GGUF, or convert it with the tools of "
    "its time";
constexpr std::string_view kArchive = "a compressed file: unpack it first";
constexpr std::string_view kWebPage =
    "an HTML or XML page, likely a failed download: download the model file itself";

struct Signature {
  std::string_view start;
  std::string_view meaning;
};

// The GGML family wrote its magic as a little-endian number, so the letters come reversed.
constexpr Signature kSignatures[] = {
    {"lmgg", kOldGgml},
    {"fmgg", kOldGgml},
    {"tjgg", kOldGgml},
    {"algg", "a GGLA adapter file: pronk reads whole models in GGUF"},
    {"PK\x03\x04", "a zip archive, as PyTorch writes: convert the model to GGUF"},
    {"\x80\x02", "a Python pickle, as PyTorch writes: convert the model to GGUF"},
    {"\x1f\x8b", kArchive},
    {"\x28\xb5\x2f\xfd", kArchive},
    {"\xfd\x37zXZ", kArchive},
    {"version https://git-lfs",
     "a Git LFS pointer, not the model: fetch the file with `git lfs pull`"},
    {"<", kWebPage},
    {"{", "JSON text, perhaps a server's error: download the model file itself"},
};

// A safetensors file: u64 length of a JSON header, then the header.
bool IsSafetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 9 || bytes[8] != std::byte{'{'}) return false;
  const auto header = Load<uint64_t>(bytes.data());
  constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
  return header >= 2 && header <= kMaxHeader;
}

}  // namespace

std::string_view GuessFormat(std::span<const std::byte> bytes) {
  if (IsSafetensors(bytes)) return "a safetensors file: convert the model to GGUF";
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 256));
  for (const Signature& signature : kSignatures) {
    if (head.starts_with(signature.start)) return signature.meaning;
  }
  // A page may open with blank lines or a byte order mark.
  const size_t text = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (text != head.npos && head[text] == '<') return kWebPage;
  return {};
}

}  // namespace gguf
