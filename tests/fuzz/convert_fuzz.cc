// Converts edited folders of Hugging Face's libraries. Input: a letter for the folder's tokenizer
// (j: JSON; otherwise sentencepiece), then one edit a line, "FILE AT N TEXT": TEXT replaces N bytes
// of FILE from offset AT on. FILE: c config.json, w the weights, t tokenizer.json or .model, g
// generation_config.json, i the index of the weights; any other letter, tokenizer_config.json.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "convert/convert.h"
#include "gguf/error.h"
#include "tests/fuzz/input.h"
#include "tests/support/hf_folder.h"
#include "tests/support/hf_json_folder.h"
#include "tests/support/temp_dir.h"

namespace {

std::string NameOf(char letter, bool has_json) {
  switch (letter) {
    case 'c':
      return "config.json";
    case 'w':
      return "model.safetensors";
    case 't':
      return has_json ? "tokenizer.json" : "tokenizer.model";
    case 'g':
      return "generation_config.json";
    case 'i':
      return "model.safetensors.index.json";
    default:
      return "tokenizer_config.json";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TempDir dir;
  fuzz::Input input(data, size);
  const bool has_json = input.Byte() == 'j';
  const std::string folder = (has_json ? test::HfLlamaWithJson() : test::HfLlama()).Write(dir);
  for (int i = 0; i < 8 && !input.empty(); ++i) {
    std::istringstream line{std::string(input.Line())};
    char letter = 0;
    size_t at = 0, n = 0;
    std::string text;
    line >> letter >> at >> n;
    std::getline(line.ignore(1), text);
    const std::string path = folder + "/" + NameOf(letter, has_json);
    std::ifstream file(path, std::ios::binary);  // may not exist
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    bytes.replace(std::min(at, bytes.size()), n, text);
    dir.Write("model/" + NameOf(letter, has_json), bytes);
  }
  const std::string out = dir.Path("out");
  bool is_refused = false;
  try {
    convert::Convert(folder, out, {});
  } catch (const gguf::Error&) {
    is_refused = true;
  }
  // The output file exists exactly if the folder was accepted.
  if (std::filesystem::exists(out) == is_refused) std::abort();
  std::filesystem::remove_all(folder);
  std::filesystem::remove(out);
  return 0;
}
