// Looks for models in each place where people keep them.
#include "cli/options/model_stores.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

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
constexpr const char* kOwnFolder = "PRONK_MODELS";

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

// "model-00001-of-00003.gguf" counts as the whole model; image encoders are not language models.
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

// The files in the working directory, without its folders, and all files below $PRONK_MODELS. A
// file in both is listed once.
void AddOwn(Stores& stores) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (!error) {
    for (const fs::path& path : Entries(here)) {
      const std::string file = path.filename().string();
      if (IsWholeModel(file) && fs::is_regular_file(path, error))
        stores.models.push_back({file, path.string(), kThisFolder});
    }
  }
  const auto folder = FromEnvironment("PRONK_MODELS");
  if (!folder) return;
  Stores own;
  AddFolder(*folder, "", kOwnFolder, own);
  std::ranges::sort(own.models, {}, &StoredModel::name);
  for (const StoredModel& model : own.models) {
    const fs::path folder_of = fs::path(model.path).parent_path();
    if (!fs::equivalent(folder_of, here, error)) stores.models.push_back(model);
  }
  std::ranges::move(own.skipped, std::back_inserter(stores.skipped));
}

// The revisions of a repository in the cache: the one that was downloaded last as its main branch,
// then the other revisions, the newest first.
std::vector<fs::path> Revisions(const fs::path& repository) {
  constexpr int kMost = 64;  // characters of a revision
  std::string newest;
  const fs::path main = repository / "refs" / "main";
  if (std::error_code error; fs::is_regular_file(main, error))
    std::ifstream(main) >> std::setw(kMost) >> newest;
  std::vector<std::pair<fs::file_time_type, fs::path>> revisions;
  for (const fs::path& revision : Entries(repository / "snapshots")) {
    std::error_code ignored;
    const bool is_main = revision.filename() == newest;
    revisions.emplace_back(
        is_main ? fs::file_time_type::max() : fs::last_write_time(revision, ignored), revision);
  }
  std::ranges::stable_sort(revisions, std::greater(), [](const auto& one) { return one.first; });
  std::vector<fs::path> paths;
  for (auto& [time, path] : revisions) paths.push_back(std::move(path));
  return paths;
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
    for (const fs::path& revision : Revisions(folder)) {
      AddFolder(revision, repository + "/", "Hugging Face", stores);
    }
  }
}

// The file in blobs/ of a manifest's model layer, or an error that names the problem.
fs::path BlobOf(const fs::path& manifest, const fs::path& blobs) {
  std::error_code error;
  if (fs::file_size(manifest, error) > kMaxManifest) throw engine::Error("is not a manifest");
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
  if (!fs::is_regular_file(blob, error)) throw engine::Error("its model is missing");
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
      const std::string what = error.what(), name_of_file = path.string();
      stores.skipped.push_back(what.starts_with(name_of_file) ? what : name_of_file + ": " + what);
    }
  });
}

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }

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

// Whether a name has a type as a word of its own: Q4_K is not a part of Q4_K_M or IQ4_K.
bool HasType(const std::string& name, const std::string& type) {
  for (size_t at = 0; (at = name.find(type, at)) != std::string::npos; ++at) {
    const size_t end = at + type.size();
    const bool begins = at == 0 || std::isalnum(Byte(name[at - 1])) == 0;
    if (begins && (end == name.size() || (std::isalnum(Byte(name[end])) == 0 && name[end] != '_')))
      return true;
  }
  return false;
}

// Whether "OWNER/REPO" or "OWNER/REPO:TYPE" means this model. llama.cpp's cache has
// OWNER_REPO_FILE.
bool IsOfRepository(const std::string& query, const StoredModel& model) {
  const size_t colon = std::min(query.find(':'), query.size());
  std::string repository = query.substr(0, colon);
  const std::string type = query.substr(std::min(colon + 1, query.size()));
  const std::string name = WithoutHost(Lower(model.name));
  bool is_it = name.starts_with(repository + "/") || name.starts_with(repository + ":");
  if (std::ranges::count(name, '/') == 0) {
    std::ranges::replace(repository, '/', '_');
    is_it = name.starts_with(repository + "_");
  }
  return is_it && (type.empty() || HasType(name.substr(repository.size() + 1), type));
}

// Words that do not identify a model: forms, types and common endings.
bool IsCommon(const std::string& word) {
  constexpr auto kCommon = std::to_array<std::string_view>(
      {"gguf", "instruct", "chat", "model", "models", "latest", "base", "fp16", "bf16",
       "huggingface", "imatrix", "quantized"});
  const auto digit_at = [&](size_t i) {
    return i < word.size() && std::isdigit(Byte(word[i])) != 0;
  };
  const bool is_type = (word[0] == 'q' || word[0] == 'f') && digit_at(1) && word.size() <= 3;
  return word.size() < 2 || is_type || (word.starts_with("iq") && digit_at(2)) ||
         std::ranges::find(kCommon, word) != kCommon.end();
}

