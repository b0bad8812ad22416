#include "cli/options/draft_options.h"

#include <charconv>

#include "cli/command.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/terminal/signals.h"
#include "gguf/error.h"

namespace cli {

void DraftFlags::AddFlags(Command& command) {
  command
      .Add("--draft N", draft,
           "Guess tokens ahead and check them in one pass; the text stays the same: auto (while it "
           "pays), off, or up to N")
      .ShowDefault();
  command.Add("--draft-max N", max, "With --draft auto, guess at most N tokens (default: 15)")
      .Between(1, engine::kMaxDrafts);
  command.Add("--model-draft MODEL", model,
              "Also -md: a small model of the same vocabulary that guesses, too");
}

std::optional<engine::Model> DraftFlags::Load() const {
  if (model.empty()) return {};
  ModelOptions options;
  options.model = model;
  return LoadModel(options);
}

engine::DraftOptions DraftFlags::For(const std::optional<engine::Model>& draft_model) const {
  engine::DraftOptions options;
  options.on = draft != "off";
  if (max != 0) options.max = max;
  if (max != 0 && draft != "auto")
    throw UsageError("--draft-max has no effect with --draft " + gguf::Quoted(draft));
  if (draft != "off" && draft != "auto") {
    size_t n = 0;
    const char* const end = draft.data() + draft.size();
    const auto [stop, error] = std::from_chars(draft.data(), end, n);
    if (error != std::errc() || stop != end || n > engine::kMaxDrafts) {
      throw UsageError("--draft " + gguf::Quoted(draft) + ": expected auto, off or 0 to " +
                       std::to_string(engine::kMaxDrafts));
    }
    options.on = n > 0;
    options.fixed = n;
  }
  if (!options.on && !model.empty())
    throw UsageError("--draft " + draft + " and -md: give one of them");
  options.model = draft_model ? &*draft_model : nullptr;
  options.interrupted = Interrupted;
  return options;
}

}  // namespace cli
