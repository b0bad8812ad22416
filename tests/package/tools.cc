// Lets a model call a function of this program, and answer with its result:
//
//   tools MODEL.gguf "Is it warm in Rome?" [TEMPLATE]
#include <pronk/pronk.h>

#include <cstdio>
#include <iostream>
#include <string>

namespace {

constexpr char kTools[] = R"([{"type": "function", "function": {"name": "temperature",
    "description": "Degrees Celsius in a town", "parameters": {"type": "object",
    "properties": {"town": {"enum": ["Rome", "Oslo"]}}, "required": ["town"]}}}])";

std::string Call(const pronk::ToolCall& call) {
  std::cout << call.name << call.arguments << '\n';
  return call.arguments.find("Rome") != std::string::npos ? "31" : "-4";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    pronk::Options options;
    if (argc > 3) options.chat_template = argv[3];
    pronk::Chat chat(pronk::Model(argv[1]), "", options);
    chat.SetTools(kTools);
    chat.SetToolChoice("required");
    const pronk::Completion asked = chat.Say(argv[2]);
    chat.SetToolChoice("none");
    const pronk::ToolCall& call = asked.tool_calls.at(0);
    std::cout << chat.Answer({{"tool", Call(call), call.id}}, {}, {/*max_tokens=*/60}).text << '\n';
  } catch (const pronk::Error& error) {
    std::fprintf(stderr, "tools: %s\n", error.what());
    return 1;
  }
}
