// The subcommands: each has one function that adds it, with its flags, to the command line.
#pragma once

#include <array>

#include "gguf/error.h"

namespace cli {

class CommandLine;

// Wrong usage found only after the arguments are read (exit status 2).
class UsageError : public gguf::Fault {
 public:
  using Fault::Fault;
};

inline constexpr int kExitDone = 0;
inline constexpr int kExitFault = 1;  // caused by the input or the machine
inline constexpr int kExitUsage = 2;
// The things compared differ: pronk bench finds something slower, pronk diff finds a difference.
inline constexpr int kExitDiffers = 3;
// A text that must follow a grammar was cut before its end, so it does not parse.
inline constexpr int kExitCut = 4;
inline constexpr int kExitUnknown = 5;  // pronk bench cannot tell

void AddRun(CommandLine& line);
void AddChat(CommandLine& line);
void AddInspect(CommandLine& line);
void AddDiff(CommandLine& line);
void AddTokenize(CommandLine& line);
void AddTemplate(CommandLine& line);
void AddLogits(CommandLine& line);
void AddEmbed(CommandLine& line);
void AddRerank(CommandLine& line);
void AddBench(CommandLine& line);
void AddCompare(CommandLine& line);
void AddTrace(CommandLine& line);
void AddPerplexity(CommandLine& line);
void AddConvert(CommandLine& line);
void AddQuantize(CommandLine& line);
void AddImatrix(CommandLine& line);
void AddList(CommandLine& line);
void AddCompletion(CommandLine& line);
void AddManual(CommandLine& line);

// All subcommands, in the order of --help.
inline constexpr std::array kCommands = {
    AddRun,      AddChat,    AddInspect, AddDiff,       AddTokenize, AddTemplate,   AddBench,
    AddCompare,  AddTrace,   AddLogits,  AddEmbed,      AddRerank,   AddPerplexity, AddConvert,
    AddQuantize, AddImatrix, AddList,    AddCompletion, AddManual};

}  // namespace cli
