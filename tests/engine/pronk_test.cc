// The library's public interface: it streams what it returns, ends where it is asked to, and throws
// one type.
#include "engine/pronk.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/support/allocations.h"
#include "tests/support/data.h"
#include "tests/support/memory_is_ours.h"
#include "tests/support/paths.h"
#include "tests/support/scripted_model.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"

namespace {

const std::string kTiny = test::DataPath("tiny/llama.gguf");
const std::string kDefault = test::SourceDir() + "/models/default.gguf";

pronk::Options Greedy() {
  pronk::Options options;
  options.sampling.temperature = 0;
  options.threads = 1;
  return options;
}

// Everything that the file has.
void AddTiny(gguf::Writer& writer) {
  static const gguf::File file = gguf::File::Open(kTiny);
  for (const auto& entry : file.metadata().entries()) writer.Add(entry);
  for (const gguf::TensorView& t : file.tensors()) {
    writer.AddTensor(t.name, t.dtype, {t.dims.begin(), t.dims.begin() + t.n_dims},
                     std::span(t.data, t.bytes));
  }
}

pronk::Limits AtMost(int max_tokens) {
  pronk::Limits limits;
  limits.max_tokens = max_tokens;
  return limits;
}

TEST(Library, StreamsWhatItReturns) {
  const pronk::Model model(kDefault);
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_GT(model.context_length(), 0u);
  EXPECT_GT(model.size_in_bytes(), 5'000'000u);
  pronk::Session session(model, Greedy());
  std::string streamed;
  const pronk::Completion completion = session.Complete(
      "Once upon a time", [&](std::string_view text) { streamed += text; }, AtMost(20));
  EXPECT_EQ(completion.text, streamed);
  EXPECT_FALSE(streamed.empty());
  EXPECT_EQ(completion.end, pronk::End::kLength);
  EXPECT_EQ(completion.n_generated, 20u);
  EXPECT_EQ(completion.n_prompt, model.Tokenize("Once upon a time").size());
}

// A text that starts over is the same; one that continues reads only what is new.
TEST(Library, GoesOnWhereItWas) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const std::string all = session.Complete("Once upon a time", {}, AtMost(20)).text;
  session.Clear();
  EXPECT_EQ(session.Complete("Once upon a time", {}, AtMost(20)).text, all);

  pronk::Session moved = std::move(session);
  EXPECT_EQ(moved.Complete(" And then", {}, AtMost(5)).n_generated, 5u);
}

// However a prompt is cut, within a word or before a space: the tokens, and so the text, of one
// call.
TEST(Library, APromptInPartsIsOne) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  const std::string prompt = "Once upon a time, Nora saw h\xC3\xA9r goat";
  const pronk::Completion whole = session.Complete(prompt, {}, AtMost(5));
  for (std::size_t cut = 0; cut <= prompt.size(); cut += 3) {
    session.Clear();
    session.Complete(prompt.substr(0, cut), {}, AtMost(0));
    EXPECT_EQ(session.Complete(prompt.substr(cut), {}, AtMost(5)).text, whole.text) << cut;
  }
  // What was generated is continued like any text: no space is put before the rest of a word.
  session.Clear();
  const std::string begun = session.Complete("Once upon a time", {}, AtMost(3)).text;
  const std::string next = session.Complete("s", {}, AtMost(9)).text;
  session.Clear();
  EXPECT_EQ(session.Complete("Once upon a time" + begun + "s", {}, AtMost(9)).text, next);
}

TEST(Library, TheCallerChoosesHowItIsRead) {
  const pronk::Model model(kDefault);
  using Ids = std::vector<std::int32_t>;
  const Ids usual = model.Tokenize("a goat"), rest(usual.begin() + 1, usual.end());
  EXPECT_EQ(model.Tokenize("a goat", {true, false}), rest);
  EXPECT_EQ(model.Tokenize("a goat", {true, true}), usual);
  EXPECT_EQ(model.Tokenize("<s>a goat", {true, false, true}), usual);
  EXPECT_GT(model.Tokenize("<s>a goat").size(), usual.size());
  pronk::Session session(model, Greedy());
  pronk::Limits limits = AtMost(0);
  EXPECT_EQ(session.Complete("goa", {}, limits).n_prompt, model.Tokenize("goa").size());
  limits.reading = {false, true};
  EXPECT_EQ(session.Complete("t", {}, limits).n_prompt, model.Tokenize("t").size());
}

