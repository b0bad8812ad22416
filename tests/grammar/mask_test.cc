// The tokens that a grammar allows: compares masks with each token tried alone, for invented and
// real vocabularies. Also tests forced tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/gbnf.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/vocab_spec.h"

namespace grammar {
namespace {

using tokenizer::TokenId;

std::shared_ptr<const Grammar> Gbnf(std::string_view text) {
  return std::make_shared<const Grammar>(grammar::ParseGbnf(text));
}
std::shared_ptr<const Grammar> Schema(const std::string& text) {
  return std::make_shared<const Grammar>(grammar::ParseJsonSchema(text));
}

// A vocabulary in memory.
class Vocab {
 public:
  explicit Vocab(const test::VocabSpec& spec) : bytes_(Write(spec)) {}
  explicit Vocab(const std::filesystem::path& path)
      : file_(gguf::File::Open(path.string())), tokenizer_(tokenizer::Tokenizer::Create(file_)) {}
  const tokenizer::Tokenizer& operator*() const { return *tokenizer_; }
  const tokenizer::Tokenizer* operator->() const { return tokenizer_.get(); }

 private:
  static std::vector<std::byte> Write(const test::VocabSpec& spec) {
    gguf::Writer writer = spec.more;
    spec.AddTo(writer);
    return writer.ToBytes();
  }
  std::vector<std::byte> bytes_;
  gguf::File file_ = gguf::File::Parse("v.gguf", bytes_);
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_ = tokenizer::Tokenizer::Create(file_);
};

bool HasBit(std::span<const uint64_t> mask, TokenId id) {
  const auto bit = static_cast<size_t>(id);
  return (mask[bit / 64] >> (bit % 64) & 1) != 0;
}

std::vector<TokenId> Set(std::span<const uint64_t> mask, size_t n) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < n; ++i) {
    if (HasBit(mask, static_cast<TokenId>(i))) ids.push_back(static_cast<TokenId>(i));
  }
  return ids;
}

// Llama's byte tokens, and tokens that contain quotes, brackets and whole characters.
test::VocabSpec OddSpec() {
  test::VocabSpec spec = test::SpmSpec();
  spec.more.Add("tokenizer.ggml.eos_token_id", uint32_t{2});
  for (const char* const token :
       {"ab", "abc", "\u2581a", "\u2581",     "\":", "\":\u2581\"", "\",\u2581\"", "\"}",
        "}}", "]}",  "[[",      "{\"",        "},",  "12",          "123",         "1,",
        ".5", "e",   "true",    "\u2581true", "€",   "\\\"",        "\\u",         "\n\u2581\u2581",
        "ab"}) {
    spec.Add(token, -1);
  }
  spec.Add("user", 0, test::TokenType::kUserDefined);
  spec.Add("control", 0, test::TokenType::kControl);
  return spec;
}

const std::vector<std::shared_ptr<const Grammar>>& Grammars() {
  static const std::vector<std::shared_ptr<const Grammar>> grammars = {
      Schema(R"({"type": "object"})"),
      Schema(R"({"properties": {"ab": {"type": "string", "maxLength": 9}, "a": {"type": "integer"},
                 "l": {"items": {"$ref": "#"}}, "abc": {"enum": ["€", "ab\"c", null, 1.5]}},
                 "required": ["a"], "additionalProperties": {"type": "boolean"}})"),
      Gbnf(R"g(root ::= "(" root ")" root | [a-cé€]* | "ab" root | "[" root "]" | "123")g"),
      Gbnf(R"(root ::= .{3,40} "ab" | "€"+ | "user" root)"),
      Gbnf(R"(root ::= ([a-c ]{5,12} "-"?){0,3} [^x]{2,200})"),
      Gbnf("root ::= root2 \"x\"?\nroot2 ::= \"a\" root2 \"b\" | \"a\" root2 \"c\" | \"b\""),
  };
  return grammars;
}

// Compares masks with each token tried alone, in states that random texts reach.
void ExpectMasksAsOneByOne(const tokenizer::Tokenizer& tokenizer, size_t n_texts, size_t n_steps) {
  std::mt19937 random(1);
  const size_t n_vocab = tokenizer.vocab().size();
  for (const auto& grammar : Grammars()) {
    Constraint constraint(grammar, tokenizer);
    for (size_t text = 0; text < n_texts; ++text) {
      constraint.Restart();
      for (size_t step = 0; step < n_steps && !constraint.done(); ++step) {
        const std::span<const uint64_t> mask = constraint.Allowed();
        std::vector<TokenId> expected;
        for (size_t i = 0; i < n_vocab; ++i) {
          const auto id = static_cast<TokenId>(i);
          const bool is_end = tokenizer.vocab().IsEog(id);
          if (is_end ? constraint.may_end() : constraint.Allows(id)) expected.push_back(id);
        }
        const std::vector<TokenId> ids = Set(mask, n_vocab);
        ASSERT_EQ(ids, expected);
        std::vector<TokenId> texts;
        for (const TokenId id : ids) {
          if (!tokenizer.vocab().IsEog(id)) texts.push_back(id);
        }
        if (texts.empty()) break;
        constraint.Accept(texts[random() % texts.size()]);
      }
    }
  }
}