// The words of a name in lower case that are not common: "qwen2.5" and "1.5b" of
// "Qwen2.5-1.5B-Instruct-Q4_K_M.gguf". A point between digits is part of a word.
std::vector<std::string> WordsOf(const std::string& name) {
  std::vector<std::string> words(1);
  const auto is_word = [&](size_t i) {
    return i < name.size() && (Byte(name[i]) >= 0x80 || std::isalnum(Byte(name[i])) != 0);
  };
  for (size_t i = 0; i < name.size(); ++i) {
    if (is_word(i) || (name[i] == '.' && i > 0 && std::isdigit(Byte(name[i - 1])) != 0 &&
                       is_word(i + 1) && std::isdigit(Byte(name[i + 1])) != 0)) {
      words.back() += name[i];
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  std::erase_if(words, [](const std::string& word) { return word.empty() || IsCommon(word); });
  return words;
}

// Whether two words are similar: at most one letter in four differs, or they begin alike, as
// "qwen2.5" and "qwen3" do.
bool IsNear(const std::string& a, const std::string& b) {
  constexpr size_t kShortest = 4, kLongest = 40;  // letters; a short word is near many others
  if (a == b) return true;
  const size_t shorter = std::min(a.size(), b.size()), longer = std::max(a.size(), b.size());
  if (shorter < kShortest || longer > kLongest) return false;
  const auto first_other = std::ranges::mismatch(a, b).in1;
  const auto n_alike = static_cast<size_t>(first_other - a.begin());
  if (n_alike >= kShortest && n_alike * 2 >= longer) return true;
  return longer - shorter <= longer / 4 && EditDistance(a, b) * 4 <= longer;
}

// The share of a query's words, weighted by length, that occur in a model's name, exactly or
// nearly: 0 to 1.
double Likeness(const std::vector<std::string>& query, const std::string& name) {
  const std::vector<std::string> words = WordsOf(Lower(name));
  double n_all = 0, n_found = 0;
  for (const std::string& wanted : query) {
    const auto size = static_cast<double>(wanted.size());
    n_all += size;
    if (std::ranges::find(words, wanted) != words.end()) {
      n_found += size;
    } else if (std::ranges::any_of(words, [&](const auto& word) { return IsNear(wanted, word); })) {
      n_found += 0.75 * size;
    }
  }
  return n_all > 0 ? n_found / n_all : 0;
}

// The models whose names are similar to this one, the most similar first. The same owner alone is
// not enough.
std::vector<const StoredModel*> NearModels(const std::string& query, const Stores& stores) {
  constexpr double kLeast = 0.5;
  constexpr size_t kMaxWords = 20;
  static const StoredModel by_default = {kDefaultModel, "", ""};
  const std::string without_owner = query.substr(query.rfind('/') + 1);
  std::vector<std::string> all = WordsOf(query), words = WordsOf(without_owner);
  if (all.size() > kMaxWords) return {};
  std::vector<const StoredModel*> near = {&by_default};
  for (const StoredModel& model : stores.models) near.push_back(&model);
  std::erase_if(near, [&](const StoredModel* m) { return Likeness(words, m->name) < kLeast; });
  const auto likeness = [&](const StoredModel* m) { return Likeness(all, m->name); };
  std::ranges::stable_sort(near, std::greater(), likeness);
  return near;
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
  AddOwn(stores);
  const auto n_own = static_cast<std::ptrdiff_t>(stores.models.size());
  AddHuggingFace(stores);
  if (const auto root = FromEnvironment("OLLAMA_MODELS")) {
    AddOllama(*root, stores);
  } else {
    AddOllama(Home() / ".ollama" / "models", stores);
    AddOllama("/usr/share/ollama/.ollama/models", stores);  // the system service's
  }
#ifdef __APPLE__
  const fs::path cache = Home() / "Library" / "Caches";
#else
  const fs::path cache = Cache();
#endif
  AddFolder(FolderFrom("LLAMA_CACHE", cache / "llama.cpp"), "", "llama.cpp", stores);
  AddFolder(Home() / ".lmstudio" / "models", "", "LM Studio", stores);
  AddFolder(Home() / ".cache" / "lm-studio" / "models", "", "LM Studio", stores);
  const auto place = [](const StoredModel& model) { return std::tie(model.store, model.name); };
  std::stable_sort(stores.models.begin() + n_own, stores.models.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  // A file that several revisions of a repository have counts once: the first is the newest.
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
  bool is_name = false;
  // The second time without an address's host, which only Ollama keeps in its names.
  for (const std::string& part : {query, WithoutHost(query)}) {
    if (found.empty()) add_if([&](const StoredModel& model) { return IsNameOf(part, model); });
    is_name = !found.empty();
    if (!found.empty() || !HasWord(part)) continue;
    const bool is_repository =
        std::ranges::count(part, '/') == 1 && part.find(' ') == std::string::npos;
    add_if([&](const StoredModel& model) {
      return is_repository ? IsOfRepository(part, model) : HoldsAllWords(Lower(model.name), part);
    });
  }
  // A file in the user's own folders takes precedence over a cached file of the same name.
  for (const char* const own : {kThisFolder, kOwnFolder}) {
    const auto is_own = [&](const StoredModel* model) { return model->store == own; };
    if (is_name && std::ranges::count_if(found, is_own) == 1) {
      return (*std::ranges::find_if(found, is_own))->path;
    }
  }
  if (found.size() == 1) return found.front()->path;
  const bool is_text = name.find(' ') != std::string::npos;
  const std::string shown = is_text ? gguf::Quoted(name) : name;
  if (found.size() > 1) throw engine::Error(shown, " could be ", Listed(found));
  found = NearModels(query, stores);
  const std::string what = "no file and no model called " + shown + " ('pronk list')";
  if (!found.empty()) throw engine::Error(what, "; similar: ", Listed(found));
  if (is_text) throw engine::Error(what);
  const std::string published = WithoutHost(name);
  const bool is_published =
      std::ranges::count(published, '/') == 1 && !published.ends_with(".gguf");
  throw engine::Error(what, "; to download ", is_published ? "it: " : "one: ",
                      is_published ? PullLine(published) : SuggestedModel().line);
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