// GCC's OpenMP would wait there for threads that only the parent has.
TEST(Library, AChildOfForkGetsAnError) {
  const pronk::Model model(kTiny);
  pronk::Options options = Greedy();
  options.threads = 2;
  pronk::Session session(model, options);
  session.Complete("Hello", {}, AtMost(1));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int status = 1;
    try {
      session.Complete(" you", {}, AtMost(1));
    } catch (const pronk::Error& error) {
      const bool says = std::string_view(error.what()).find("forked") != std::string_view::npos;
      const pronk::Options alone = Greedy();  // one thread works
      status =
          says && pronk::Session(model, alone).Complete("a", {}, AtMost(1)).n_prompt > 0 ? 0 : 2;
    }
    _exit(status);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Library, EndsWhereItIsAskedTo) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  int n_pieces = 0;
  const auto three = [&](std::string_view) { return ++n_pieces < 3; };
  EXPECT_EQ(session.Complete("Once upon a time", three).end, pronk::End::kCaller);
  EXPECT_EQ(n_pieces, 3);
  session.Clear();
  const pronk::Completion stopped = session.Complete("Once upon a time", {}, {50, {"."}});
  EXPECT_EQ(stopped.end, pronk::End::kStop);
  EXPECT_EQ(stopped.text.find('.'), std::string::npos);
}

TEST(Library, ThrowsOneType) {
  EXPECT_THROW(pronk::Model("no/such.gguf"), pronk::Error);
  EXPECT_THROW(pronk::Model(test::SourceDir() + "/README.md"), pronk::Error);
  const pronk::Model model(kTiny);
  pronk::Options options = Greedy();
  options.context = 4;
  pronk::Session session(model, options);
  EXPECT_THROW(session.Complete("a b c d e f g h i j k l m n o p"), pronk::Error);
  options.context = size_t{1} << 60;
  EXPECT_THROW(pronk::Session(model, options), pronk::Error);
}

