// An untrusted chat template and an untrusted user's text. The tokenizer reads the rendered text,
// whatever its length. Input: a line with the user's text, then the template.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tests/fuzz/input.h"
#include "tests/support/vocab_spec.h"
#include "tokenizer/chat_template.h"

namespace {

// Byte tokens, and long special tokens with common prefixes.
const tokenizer::Tokenizer& LongTokens() {
  static const std::vector<std::byte> bytes = [] {
    test::VocabSpec spec = test::BpeSpec("gpt-2");
    test::AddMerge(spec, "a", "a");
    for (size_t length : {2u, 100u, 101u, 8000u, 16000u}) {
      spec.Add(std::string(length, 'a'), 0, test::TokenType::kControl);
      spec.Add(std::string(length, 'b'), 0, test::TokenType::kUserDefined);
    }
    gguf::Writer writer;
    spec.AddTo(writer);
    return writer.ToBytes();
  }();
  static const gguf::File file = gguf::File::Parse("f.gguf", bytes);
  static const std::unique_ptr<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::Create(file);
  return *tokenizer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string user(input.Line());
  const std::string_view source = input.Rest();
  tokenizer::ChatInput chat(std::vector<tokenizer::Message>{
      {"system", "Be kind."}, {"user", user}, {"assistant", "Yes."}});
  chat.bos_token = "<s>";
  chat.eos_token = "</s>";
  chat.now = std::chrono::local_days(std::chrono::year(2026) / 11 / 21);
  try {
    const tokenizer::RenderedChat rendered = tokenizer::ChatTemplate::Parse(source).Render(chat);
    size_t end = 0;
    for (const tokenizer::ByteSpan& span : rendered.foreign) {
      if (span.begin < end || span.end < span.begin || span.end > rendered.text.size()) {
        std::abort();  // spans must be ascending and inside the text
      }
      end = span.end;
    }
    LongTokens().Encode(rendered.text,
                        {.parse_special = true, .plain = rendered.foreign, .max_ids = 100'000});
  } catch (const tokenizer::TemplateError&) {
  }
  return 0;
}
