// Rules for each form of call, with the functions' schemas inside.
#include "engine/answer/call_grammar.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "gguf/error.h"
#include "grammar/json_schema.h"

namespace engine {
namespace {

using gguf::JsonQuoted;
using gguf::JsonView;
using grammar::Part;
using grammar::RuleId;
using grammar::StateId;
using Body = CallForm::Body;

// Limits on white space between two parts of a call: a model must not fill the context with it.
constexpr uint32_t kMaxLines = 2, kMaxSpaces = 8;
constexpr grammar::CodePoint kTab = '\t';
constexpr uint32_t kMaxCalls = 16;      // a model might call without end
constexpr uint32_t kMaxThoughts = 4;    // messages of thinking before a call in channels
constexpr uint32_t kMistralIdSize = 9;  // letters and digits
constexpr uint32_t kMaxDigits = 4;      // digits of a call's number

struct Argument {
  std::string key;
  JsonView schema;
  bool is_required;
};

struct Callee {
  std::string name;
  RuleId arguments;  // all arguments, as a JSON object
  // Each argument by itself; empty if the schema is more than a list of properties.
  std::optional<std::vector<Argument>> apart;
};

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The schema of a function without parameters: no arguments.
JsonView ParametersOf(const JsonView& function) {
  const JsonView given = function["parameters"];
  if (!given.IsObject())
    return JsonView::Parse(R"({"type":"object","properties":{},"additionalProperties":false})");
  for (const auto& [key, value] : given) {
    if (IsOneOf(key, {"type", "$ref", "anyOf", "oneOf", "allOf"})) return given;
  }
  std::vector<JsonView::Member> members = given.Members();
  members.push_back({"type", JsonView::Parse("\"object\"")});
  return JsonView::Object(members);
}

std::optional<std::vector<Argument>> ArgumentsApart(const JsonView& parameters) {
  std::vector<JsonView::Member> definitions;
  for (const auto& [key, value] : parameters) {
    if (!IsOneOf(key, {"type", "properties", "required", "additionalProperties", "title",
                       "description", "$schema", "$defs", "definitions"})) {
      return std::nullopt;
    }
    if (key == "$defs" || key == "definitions") definitions.push_back({key, value});
  }
  if (!parameters["properties"].IsObject()) return std::nullopt;
  std::vector<Argument> arguments;
  for (const auto& [key, schema] : parameters["properties"].Members()) {
    std::vector<JsonView::Member> members = schema.Members();
    if (!definitions.empty()) members.insert(members.end(), definitions.begin(), definitions.end());
    bool is_required = false;
    for (const auto& [index, name] : parameters["required"])
      is_required |= name.IsString() && name.String() == key;
    arguments.push_back(
        {key, definitions.empty() ? schema : JsonView::Object(members), is_required});
  }
  return arguments;
}

// Makes parts of rules. Each part is used once, so functions make them anew.
class CallRules {
 public:
  CallRules(const CallForm* form, const tokenizer::Tokenizer& tokenizer)
      : form_(form), tokenizer_(tokenizer), blank_(builder_.Declare("blank")) {
    builder_.Define(
        blank_,
        Row({builder_.Repeat(Text("\n"), 0, kMaxLines),
             builder_.Repeat(builder_.Characters({{kTab, kTab}, {' ', ' '}}), 0, kMaxSpaces)}));
  }

  void Add(const JsonView& function) {
    const std::string name = function["name"].String();
    const JsonView parameters = ParametersOf(function);
    try {
      callees_.push_back({name, Schema(parameters), ArgumentsApart(parameters)});
    } catch (const gguf::Fault& fault) {
      throw Error("tools: ", name, ": parameters: ", fault.what());
    }
  }

