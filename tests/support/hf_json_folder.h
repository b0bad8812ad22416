// A Hugging Face folder whose tokenizer is JSON.
#pragma once

#include <string>

#include "tests/support/hf_folder.h"
#include "tests/support/json.h"

namespace test {

// A llama whose tokenizer is JSON, and whose config.json has more than the necessary keys.
inline HfLlama HfLlamaWithJson() {
  using test::Json;
  HfLlama llama;
  llama.config +=
      R"(,"num_key_value_heads":2,"head_dim":16,"rope_theta":10000,"sliding_window":null,)"
      R"("eos_token_id":[1,2],"bos_token_id":1,"num_local_experts":0,"partial_rotary_factor":1,)"
      R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,)"
      R"("original_max_position_embeddings":64})";
  Json vocab = Json::object(), merges = Json::array();
  const std::string letters = "abcdefghijklmnop";
  for (const char c : letters) vocab[std::string(1, c)] = vocab.size();
  for (size_t i = 0; i + 1 < letters.size(); ++i) {
    merges.push_back(letters.substr(i, 1) + " " + letters.substr(i + 1, 1));
    vocab[letters.substr(i, 2)] = vocab.size();
  }
  const Json pre = {{"type", "ByteLevel"}, {"use_regex", true}};
  const Json post = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "TemplateProcessing"}, {"single", {{{"SpecialToken", {{"id", "<s>"}}}}}}}}}};
  const Json all = {
      {"added_tokens", {{{"id", 40}, {"content", "<s>"}, {"special", true}}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", Json::array({pre})}}},
      {"post_processor", post},
      {"model", {{"type", "BPE"}, {"ignore_merges", false}, {"vocab", vocab}, {"merges", merges}}}};
  llama.files.erase("tokenizer.model");
  llama.files["tokenizer.json"] = all.dump();
  llama.files["tokenizer_config.json"] =
      R"({"bos_token":"<s>","add_bos_token":true,"added_tokens_decoder":)"
      R"({"41":{"content":"<|end|>","special":true}},)"
      R"("chat_template":[{"name":"default","template":"x"}]})";
  llama.files["special_tokens_map.json"] = R"({"eos_token":{"content":"<|end|>"}})";
  llama.files["generation_config.json"] = R"({"eos_token_id":[41,40]})";
  llama.files["added_tokens.json"] = R"({"<tool>":42})";
  return llama;
}

}  // namespace test