// By the ranges of the program's flags, and by the names of the fields.
TEST(Library, NumbersOutOfRange) {
  const pronk::Model model(kTiny);
  const auto expect = [&](const std::string& says, auto change) {
    pronk::Options options = Greedy();
    change(options);
    try {
      pronk::Session session(model, options);
      ADD_FAILURE() << says;
    } catch (const pronk::Error& error) {
      EXPECT_EQ(error.what(), says);
    }
  };
  using O = pronk::Options;
  const std::string number = ": expected a number from ";
  expect("temperature" + number + "0 to 1000000, found -1",
         [](O& o) { o.sampling.temperature = -1; });
  expect("temperature" + number + "0 to 1000000, found nan",
         [](O& o) { o.sampling.temperature = std::nanf(""); });
  expect("top_p" + number + "0 to 1, found -3", [](O& o) { o.sampling.top_p = -3; });
  expect("min_p" + number + "0 to 1, found 2", [](O& o) { o.sampling.min_p = 2; });
  expect("typical" + number + "0 to 1, found 1.5", [](O& o) { o.sampling.typical = 1.5f; });
  expect("top_k" + number + "-1 to 1073741824, found -2", [](O& o) { o.sampling.top_k = -2; });
  expect("repeat_penalty" + number + "0.001 to 1000, found 0",
         [](O& o) { o.sampling.repeat_penalty = 0; });
  expect("penalty_last_n" + number + "-1 to 1073741824, found -2",
         [](O& o) { o.sampling.penalty_last_n = -2; });
  expect("xtc_probability" + number + "0 to 1, found 7",
         [](O& o) { o.sampling.xtc_probability = 7; });
  expect("dry.base" + number + "1 to 1000000, found 0.5", [](O& o) { o.sampling.dry.base = 0.5f; });
  expect("mirostat.tau" + number + "0 to 1000000, found -1",
         [](O& o) { o.sampling.mirostat.tau = -1; });
  expect("threads" + number + "0 to 1024, found -7", [](O& o) { o.threads = -7; });
  expect("threads" + number + "0 to 1024, found 1000000", [](O& o) { o.threads = 1'000'000; });
  expect("context" + number + "0 to 1073741824, found 1.1529215e+18",
         [](O& o) { o.context = size_t{1} << 60; });
  pronk::Session session(model, Greedy());
  EXPECT_THROW(session.Complete("a", {}, AtMost(-2)), pronk::Error);
  // Limits are called by the names of their fields, not by the program's flags.
  try {
    session.Complete(std::string(10'000, 'x'));
    FAIL();
  } catch (const pronk::Error& error) {
    EXPECT_EQ(std::string(error.what()).find("-c"), std::string::npos) << error.what();
  }
  const test::TempDir dir;
  gguf::Writer writer;
  AddTiny(writer);
  writer.Add("llama.attention.new_idea", 1);
  writer.WriteFile(dir.Path("new.gguf"));
  try {
    pronk::Model refused(dir.Path("new.gguf"));
    FAIL();
  } catch (const pronk::Error& error) {
    EXPECT_NE(std::string(error.what()).find("new_idea"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("--"), std::string::npos) << error.what();
  }
}

// What the caller's function throws is the caller's, whatever it is.
TEST(Library, ExceptionsOfTheCaller) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const pronk::Model model(kTiny);
  pronk::Session session(model, Greedy());
  pronk::Chat chat(model, "", Greedy());
  const auto throws = [](std::string_view) { throw Mine("mine"); };
  EXPECT_THROW(session.Complete("Hello", throws), Mine);
  EXPECT_THROW(chat.Say("Hello", throws), Mine);
  EXPECT_THROW(session.Complete("Hello", [](std::string_view) { throw 7; }), int);
  EXPECT_THROW(session.Complete("Hello", [](std::string_view) { throw std::bad_alloc(); }),
               std::bad_alloc);
  EXPECT_THROW(session.Complete("Hello", [](std::string_view) { throw pronk::Error("mine"); }),
               pronk::Error);
  // A fault of ours after a call of theirs is still ours, and all goes on.
  EXPECT_THROW(session.Complete(std::string(10'000, 'x'), [](std::string_view) {}), pronk::Error);
  session.Clear();
  EXPECT_EQ(session.Complete("Hello", {}, AtMost(3)).n_generated, 3u);
}

// A full session has room for no token, not for the default number.
TEST(Library, APromptCanBeWatchedAndStopped) {
  const pronk::Model model(kDefault);
  pronk::Options options = Greedy();
  options.context = 4000;
  pronk::Session session(model, options);
  std::string prompt = "Tom saw";
  for (int i = 0; i < 3000; ++i) prompt += " it";
  pronk::Limits limits = AtMost(1);
  std::vector<std::pair<std::size_t, std::size_t>> seen;
  limits.on_prompt = [&](std::size_t read, std::size_t all) {
    seen.emplace_back(read, all);
    return false;
  };
  const pronk::Completion stopped = session.Complete(prompt, {}, limits);
  EXPECT_EQ(stopped.end, pronk::End::kCaller);
  ASSERT_EQ(seen.size(), 1u);
  const std::size_t n = model.Tokenize(prompt).size();
  EXPECT_EQ(seen[0].second, n);
  EXPECT_LE(stopped.n_prompt, seen[0].first);
  // A void function does not stop it; the last call says that all is read.
  session.Clear();
  limits.on_prompt = [&](std::size_t read, std::size_t) { seen.emplace_back(read, 0); };
  EXPECT_EQ(session.Complete(prompt, {}, limits).n_prompt, n);
  EXPECT_EQ(seen.back().first, n);
  session.Clear();
  limits.on_prompt = [](std::size_t, std::size_t) -> bool { throw 42; };
  EXPECT_THROW(session.Complete(prompt, {}, limits), int);
}

TEST(Library, AFullContextRefusesMore) {
  const pronk::Model model(kDefault);
  pronk::Options options = Greedy();
  options.context = 8;
  pronk::Session session(model, options);
  EXPECT_EQ(session.Complete("Once upon a time").end, pronk::End::kContext);
  EXPECT_EQ(session.Complete("").end, pronk::End::kContext);
  try {
    session.Complete(std::string(1000, 'x'));
    FAIL();
  } catch (const pronk::Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("room for 0 "), std::string::npos)
        << error.what();
  }
}

TEST(Library, ShowsWhatIsInTheFileAndTheSession) {
  const pronk::Model model(kDefault);
  EXPECT_EQ(model.Metadata("general.architecture"), "llama");
  EXPECT_EQ(model.Metadata("llama.embedding_length"), "256");
  EXPECT_EQ(model.Metadata("llama.attention.layer_norm_rms_epsilon"), "1e-05");
  EXPECT_EQ(model.Metadata("no.such.key"), std::nullopt);
  const std::string tokens = model.Metadata("tokenizer.ggml.tokens").value();
  EXPECT_GE(std::count(tokens.begin(), tokens.end(), '\n'), 4095);
  EXPECT_NE(model.chat_template().find("messages"), std::string::npos);

  const pronk::SpecialTokens special = model.special_tokens();
  std::vector<std::int32_t> ids = model.Tokenize("A goat.");
  EXPECT_EQ(ids[0], special.bos);
  EXPECT_EQ(std::count(special.ends.begin(), special.ends.end(), special.eos), 1);
  EXPECT_EQ(model.Detokenize(ids), "A goat.");
  EXPECT_EQ(model.Detokenize({special.bos}, true), "<s>");

  pronk::Session session(model, Greedy());
  EXPECT_TRUE(session.logits().empty());
  session.Complete("A goat.", {}, AtMost(0));
  EXPECT_EQ(session.tokens(), ids);
  const std::vector<float> logits = session.logits();
  session.Complete("", {}, AtMost(1));
  ids.push_back(
      static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  EXPECT_EQ(session.tokens(), ids);
}

// Before it is said, and longer than the context as well.
TEST(Library, CountsAConversation) {
  const pronk::Model model(kDefault);
  pronk::Options options = Greedy();
  options.context = 64;
  pronk::Chat chat(model, "You are kind.", options);
  const std::size_t n = chat.Count("What is a goat?");
  EXPECT_EQ(chat.Say("What is a goat?", {}, AtMost(3)).n_prompt, n);
  EXPECT_GT(chat.Count("What is a goat?"), n + 3);
  std::string book;
  for (int i = 0; i < 200; ++i) book += " goat";
  EXPECT_GT(chat.Count(book), 200u);
  EXPECT_THROW(chat.Say(book), pronk::Error);
}

// By the names of the fields; what is not set stays with the model's file.
TEST(Library, SetsOptionsByName) {
  pronk::Options options;
  for (const auto& [name, number] : std::vector<std::pair<std::string, double>>{{"context", 99},
                                                                                {"threads", 3},
                                                                                {"cache_bits", 8},
                                                                                {"seed", 1e10},
                                                                                {"top_k", 5},
                                                                                {"dry.base", 2},
                                                                                {"mirostat", 2},
                                                                                {"typical", 0.5}}) {
    pronk::Set(options, name, number);
  }
  EXPECT_EQ(options.context, 99u);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.cache_bits, 8);
  EXPECT_EQ(options.sampling.seed, 10'000'000'000u);
  EXPECT_EQ(options.sampling.top_k, 5);
  EXPECT_EQ(options.sampling.dry.base, 2);
  EXPECT_EQ(options.sampling.mirostat.on, true);
  EXPECT_EQ(options.sampling.typical, 0.5f);
  EXPECT_EQ(options.sampling.top_p, std::nullopt);
  EXPECT_THROW(pronk::Set(options, "top_k", -2), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "top_k", std::nan("")), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "top_q", 1), pronk::Error);
  options = Greedy();
  const pronk::Model model(kDefault);
  std::vector<std::vector<float>> logits;
  for (const int bits : {32, 16, 8}) {
    options.cache_bits = bits;
    pronk::Session session(model, options);
    session.Complete("Once upon a time", {}, AtMost(0));
    logits.push_back(session.logits());
  }
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_NE(logits[1], logits[2]);
}

TEST(Library, SessionsKeepTheirModel) {
  auto model = std::make_unique<pronk::Model>(kTiny);
  pronk::Session session(*model, Greedy());
  pronk::Chat chat(*model, "", Greedy());
  model.reset();
  EXPECT_EQ(session.Complete("Hello", {}, AtMost(3)).n_generated, 3u);
  EXPECT_LE(chat.Say("Hello", {}, AtMost(3)).n_generated, 3u);
}

// Only what is new is read, until the conversation starts over.
TEST(Library, RemembersAConversation) {
  const pronk::Model model(kDefault);
  pronk::Chat chat(model, "You are kind.", Greedy());
  const pronk::Completion first = chat.Say("What is a goat?", {}, AtMost(8));
  const pronk::Completion second = chat.Say("What is a goat?", {}, AtMost(8));
  EXPECT_LT(second.n_prompt, first.n_prompt + 8 + first.n_generated);
  chat.Clear();
  EXPECT_EQ(chat.Say("What is a goat?", {}, AtMost(8)).text, first.text);
}

// The same whether a program keeps the conversation or the library does.
TEST(Library, TakesAConversationAsMessages) {
  const pronk::Model model(kDefault);
  pronk::Chat kept(model, "You are kind.", Greedy());
  pronk::Chat given(model, "", Greedy());
  kept.Say("What is a goat?", {}, AtMost(8));
  const pronk::Completion second = kept.Say("Why?", {}, AtMost(8));
  std::vector<pronk::Message> history = kept.History();
  ASSERT_EQ(history.size(), 5u);
  EXPECT_EQ(history[0].content, "You are kind.");
  EXPECT_EQ(history.back().content, second.text);
  history.pop_back();
  const std::string json = pronk::MessagesJson(history);
  for (int i = 0; i < 2; ++i) {
    given.SetHistory(pronk::ParseMessages(json));
    const pronk::Completion answer = given.Answer({}, {}, AtMost(8));
    EXPECT_EQ(answer.text, second.text);
    EXPECT_EQ(answer.n_dropped, 0u);
    EXPECT_EQ(answer.n_prompt == 0, i == 1);  // all of it was read before
  }
  EXPECT_THROW(given.SetHistory({{"assistant", "Me first."}}), pronk::Error);
  EXPECT_EQ(pronk::MessagesJson(given.History()), pronk::MessagesJson(kept.History()));
  EXPECT_THROW(pronk::ParseMessages("[1]"), pronk::Error);
  EXPECT_THROW(given.SetTools("[1]"), pronk::Error);
  // What is dropped is told, every time.
  pronk::Options small = Greedy();
  small.context = 128;
  pronk::Chat forgets(model, "", small);
  forgets.SetHistory({{"user", std::string(300, '.')}, {"assistant", "Yes."}});
  EXPECT_EQ(forgets.Say("Why?", {}, AtMost(2)).n_dropped, 2u);
  EXPECT_EQ(forgets.Say("Why?", {}, AtMost(2)).n_dropped, 2u);
}

// Calls are told apart from the text, and go into the history.
TEST(Library, TellsWhatTheModelCalls) {
  const test::TempDir dir;
  const auto control = tokenizer::TokenType::kControl;
  const pronk::Model model(dir.Write(
      "model.gguf",
      test::ScriptedModel(
          {{"So"}, {"[TOOL_CALLS]", control}, {"f"}, {"[ARGS]", control}, {R"({"x": "1"})"}},
          "{% for m in messages %}{{ m.content }}{% if m.tool_calls "
          "%}[TOOL_CALLS]{{ m.tool_calls[0].function.name }}[ARGS]"
          "{{ m.tool_calls[0].function.arguments | tojson }}"
          "{% endif %}{% endfor %}{{ tools }}")));
  pronk::Chat chat(model, "", Greedy());
  EXPECT_TRUE(chat.Say("a").tool_calls.empty());
  chat.SetTools(R"([{"type": "function", "function": {"name": "f"}}])");
  std::string heard;
  const pronk::Completion answer = chat.Say("a", [&](std::string_view text) { heard += text; });
  EXPECT_EQ(heard, "So");
  EXPECT_EQ(answer.text, "So");
  ASSERT_EQ(answer.tool_calls.size(), 1u);
  EXPECT_EQ(answer.tool_calls[0].name, "f");
  EXPECT_EQ(answer.tool_calls[0].arguments, R"({"x":"1"})");
  chat.Answer({{"tool", "2", answer.tool_calls[0].id}});
  const std::vector<pronk::Message> history = chat.History();
  ASSERT_EQ(history.size(), 6u);
  EXPECT_EQ(history[3].tool_calls[0].id, history[4].tool_call_id);
  pronk::Limits limits = AtMost(3);  // which holds for the whole answer
  limits.grammar = pronk::Grammar::Gbnf(R"(root ::= "So")");
  EXPECT_EQ(chat.Say("a", {}, limits).text, "So");
}

TEST(Library, WritesWhatAGrammarAllows) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  pronk::Limits limits = AtMost(40);
  limits.grammar = pronk::Grammar::JsonSchema(R"({"properties": {"age": {"type": "integer",
      "minimum": 3, "maximum": 5}}, "required": ["age"], "additionalProperties": false})");
  for (int i = 0; i < 2; ++i) {  // the second uses the cache of the grammar
    const pronk::Completion completion = session.Complete("Once upon a time", {}, limits);
    EXPECT_EQ(completion.end, pronk::End::kText) << completion.text;
    EXPECT_EQ(completion.text.front(), '{');
    EXPECT_EQ(completion.text.back(), '}');
    EXPECT_NE(completion.text.find_first_of("345"), std::string::npos);
    session.Clear();
  }
  limits.grammar = pronk::Grammar::Gbnf(R"(root ::= "yes" | "no")");
  pronk::Chat chat(model, "", Greedy());
  const std::string answer = chat.Say("Is a goat an animal?", {}, limits).text;
  EXPECT_TRUE(answer == "yes" || answer == "no") << answer;
  limits.grammar = {};
  EXPECT_EQ(chat.Say("Is a goat an animal?", {}, limits).text.find("yes"), std::string::npos);
  EXPECT_THROW(pronk::Grammar::JsonSchema(R"({"uniqueItems": true})"), pronk::Error);
  EXPECT_THROW(pronk::Grammar::Gbnf("root ::= other"), pronk::Error);
  limits.grammar = pronk::Grammar::JsonObject();
  EXPECT_EQ(session.Complete("Once", {}, limits).text.front(), '{');
}

