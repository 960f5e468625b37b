// Decimal text to integer nano-dollars and back; no floating point on the way.
#include "lib/base/money.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace norma {
namespace {

constexpr Nano kNanoPerDollar = 1'000'000'000;
constexpr Nano kDollarsMax = 9'000'000'000;  // the round number below the int64 limit
constexpr size_t kDecimalsMax = 9;
// Enough of an unreadable amount to recognise it in a message.
constexpr size_t kShownBytesMax = 40;

bool AllDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// `digits` are digits alone and at most 18 of them, so that nothing overflows.
Nano DigitsValue(std::string_view digits) {
  Nano value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

Error BadAmount(std::string_view text, std::string_view why) {
  std::string shown;
  for (const char c : text.substr(0, kShownBytesMax)) shown += c > ' ' && c <= '~' ? c : '?';
  if (text.size() > kShownBytesMax) shown += "...";
  return Error{Code::kInvalid, fmt::format("\"{}\" is no amount in USD: {}", shown, why)};
}

}  // namespace

Result<Nano> ParseUsd(std::string_view text) {
  constexpr std::string_view kPlain =
      "write a plain decimal such as 0.50 (digits, one dot with digits on both sides, no sign, "
      "exponent or blank)";
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  if (!AllDigits(whole)) return BadAmount(text, kPlain);
  if (whole.size() > 1 && whole[0] == '0') return BadAmount(text, "drop the leading zeros");
  std::string_view decimals;
  if (dot != std::string_view::npos) {
    decimals = text.substr(dot + 1);
    if (!AllDigits(decimals)) return BadAmount(text, kPlain);
    if (decimals.size() > kDecimalsMax) return BadAmount(text, "at most nine decimals are kept");
  }
  if (whole.size() > 10) return BadAmount(text, "at most 9000000000 dollars");
  Nano fraction = DigitsValue(decimals);
  for (size_t i = decimals.size(); i < kDecimalsMax; ++i) fraction *= 10;
  const Nano dollars = DigitsValue(whole);
  if (dollars > kDollarsMax || (dollars == kDollarsMax && fraction > 0)) {
    return BadAmount(text, "at most 9000000000 dollars");
  }
  return dollars * kNanoPerDollar + fraction;
}

std::string FormatUsd(Nano amount) {
  // Unsigned, because the most negative amount has no positive twin.
  const uint64_t size =
      amount < 0 ? 0 - static_cast<uint64_t>(amount) : static_cast<uint64_t>(amount);
  const auto per_dollar = static_cast<uint64_t>(kNanoPerDollar);
  std::string out = fmt::format("{}{}", amount < 0 ? "-" : "", size / per_dollar);
  const uint64_t fraction = size % per_dollar;
  if (fraction == 0) return out;
  std::string decimals = fmt::format("{:09}", fraction);
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return out + "." + decimals;
}

Nano SaturatingAdd(Nano a, Nano b) {
  Nano sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<Nano>::min() : std::numeric_limits<Nano>::max();
}

}  // namespace norma
