// Tools, calls and results as text, for templates that show none of these.
#pragma once

#include <string>
#include <vector>

#include "engine/answer/call_forms.h"
#include "gguf/json.h"
#include "tokenizer/byte_span.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/messages.h"

namespace engine {

struct SpeltCalls {
  std::string text;
  std::vector<tokenizer::ByteSpan> marks;  // bytes of the text, ascending
};

// Spells calls in the family's form, which a model may know even if its template does not (the
// first LFM2 and Kimi K2, Phi-4-mini); without a form, as bare objects.
SpeltCalls SpellCalls(const CallForm* form, const std::vector<tokenizer::ToolCall>& calls);

// Removes the marks of spelt calls, which are in the conversation's order, from the foreign bytes
// of a chat, so that they may become control tokens. A mark stays foreign if another message has
// exactly the same text, since that must remain text.
void MakeMarksOwn(const std::vector<SpeltCalls>& spelt, tokenizer::RenderedChat& chat);

// Tells a model which functions it may call, by a bare object.
std::string ToolInstructions(const gguf::JsonView& tools);

// Turns results of calls into user messages, which name the function.
std::vector<tokenizer::Message> ResultsAsUsers(const std::vector<tokenizer::Message>& messages);

}  // namespace engine