// What the file recommends, which the caller's options win over.
TEST(Library, TakesTheFilesSampling) {
  const test::TempDir dir;
  gguf::Writer writer;
  AddTiny(writer);
  writer.Add("general.sampling.temp", 0.0f);
  writer.WriteFile(dir.Path("cold.gguf"));
  const auto text = [](const std::string& path, const pronk::Options& options) {
    return pronk::Session(pronk::Model(path), options).Complete("Hello", {}, AtMost(30)).text;
  };
  pronk::Options warm;
  warm.sampling.temperature = 1;
  EXPECT_EQ(text(dir.Path("cold.gguf"), {}), text(kTiny, Greedy()));
  EXPECT_NE(text(kTiny, {}), text(kTiny, Greedy()));
  EXPECT_EQ(text(dir.Path("cold.gguf"), warm), text(kTiny, warm));
}

// Each has an effect: the text is another one, or is the most likely one.
TEST(Library, HasAllSamplers) {
  const pronk::Model model(kDefault);
  const auto text = [&](const auto& change) {
    pronk::Options options;
    options.threads = 1;
    options.sampling.seed = 3;
    options.sampling.temperature = 3;
    options.sampling.top_k = 0;
    options.sampling.top_p = 1;
    options.sampling.min_p = 0;
    options.sampling.repeat_penalty = 1;  // the file has one
    change(options.sampling);
    return pronk::Session(model, options).Complete("Once upon a time", {}, AtMost(60)).text;
  };
  const std::string usual = text([](pronk::Sampling&) {});
  const std::string likely = text([](pronk::Sampling& s) { s.temperature = 0; });
  EXPECT_EQ(usual, text([](pronk::Sampling&) {}));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_k = 1; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_p = 1e-6f; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.min_p = 1; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_n_sigma = 1e-6f; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.typical = 0.1f; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.xtc_probability = 1, s.xtc_threshold = 0; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.temperature_range = 2; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.mirostat = {true, 1, 0.1f}; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.steps = {"top_k"}; }));
  const auto greedy = [&](const auto& change) {
    return text([&](pronk::Sampling& s) {
      s.temperature = 0;
      change(s);
    });
  };
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.repeat_penalty = 3; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.frequency_penalty = 90; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.presence_penalty = 90; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) {
              s.dry.multiplier = 50;
              s.dry.allowed_length = 0;
              s.dry.breakers.clear();
            }));
  const std::int32_t first =
      model.Tokenize("Once upon a time" + likely)[model.Tokenize("Once upon a time").size()];
  EXPECT_NE(likely, greedy([&](pronk::Sampling& s) { s.logit_bias = {{first, -1e9f}}; }));
  EXPECT_THROW(text([](pronk::Sampling& s) { s.steps = {"top_q"}; }), pronk::Error);
  EXPECT_THROW(text([](pronk::Sampling& s) { s.logit_bias = {{-1, 1.0f}}; }), pronk::Error);
  EXPECT_THROW(text([](pronk::Sampling& s) {
                 s.dry = {1, 2, 2, -1, {"no token has this"}};
               }),
               pronk::Error);
}

