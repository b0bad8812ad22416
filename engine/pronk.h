// pronk as a library: a model is opened once, texts are completed and conversations are held with
// it. Installed as <pronk/pronk.h>; what it needs besides is the standard library of C++17.
//
//   pronk::Model model("story.gguf");
//   pronk::Session session(model);
//   session.Complete("Once upon a time", [](std::string_view piece) { std::cout << piece; });
//
// All that can go wrong is thrown as pronk::Error, one line that says what. A model never changes:
// any number of sessions and chats may share it, each used by one thread at a time.
#ifndef PRONK_ENGINE_PRONK_H_
#define PRONK_ENGINE_PRONK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pronk {

// "0.1.0". Semantic: programs written for a version work with later ones of the same major version;
// before 1.0.0, of the same minor version.
std::string Version();

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Model {
 public:
  // Opens a GGUF file (of a model in parts, the first) and checks it. Weights are read from the
  // disk when they are first used; the file has to stay as it is.
  explicit Model(const std::string& path);

  std::string architecture() const;    // "llama", "qwen3", ...
  std::size_t context_length() const;  // tokens that it was trained for
  std::size_t size_in_bytes() const;   // of its weights
  std::vector<std::int32_t> Tokenize(std::string_view text) const;  // to see how long a text is

 private:
  friend class Session;
  friend class Chat;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// How the next token is chosen. The same options give the same text.
struct Sampling {
  std::uint64_t seed = 0;
  float temperature = 0.8f;  // 0: always the most likely token
  int top_k = 40;            // of so many likely ones; 0: of all
  float top_p = 0.95f;       // of those that make up so much probability
  float min_p = 0.05f;       // of those no less likely than this part of the likeliest
  float repeat_penalty = 1;  // above 1: makes what was said lately less likely
};

struct Options {
  std::size_t context = 0;  // tokens remembered; 0: as trained, at most 4096
  int threads = 0;          // 0: the fast cores that this process may use
  Sampling sampling;
};

// Gets text as it comes, in whole UTF-8 characters. Returning false ends the generation; a function
// that returns nothing lets it go on.
class OnText {
 public:
  OnText() = default;
  template <class Function,
            class = std::enable_if_t<std::is_invocable_v<Function&, std::string_view> &&
                                     !std::is_same_v<std::decay_t<Function>, OnText>>>
  OnText(Function function)  // NOLINT(google-explicit-constructor): stands in for the function
      : call_([function = std::move(function)](std::string_view text) mutable {
          if constexpr (std::is_void_v<decltype(function(text))>) {
            function(text);
            return true;
          } else {
            return static_cast<bool>(function(text));
          }
        }) {}
  bool operator()(std::string_view text) const { return !call_ || call_(text); }

 private:
  std::function<bool(std::string_view)> call_;
};

struct Limits {
  int max_tokens = -1;             // -1: until the text ends or the context is full
  std::vector<std::string> stops;  // the text ends before any of these
};

enum class End {
  kText,     // the model ended its text
  kStop,     // one of Limits::stops came up
  kLength,   // Limits::max_tokens
  kContext,  // the context is full
  kCaller,   // OnText returned false
};

struct Completion {
  std::string text;
  End end = End::kText;
  std::size_t n_prompt = 0;     // tokens read, those of an earlier turn left out
  std::size_t n_generated = 0;  // tokens
  double prompt_seconds = 0;
  double generate_seconds = 0;
};

// One text, read and written from its beginning to its end.
class Session {
 public:
  explicit Session(const Model& model, const Options& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Reads the prompt behind what is there, then writes on.
  Completion Complete(std::string_view prompt, const OnText& on_text = {},
                      const Limits& limits = {});
  // Begins a new text.
  void Clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A conversation, put to the model as its chat template wants it. Where the context is full, the
// oldest questions and answers are forgotten.
class Chat {
 public:
  // system: what the model is told before; "" for nothing.
  explicit Chat(const Model& model, std::string system = "", const Options& options = {});
  ~Chat();
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;

  Completion Say(const std::string& text, const OnText& on_text = {}, const Limits& limits = {});
  // Begins a new conversation.
  void Clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pronk

#endif  // PRONK_ENGINE_PRONK_H_