TEST(TokenMasks, AsEachTokenAlone) {
  const Vocab vocab(OddSpec());
  ExpectMasksAsOneByOne(*vocab, 20, 40);
}

TEST(TokenMasks, AsEachTokenAloneWithRealVocabularies) {
  ExpectMasksAsOneByOne(*Vocab(test::DataPath("pieces.gguf")), 4, 20);
  for (const char* const name : {"models/vocab-llama-spm.gguf", "models/vocab-llama-bpe.gguf"}) {
    const std::filesystem::path path = test::SharedPath(name);
    if (path.empty()) continue;
    const Vocab vocab(path);
    ExpectMasksAsOneByOne(*vocab, 1, 6);
  }
}

TEST(TokenMasks, EndsAndControlTokens) {
  const Vocab vocab(OddSpec());
  Constraint constraint(Gbnf("root ::= \"control\"? \"user\"*"), *vocab);
  EXPECT_TRUE(HasBit(constraint.Allowed(), 2));
  EXPECT_TRUE(constraint.Allows(2));
  EXPECT_FALSE(HasBit(constraint.Allowed(), 1));
  EXPECT_TRUE(HasBit(constraint.Allowed(), vocab->Find("user")));
  EXPECT_FALSE(HasBit(constraint.Allowed(), vocab->Find("control")));
  EXPECT_FALSE(constraint.done());
  constraint.AcceptText("con");
  EXPECT_FALSE(HasBit(constraint.Allowed(), 2));
  EXPECT_FALSE(constraint.Allows(2));
  EXPECT_THROW(constraint.AcceptText("x"), Error);
  constraint.Restart();
  EXPECT_TRUE(HasBit(constraint.Allowed(), 2));
}

TEST(TokenMasks, AVocabularyThatLacksWhatIsNeeded) {
  test::VocabSpec spec = test::BpeSpec("gpt-2");
  test::AddMerge(spec, "a", "b");
  spec.tokens[static_cast<size_t>('x')] = "xx";
  const Vocab vocab(spec);
  Constraint constraint(Gbnf("root ::= \"ax\""), *vocab);
  constraint.Accept('a');
  EXPECT_THROW(constraint.Allowed(), Error);
}

// The schema does not name these keys. They come in several tokens or in one.
TEST(Constraint, WritesNoKeyTwice) {
  test::VocabSpec spec = OddSpec();
  const TokenId whole = spec.Add("\"ab\"");
  const Vocab vocab(spec);
  Constraint constraint(
      Schema(R"({"type": "object", "patternProperties": {"^a": {"type": "integer"}},
                                   "additionalProperties": {"type": "boolean"}})"),
      *vocab);
  constraint.AcceptText(R"({"ab": 1, )");
  EXPECT_FALSE(HasBit(constraint.Allowed(), whole));
  EXPECT_FALSE(constraint.Allows(whole));
  constraint.AcceptText("\"ab");
  EXPECT_FALSE(HasBit(constraint.Allowed(), vocab->Find("\":")));
  EXPECT_TRUE(HasBit(constraint.Allowed(), vocab->Find("ab")));
  EXPECT_THROW(constraint.AcceptText("\""), Error);
  constraint.AcceptText("ab\": 2");
  constraint.AcceptText("}");
  EXPECT_TRUE(constraint.may_end());
}

