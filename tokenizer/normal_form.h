// Unicode's normal forms (Unicode Standard Annex 15): one spelling of characters that can be
// written in several ways, such as a letter and its accent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokenizer {

// D decomposes; C then composes again; KD and KC also replace compatibility characters (ﬁ by fi).
enum class NormalForm : uint8_t { kNfd, kNfc, kNfkd, kNfkc };

// The normal form of valid UTF-8, at most kMaxFormGrowth times as long, in linear time (a run of n
// marks takes n log n).
inline constexpr size_t kMaxFormGrowth = 11;  // U+FDFA
std::string ToNormalForm(std::string_view text, NormalForm form);

}  // namespace tokenizer