  grammar::Grammar Finish(const ToolChoice& choice, const grammar::Grammar* answer) && {
    const bool is_one = !choice.name.empty();
    const bool is_required = choice.kind == ToolChoice::Kind::kRequired;
    const bool in_channels = form_ != nullptr && form_->body == Body::kChannel;
    const RuleId object = builder_.Declare("object");
    builder_.Define(object, Each([&](const Callee& callee) { return Object(callee); }));
    std::vector<Part> ways;
    if (in_channels && is_required) {
      ways.push_back(Channels());
    } else if (form_ != nullptr) {
      ways.push_back(Marked(object, is_one));
    }
    // If a family has its own form, a required call has it.
    if (!is_required || form_ == nullptr || form_->IsPlainObject())
      ways.push_back(Bare(object, is_one));
    Part all = builder_.Either(ways);
    if (!in_channels || !is_required) all = builder_.Then(Blank(), all);
    if (answer != nullptr) {
      try {
        all = builder_.Either(std::vector<Part>{all, builder_.Call(builder_.Include(*answer))});
      } catch (const gguf::Fault& fault) {
        throw Error("together with tools: ", fault.what());
      }
    }
    const RuleId root = builder_.Declare("root");
    builder_.Define(root, all);
    // All brackets and quotes are JSON's.
    const bool is_json =
        form_ == nullptr || (form_->body != Body::kParameters && form_->body != Body::kGemma &&
                             form_->body != Body::kPython && !in_channels);
    if (is_json && (answer == nullptr || answer->has_unique_keys())) builder_.MakeKeysUnique();
    return std::move(builder_).Finish(root, /*prunes=*/true,
                                      /*is_answer=*/!(in_channels && is_required));
  }

 private:
  Part Row(std::initializer_list<Part> parts) {
    Part all = builder_.Empty();
    for (const Part& part : parts) all = builder_.Then(all, part);
    return all;
  }
  Part Text(std::string_view text) { return builder_.Literal(text); }
  Part Either(const std::vector<Part>& ways) { return builder_.Either(ways); }
  Part Maybe(Part part) { return builder_.Repeat(part, 0, 1); }
  Part Blank() { return builder_.Call(blank_); }
  // One of the parts that `make` returns for the functions.
  template <class Make>
  Part Each(const Make& make) {
    std::vector<Part> ways;
    for (const Callee& callee : callees_) ways.push_back(make(callee));
    return builder_.Either(ways);
  }

  // JSON with free white space.
  RuleId Schema(const JsonView& schema) {
    const grammar::SchemaOptions options{.free_space = true, .closed = true, .ordered = true};
    return builder_.Include(grammar::ParseJsonSchema(schema.Compact(), options));
  }

  // The name of a mark that is a control token; "" if it is text.
  std::string TokenName(std::string_view mark) const {
    const tokenizer::TokenId id = mark.empty() ? -1 : tokenizer_.Find(mark);
    const bool is_control = id >= 0 && tokenizer_.vocab().types[static_cast<size_t>(id)] ==
                                           tokenizer::TokenType::kControl;
    return is_control ? "<[" + std::to_string(id) + "]>" : "";
  }
  Part Mark(std::string_view mark) {
    const std::string name = TokenName(mark);
    return name.empty() ? Text(mark) : builder_.Token(name, /*but_this=*/false);
  }

  // Any text up to a mark, and the mark. The mark's first character must not occur in it again.
  Part UpTo(std::string_view mark) {
    if (!TokenName(mark).empty())
      return Row({builder_.Repeat(builder_.Characters(grammar::Complement({})), 0, grammar::kNone),
                  Mark(mark)});
    std::vector<StateId> at;  // [number of the mark's characters matched]
    for (size_t i = 0; i <= mark.size(); ++i) at.push_back(builder_.Fork());
    const auto go = [&](StateId from, Part part, StateId to) {
      builder_.Link(from, part.start);
      builder_.Link(part.end, to);
    };
    const auto code = [&](size_t i) { return static_cast<grammar::CodePoint>(mark[i]); };
    for (size_t i = 0; i < mark.size(); ++i) {
      go(at[i], Text(mark.substr(i, 1)), at[i + 1]);
      if (i > 0) go(at[i], Text(mark.substr(0, 1)), at[1]);
      const grammar::CodePoints two = grammar::Normal({{code(0), code(0)}, {code(i), code(i)}});
      go(at[i], builder_.Characters(grammar::Complement(two)), at[0]);
    }
    return {at.front(), at.back()};
  }

  // A member's name and its colon.
  Part Key(std::string_view key) {
    return Row({Text(JsonQuoted(key)), Blank(), Text(":"), Blank()});
  }
  Part Comma() { return Row({Blank(), Text(","), Blank()}); }

