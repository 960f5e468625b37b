// Strict scalars.
#include "lib/spec/values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/spec/load.h"

namespace norma::spec {

namespace {

constexpr size_t kShownBytesMax = 60;
// A year: longer waits are typing errors, and milliseconds stay far from overflow.
constexpr int64_t kDurationMaxMs = int64_t{366} * 24 * 3600 * 1000;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool AllDigits(std::string_view text) {
  for (const char c : text) {
    if (!IsDigit(c)) return false;
  }
  return !text.empty();
}

// -?(0|[1-9][0-9]*)
bool IsPlainInteger(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return AllDigits(text) && (text.size() == 1 || text[0] != '0');
}

// A JSON number.
bool IsJsonNumber(std::string_view text) {
  size_t end = text.find_first_of(".eE");
  if (end == std::string_view::npos) end = text.size();
  if (!IsPlainInteger(text.substr(0, end))) return false;
  text.remove_prefix(end);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const size_t digits = text.find_first_not_of("0123456789");
    if (digits == 0 || text.empty()) return false;
    text.remove_prefix(digits == std::string_view::npos ? text.size() : digits);
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;  // "1.2.3" is a version, hence text
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return AllDigits(text);
}

// Numbers of YAML 1.1 or 1.2 in any spelling but the plain one: 010, 0x10, 0o7, 0b1, 1_000, +5, .5,
// 5., 1:30, .inf, .nan.
bool IsOddNumber(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const std::string lower = ToLower(text);
  if (lower == ".inf" || lower == ".nan") return true;
  if (lower.empty() || (!IsDigit(lower[0]) && lower[0] != '.')) return false;
  if (lower.starts_with("0x")) {
    return lower.size() > 2 && lower.find_first_not_of("0123456789abcdef_", 2) == std::string::npos;
  }
  if (lower.starts_with("0o") || lower.starts_with("0b")) {
    return lower.size() > 2 && lower.find_first_not_of("01234567_", 2) == std::string::npos;
  }
  if (lower.find_first_of("0123456789") == std::string::npos) return false;
  if (lower.find(':') != std::string::npos) {
    // Base 60 of YAML 1.1: every part after the first is 0-59.
    bool first = true;
    for (const std::string_view part : Split(lower, ':')) {
      if (!AllDigits(part) ||
          (!first && (part.size() > 2 || (part.size() == 2 && part[0] > '5')))) {
        return false;
      }
      first = false;
    }
    return true;
  }
  const std::string bare = ReplaceAll(lower, "_", "");
  double ignored = 0;
  const auto [end, error] = std::from_chars(bare.data(), bare.data() + bare.size(), ignored);
  return end == bare.data() + bare.size() && error != std::errc::invalid_argument;
}

bool IsSwitchWord(std::string_view text) {
  const std::string lower = ToLower(text);
  return lower == "yes" || lower == "no" || lower == "on" || lower == "off" || lower == "true" ||
         lower == "false";
}

Error Expected(std::string_view what, const Node& node, std::string_view advice = {}) {
  std::string message = "expected " + std::string(what) + ", got " + Describe(node);
  if (!advice.empty()) message += "; " + std::string(advice);
  return Error{Code::kInvalid, std::move(message)};
}

// A scalar that must stand without quotes; the text on success.
Status Unquoted(const Node& node, std::string_view what, bool would_fit) {
  if (node.kind != NodeKind::kScalar) return Expected(what, node);
  if (node.replaced || (!node.quoted && node.text.find("${") != std::string::npos)) {
    return Expected(what, node, "${…} works in text only: use --set for this key");
  }
  if (node.quoted) {
    return Expected(what, node, would_fit ? "write it without quotes" : std::string_view{});
  }
  return {};
}

}  // namespace

PlainKind ClassifyPlain(std::string_view text) {
  if (text == "true" || text == "false") return PlainKind::kBool;
  if (IsSwitchWord(text)) return PlainKind::kTrap;
  if (IsPlainInteger(text)) return PlainKind::kInt;
  if (IsJsonNumber(text)) return PlainKind::kNumber;
  if (IsOddNumber(text)) return PlainKind::kTrap;
  return PlainKind::kText;
}

std::string Describe(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return "nothing (null)";
    case NodeKind::kList:
      return "a list";
    case NodeKind::kMap:
      return "a map";
    case NodeKind::kScalar:
      break;
  }
  const std::string& shown = node.shown();
  std::string cut(CutUtf8(shown, kShownBytesMax));
  if (cut.size() < shown.size()) cut += "…";
  if (node.quoted || node.replaced) return "the text " + json::Quote(cut);
  switch (ClassifyPlain(shown)) {
    case PlainKind::kBool:
      return "the boolean " + cut;
    case PlainKind::kInt:
    case PlainKind::kNumber:
      return "the number " + cut;
    case PlainKind::kText:
    case PlainKind::kTrap:
      return json::Quote(cut);
  }
  return cut;
}