// The items must be unique: strings, numbers, objects, and literals such as true.
TEST(Constraint, WritesNoItemTwice) {
  test::VocabSpec spec = OddSpec();
  const TokenId whole = spec.Add("\"ab\"");
  for (const char* const token : {"b", "\"", "\",", "2", "3", ",", "]", "t", "}"}) spec.Add(token);
  const Vocab vocab(spec);
  Constraint constraint(Schema(R"({"type": "array", "uniqueItems": true})"), *vocab);
  const auto allows = [&](std::string_view token) {
    const bool allowed = HasBit(constraint.Allowed(), vocab->Find(std::string(token)));
    EXPECT_EQ(allowed, constraint.Allows(vocab->Find(std::string(token)))) << token;
    return allowed;
  };
  constraint.AcceptText(R"(["ab", )");
  EXPECT_FALSE(HasBit(constraint.Allowed(), whole));
  constraint.AcceptText("\"a");
  EXPECT_TRUE(allows("b"));
  constraint.AcceptText("b");
  EXPECT_FALSE(allows("\""));
  EXPECT_FALSE(allows("\","));
  EXPECT_TRUE(allows("ab"));
  constraint.AcceptText("b\", 12, 1");
  EXPECT_TRUE(allows("2"));
  EXPECT_TRUE(allows(","));
  constraint.AcceptText("2");
  EXPECT_FALSE(allows(","));
  EXPECT_FALSE(allows("]"));
  EXPECT_TRUE(allows("3"));
  constraint.AcceptText("3, true, ");
  EXPECT_FALSE(allows("true"));
  EXPECT_FALSE(allows("t"));
  constraint.AcceptText(R"({"a": 1}, {"a": 1)");
  EXPECT_FALSE(allows("}"));
  EXPECT_FALSE(allows("}}"));
  EXPECT_TRUE(allows(","));
  constraint.AcceptText(R"(, "b": 1}, [[], [])");
  EXPECT_TRUE(allows("]"));  // the inner list may repeat
  constraint.AcceptText("]]");
  EXPECT_TRUE(constraint.may_end());
}

// Keys and items have a limited form. No token may lead to a state where only a used key or item
// fits, so any choice of tokens completes the value.
TEST(Constraint, LeadsToNoRepetition) {
  test::VocabSpec spec = OddSpec();
  for (const char* const token : {"\"a", "\"ab", ", \"a", ", \"b", "ba", "bb", "b\"", "10", "11",
                                  ", 1", "A-", "-1", "00", "01", "a\", \"a"})
    spec.Add(token);
  const Vocab vocab(spec);
  const size_t n = vocab->vocab().size();
  const std::string digit =
      R"(, "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 2}})";
  const std::vector<std::string> schemas = {
      R"({"type": "object", "minProperties": 30, "propertyNames": {"pattern": "^[a-i]{2}$"})" +
          digit,
      R"({"type": "object", "minProperties": 40, "propertyNames": {"pattern": "^[a-h]?[ab]{1,3}$"})" +
          digit,
      R"({"type": "object", "minProperties": 40, "propertyNames": {"pattern": "^[A-J]-[0-9]$"})" +
          digit,
      R"({"type": "object", "minProperties": 40, "propertyNames": {"maxLength": 1})" + digit,
      R"({"type": "array", "minItems": 40, "uniqueItems": true, "items": {"pattern": "^[a-i]{2}$"}})",
      R"({"type": "array", "minItems": 40, "uniqueItems": true, "items": {"type": "integer", "minimum": 0, "maximum": 120}})",
      R"({"type": "array", "minItems": 9, "uniqueItems": true, "items": {"type": "string", "format": "date"}})",
      R"({"type": "array", "minItems": 5, "uniqueItems": true, "items": {"type": "number", "minimum": 0, "maximum": 1}})",
      R"({"type": "array", "minItems": 5, "maxItems": 5, "uniqueItems": true, "items": {"type": "object", "required": ["a"],
          "properties": {"a": {"enum": ["ab", "ba", "bb", "b", "abc"]}}, "additionalProperties": false}})",
      R"({"type": "array", "minItems": 4, "maxItems": 4, "uniqueItems": true, "items": {"type": "object", "required": ["a", "b"],
          "properties": {"a": {"enum": ["a", "b"]}, "b": {"type": "boolean"}}, "additionalProperties": false}})",
      R"({"type": "array", "minItems": 6, "maxItems": 9, "uniqueItems": true, "items": {"type": "object", "required": ["b"],
          "properties": {"b": {"type": "integer", "minimum": 0, "maximum": 120}}, "additionalProperties": false}})",
      R"({"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": true, "items": {"type": "array", "uniqueItems": true,
          "minItems": 2, "maxItems": 2, "items": {"type": "integer", "minimum": 0, "maximum": 1}}})",
      R"({"type": "object", "minProperties": 20, "propertyNames": {"pattern": "^(\"|[a-i]{2})$"})" +
          digit,
      R"({"type": "array", "minItems": 3, "maxItems": 3, "uniqueItems": true, "items": {"type": "object", "properties": {"ab": {"type": "integer"}},
          "minProperties": 20, "patternProperties": {"^[a-i]{2}$": {"type": "boolean"}}, "additionalProperties": false}})",
  };
  std::mt19937 random(7);
  for (const std::string& schema : schemas) {
    for (int round = 0; round < 10; ++round) {
      Constraint constraint(Schema(schema), *vocab);
      std::string text;
      while (!constraint.may_end() && text.size() < 5000) {
        std::vector<TokenId> ids;
        ASSERT_NO_THROW(ids = Set(constraint.Allowed(), n)) << schema << "\n" << text;
        for (size_t i = 0; round == 0 && i < n; ++i) {
          const auto id = static_cast<TokenId>(i);
          ASSERT_EQ(constraint.Allows(id), std::ranges::find(ids, id) != ids.end())
              << schema << "\n"
              << text << "\n"
              << vocab->Piece(id);
        }
        const TokenId id = ids[random() % ids.size()];
        constraint.Accept(id);
        text += vocab->Piece(id);
      }
      EXPECT_TRUE(constraint.may_end()) << schema << "\n" << text;
    }
  }
}

