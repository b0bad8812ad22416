#include "cli/options/model_stores.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <tuple>

#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 6;                 // nested folders
constexpr uintmax_t kMaxManifest = 1 << 20;  // bytes
constexpr std::string_view kDefaultHost = "registry.ollama.ai/";
constexpr std::string_view kDefaultUser = "library/";

// The folder in an environment variable, or a default.
fs::path FolderFrom(const char* name, const fs::path& otherwise) {
  return FromEnvironment(name).value_or(otherwise.string());
}

fs::path Home() { return FolderFrom("HOME", "/nonexistent"); }
fs::path Cache() { return FolderFrom("XDG_CACHE_HOME", Home() / ".cache"); }

// Calls visit(path) for every non-folder below `root`; follows no links to folders, so it ends.
template <class Visit>
void ForEachFile(const fs::path& root, Visit visit) {
  std::error_code error;
  fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it.depth() >= kMaxDepth) it.disable_recursion_pending();
    std::error_code ignored;
    if (!it->is_directory(ignored)) visit(it->path());
  }
}

// "model-00001-of-00003.gguf" counts as the whole model; image encoders are no language models.
bool IsWholeModel(const std::string& file) {
  if (!file.ends_with(".gguf") || file.find("mmproj") != std::string::npos) return false;
  constexpr std::string_view kPart = "-00001-of-00003.gguf";
  if (file.size() < kPart.size()) return true;
  const std::string end = file.substr(file.size() - kPart.size());
  return end.compare(6, 4, "-of-") != 0 || end.starts_with("-00001-");
}

// Adds the GGUF files below a folder; a name is `prefix` plus the path relative to the folder.
void AddFolder(const fs::path& folder, const std::string& prefix, const char* store,
               Stores& stores) {
  ForEachFile(folder, [&](const fs::path& path) {
    if (!IsWholeModel(path.filename().string())) return;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {  // links are followed
      stores.skipped.push_back(path.string() + ": leads to no file (an unfinished download?)");
      return;
    }
    stores.models.push_back(
        {prefix + path.lexically_relative(folder).generic_string(), path.string(), store});
  });
}

void AddHuggingFace(Stores& stores) {
  const fs::path hub =
      FolderFrom("HF_HUB_CACHE", FolderFrom("HF_HOME", Cache() / "huggingface") / "hub");
  constexpr std::string_view kModels = "models--";
  for (const fs::path& folder : Entries(hub)) {
    std::string repository = folder.filename().string();
    if (!repository.starts_with(kModels)) continue;
    repository.erase(0, kModels.size());
    const size_t dashes = repository.find("--");
    if (dashes != std::string::npos) repository.replace(dashes, 2, "/");
    for (const fs::path& revision : Entries(folder / "snapshots")) {
      AddFolder(revision, repository + "/", "Hugging Face", stores);
    }
  }
}

// The file in blobs/ of a manifest's model layer, or an error that names the problem.
fs::path BlobOf(const fs::path& manifest, const fs::path& blobs) {
  std::error_code error;
  if (fs::file_size(manifest, error) > kMaxManifest) throw engine::Error("is no manifest");
  std::string digest;
  for (const auto& [key, layer] : ReadJson(manifest.string())["layers"]) {
    const JsonView type = layer["mediaType"], value = layer["digest"];
    if (!type.IsString() || type.String() != "application/vnd.ollama.image.model") continue;
    if (value.IsString()) digest = value.String();
  }
  // Only a hash may become part of a path.
  constexpr std::string_view kHash = "sha256:";
  const std::string hash = digest.substr(std::min(kHash.size(), digest.size()));
  if (!digest.starts_with(kHash) || hash.size() != 64 ||
      hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw engine::Error("names no model");
  }
  fs::path blob = blobs / ("sha256-" + hash);
  if (!fs::is_regular_file(blob, error)) throw engine::Error("its model is not there");
  return blob;
}

void AddOllama(const fs::path& root, Stores& stores) {
  const fs::path manifests = root / "manifests";
  ForEachFile(manifests, [&](const fs::path& path) {
    std::string name = path.parent_path().lexically_relative(manifests).generic_string() + ":" +
                       path.filename().string();
    for (const std::string_view part : {kDefaultHost, kDefaultUser}) {
      if (name.starts_with(part)) name.erase(0, part.size());
    }
    if (path.filename().string().starts_with('.')) return;
    try {
      stores.models.push_back({name, BlobOf(path, root / "blobs").string(), "Ollama"});
    } catch (const engine::Error& error) {
      stores.skipped.push_back(path.string() + ": " + error.what());
    }
  });
}

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return text;
}

bool IsNameOf(const std::string& query, const StoredModel& model) {
  const std::string name = Lower(model.name);
  const std::string file = name.substr(name.rfind('/') + 1);
  return query == name || query == file || query + ".gguf" == name || query + ".gguf" == file ||
         query + ":latest" == name;
}