  // An object with other keys.
  Part FamilyObject(const Callee& callee) {
    if (form_->body == Body::kNamedObject)
      return Row({Text("{"), Blank(), Key(callee.name), builder_.Call(callee.arguments), Blank(),
                  Text("}")});
    const std::string_view name_key = form_->parts[1], id_key = form_->parts[2];
    return Row({Text("{"), Blank(),
                Maybe(Row({Key(id_key), Text("\""), Number(), Text("\""), Comma()})), Key(name_key),
                Text(JsonQuoted(callee.name)), Comma(), Key("parameters"),
                builder_.Call(callee.arguments), Blank(), Text("}")});
  }
  // The number of a call.
  Part Number() { return builder_.Repeat(builder_.Characters({{'0', '9'}}), 1, kMaxDigits); }

  // {"name": NAME, "arguments": {...}}
  Part Object(const Callee& callee) {
    const bool has_id = form_ != nullptr && form_->body == Body::kMistral;
    return Row(
        {Text("{"), Blank(), Maybe(Row({Key("type"), Text("\"function\""), Comma()})), Key("name"),
         Text(JsonQuoted(callee.name)), Comma(), Either({Key("arguments"), Key("parameters")}),
         builder_.Call(callee.arguments),
         has_id ? Maybe(Row({Comma(), Key("id"), Text("\""), Id(), Text("\"")})) : builder_.Empty(),
         Blank(), Text("}")});
  }
  // An object in single or doubled braces.
  Part Braced(RuleId object) {
    return Either({builder_.Call(object), Row({Text("{"), builder_.Call(object), Text("}")})});
  }
  Part Id() {
    const grammar::CodePoints set = grammar::Normal({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}});
    return builder_.Repeat(builder_.Characters(set), kMistralIdSize, kMistralIdSize);
  }
  // One object or more in brackets.
  Part List(RuleId object, bool is_one) {
    const Part more = Row({Comma(), builder_.Call(object)});
    return Row({Text("["), Blank(), builder_.Call(object),
                builder_.Repeat(more, 0, is_one ? 0 : kMaxCalls - 1), Blank(), Text("]")});
  }

  // Objects without marks, in a block of code or not.
  Part Bare(RuleId object, bool is_one) {
    const auto value = [&] {
      return is_one ? Braced(object) : Either({Braced(object), List(object, is_one)});
    };
    const RuleId call = builder_.Declare("bare call");
    builder_.Define(call, Either({value(), Row({Text("```"), Maybe(Text("json")), Blank(), value(),
                                                Blank(), Text("```")})}));
    return Several(call, is_one);
  }
  Part Several(RuleId call, bool is_one) {
    if (is_one) return builder_.Call(call);
    const Part more = Row({Blank(), builder_.Call(call)});
    return Row({builder_.Call(call), builder_.Repeat(more, 0, kMaxCalls - 1)});
  }

  // Calls as the family spells them.
  Part Marked(RuleId object, bool is_one) {
    if (form_->is_whole) return Row({Maybe(Mark(form_->around[0])), builder_.Call(object)});
    const bool is_object = form_->body == Body::kObject || form_->body == Body::kNamedObject;
    if (is_object && !form_->IsPlainObject()) {
      object = builder_.Declare("object of the family");
      builder_.Define(object, Each([&](const Callee& callee) { return FamilyObject(callee); }));
    }
    const RuleId call = builder_.Declare("call");
    Part body = form_->body == Body::kPython ? PythonCalls(object, is_one)
                : !is_object     ? Each([&](const Callee& callee) { return BodyOf(callee); })
                : form_->is_list ? Row({Blank(), List(object, is_one), Blank()})
                                 : Row({Blank(), Braced(object), Blank()});
    if (form_->body == Body::kMistral) body = Either({body, Row({Blank(), List(object, is_one)})});
    builder_.Define(call, Row({Mark(form_->open), body, Mark(form_->close)}));
    const bool has_lines = form_->body == Body::kParameters && !form_->around[0].empty();
    const auto space = [&] { return has_lines ? Blank() : builder_.Empty(); };
    return Row({Mark(form_->around[0]), space(),
                Several(call, is_one || form_->body == Body::kChannel), space(),
                Mark(form_->around[1])});
  }
  Part BodyOf(const Callee& callee) {
    const auto& parts = form_->parts;
    const auto arguments = [&] { return builder_.Call(callee.arguments); };
    switch (form_->body) {
      case Body::kNamed:
        return Row({Text(callee.name), Mark(parts[0]), Blank(), arguments()});
      case Body::kKimi:
        return Row({Text(kKimiPrefix), Text(callee.name), Text(":"), Number(), Mark(parts[0]),
                    Blank(), arguments()});
      case Body::kMistral:
        return Row({Text(callee.name), Maybe(Row({Mark(parts[1]), Id()})), Mark(parts[0]), Blank(),
                    arguments()});
      case Body::kDeepSeek:
        return Either({Row({Text(callee.name), Mark(parts[0]), Blank(), arguments()}),
                       Row({Text("function"), Mark(parts[0]), Text(callee.name), Text(kBlockOfCode),
                            arguments(), Text("\n"), Text(kBlockEnd)})});
      case Body::kChannel:  // as ThinkingSplitter spells the message's header
        return Row({Text(callee.name), Text(parts[0]), Blank(), arguments()});
      case Body::kParameters:
        return Parameters(callee);
      case Body::kGemma:
        return Gemma(callee);
      case Body::kObject:
      case Body::kNamedObject:
      case Body::kPython:
        break;
    }
    return Object(callee);
  }

