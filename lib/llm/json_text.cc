#include "lib/llm/json_text.h"

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::llm {
namespace {

constexpr std::string_view kReplacementEscape = "\\ufffd";

size_t SkipBlank(std::string_view text, size_t at) {
  while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos) {
    ++at;
  }
  return at;
}

// Behind the string that starts at `at`.
size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// Behind the value that starts at `at`. Counts levels instead of recursing.
size_t SkipValue(std::string_view text, size_t at) {
  size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = SkipString(text, at);
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
      continue;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;
      --depth;
      ++at;
    } else if (depth > 0) {
      ++at;
      continue;
    } else {
      at = std::min(text.find_first_of(",]} \t\r\n", at), text.size());
    }
    if (depth == 0) return at;
  }
  return at;
}

// Position of the next item's start, or npos at the end of the container.
size_t NextItem(std::string_view text, size_t at) {
  at = SkipBlank(text, at);
  if (at < text.size() && text[at] == ',') at = SkipBlank(text, at + 1);
  if (at >= text.size() || text[at] == '}' || text[at] == ']') return std::string_view::npos;
  return at;
}

size_t Inside(std::string_view text, char open) {
  const size_t at = SkipBlank(text, 0);
  return at < text.size() && text[at] == open ? NextItem(text, at + 1) : std::string_view::npos;
}

// The value of \uXXXX at `at`, or -1.
int EscapedUnit(std::string_view text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = 0;
  for (const char c : ToLower(text.substr(at + 2, 4))) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return -1;
    unit = unit * 16 + (digit ? c - '0' : c - 'a' + 10);
  }
  return unit;
}

bool IsHigh(int unit) {
  return unit >= 0xD800 && unit <= 0xDBFF;
}
bool IsLow(int unit) {
  return unit >= 0xDC00 && unit <= 0xDFFF;
}

}  // namespace

void EachRawMember(std::string_view object,
                   const std::function<void(std::string_view, std::string_view)>& visit) {
  size_t at = Inside(object, '{');
  while (at != std::string_view::npos && object[at] == '"') {
    const size_t key_end = SkipString(object, at);
    const std::string_view key = object.substr(at + 1, key_end - at - 2);
    size_t value = SkipBlank(object, key_end);
    if (value < object.size() && object[value] == ':') value = SkipBlank(object, value + 1);
    const size_t end = SkipValue(object, value);
    visit(key, object.substr(value, end - value));
    at = NextItem(object, end);
  }
}

std::string_view RawMember(std::string_view object, std::string_view key) {
  std::string_view found;
  EachRawMember(object, [&](std::string_view name, std::string_view raw) {
    if (found.empty() && name == key) found = raw;
  });
  return found;
}

void EachRawElement(std::string_view array, const std::function<void(std::string_view)>& visit) {
  size_t at = Inside(array, '[');
  while (at != std::string_view::npos) {
    const size_t end = SkipValue(array, at);
    if (end == at) return;
    visit(array.substr(at, end - at));
    at = NextItem(array, end);
  }
}

std::string RepairJsonText(std::string_view json) {
  const std::string text = RepairUtf8(json);
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] != '\\') {
      out += text[at++];
      continue;
    }
    const int unit = EscapedUnit(text, at);
    size_t length = unit >= 0 ? 6 : 2;
    bool lone = IsLow(unit);
    if (IsHigh(unit)) {
      lone = !IsLow(EscapedUnit(text, at + 6));
      if (!lone) length = 12;
    }
    if (lone) {
      out += kReplacementEscape;
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  return out;
}

std::string ValidArguments(std::string_view raw) {
  if (IsBlank(raw)) return "{}";
  const auto document = json::Document::Parse(raw);
  if (!document.ok() || !document.value().root().is_object()) return {};
  auto minified = json::Minify(raw);
  return minified.ok() ? std::move(minified).value() : std::string();
}

}  // namespace norma::llm
