// The writing half of json.h: quoting, the append-only writer, and Minify. Knows no parser library.
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::json {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// True when all eight bytes are plain: the usual zero-byte trick, once for each kind of byte that
// is not. It may say false for a plain word next to a special byte, never true for a special one.
bool AllPlain(const char* eight) {
  constexpr uint64_t kOnes = 0x0101010101010101ULL;
  constexpr uint64_t kHighs = 0x8080808080808080ULL;
  uint64_t word = 0;
  std::memcpy(&word, eight, sizeof word);
  const uint64_t quote = word ^ (kOnes * '"');
  const uint64_t backslash = word ^ (kOnes * '\\');
  const uint64_t special = (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes) | word;
  return (special & kHighs) == 0;
}

// The first byte at or after `at` that cannot go out as it is, or the end.
size_t SkipPlain(std::string_view text, size_t at) {
  while (at + 8 <= text.size() && AllPlain(text.data() + at)) at += 8;
  while (at < text.size() && IsPlain(text[at])) ++at;
  return at;
}

void AppendEscape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHexDigits[byte >> 4U];
  out += kHexDigits[byte & 15U];
}

bool IsJsonBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

void AppendQuoted(std::string& out, std::string_view text) {
  out.reserve(out.size() + text.size() + 2);
  out += '"';
  size_t at = 0;
  while (at < text.size()) {
    const size_t plain_end = SkipPlain(text, at);
    out.append(text, at, plain_end - at);
    at = plain_end;
    if (at == text.size()) break;
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      AppendEscape(out, text[at++]);
      continue;
    }
    // A run of non-ASCII bytes holds whole code points or none, so it can be repaired by itself.
    size_t end = at;
    while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) ++end;
    const std::string_view run = text.substr(at, end - at);
    if (IsValidUtf8(run)) {
      out.append(run);
    } else {
      out.append(RepairUtf8(run));
    }
    at = end;
  }
  out += '"';
}

std::string Quote(std::string_view text) {
  std::string out;
  AppendQuoted(out, text);
  return out;
}

Result<std::string> Minify(std::string_view text) {
  Parser parser;
  if (auto parsed = parser.Parse(text); !parsed.ok()) return parsed.error();
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    if (IsJsonBlank(text[at])) {
      ++at;
    } else if (text[at] != '"') {
      out += text[at++];
    } else {
      size_t end = at + 1;  // the text is valid, so that each string closes
      while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      out.append(text, at, end + 1 - at);
      at = end + 1;
    }
  }
  return out;
}

void Writer::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (first_.back()) {
    first_.back() = false;
    return;
  }
  NORMA_CHECK(first_.size() > 1);  // a second value beside the root would be no JSON
  out_ += ',';
}

Writer& Writer::BeginObject() {
  Separate();
  out_ += '{';
  first_.push_back(true);
  return *this;
}

Writer& Writer::EndObject() {
  NORMA_CHECK(first_.size() > 1 && !after_key_);
  first_.pop_back();
  out_ += '}';
  return *this;
}

Writer& Writer::BeginArray() {
  Separate();
  out_ += '[';
  first_.push_back(true);
  return *this;
}

Writer& Writer::EndArray() {
  NORMA_CHECK(first_.size() > 1 && !after_key_);
  first_.pop_back();
  out_ += ']';
  return *this;
}

Writer& Writer::Key(std::string_view key) {
  NORMA_CHECK(first_.size() > 1 && !after_key_);
  Separate();
  AppendQuoted(out_, key);
  out_ += ':';
  after_key_ = true;
  return *this;
}

Writer& Writer::String(std::string_view text) {
  Separate();
  AppendQuoted(out_, text);
  return *this;
}

Writer& Writer::Int(int64_t number) {
  Separate();
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out_.append(digits.data(), end);
  return *this;
}

Writer& Writer::Uint(uint64_t number) {
  Separate();
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out_.append(digits.data(), end);
  return *this;
}

Writer& Writer::Double(double number) {
  NORMA_CHECK(std::isfinite(number));
  Separate();
  std::array<char, 32> digits{};  // the shortest form of a double has at most 24 characters
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out_.append(digits.data(), end);
  return *this;
}

Writer& Writer::Bool(bool value) {
  Separate();
  out_ += value ? "true" : "false";
  return *this;
}

Writer& Writer::Null() {
  Separate();
  out_ += "null";
  return *this;
}

Writer& Writer::Raw(std::string_view valid_json) {
  NORMA_CHECK(!valid_json.empty());
  Separate();
  out_.append(valid_json);
  return *this;
}

}  // namespace norma::json