  // The arguments in order; the model may omit arguments that are not required.
  template <class Make>
  Part Arguments(const std::vector<Argument>& all, std::string_view separator, const Make& make) {
    const StateId start = builder_.Fork(), end = builder_.Fork();
    StateId none = start, some = builder_.Fork();  // arguments written so far
    for (const Argument& argument : all) {
      const StateId still_none = builder_.Fork(), then_some = builder_.Fork();
      if (!argument.is_required) {
        builder_.Link(none, still_none);
        builder_.Link(some, then_some);
      }
      const Part first = make(argument), more = Row({Text(separator), make(argument)});
      builder_.Link(none, first.start);
      builder_.Link(first.end, then_some);
      builder_.Link(some, more.start);
      builder_.Link(more.end, then_some);
      none = still_none;
      some = then_some;
    }
    builder_.Link(none, end);
    builder_.Link(some, end);
    return {start, end, /*counts=*/true};
  }
  // A text without quotes, and the mark after it.
  Part Unquoted(const PlainText& plain, std::string_view close) {
    std::vector<Part> ways;
    for (const auto& [index, text] : plain.schema["enum"]) ways.push_back(Text(text.String()));
    if (ways.empty()) return UpTo(close);  // null, too
    if (plain.may_be_null) ways.push_back(Text("null"));
    return Row({Maybe(Text("\n")), builder_.Either(ways), Maybe(Text("\n")), Mark(close)});
  }

  Part Parameters(const Callee& callee) {
    const auto& [name_open, name_close, key_open, key_close, open, close, end] = form_->parts;
    if (!callee.apart) return Row({Blank(), builder_.Call(CalleeObject(callee)), Blank()});
    const auto argument = [&, key_open = key_open, key_close = key_close, open = open,
                           close = close](const Argument& one) {
      const std::optional<PlainText> plain = FindPlainText(one.schema);
      return Row({Blank(), Mark(key_open), Text(one.key), Mark(key_close), Blank(), Mark(open),
                  plain ? Unquoted(*plain, close)
                        : Row({Blank(), builder_.Call(Schema(one.schema)), Blank(), Mark(close)})});
    };
    const Part begin = name_open.empty() ? builder_.Empty() : Row({Blank(), Mark(name_open)});
    return Row({begin, Text(callee.name), Mark(name_close), Arguments(*callee.apart, "", argument),
                Blank(), Mark(end), Blank()});
  }
  RuleId CalleeObject(const Callee& callee) {
    const RuleId rule = builder_.Declare("");
    builder_.Define(rule, Object(callee));
    return rule;
  }

  Part Gemma(const Callee& callee) {
    const std::string_view quote = form_->parts[1];
    const Part begin = Row({Mark(form_->parts[0]), Text(callee.name)});
    if (!callee.apart) return Row({begin, builder_.Call(callee.arguments)});
    const auto argument = [&](const Argument& one) {
      const std::optional<PlainText> plain = FindPlainText(one.schema);
      Part value =
          plain ? Row({Mark(quote), Unquoted(*plain, quote)}) : builder_.Call(Schema(one.schema));
      if (plain && plain->may_be_null) value = Either({value, Text("null")});
      return Row({Text(one.key), Text(":"), value});
    };
    return Row({begin, Text("{"), Arguments(*callee.apart, ",", argument), Text("}")});
  }

