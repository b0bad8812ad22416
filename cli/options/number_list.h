// Lists of numbers as llama-bench takes them: "512", "1,2,4", "1-8", "1-8+2", "1-8*2".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace cli {

// The numbers of a flag given with these texts, each a list separated by commas; order and
// repetitions are kept. "a-b" is a, a + 1, ... up to b; "a-b+s" goes in steps of s, "a-b*s"
// multiplies by s. Throws UsageError, which names the flag, if a text is not such a list, a number
// is not from low to high, or there are too many numbers.
std::vector<size_t> ParseNumbers(const std::string& flag, const std::vector<std::string>& texts,
                                 size_t low, size_t high);

// Token ids, "1 300 12" or "[1, 300, 12]", at least one. Throws UsageError.
std::vector<tokenizer::TokenId> ParseIds(const std::string& text);

}  // namespace cli
