// Where people keep models: the working directory, their own folder, and the stores of Hugging
// Face, llama.cpp, Ollama and LM Studio.
//
//   own folders    the working directory (not the folders in it), and all below $PRONK_MODELS
//   Hugging Face   $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub:
//                  models--OWNER--REPO/snapshots/REVISION/.../FILE.gguf
//   Ollama         $OLLAMA_MODELS or ~/.ollama/models: manifests/HOST/USER/MODEL/TAG is JSON that
//                  names the file in blobs/ by its hash
//   llama.cpp      $LLAMA_CACHE or ~/.cache/llama.cpp (on macOS ~/Library/Caches/llama.cpp):
//                  OWNER_REPO_FILE.gguf
//   LM Studio      ~/.lmstudio/models (before: ~/.cache/lm-studio/models): PUBLISHER/REPO/FILE.gguf
#pragma once

#include <string>
#include <vector>

namespace cli {

inline constexpr const char* kThisFolder = "this folder";  // the store of its files

struct StoredModel {
  std::string name;   // the name for -m: "llama3.2:1b", "OWNER/REPO/FILE.gguf"
  std::string path;   // the first part, if the model is split
  std::string store;  // "this folder", "PRONK_MODELS", "Hugging Face", "Ollama", ...
};

struct Stores {
  // Own folders first, then by store, each by name; no file has been opened.
  std::vector<StoredModel> models;
  std::vector<std::string> skipped;  // broken entries: "PATH: why"
};
Stores FindModels();

// The path of the one model that `name` means: its full name, its file's name, its repository with
// or without a type ("hf.co/OWNER/REPO:Q4_0"), or words that only its name contains ("qwen
// q4_k_m"), ignoring case and the ending .gguf. Throws engine::Error if no model or more than one
// fits: the message has similar names, or the line that downloads a model.
std::string PathOfModel(const std::string& name, const Stores& stores);

// The line that downloads a published model, "OWNER/REPO" or "OWNER/REPO:TYPE": with the launcher
// in a checkout, with pronk-pull where the program is installed. (The program opens no connection.)
std::string PullLine(const std::string& model);

// A published model to begin with, for a machine that has none.
struct Suggestion {
  std::string name;  // "OWNER/REPO"
  std::string size;  // "1.1 GB"
  std::string line;  // from PullLine()
};
Suggestion SuggestedModel();

}  // namespace cli
