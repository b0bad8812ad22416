// Tests valid and invalid vocabularies in files.
#include "tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/texts.h"
#include "tests/tokenizer/vocab_file.h"

namespace tokenizer {
namespace {

using test::AddMerge;
using test::BpeSpec;
using test::SpmSpec;
using test::VocabFile;
using test::VocabSpec;

VocabSpec MergedBpeSpec() {
  VocabSpec spec = BpeSpec("default");
  AddMerge(spec, "a", "b");
  return spec;
}

// The error must name the file and `key`, and contain `what`.
void ExpectError(const VocabSpec& spec, const std::string& key, const std::string& what) {
  const std::string error = test::ErrorOf([&] { VocabFile file(spec); });
  EXPECT_TRUE(test::Has(error, "vocab.gguf"));
  EXPECT_TRUE(test::Has(error, "tokenizer.ggml." + key));
  EXPECT_TRUE(test::Has(error, what));
  EXPECT_FALSE(test::Has(error, "\n"));
}

TEST(Vocabulary, ModelIsOneOfTheFamilies) {
  VocabSpec spec = SpmSpec();
  spec.model = "rwkv";
  ExpectError(spec, "model", "expected \"llama\", \"t5\", \"gpt2\", \"gemma4\" or \"bert\", found");
  spec.model = "";
  ExpectError(spec, "model", "expected a string, found no such key");
}

// If the file has no key, the pattern decides whether a separator is added between two texts.
TEST(Vocabulary, SeparatorsFollowFromThePattern) {
  for (const auto& [name, adds] : {std::pair("roberta-bpe", true), {"gpt-2", false}}) {
    VocabSpec spec = BpeSpec(name);
    AddMerge(spec, "a", "b");
    EXPECT_EQ(VocabFile(spec)->vocab().add_sep, adds) << name;
  }
}

TEST(Vocabulary, MissingKeys) {
  VocabSpec spec = {.model = "llama"};
  ExpectError(spec, "tokens", "expected an array of strings, found no such key");
  spec = MergedBpeSpec();
  spec.merges.clear();
  ExpectError(spec, "merges", "expected an array of strings, found no such key");
}

// One change to a vocabulary, and the expected error.
struct Changed {
  const char *key, *what;
  std::function<void(VocabSpec&)> change;
  VocabSpec (*of)() = SpmSpec;
};

template <class T>
void SetArray(VocabSpec& spec, const char* key, T element) {
  std::vector<T> elements(spec.tokens.size(), T{1});
  elements[7] = element;
  spec.more.AddArray(std::string("tokenizer.ggml.") + key, std::span<const T>(elements));
}

TEST(Vocabulary, WrongTypesCountsAndElements) {
  for (const auto& [key, what, change, of] : std::vector<Changed>{
           {"scores", "expected an array of floats, found array of 259 u8",
            [](VocabSpec& spec) { SetArray(spec, "scores", uint8_t{1}), spec.scores.clear(); }},
           {"token_type", "expected an array of integers, found array of 259 f32",
            [](VocabSpec& spec) { SetArray(spec, "token_type", 1.0f), spec.types.clear(); }},
           {"tokens", "expected an array of strings, found array of 259 f32",
            [](VocabSpec& spec) { SetArray(spec, "tokens", 1.0f), spec.tokens.clear(); }},
           {"merges", "expected an array of strings, found array of 257 f32",
            [](VocabSpec& spec) { SetArray(spec, "merges", 1.0f), spec.merges.clear(); },
            MergedBpeSpec},
           {"bos_token_id", "expected an integer, found string",
            [](VocabSpec& spec) { spec.more.Add("tokenizer.ggml.bos_token_id", "1"); }},
           {"add_bos_token", "expected a bool, found string",
            [](VocabSpec& spec) { spec.more.Add("tokenizer.ggml.add_bos_token", "yes"); }},
           {"scores", "expected 259 elements, one per token, found 258",
            [](VocabSpec& spec) { spec.scores.pop_back(); }},
           {"token_type", "expected 259 elements, one per token, found 258",
            [](VocabSpec& spec) { spec.types.pop_back(); }},
           {"scores", "token 7", [](VocabSpec& spec) { spec.scores[7] = NAN; }},
           {"token_type", "found 9 for token 7",
            [](VocabSpec& spec) { spec.types[7] = static_cast<TokenType>(9); }},
           {"token_type", "found -1 for token 7",
            [](VocabSpec& spec) { SetArray(spec, "token_type", int64_t{-1}), spec.types.clear(); }},
           {"tokens", "token 7",
            [](VocabSpec& spec) { spec.tokens[7] = std::string(kMaxTokenBytes + 1, 'x'); }}}) {
    VocabSpec spec = of();
    change(spec);
    ExpectError(spec, key, what);
  }
}

TEST(Vocabulary, BytesMustBeBytes) {
  for (const std::string bad :
       {"<0x-1>", "<0xZZ>", "<0x100>", "<0x1>", "<0x>", "", "a", "<0x+1>", "<0x 1>"}) {
    VocabSpec spec = SpmSpec();
    spec.Add(bad, 0, TokenType::kByte);
    ExpectError(spec, "tokens", "expected a byte token (<0x00> to <0xFF>)");
    EXPECT_EQ(ByteOfToken(bad), -1);
  }
  EXPECT_EQ(ByteOfToken("<0x00>"), 0);
  EXPECT_EQ(ByteOfToken("<0xfF>"), 255);
}

// Published files have ids that were valid before the vocabulary was cut. They give only a note.
TEST(Vocabulary, PassesOverIdsThatAreNoTokens) {
  for (const std::string name : {"bos", "eos", "eot", "eom", "unknown"}) {
    for (const int64_t id : {int64_t{259}, int64_t{-2}, int64_t{1} << 40}) {
      VocabSpec spec = SpmSpec();
      spec.more.Add("tokenizer.ggml." + name + "_token_id", id);
      const Vocabulary vocab = test::VocabFile(spec)->vocab();
      EXPECT_EQ(vocab.bos, 1);
      EXPECT_EQ(vocab.eos, 2);
      EXPECT_EQ(vocab.unk, 0);
      ASSERT_EQ(vocab.notes.size(), 1u) << name;
      EXPECT_EQ(vocab.notes[0], "tokenizer.ggml." + name + "_token_id: " + std::to_string(id) +
                                    " is not one of the 259 tokens, and is ignored");
    }
  }
}

// Absent scores count as equal, so the first pair of a text merges first.
TEST(Vocabulary, SpmWithoutScores) {
  VocabSpec spec = SpmSpec();
  for (const char* token : {"a", "b", "c", "ab", "bc"}) spec.Add(token);
  spec.scores.clear();
  spec.more.Add("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(test::VocabFile(spec)->Encode("abc", {.add_special = false}), (test::Ids{262, 261}));
}

TEST(Vocabulary, SuppressedAndFurtherEnds) {
  VocabSpec spec = SpmSpec();
  const std::vector<int32_t> suppressed = {5, 9, 4000, -1}, ends = {7, 2, 4000};
  spec.more.AddArray("tokenizer.ggml.suppress_tokens", std::span<const int32_t>(suppressed));
  spec.more.AddArray("tokenizer.ggml.eos_token_ids", std::span<const int32_t>(ends));
  const Vocabulary vocab = test::VocabFile(spec)->vocab();
  EXPECT_EQ(vocab.suppressed, (test::Ids{5, 9}));
  EXPECT_TRUE(vocab.IsEog(7));
  EXPECT_TRUE(vocab.IsEog(2));
}

// If there are more tokens than rows of the embedding, surplus tokens without text are removed.
TEST(Vocabulary, CutsSurplusTokens) {
  VocabSpec spec = SpmSpec();
  spec.Add("<image>", 0, TokenType::kControl);
  spec.Add("<pad>", 0, TokenType::kUnused);
  const gguf::File file = [&] {
    gguf::Writer writer;
    spec.AddTo(writer);
    static std::vector<std::byte> bytes = writer.ToBytes();
    bytes.resize((bytes.size() + 7) / 8 * 8);
    return gguf::File::Parse("f.gguf", bytes);
  }();
  const auto whole = Tokenizer::Create(file);
  EXPECT_EQ(whole->vocab().size(), 261u);
  EXPECT_EQ(whole->Encode("<image>", {.add_special = false, .parse_special = true}),
            test::Ids{259});
  const auto cut = Tokenizer::Create(file, 259);
  EXPECT_EQ(cut->vocab().size(), 259u);
  EXPECT_EQ(cut->Encode("<image>", {.add_special = false, .parse_special = true}).size(),
            10u);  // a space of three bytes, then the text's bytes
  ASSERT_EQ(cut->vocab().notes.size(), 1u);
  EXPECT_TRUE(test::Has(cut->vocab().notes[0], "the last 2 have no row"));
  const std::string error = test::ErrorOf([&] { Tokenizer::Create(file, 258); });
  EXPECT_TRUE(
      test::Has(error, "261 tokens, but token_embd.weight has 258 rows, and token 258 is neither"));
}

TEST(Vocabulary, NoSpecialId) {
  VocabSpec spec = SpmSpec();
  spec.more.Add("tokenizer.ggml.bos_token_id", UINT32_MAX);
  spec.more.Add("tokenizer.ggml.eos_token_id", int32_t{-1});
  const VocabFile file(spec);
  EXPECT_EQ(file->vocab().bos, -1);
  EXPECT_EQ(file->vocab().eos, -1);
  EXPECT_EQ(file->vocab().eog, test::Ids{2});  // by its text, </s>
  EXPECT_TRUE(file->Encode("").empty());
}

TEST(Vocabulary, DefaultsOfSpm) {
  const VocabFile file(SpmSpec());
  const Vocabulary& vocab = file->vocab();
  EXPECT_EQ(vocab.unk, 0);
  EXPECT_EQ(vocab.bos, 1);
  EXPECT_EQ(vocab.eos, 2);
  EXPECT_EQ(vocab.eot, -1);
  EXPECT_TRUE(vocab.add_bos);
  EXPECT_FALSE(vocab.add_eos);
  EXPECT_TRUE(vocab.add_space_prefix);
  EXPECT_TRUE(vocab.IsControl(1));
  EXPECT_FALSE(vocab.IsControl(0));
  EXPECT_FALSE(vocab.IsControl(-1));
  EXPECT_FALSE(vocab.IsControl(259));
  EXPECT_TRUE(vocab.IsEog(2));
  EXPECT_FALSE(vocab.IsEog(1));
}

TEST(Vocabulary, SpmWithoutTypes) {
  VocabSpec spec = SpmSpec();
  spec.types.clear();
  const VocabFile file(spec);
  EXPECT_EQ(file->vocab().unk, 0);
  EXPECT_EQ(file->vocab().bos, 1);
  EXPECT_EQ(file->vocab().eos, 2);
  EXPECT_EQ(file->Encode("a"), VocabFile(SpmSpec())->Encode("a"));
}

TEST(Vocabulary, DefaultsOfBpe) {
  for (const std::string pre : {"default", "llama-bpe"}) {
    VocabSpec spec = BpeSpec(pre);
    AddMerge(spec, "a", "b");
    const VocabFile file(spec);
    EXPECT_EQ(file->vocab().bos, -1);
    EXPECT_EQ(file->vocab().eos, -1);
    EXPECT_EQ(file->vocab().add_bos, pre == "llama-bpe");
    EXPECT_FALSE(file->vocab().add_space_prefix);
  }
}

TEST(Vocabulary, KeysBeforeDefaults) {
  VocabSpec spec = SpmSpec();
  spec.more.Add("tokenizer.ggml.add_bos_token", false);
  spec.more.Add("tokenizer.ggml.add_eos_token", true);
  spec.more.Add("tokenizer.ggml.add_space_prefix", false);
  const VocabFile file(spec);
  EXPECT_EQ(file->Encode("a"), (test::Ids{test::kFirstByte + 'a', 2}));
}

TEST(Vocabulary, EndOfGeneration) {
  VocabSpec spec = MergedBpeSpec();
  const TokenId endoftext = spec.Add("<|endoftext|>", 0, TokenType::kControl);
  const TokenId im_end = spec.Add("<|im_end|>", 0, TokenType::kUserDefined);
  const TokenId eot_id = spec.Add("<|eot_id|>");
  const TokenId other = spec.Add("<|other|>", 0, TokenType::kControl);
  const TokenId eos = spec.Add("stop", 0, TokenType::kControl);
  spec.more.Add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
  const VocabFile file(spec);
  EXPECT_EQ(file->vocab().eog, (test::Ids{endoftext, im_end, eot_id, eos}));
  EXPECT_EQ(file->vocab().eot, eot_id);
  EXPECT_TRUE(file->vocab().IsControl(eot_id));
  EXPECT_TRUE(file->vocab().IsEog(im_end));
  EXPECT_FALSE(file->vocab().IsEog(other));
}

TEST(Vocabulary, NoTurnMarker) {
  VocabSpec spec = MergedBpeSpec();
  spec.Add("<|endoftext|>", 0, TokenType::kControl);
  EXPECT_EQ(VocabFile(spec)->vocab().eot, -1);
}

// The control tokens in the vocabularies of a family, and the ones that end a generation although
// the file names no eos.
struct FamilyMarkers {
  std::string name, control, end, eot;
};

TEST(Vocabulary, EndOfGenerationOfFamilies) {
  const std::vector<FamilyMarkers> families = {
      {"gpt-oss",
       "<|startoftext|> | <|endoftext|> | <|return|> | <|constrain|> | <|channel|> | <|start|> | "
       "<|end|> | <|message|> | <|call|>",
       "<|endoftext|> | <|return|> | <|call|>", "<|return|>"},
      {"phi3", "<s> | </s> | <|endoftext|> | <|assistant|> | <|system|> | <|end|> | <|user|>",
       "</s> | <|endoftext|> | <|end|>", "<|end|>"},
      {"gemma3", "<pad> | <eos> | <bos> | <start_of_turn> | <end_of_turn>", "<eos> | <end_of_turn>",
       "<end_of_turn>"},
      {"gemma4",
       "<eos> | <bos> | <|turn> | <turn|> | <|channel> | <channel|> | <|tool_call> | <tool_call|> "
       "| <|tool_response> | <tool_response|>",
       "<eos> | <turn|> | <|tool_response>", "<turn|>"},
      {"qwen2-coder",
       "<|endoftext|> | <|im_start|> | <|im_end|> | <|fim_prefix|> | <|fim_middle|> | "
       "<|fim_suffix|> | <|fim_pad|> | <|repo_name|> | <|file_sep|>",
       "<|endoftext|> | <|im_end|> | <|fim_pad|> | <|repo_name|> | <|file_sep|>", "<|im_end|>"},
      {"granite", "<|end_of_text|> | <|start_of_role|> | <|end_of_role|> | <|tool_call|>",
       "<|end_of_text|>", ""},
      {"glm4",
       "<|endoftext|> | [gMASK] | <sop> | <eop> | <|system|> | <|user|> | <|assistant|> | "
       "<|observation|>",
       "<|endoftext|> | <|user|> | <|observation|>", "<|user|>"},
      {"exaone4", "[PAD] | [BOS] | [EOS] | [|system|] | [|user|] | [|endofturn|]",
       "[EOS] | [|endofturn|]", "[|endofturn|]"},
      {"hunyuan-dense",
       "<｜hy_begin▁of▁sentence｜> | <｜hy_User｜> | <｜hy_Assistant｜> | "
       "<｜hy_place▁holder▁no▁2｜> | <｜hy_place▁holder▁no▁8｜>",
       "<｜hy_place▁holder▁no▁2｜>", "<｜hy_place▁holder▁no▁2｜>"},
      {"ernie4_5", "<s> | </s> | <|begin_of_sentence|> | <|end_of_sentence|>",
       "</s> | <|end_of_sentence|>", "<|end_of_sentence|>"},
      {"lfm2", "<|pad|> | <|startoftext|> | <|im_start|> | <|im_end|> | <|tool_call_start|>",
       "<|im_end|>", "<|im_end|>"},
      {"smollm3", "<|begin_of_text|> | <|end_of_text|> | <|im_start|> | <|im_end|>",
       "<|end_of_text|> | <|im_end|>", "<|im_end|>"},
      {"bitnet", "<|begin_of_text|> | <|end_of_text|> | <|start_header_id|> | <|eot_id|>",
       "<|end_of_text|> | <|eot_id|>", "<|eot_id|>"},
      {"deepseek2", "<｜begin▁of▁sentence｜> | <｜end▁of▁sentence｜> | <｜User｜>",
       "<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>"},
      {"mistral3", "<s> | </s> | [INST] | [/INST] | [TOOL_CALLS]", "</s>", ""},
      {"llama4", "<|end_of_text|> | <|eom|> | <|eot|> | <|header_start|>",
       "<|end_of_text|> | <|eom|> | <|eot|>", "<|eot|>"},
  };
  for (const FamilyMarkers& family : families) {
    SCOPED_TRACE(family.name);
    VocabSpec spec = MergedBpeSpec();
    for (const std::string& token : test::Texts(family.control))
      spec.Add(token, 0, TokenType::kControl);
    const VocabFile file(spec);
    std::vector<std::string> end;
    for (const TokenId id : file->vocab().eog) end.push_back(file->Piece(id, true));
    EXPECT_EQ(end, test::Texts(family.end));
    EXPECT_EQ(file->vocab().eot, file->Find(family.eot));
    for (const std::string& token : test::Texts(family.control)) {
      EXPECT_TRUE(file->vocab().IsControl(file->Find(token))) << token;
    }
  }
}

// Gemma's </s> is an HTML tag. A word in brackets is text.
TEST(Vocabulary, EndMarkersThatMayBeText) {
  VocabSpec spec = MergedBpeSpec();
  const TokenId tag = spec.Add("</s>", 0, TokenType::kUserDefined);
  spec.Add("[EOS]");
  spec.Add("<|user|>");
  spec.Add("<|observation|>", 0, TokenType::kControl);
  const VocabFile file(spec);
  EXPECT_TRUE(file->vocab().eog.empty());
  EXPECT_EQ(file->Encode("</s>"), test::Ids{tag});
}

TEST(Vocabulary, EndOfGenerationByKeys) {
  VocabSpec spec = MergedBpeSpec();
  const TokenId end = spec.Add("<|end|>", 0, TokenType::kControl);
  spec.more.Add("tokenizer.ggml.eos_token_id", uint32_t{'x'});
  spec.more.Add("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(end));
  spec.more.Add("tokenizer.ggml.eom_token_id", uint32_t{'y'});
  EXPECT_EQ(VocabFile(spec)->vocab().eog, (test::Ids{'x', 'y', end}));
  for (const char* const key : {"fim_pad", "fim_rep", "fim_sep"}) {
    VocabSpec more = spec;
    more.more.Add("tokenizer.ggml." + std::string(key) + "_token_id", uint32_t{'z'});
    EXPECT_EQ(VocabFile(more)->vocab().eog, (test::Ids{'x', 'y', 'z', end}));
  }
  const TokenId last = spec.Add("<|return|>", 0, TokenType::kControl);
  const VocabFile harmony(spec);
  EXPECT_EQ(harmony->vocab().eog, (test::Ids{'x', 'y', last}));
  EXPECT_EQ(harmony->vocab().eot, last);
}

TEST(Vocabulary, UnknownSplitPatternListsTheKnown) {
  VocabSpec spec = MergedBpeSpec();
  spec.pre = "gpt-9";
  ExpectError(spec, "pre", "llama-bpe, ");
  ExpectError(spec, "pre", "deepseek-llm");
  ExpectError(spec, "pre", "found \"gpt-9\"");
  spec.pre = "";
  EXPECT_EQ(VocabFile(spec)->Encode("ab"), (test::Ids{256}));
}

TEST(Vocabulary, MergesMustBeOfTokens) {
  for (const std::string bad : {"", " ", "a", "a ", " a", "ab", "a  b", "zz a", "a zz", "a c"}) {
    VocabSpec spec = MergedBpeSpec();
    spec.merges.push_back(bad);
    ExpectError(spec, "merges", "as merge 1");
  }
}

TEST(Vocabulary, ErrorsQuoteWhatAStrangerWrote) {
  VocabSpec spec = MergedBpeSpec();
  spec.merges.push_back("a\x1B[2J\n");
  ExpectError(spec, "merges", "\\x1b[2J\\n");
  spec = MergedBpeSpec();
  spec.pre = "x\ny";
  ExpectError(spec, "pre", "found \"x\\ny\"");
  spec = MergedBpeSpec();
  spec.model = std::string(1000, '\n');
  ExpectError(spec, "model", "...");
  spec = SpmSpec();
  spec.Add("<0x\n>", 0, TokenType::kByte);
  ExpectError(spec, "tokens", "<0x\\n>");
}

TEST(Vocabulary, WithoutBytes) {
  VocabSpec spec = {.model = "gpt2", .tokens = {"ab", "cd"}};
  AddMerge(spec, "ab", "cd");
  spec.scores.clear();
  spec.types.clear();
  ExpectError(spec, "tokens", "expected tokens for single bytes");

  spec = VocabSpec();
  spec.model = "llama";
  spec.Add("a");
  ExpectError(spec, "tokens", "found 0 byte tokens and no unknown one");
}

}  // namespace
}  // namespace tokenizer
