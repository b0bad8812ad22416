// Tools, their calls and the results as text, for templates that show none of them.
#pragma once

#include <string>
#include <vector>

#include "engine/session/call_forms.h"
#include "gguf/json.h"
#include "tokenizer/byte_span.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/messages.h"

namespace engine {

struct SpeltCalls {
  std::string text;
  std::vector<tokenizer::ByteSpan> marks;  // bytes of the text, ascending
};

// As the family writes them, whose models may know more than their template (the first LFM2 and
// Kimi K2, Phi-4-mini), or, without a form, as bare objects.
SpeltCalls SpellCalls(const CallForm* form, const std::vector<tokenizer::ToolCall>& calls);

// Removes the marks of spelt calls, which the conversation has in this order, from the bytes of a
// chat that are foreign, so that they may become control tokens. They stay foreign if somebody else
// says exactly the same, since that must remain text.
void MakeMarksOwn(const std::vector<SpeltCalls>& spelt, tokenizer::RenderedChat& chat);

// Tells a model which functions it may call, and how: by a bare object.
std::string ToolInstructions(const gguf::JsonView& tools);

// Results of calls become messages of the user, which name the function.
std::vector<tokenizer::Message> ResultsAsUsers(const std::vector<tokenizer::Message>& messages);

}  // namespace engine
