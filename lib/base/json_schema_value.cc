// Canonical texts, and the RFC 3339 formats read by hand: the regular expressions in use elsewhere
// for them accept a 30th of February.
#include "lib/base/json_schema_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

namespace norma::schema {
namespace {

void AppendCanonicalNumber(std::string& out, json::Value value) {
  std::array<char, 32> digits{};
  char* const begin = digits.data();
  char* const end = begin + digits.size();
  const double number = value.Double();
  char* stop = nullptr;
  if (value.kind() == json::Kind::kInt ||
      (value.kind() == json::Kind::kDouble && IsInteger(value))) {
    stop = std::to_chars(begin, end, value.Int()).ptr;
  } else if (value.kind() == json::Kind::kUint) {
    stop = std::to_chars(begin, end, value.Uint()).ptr;
  } else {
    stop = std::to_chars(begin, end, number).ptr;
  }
  out.append(begin, stop);
}

void AppendCanonical(std::string& out, json::Value value) {
  char separator = 0;
  switch (value.kind()) {
    case json::Kind::kNull:
      out += "null";
      return;
    case json::Kind::kBool:
      out += value.Bool() ? "true" : "false";
      return;
    case json::Kind::kInt:
    case json::Kind::kUint:
    case json::Kind::kDouble:
      AppendCanonicalNumber(out, value);
      return;
    case json::Kind::kString:
      json::AppendQuoted(out, value.Str());
      return;
    case json::Kind::kArray:
      separator = '[';
      value.EachElement([&](json::Value element) {
        out += separator;
        separator = ',';
        AppendCanonical(out, element);
      });
      out += separator == '[' ? "[]" : "]";
      return;
    case json::Kind::kObject: {
      std::vector<std::pair<std::string_view, json::Value>> members;
      value.EachMember(
          [&](std::string_view key, json::Value member) { members.emplace_back(key, member); });
      std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
      separator = '{';
      for (const auto& [key, member] : members) {
        out += separator;
        separator = ',';
        json::AppendQuoted(out, key);
        out += ':';
        AppendCanonical(out, member);
      }
      out += separator == '{' ? "{}" : "}";
      return;
    }
  }
}

// Reads `count` digits at the front of `text` and takes them off.
bool TakeDigits(std::string_view* text, size_t count, int* number) {
  if (text->size() < count) return false;
  *number = 0;
  for (const char c : text->substr(0, count)) {
    if (c < '0' || c > '9') return false;
    *number = *number * 10 + (c - '0');
  }
  text->remove_prefix(count);
  return true;
}

bool TakeOneOf(std::string_view* text, std::string_view characters) {
  if (text->empty() || characters.find(text->front()) == std::string_view::npos) return false;
  text->remove_prefix(1);
  return true;
}

bool TakeDate(std::string_view* text) {
  int year = 0;
  int month = 0;
  int day = 0;
  if (!TakeDigits(text, 4, &year) || !TakeOneOf(text, "-") || !TakeDigits(text, 2, &month) ||
      !TakeOneOf(text, "-") || !TakeDigits(text, 2, &day)) {
    return false;
  }
  return std::chrono::year_month_day(std::chrono::year(year),
                                     std::chrono::month(static_cast<unsigned>(month)),
                                     std::chrono::day(static_cast<unsigned>(day)))
      .ok();
}

bool TakeTime(std::string_view* text) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!TakeDigits(text, 2, &hour) || !TakeOneOf(text, ":") || !TakeDigits(text, 2, &minute) ||
      !TakeOneOf(text, ":") || !TakeDigits(text, 2, &second)) {
    return false;
  }
  if (hour > 23 || minute > 59 || second > 60) return false;  // 60 is a leap second
  if (TakeOneOf(text, ".")) {
    if (!TakeOneOf(text, "0123456789")) return false;
    while (TakeOneOf(text, "0123456789")) {
    }
  }
  if (TakeOneOf(text, "zZ")) return true;
  return TakeOneOf(text, "+-") && TakeDigits(text, 2, &hour) && TakeOneOf(text, ":") &&
         TakeDigits(text, 2, &minute) && hour <= 23 && minute <= 59;
}

}  // namespace

bool IsNumber(json::Value value) {
  const json::Kind kind = value.kind();
  return kind == json::Kind::kInt || kind == json::Kind::kUint || kind == json::Kind::kDouble;
}

bool IsInteger(json::Value value) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (value.kind() != json::Kind::kDouble) return IsNumber(value);
  const double number = value.Double();
  return std::trunc(number) == number && number >= -kTwoTo63 && number < kTwoTo63;
}

std::string CanonicalText(json::Value value) {
  std::string out;
  AppendCanonical(out, value);
  return out;
}

bool HasFormat(std::string_view text, std::string_view format) {
  if (format == "date") return TakeDate(&text) && text.empty();
  if (format == "time") return TakeTime(&text) && text.empty();
  if (format != "date-time") return true;
  return TakeDate(&text) && TakeOneOf(&text, "tT") && TakeTime(&text) && text.empty();
}

}  // namespace norma::schema