TEST(Library, KeepsWhatWasRead) {
  const test::TempDir dir;
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  EXPECT_THROW(session.Save(dir.Path("state")), pronk::Error);  // there is nothing yet
  session.Complete("Once upon a time", {}, AtMost(0));
  session.Save(dir.Path("state"));
  const std::string text = session.Complete("", {}, AtMost(20)).text;
  pronk::Session other(model, Greedy());
  other.Load(dir.Path("state"));
  const pronk::Completion completion = other.Complete("", {}, AtMost(20));
  EXPECT_EQ(completion.text, text);
  EXPECT_EQ(completion.n_prompt, 0u);
  EXPECT_THROW(other.Load(kDefault), pronk::Error);

  pronk::Chat chat(model, "You are kind.", Greedy());
  const pronk::Completion first = chat.Say("What is a goat?", {}, AtMost(8));
  chat.Save(dir.Path("chat"));
  pronk::Chat next(model, "You are kind.", Greedy());
  next.Load(dir.Path("chat"));
  const pronk::Completion second = next.Say("What is a goat?", {}, AtMost(8));
  EXPECT_EQ(second.text, first.text);
  EXPECT_LT(second.n_prompt, first.n_prompt);
}

// The same text, guessed by the model itself.
TEST(Library, MayDraftWithAnotherModel) {
  const pronk::Model model(kDefault);
  pronk::Session session(model, Greedy());
  pronk::Options options = Greedy();
  options.draft = pronk::Model(kDefault);
  pronk::Session drafting(model, options);
  options.draft.reset();  // the session keeps it
  EXPECT_EQ(drafting.Complete("Once upon a time", {}, AtMost(30)).text,
            session.Complete("Once upon a time", {}, AtMost(30)).text);
  options.draft = pronk::Model(kTiny);
  EXPECT_THROW(pronk::Session(model, options), pronk::Error);
}

