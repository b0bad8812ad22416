// Spells calls as their family writes them, for templates that show none: the models of some files
// (the first LFM2 and Kimi K2, Phi-4-mini) know more than their template.
#pragma once

#include <string>
#include <vector>

#include "engine/session/call_forms.h"
#include "tokenizer/byte_span.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/messages.h"

namespace engine {

struct SpeltCalls {
  std::string text;
  std::vector<tokenizer::ByteSpan> marks;  // bytes of the text, ascending
};

// Throws engine::Error if there is no form, or its families' templates all show calls.
SpeltCalls SpellCalls(const CallForm* form, const std::vector<tokenizer::ToolCall>& calls);

// Removes the marks of spelt calls, which the conversation has in this order, from the bytes of a
// chat that are foreign, so that they may become control tokens.
void MakeMarksOwn(const std::vector<SpeltCalls>& spelt, tokenizer::RenderedChat& chat);

}  // namespace engine
