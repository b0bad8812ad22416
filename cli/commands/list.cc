// pronk list: the models found on this machine.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/model_stores.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "convert/quantize_plan.h"
#include "engine/model/model.h"
#include "engine/pass/sequence_state.h"
#include "engine/session/encode.h"
#include "engine/session/memory.h"
#include "engine/session/session.h"
#include "gguf/error.h"
#include "gguf/file.h"

namespace cli {
namespace {

struct ListOptions {
  bool json = false, names = false;
};

struct ListedModel {
  StoredModel stored;
  uint64_t bytes = 0;
  std::string type;  // the name that bench gives it
  std::string architecture;
  double memory = 0;    // bytes needed to run it
  std::string fits;     // "yes", "tight" (other programs have to make room), "no"
  std::string problem;  // why it cannot be run; "" if it can
};

// Weights, plus keys and values of the default context.
double MemoryNeeded(const engine::Model& model) {
  return static_cast<double>(model.file.tensor_bytes()) +
         engine::SequenceState::BytesFor(model.config, {.capacity = engine::ContextOf(model.config),
                                                        .batch = engine::SessionOptions().batch});
}

ListedModel LookAt(const StoredModel& stored, const engine::Memory& memory) {
  ListedModel model;
  model.stored = stored;
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(stored.path, error);
  if (!error) model.bytes = bytes;
  try {
    gguf::File file = OpenFile(stored.path);
    model.bytes = file.file_bytes();  // of all parts
    model.type = convert::FileTypeName(file);
    model.architecture =
        gguf::Printable(file.metadata().GetStringOr("general.architecture", ""), 40);
    model.memory = MemoryNeeded(engine::Model::From(std::move(file)));
    model.fits = model.memory <= static_cast<double>(memory.available) ? "yes"
                 : model.memory <= static_cast<double>(memory.total)   ? "tight"
                                                                       : "no";
  } catch (const gguf::Error& fault) {
    model.problem = MessageOf(fault);
  }
  return model;
}

std::string ListText(const std::vector<ListedModel>& models) {
  std::vector<std::vector<std::string>> rows;
  for (const ListedModel& m : models) {
    rows.push_back({gguf::PrintablePath(m.stored.name), HumanBytes(m.bytes), m.type, m.architecture,
                    m.problem.empty() ? m.fits : "cannot be run"});
  }
  Table table(
      Table::Style::kPlain,
      {{"model"}, {"size", false, 7}, {"type", false, 7}, {"architecture"}, {"fits in memory"}});
  return table.All(rows);
}

Json ToJson(const std::vector<ListedModel>& models) {
  Json list = Json::array();
  for (const ListedModel& m : models) {
    list.push_back({{"name", m.stored.name},
                    {"path", m.stored.path},
                    {"store", m.stored.store},
                    {"bytes", m.bytes},
                    {"type", m.type},
                    {"architecture", m.architecture},
                    {"memory_bytes", static_cast<uint64_t>(m.memory)},
                    {"fits", m.fits},
                    {"problem", m.problem}});
  }
  return list;
}

int List(const ListOptions& options) {
  if (options.json && options.names) throw UsageError("--json and --names: give one of them");
  Stores stores = FindModels();
  const std::string own = DefaultModelPath();
  if (!own.empty()) stores.models.insert(stores.models.begin(), {kDefaultModel, own, "pronk"});
  if (options.names) {
    std::string names;
    for (const StoredModel& model : stores.models) {
      // Shells, which ask for names, complete the files that are here by themselves.
      if (model.store != kThisFolder) names += gguf::PrintablePath(model.name) + "\n";
    }
    WriteOut(names);
    return kExitDone;
  }
  const engine::Memory memory = engine::MachineMemory();
  std::vector<ListedModel> models;
  for (const StoredModel& stored : stores.models) models.push_back(LookAt(stored, memory));
  WriteOut(options.json ? JsonText(ToJson(models), 2) : ListText(models));
  for (const ListedModel& model : models) {
    if (!model.problem.empty()) Note(gguf::PrintablePath(model.problem));
  }
  for (const std::string& line : stores.skipped) Note("skipped " + gguf::PrintablePath(line));
  if (stores.models.size() <= (own.empty() ? 0 : 1)) {
    const Suggestion model = SuggestedModel();
    Note("no other model is on this machine; to download one (" + model.size + "): " + model.line);
  }
  return kExitDone;
}

}  // namespace

void AddList(CommandLine& line) {
  Command& command = line.Add("list", "List the models on this machine; -m takes their names");
  ListOptions& options = command.Does(List);
  command.Add("--json", options.json, "Print a JSON array with more about each model");
  command.Add("--names", options.names,
              "Print only the names, without opening files, and without those in this folder");
}

}  // namespace cli