TEST(Library, TellsThinkingFromTheAnswer) {
  const test::TempDir dir;
  const std::vector<test::ScriptedToken> script = {{"<think>", tokenizer::TokenType::kUserDefined},
                                                   {"hm"},
                                                   {"</think>", tokenizer::TokenType::kUserDefined},
                                                   {"Yes"}};
  const pronk::Model model(dir.Write(
      "model.gguf",
      test::ScriptedModel(script,
                          "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking "
                          "is defined and enable_thinking is false %}<think></think>{% endif %}")));
  pronk::Chat chat(model, "", Greedy());
  std::string heard;
  chat.OnThinking([&](std::string_view text) { heard += text; });
  const pronk::Completion answer = chat.Say("Why?");
  EXPECT_EQ(answer.text, "Yes");
  EXPECT_EQ(answer.thinking, "hm");
  EXPECT_EQ(heard, "hm");
  chat.SetThinking("off");
  EXPECT_THROW(chat.SetThinking("low"), pronk::Error);
  EXPECT_THROW(pronk::Chat(pronk::Model(kDefault)).SetThinking("on"), pronk::Error);
}

// Whichever allocation fails: an Error is thrown, and nothing leaks.
class WithoutMemory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!test::kAllocationsAreCounted) GTEST_SKIP();
    test::SmallModel small;
    small.tokenizer = GetParam();
    file_ = dir_.Write("model.gguf", small.Bytes());
    options_.sampling.temperature = 1;
    options_.sampling.dry.multiplier = 1;
  }
  // With BPE each allocation in turn fails, alone. sentencepiece's protobuf crashes where one of
  // its own does, so all that it takes is asked for before: with SPM, as in life, what is over a
  // limit fails, in 200 steps up to all that the work takes.
  template <class Work>
  void Expect(Work work) {
    work();  // what is allocated once for all
    const bool is_spm = GetParam() == std::string("llama");
    test::ResetPeak();
    const size_t held = test::CountAllocations().bytes;
    work();
    const size_t most = test::CountAllocations().peak - held;
    size_t n_failures = 0;
    constexpr size_t kStep = test::kMemoryIsOurs ? 1 : 7;  // sanitizers take their time
    for (size_t n = 1;; n += kStep) {
      bool has_thrown = false;
      if (!is_spm) test::FailAllocation(n);
      if (is_spm) test::LimitBytes(held + 1024 + n * most / 200);  // 1024: for a message
      try {
        work();
      } catch (const pronk::Error&) {
        has_thrown = true;
      }
      const bool has_failed = test::FailAllocation(0);
      ASSERT_EQ(test::CountAllocations().bytes, held) << n;
      ASSERT_TRUE(has_failed || !has_thrown) << n;  // some can be done without
      if (!has_failed) break;
      ++n_failures;
    }
    EXPECT_GT(n_failures, 10u);
  }

  const test::TempDir dir_;
  std::string file_;
  pronk::Options options_ = Greedy();
};