Result<int64_t> IntOf(const Node& node) {
  constexpr std::string_view kWhat = "a whole number";
  NORMA_TRY(Unquoted(node, kWhat, IsPlainInteger(node.text)));
  if (!IsPlainInteger(node.text)) {
    const bool odd = ClassifyPlain(node.text) == PlainKind::kTrap && !IsSwitchWord(node.text);
    return Expected(kWhat, node, odd ? "write plain decimal digits" : std::string_view{});
  }
  int64_t number = 0;
  const char* end = node.text.data() + node.text.size();
  if (std::from_chars(node.text.data(), end, number).ec != std::errc()) {
    return Error{Code::kInvalid, "the number " + std::string(CutUtf8(node.text, kShownBytesMax)) +
                                     " does not fit into 64 bits"};
  }
  return number;
}

Result<double> NumberOf(const Node& node) {
  constexpr std::string_view kWhat = "a number";
  NORMA_TRY(Unquoted(node, kWhat, IsJsonNumber(node.text)));
  if (!IsJsonNumber(node.text)) return Expected(kWhat, node, "write a plain decimal");
  double number = 0;
  const char* end = node.text.data() + node.text.size();
  if (std::from_chars(node.text.data(), end, number).ec != std::errc() || !std::isfinite(number)) {
    return Error{Code::kInvalid, "the number " + std::string(CutUtf8(node.text, kShownBytesMax)) +
                                     " is out of range"};
  }
  return number;
}

Result<bool> BoolOf(const Node& node) {
  constexpr std::string_view kWhat = "true or false";
  NORMA_TRY(Unquoted(node, kWhat, node.text == "true" || node.text == "false"));
  if (node.text == "true") return true;
  if (node.text == "false") return false;
  return Expected(
      kWhat, node,
      IsSwitchWord(node.text) ? "YAML readers disagree about this word" : std::string_view{});
}

Result<std::string> TextOf(const Node& node) {
  constexpr std::string_view kWhat = "text";
  if (node.kind != NodeKind::kScalar) return Expected(kWhat, node);
  if (node.quoted || node.replaced) return node.text;
  switch (ClassifyPlain(node.text)) {
    case PlainKind::kText:
      return node.text;
    case PlainKind::kTrap:
      return Expected(kWhat, node, "YAML readers disagree about this word: put it in quotes");
    case PlainKind::kBool:
    case PlainKind::kInt:
    case PlainKind::kNumber:
      return Expected(kWhat, node, "put it in quotes");
  }
  return Expected(kWhat, node);
}

Result<Nano> UsdOf(const Node& node) {
  constexpr std::string_view kWhat = "an amount in USD as a plain decimal like \"0.50\"";
  if (node.kind != NodeKind::kScalar) return Expected(kWhat, node);
  auto amount = ParseUsd(node.text);
  // The reason repeats the text, and that of a variable may be a secret.
  if (!amount.ok() && node.replaced) return Expected(kWhat, node);
  return amount;
}