// Forced text becomes the tokenizer's tokens. Its end is left out if a longer token may cover it.
TEST(Constraint, ForcesWhatHasNoChoice) {
  const Vocab vocab(OddSpec());
  Constraint constraint(Gbnf(R"(root ::= "ab" "123" [0-9] "abc")"), *vocab);
  const auto text = [&](const std::vector<TokenId>& ids) { return vocab->Decode(ids); };
  std::vector<TokenId> forced = constraint.Forced();
  EXPECT_EQ(text(forced).substr(0, 2), "ab");
  EXPECT_LT(text(forced).size(), 5u);  // 123 could be the beginning of a token 1234
  for (const TokenId id : forced) constraint.Accept(id);
  constraint.Restart();
  constraint.AcceptText("ab123");
  EXPECT_TRUE(constraint.Forced().empty());
  constraint.AcceptText("9");
  forced = constraint.Forced();
  EXPECT_EQ(text(forced), "abc");  // whole, since nothing follows
  for (const TokenId id : forced) constraint.Accept(id);
  EXPECT_TRUE(constraint.done());
  EXPECT_TRUE(constraint.Forced().empty());
}

TEST(Constraint, ForcesEndlessTextInPieces) {
  const Vocab vocab(OddSpec());
  Constraint constraint(Gbnf(R"(root ::= "ab"{5000})"), *vocab);
  std::string text;
  while (!constraint.done()) {
    const std::vector<TokenId> forced = constraint.Forced();
    ASSERT_FALSE(forced.empty());
    for (const TokenId id : forced) {
      text += vocab->Piece(id);
      constraint.Accept(id);
    }
  }
  EXPECT_EQ(text.size(), 10'000u);
}

// A grammar names tokens, also control tokens, by text or number. It means the token, not its text.
TEST(Constraint, NamedTokens) {
  test::VocabSpec spec = test::SpmSpec();
  spec.more.Add("tokenizer.ggml.eos_token_id", uint32_t{2});
  const TokenId think = spec.Add("<think>", 0, tokenizer::TokenType::kControl);
  const TokenId end = spec.Add("</think>", 0, tokenizer::TokenType::kUserDefined);
  const TokenId ab = spec.Add("ab"), a = spec.Add("a");
  const Vocab vocab(spec);
  const size_t n = vocab->vocab().size();
  const auto allowed = [&](Constraint& constraint) {
    const std::vector<TokenId> ids = Set(constraint.Allowed(), n);
    for (size_t i = 0; i < n; ++i) {
      const auto id = static_cast<TokenId>(i);
      const bool has = std::find(ids.begin(), ids.end(), id) != ids.end();
      EXPECT_EQ(constraint.Allows(id), has) << id;
    }
    return ids;
  };
  Constraint constraint(Gbnf("root ::= <think> !<[260]>* <[260]> \"ab\""), *vocab);
  ASSERT_EQ(end, 260);
  EXPECT_EQ(allowed(constraint), std::vector<TokenId>{think});
  EXPECT_TRUE(constraint.Forced().empty());
  constraint.Accept(think);
  // Every token is allowed except the end of generation. Byte 255 is an ordinary token.
  EXPECT_EQ(allowed(constraint).size(), n - 1);
  EXPECT_FALSE(constraint.Allows(2));
  for (const TokenId id : {think, TokenId{258}, ab, TokenId{1}}) constraint.Accept(id);
  constraint.Accept(end);
  EXPECT_TRUE(constraint.Allows(ab));
  EXPECT_FALSE(constraint.Allows(end));
  EXPECT_FALSE(constraint.Allows(258));
  constraint.Accept(a);
  constraint.AcceptText("b");
  EXPECT_TRUE(constraint.done());

  // A token is distinct from its text, but one token can match both.
  Constraint text(Gbnf("root ::= \"ab\" | <[" + std::to_string(ab) + "]> \"a\""), *vocab);
  constraint.Restart();
  text.Accept(ab);
  EXPECT_TRUE(text.may_end());
  EXPECT_FALSE(text.done());
  text.Accept(a);
  EXPECT_TRUE(text.done());
  text.Restart();
  text.AcceptText("ab");
  EXPECT_TRUE(text.done());
  // In a sequence, a token counts as long as its text, although its name is short.
  Constraint row(Gbnf("root ::= <think> [a-z]{3} <think>"), *vocab);
  row.Accept(think);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(allowed(row).size(), i < 2 ? 28u : 27u);  // bytes, "a", and "ab"
    row.AcceptText("a");
  }
  EXPECT_EQ(allowed(row), std::vector<TokenId>{think});
  Constraint other(Gbnf("root ::= !<think> !<[260]> | <think>"), *vocab);
  EXPECT_TRUE(other.Allows(think));
  EXPECT_TRUE(other.Allows(end));
  other.Accept(end);
  EXPECT_TRUE(other.Allows(think));
  EXPECT_FALSE(other.Allows(end));
  // This grammar includes thinking, so it does not wait. A grammar for answers waits.
  other.Restart();
  other.Wait();
  EXPECT_FALSE(other.waiting());
  Builder answer;
  const RuleId after = answer.Declare("root");
  answer.Define(after, answer.Token("<think>", /*but_this=*/false));
  const auto waits = std::make_shared<const Grammar>(
      std::move(answer).Finish(after, /*prunes=*/false, /*is_answer=*/true));
  Constraint waiting(waits, *vocab);
  waiting.Wait();
  EXPECT_TRUE(waiting.waiting());
  waiting.Begin();
  waiting.AcceptSpelt("<think>");
  EXPECT_TRUE(waiting.done());

  for (const auto& [rules, fault] :
       {std::pair("root ::= <none>", "<none> is not a token of this model"),
        std::pair("root ::= <[100000]>", "<[100000]> is not a token of this model"),
        std::pair("root ::= </think> <[260]>", "two names of one token"),
        std::pair("root ::= </s>", "</s> ends a generation")}) {
    EXPECT_TRUE(test::Has(
        test::ErrorOf<Error>([&, rules = rules] { Constraint(Gbnf(rules), *vocab); }), fault));
  }
  EXPECT_NO_THROW(Constraint(Gbnf("root ::= !</s>*"), *vocab));
}