TEST_P(WithoutMemory, Opening) {
  Expect([&] { pronk::Model model(file_); });
}

TEST_P(WithoutMemory, CompletingAndSaving) {
  const pronk::Model model(file_);
  const std::string path = dir_.Path("session");
  Expect([&] { pronk::Session(model, options_).Complete("Hello", {}, AtMost(5)); });
  Expect([&] {
    pronk::Session session(model, options_);
    session.Complete("Hello", {}, AtMost(0));
    session.Save(path);
  });
  Expect([&] { pronk::Session(model, options_).Load(path); });
}

TEST_P(WithoutMemory, TwoTogether) {
  const pronk::Model model(file_);
  Expect([&] {
    pronk::Batch batch(model, 1);
    pronk::Session one(model, options_), two(model, options_);
    batch.Add(one, "Hello", {}, AtMost(3));
    batch.Add(two, "Hi", {}, AtMost(2));
    while (batch.size() > 0) batch.Step();
  });
}

TEST_P(WithoutMemory, Conversing) {
  const pronk::Model model(file_);
  Expect([&] { pronk::Chat(model, "Be kind.", options_).Say("Hi", {}, AtMost(5)); });
}

TEST_P(WithoutMemory, FollowingASchema) {
  const pronk::Model model(file_);
  const std::string schema = R"({"properties": {"age": {"type": "integer"}}})";
  Expect([&] {
    pronk::Limits limits = AtMost(5);
    limits.grammar = pronk::Grammar::JsonSchema(schema);
    pronk::Session(model, options_).Complete("Hello", {}, limits);
  });
}

INSTANTIATE_TEST_SUITE_P(Library, WithoutMemory, testing::Values("gpt2", "llama"),
                         [](const auto& family) { return family.param; });

TEST(Library, TurnsTextsIntoVectors) {
  const pronk::Model model(kTiny);
  pronk::Embedder embedder(model, pronk::Pooling::kMean);
  const auto vectors = embedder.Embed({"a text", "another", "a text"});
  ASSERT_EQ(vectors.size(), 3u);
  float length = 0, product = 0;
  for (size_t i = 0; i < vectors[0].size(); ++i) {
    length += vectors[0][i] * vectors[0][i];
    product += vectors[0][i] * vectors[1][i];
  }
  EXPECT_NEAR(length, 1, 1e-5);
  EXPECT_LT(product, 0.999f);
  EXPECT_EQ(vectors[0], vectors[2]);
  EXPECT_THROW(pronk::Embedder{model}, pronk::Error);  // its file names no pooling
  EXPECT_THROW(embedder.Embed({std::string(100000, 'x')}), pronk::Error);
}

TEST(Library, TellsItsVersion) {
  const std::string version = pronk::Version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
}

}  // namespace