Result<Millis> ParseDuration(std::string_view text) {
  constexpr std::string_view kForms = "write a whole number with ms, s, m or h, like 250ms or 10s";
  const size_t unit_at = text.find_first_not_of("0123456789");
  const std::string_view digits = text.substr(0, unit_at);
  const std::string_view unit =
      unit_at == std::string_view::npos ? std::string_view{} : text.substr(unit_at);
  const Error no_duration{Code::kInvalid, std::string(kForms)};
  int64_t factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  if (factor == 0 || !IsPlainInteger(digits)) return no_duration;
  int64_t count = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (parsed.ec != std::errc() || count > kDurationMaxMs / factor) {
    return Error{Code::kInvalid, "longer than 366 days"};
  }
  return Millis(count * factor);
}

Result<Millis> DurationOf(const Node& node) {
  constexpr std::string_view kWhat = "a duration";
  if (node.kind != NodeKind::kScalar) return Expected(kWhat, node);
  auto duration = ParseDuration(node.text);
  if (!duration.ok()) return Expected(kWhat, node, duration.error().message);
  return duration;
}

Result<int64_t> SizeOf(const Node& node) {
  constexpr std::string_view kWhat = "a size";
  constexpr std::string_view kForms =
      "write bytes as a whole number, or with KiB, MiB or GiB, like 64KiB";
  if (node.kind != NodeKind::kScalar) return Expected(kWhat, node, kForms);
  if (!node.quoted && !node.replaced && IsPlainInteger(node.text)) return IntOf(node);
  const std::string_view text = node.text;
  const size_t unit_at = text.find_first_not_of("0123456789");
  if (unit_at == std::string_view::npos || unit_at == 0) return Expected(kWhat, node, kForms);
  const std::string_view digits = text.substr(0, unit_at);
  const std::string_view unit = text.substr(unit_at);
  int64_t factor = 0;
  if (unit == "B") factor = 1;
  if (unit == "KiB") factor = 1024;
  if (unit == "MiB") factor = 1024 * 1024;
  if (unit == "GiB") factor = 1024 * 1024 * 1024;
  if (factor == 0 || !IsPlainInteger(digits)) return Expected(kWhat, node, kForms);
  int64_t count = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (parsed.ec != std::errc() || count > std::numeric_limits<int64_t>::max() / factor) {
    return Error{Code::kInvalid, "the size does not fit into 64 bits"};
  }
  return count * factor;
}

namespace {

Status WriteJson(const Node& node, std::string& out) {
  switch (node.kind) {
    case NodeKind::kNull:
      out += "null";
      return {};
    case NodeKind::kScalar: {
      if (node.quoted || node.replaced) {
        json::AppendQuoted(out, node.text);
        return {};
      }
      switch (ClassifyPlain(node.text)) {
        case PlainKind::kBool:
        case PlainKind::kInt:
        case PlainKind::kNumber:
          out += node.text;
          return {};
        case PlainKind::kText:
          json::AppendQuoted(out, node.text);
          return {};
        case PlainKind::kTrap:
          return Error{Code::kInvalid, "YAML readers disagree about " + Describe(node) +
                                           ": put it in quotes, or write a plain decimal"};
      }
      return {};
    }
    case NodeKind::kList:
    case NodeKind::kMap:
      break;
  }
  const bool is_map = node.kind == NodeKind::kMap;
  out += is_map ? '{' : '[';
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) out += ',';
    if (is_map) {
      json::AppendQuoted(out, node.keys[i].text);
      out += ':';
    }
    NORMA_TRY(WriteJson(node.items[i], out));
  }
  out += is_map ? '}' : ']';
  return {};
}

}  // namespace

Result<std::string> JsonOf(const Node& node) {
  std::string out;
  NORMA_TRY(WriteJson(node, out));
  return out;
}

bool IsVariableName(std::string_view name) {
  if (name.empty() || IsDigit(name[0])) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !IsDigit(c)) return false;
  }
  return true;
}

}  // namespace norma::spec
