// The formats of calls by family.
#include "engine/answer/call_forms.h"

namespace engine {
namespace {

using Body = CallForm::Body;

// Qwen3-Coder's and Seed-OSS's parts: before and after the name, before and after a key, before and
// after a value, the end.
constexpr std::array<std::string_view, 7> kXmlParts = {
    "<function=", ">", "<parameter=", ">", "", "</parameter>", "</function>"};

constexpr CallForm Lfm2(std::string_view mark) {
  return {.mark = mark,
          .open = "<|tool_call_start|>",
          .close = "<|tool_call_end|>",
          .body = Body::kPython,
          .is_list = true};
}

// The first form whose mark is in the template applies.
constexpr auto kForms = std::to_array<CallForm>({
    {"<|tool_call>", "<|tool_call>", "<tool_call|>", Body::kGemma, {"call:", "<|\"|>"}},  // Gemma 4
    {"<start_function_call>",
     "<start_function_call>",
     "<end_function_call>",
     Body::kGemma,
     {"call:", "<escape>"}},  // FunctionGemma
    {"<｜tool▁call▁begin｜>",
     "<｜tool▁call▁begin｜>",
     "<｜tool▁call▁end｜>",
     Body::kDeepSeek,
     {"<｜tool▁sep｜>"},
     {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}},                           // DeepSeek
    {"<|call|>", kCallHeader, "", Body::kChannel, {"<|message|>"}},                 // gpt-oss
    {"[TOOL_CALLS]", "[TOOL_CALLS]", "", Body::kMistral, {"[ARGS]", "[CALL_ID]"}},  // Mistral
    {"<|im_system|>tool_declare",
     "<|tool_call_begin|>",
     "<|tool_call_end|>",
     Body::kKimi,
     {"<|tool_call_argument_begin|>"},
     {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}},  // Kimi K2
    {"<tool_sep>",
     "<tool_call>",
     "</tool_call>",
     Body::kParameters,
     {"", "<tool_sep>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", ""},
     {"<tool_calls>", "</tool_calls>"}},  // Hunyuan 3
    {"<arg_key>",
     "<tool_call>",
     "</tool_call>",
     Body::kParameters,
     {"", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", ""}},  // GLM
    {"<minimax:tool_call>",
     "<invoke name=\"",
     "</invoke>",
     Body::kParameters,
     {"", "\">", "<parameter name=\"", "\">", "", "</parameter>", ""},
     {"<minimax:tool_call>", "</minimax:tool_call>"}},  // MiniMax M2
    {"<seed:tool_call>", "<seed:tool_call>", "</seed:tool_call>", Body::kParameters,
     kXmlParts},  // Seed-OSS
    {"<function=example_function_name>",
     "<function=",
     "</function>",
     Body::kNamed,
     {">"}},                                                                      // Functionary
                                                                                  // 3.1
    {"<function=", "<tool_call>", "</tool_call>", Body::kParameters, kXmlParts},  // Qwen3-Coder
    {"<tool_call>", "<tool_call>", "</tool_call>", Body::kObject},                // Hermes, Qwen
    {.mark = "<TOOLCALL>",
     .open = "<TOOLCALL>",
     .close = "</TOOLCALL>",
     .body = Body::kObject,
     .is_list = true},  // Nemotron Nano 2
    {.mark = "<tool_calls>",
     .open = "<tool_calls>",
     .close = "</tool_calls>",
     .body = Body::kObject,
     .is_list = true},  // Jamba, Apriel, Hunyuan
    {.mark = "<|START_ACTION|>",
     .open = "<|START_ACTION|>",
     .close = "<|END_ACTION|>",
     .body = Body::kObject,
     .parts = {"", "tool_name", "tool_call_id"},
     .is_list = true},  // Command R7B, Command A
    {.mark = "<|tools_prefix|>",
     .open = "<|tools_prefix|>",
     .close = "<|tools_suffix|>",
     .body = Body::kNamedObject,
     .is_list = true},  // Apertus
    Lfm2("<|tool_call_start|>"),
    Lfm2("<|tool_list_start|>"),
    {.mark = "<function_calls>",
     .open = "<function_calls>",
     .close = "</function_calls>",
     .body = Body::kPython},  // OLMo 3
    {.mark = "<|/tool|>",
     .open = "<|tool_call|>",
     .close = "<|/tool_call|>",
     .body = Body::kObject,
     .is_list = true},  // Phi-4-mini
    {.mark = "<|tool_call|>",
     .open = "<|tool_call|>",
     .close = "",
     .body = Body::kObject,
     .is_list = true},  // Granite 3
    {"\"parameters\": dictionary",
     "{",
     "",
     Body::kObject,
     {"<|python_tag|>"},
     {"<|python_tag|>"},
     true},  // Llama 3
});

}  // namespace

const CallForm* FindCallForm(std::string_view template_source) {
  for (const CallForm& form : kForms) {
    if (template_source.find(form.mark) != template_source.npos) return &form;
  }
  return nullptr;
}

std::vector<std::string_view> CallForm::Marks() const {
  std::vector<std::string_view> marks = {open, close};
  marks.insert(marks.end(), parts.begin(), parts.end());
  marks.insert(marks.end(), around.begin(), around.end());
  return marks;
}

}  // namespace engine