// hf.co/OWNER/REPO is OWNER/REPO in the caches.
std::string WithoutHost(std::string query) {
  for (const std::string_view host : {"https://", "huggingface.co/", "hf.co/"}) {
    if (query.starts_with(host)) query.erase(0, host.size());
  }
  return query;
}

bool HasWord(const std::string& query) {
  return std::ranges::any_of(query, [](unsigned char c) { return c >= 0x80 || std::isalnum(c); });
}

bool HoldsAllWords(const std::string& name, const std::string& query) {
  constexpr std::string_view kSeparators = " /:";
  for (size_t at = 0; (at = query.find_first_not_of(kSeparators, at)) != std::string::npos;) {
    const size_t end = std::min(query.find_first_of(kSeparators, at), query.size());
    if (name.find(query.substr(at, end - at)) == std::string::npos) return false;
    at = end;
  }
  return true;
}

// Three-letter sequences that both contain: a misspelt word shares some with the right one.
size_t SharedTrigrams(const std::string& a, const std::string& b) {
  size_t n = 0;
  for (size_t i = 0; i + 3 <= a.size(); ++i) n += b.find(a.substr(i, 3)) != std::string::npos;
  return n;
}

std::string Listed(const std::vector<const StoredModel*>& models) {
  constexpr size_t kMax = 5;
  std::vector<std::string_view> names;
  for (const StoredModel* const model : models) {
    if (names.size() < kMax) names.push_back(model->name);
  }
  return Joined(names, ", ") + (models.size() > kMax ? " and others" : "");
}

}  // namespace

Stores FindModels() {
  Stores stores;
  AddHuggingFace(stores);
  if (const auto root = FromEnvironment("OLLAMA_MODELS")) {
    AddOllama(*root, stores);
  } else {
    AddOllama(Home() / ".ollama" / "models", stores);
    AddOllama("/usr/share/ollama/.ollama/models", stores);  // of the system service
  }
  AddFolder(FolderFrom("LLAMA_CACHE", Cache() / "llama.cpp"), "", "llama.cpp", stores);
  AddFolder(Home() / ".lmstudio" / "models", "", "LM Studio", stores);
  AddFolder(Home() / ".cache" / "lm-studio" / "models", "", "LM Studio", stores);
  const auto place = [](const StoredModel& model) { return std::tie(model.store, model.name); };
  std::ranges::stable_sort(stores.models, {}, place);
  // The same file in two revisions of a repository counts once.
  const auto same = [&](const auto& a, const auto& b) { return place(a) == place(b); };
  stores.models.erase(std::unique(stores.models.begin(), stores.models.end(), same),
                      stores.models.end());
  return stores;
}

std::string PathOfModel(const std::string& name, const Stores& stores) {
  const std::string query = Lower(name);
  std::vector<const StoredModel*> found;
  const auto add_if = [&](auto is_it) {
    for (const StoredModel& model : stores.models) {
      if (is_it(model)) found.push_back(&model);
    }
  };
  // The second time without the host of an address: Ollama keeps it in its names, others do not.
  for (const std::string& part : {query, WithoutHost(query)}) {
    if (found.empty()) add_if([&](const StoredModel& model) { return IsNameOf(part, model); });
    if (!found.empty() || !HasWord(part)) continue;
    add_if([&](const StoredModel& model) { return HoldsAllWords(Lower(model.name), part); });
  }
  if (found.size() == 1) return found.front()->path;
  const std::string shown = name.find(' ') == std::string::npos ? name : gguf::Quoted(name);
  if (found.size() > 1) throw engine::Error(shown, " could be ", Listed(found));
  const StoredModel usual = {kDefaultModel, "", ""};
  found.push_back(&usual);
  add_if([](const StoredModel&) { return true; });
  const auto likeness = [&](const StoredModel* m) { return SharedTrigrams(query, Lower(m->name)); };
  std::erase_if(found, [&](const StoredModel* model) { return likeness(model) == 0; });
  std::ranges::stable_sort(found, std::greater(), likeness);
  throw engine::Error("no file and no model called ", shown, " ('pronk list')",
                      (found.empty() ? "" : "; near: " + Listed(found)));
}

std::string PullLine(const std::string& model) {
  std::error_code error;
  const bool is_installed = fs::exists(ProgramPath().parent_path() / "pronk-pull", error);
  return (is_installed ? "pronk-pull " : "./pronk pull ") + model;
}

Suggestion SuggestedModel() {
  const std::string name = "Qwen/Qwen2.5-1.5B-Instruct-GGUF";
  return {.name = name, .size = "1.1 GB", .line = PullLine(name)};
}

}  // namespace cli