TEST(Builder, IncludesGrammars) {
  Builder builder;
  const RuleId part = builder.Include(*Gbnf("root ::= [0-9]{2,3} (\"a\" | b)\nb ::= \"b\" b?"));
  const RuleId root = builder.Declare("root");
  builder.Define(root, builder.Then(builder.Call(part), builder.Call(part)));
  EXPECT_EQ(test::ErrorOf<Error>([&] { builder.Include(*Gbnf("root ::= <think>")); }),
            "a grammar that names tokens cannot be part of another");
  const Grammar both = std::move(builder).Finish(root);
  Matcher matcher(both);
  for (const auto& [text, fits] :
       {std::pair("12a345bbb", true), std::pair("12a12a", true), std::pair("12a1a", false),
        std::pair("1234a12a", false), std::pair("12a", false)}) {
    EXPECT_EQ(matcher.MayEnd(matcher.Steps(matcher.Start(), text)), fits) << text;
  }
}

TEST(Constraint, WaitsForTheAnswer) {
  const Vocab vocab(OddSpec());
  Constraint constraint(Gbnf("root ::= \"a\""), *vocab);
  constraint.Wait();
  EXPECT_FALSE(constraint.done());
  EXPECT_TRUE(HasBit(constraint.Allowed(), vocab->Find("control")));
  EXPECT_FALSE(HasBit(constraint.Allowed(), 2));  // the answer has not begun
  constraint.Accept(vocab->Find("12"));
  constraint.Begin();
  EXPECT_EQ(Set(constraint.Allowed(), vocab->vocab().size()).size(), 1u);
  constraint.Restart();
  constraint.MayWait(vocab->Find("control"));
  EXPECT_TRUE(constraint.Allows(vocab->Find("control")));
  EXPECT_EQ(Set(constraint.Allowed(), vocab->vocab().size()).size(), 2u);
  constraint.Accept(vocab->Find("control"));
  EXPECT_TRUE(constraint.waiting());
}

}  // namespace
}  // namespace grammar
