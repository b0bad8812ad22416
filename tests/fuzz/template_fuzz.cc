// A chat template and what a user wrote, both a stranger's. Input: a line that is the user's text,
// the template.
#include <string>
#include <string_view>

#include "tests/fuzz/input.h"
#include "tokenizer/chat_template.h"

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
        std::abort();  // the spans are ascending and inside the text
      }
      end = span.end;
    }
  } catch (const tokenizer::TemplateError&) {
  }
  return 0;
}