  // NAME(key="text", other=1)
  Part Python(const Callee& callee) {
    const auto argument = [&](const Argument& one) {
      std::vector<Part> ways = {builder_.Call(Schema(one.schema))};
      if (const std::optional<PlainText> plain = FindPlainText(one.schema)) {
        ways.push_back(Row({Text("'"), InSingleQuotes(*plain), Text("'")}));
        if (plain->may_be_null) ways.push_back(Text("None"));
      } else if (one.schema["type"].IsString() && one.schema["type"].String() == "boolean") {
        ways.push_back(Text("True"));
        ways.push_back(Text("False"));
      }
      return Row({Text(one.key), Text("="), Either(ways)});
    };
    return Row({Text(callee.name), Text("("), Arguments(*callee.apart, ", ", argument), Text(")")});
  }
  Part InSingleQuotes(const PlainText& plain) {
    std::vector<Part> ways;
    for (const auto& [index, value] : plain.schema["enum"]) {
      const std::string text = value.String();
      if (text.find_first_of("'\\") == text.npos) ways.push_back(Text(text));
    }
    if (plain.schema["enum"].is_there()) return Either(ways);
    const auto besides = [&](const grammar::CodePoints& set) {
      return builder_.Characters(grammar::Complement(set));
    };
    const Part escape =
        Row({Text("\\"), Either({Text("'"), Text("\\"), Text("n"), Text("t"), Text("\"")})});
    return builder_.Repeat(Either({besides(grammar::Normal({{'\'', '\''}, {'\\', '\\'}})), escape}),
                           0, grammar::kNone);
  }
  // Calls in a list or in lines; or objects, if a function's arguments are more than a list of
  // properties, or a name is not a Python name.
  Part PythonCalls(RuleId object, bool is_one) {
    const auto is_name = [](std::string_view text) {
      return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
               std::string_view("_.-").find(c) != std::string_view::npos;
      });
    };
    const bool all = std::ranges::all_of(callees_, [&](const Callee& one) {
      return one.apart && is_name(one.name) &&
             std::ranges::all_of(*one.apart, is_name, &Argument::key);
    });
    if (!all) return Row({Blank(), List(object, is_one), Blank()});
    const auto each = [&] { return Each([&](const Callee& callee) { return Python(callee); }); };
    const Part between = form_->is_list ? Comma() : Text("\n");
    const Part more = builder_.Repeat(Row({between, each()}), 0, is_one ? 0 : kMaxCalls - 1);
    const auto bracket = [&](const char* text) {
      return form_->is_list ? Text(text) : builder_.Empty();
    };
    return Row({Blank(), bracket("["), each(), more, bracket("]"), Blank()});
  }

  // All text of gpt-oss up to a call: its thinking, and the header of the call's message.
  Part Channels() {
    const auto assistant = [&] { return Row({Mark("<|start|>"), Text("assistant")}); };
    const std::string end = TokenName("<|end|>");
    const Part thought =
        end.empty()
            ? UpTo("<|end|>")
            : Row({builder_.Repeat(builder_.Token(end, /*but_this=*/true), 0, grammar::kNone),
                   Mark("<|end|>")});
    const Part thoughts = builder_.Repeat(
        Row({Mark("<|channel|>"), Text("analysis"), Mark("<|message|>"), thought, assistant()}), 0,
        kMaxThoughts);
    const auto kind = [&] {
      return Maybe(Row({Text(" "), Maybe(Mark("<|constrain|>")), Text("json")}));
    };
    const auto to = [&](const Callee& callee) { return Text(" to=functions." + callee.name); };
    return Row({thoughts, Each([&](const Callee& callee) {
                  return Row({Either({Row({to(callee), Mark("<|channel|>"), Text("commentary")}),
                                      Row({Mark("<|channel|>"), Text("commentary"), to(callee)})}),
                              kind(), Mark("<|message|>"), builder_.Call(callee.arguments)});
                })});
  }

  const CallForm* form_;
  const tokenizer::Tokenizer& tokenizer_;
  grammar::Builder builder_;
  RuleId blank_;
  std::vector<Callee> callees_;
};

}  // namespace

grammar::Grammar CallGrammar(const CallForm* form, const JsonView& tools, const ToolChoice& choice,
                             const grammar::Grammar* answer,
                             const tokenizer::Tokenizer& tokenizer) {
  CallRules rules(form, tokenizer);
  for (const auto& [key, tool] : tools) {
    const JsonView function = tool["function"];
    if (choice.name.empty() || function["name"].String() == choice.name) rules.Add(function);
  }
  return std::move(rules).Finish(choice, answer);
}

}  // namespace engine
