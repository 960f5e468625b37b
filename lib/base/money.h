// Money as 64-bit nano-dollars (1e-9 USD), read from and written as plain decimals, never a float.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace norma {

using Nano = int64_t;

// "0.50" → 500000000. Plain decimals only (no sign, exponent, blanks, lone dot); at most nine
// decimals and at most 9,000,000,000 dollars. kInvalid with the reason.
Result<Nano> ParseUsd(std::string_view text);

// 500000000 → "0.5", 6048000 → "0.006048", 0 → "0". Exact; a negative amount keeps its sign.
std::string FormatUsd(Nano amount);

// a + b, at the int64 limits instead of overflowing.
Nano SaturatingAdd(Nano a, Nano b);

}  // namespace norma
