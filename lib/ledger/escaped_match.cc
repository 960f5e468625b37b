#include "lib/ledger/escaped_match.h"

#include <cstdint>
#include <string>

namespace norma::ledger {
namespace {

// Four levels of JSON inside JSON put 2^4 backslashes before a quote; more is no encoding.
constexpr size_t kBackslashesMax = 64;
// Blanks after a line break inside base64 (YAML indents it).
constexpr size_t kIndentMax = 64;
constexpr size_t kNone = std::string_view::npos;

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The number in `digits` hex digits at text[at], or -1.
int32_t ReadHex(std::string_view text, size_t at, size_t digits) {
  if (at > text.size() || text.size() - at < digits) return -1;
  int32_t value = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int digit = HexValue(text[at + i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

size_t CountBackslashes(std::string_view text, size_t at) {
  size_t count = 0;
  while (count < kBackslashesMax && at + count < text.size() && text[at + count] == '\\') ++count;
  return count;
}

std::string Utf8Of(int32_t point) {
  const auto u = static_cast<uint32_t>(point);
  std::string out;
  if (u < 0x80) {
    out += static_cast<char>(u);
  } else if (u < 0x800) {
    out += static_cast<char>(0xC0U | u >> 6);
    out += static_cast<char>(0x80U | (u & 0x3FU));
  } else if (u < 0x10000) {
    out += static_cast<char>(0xE0U | u >> 12);
    out += static_cast<char>(0x80U | (u >> 6 & 0x3FU));
    out += static_cast<char>(0x80U | (u & 0x3FU));
  } else {
    out += static_cast<char>(0xF0U | u >> 18);
    out += static_cast<char>(0x80U | (u >> 12 & 0x3FU));
    out += static_cast<char>(0x80U | (u >> 6 & 0x3FU));
    out += static_cast<char>(0x80U | (u & 0x3FU));
  }
  return out;
}

// Where both cursors stand after one matched unit; `text` is kNone for no match.
struct Step {
  size_t text = kNone;
  size_t needle = 0;
};

// \uXXXX (also a surrogate pair) or \xXX whose letter stands at text[at].
Step MatchCodePoint(std::string_view text, size_t at, std::string_view needle, size_t j) {
  if (text[at] == 'x') {
    const int32_t byte = ReadHex(text, at + 1, 2);
    if (byte < 0 || byte != static_cast<unsigned char>(needle[j])) return {};
    return {at + 3, j + 1};
  }
  if (text[at] != 'u') return {};
  int32_t point = ReadHex(text, at + 1, 4);
  if (point < 0) return {};
  size_t end = at + 5;
  if (point >= 0xD800 && point < 0xDC00) {
    const size_t low_at = end + CountBackslashes(text, end);
    if (low_at == end || low_at >= text.size() || text[low_at] != 'u') return {};
    const int32_t low = ReadHex(text, low_at + 1, 4);
    if (low < 0xDC00 || low > 0xDFFF) return {};
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    end = low_at + 5;
  }
  const std::string bytes = Utf8Of(point);
  if (needle.compare(j, bytes.size(), bytes) != 0) return {};
  return {end, j + bytes.size()};
}

bool IsLetterEscape(char letter, char meant) {
  switch (letter) {
    case 'n':
      return meant == '\n';
    case 'r':
      return meant == '\r';
    case 't':
      return meant == '\t';
    case 'b':
      return meant == '\b';
    case 'f':
      return meant == '\f';
    case '0':
      return meant == '\0';
    default:
      return false;
  }
}

// Plain, or behind backslashes of any number: k levels of JSON turn `"` into 2^k - 1 backslashes
// and a quote, and a run of m backslashes into m * 2^k of them.
size_t MatchBackslashed(std::string_view text, size_t at, std::string_view needle) {
  size_t i = at;
  bool escaped = false;  // more backslashes were passed than the needle itself has there
  for (size_t j = 0; j < needle.size();) {
    if (i >= text.size()) return kNone;
    const size_t run = CountBackslashes(text, i);
    const size_t next = i + run;
    if (needle[j] == '\\') {
      if (run > 0 && next < text.size()) {
        const Step step = MatchCodePoint(text, next, needle, j);
        if (step.text != kNone) {
          i = step.text;
          j = step.needle;
          escaped = false;
          continue;
        }
      }
      const size_t wanted = CountBackslashes(needle, j);
      if (run < wanted) return kNone;
      escaped = run > wanted;
      i = next;
      j += wanted;
      continue;
    }
    if (next >= text.size()) return kNone;
    if (text[next] == needle[j]) {
      i = next + 1;
      ++j;
    } else if (run > 0 || escaped) {
      const Step step = IsLetterEscape(text[next], needle[j])
                            ? Step{next + 1, j + 1}
                            : MatchCodePoint(text, next, needle, j);
      if (step.text == kNone) return kNone;
      i = step.text;
      j = step.needle;
    } else {
      return kNone;
    }
    escaped = false;
  }
  return i;
}

// Percent-encoded `level` times (1: %2F, 2: %252F); characters may also stand for themselves.
size_t MatchPercent(std::string_view text, size_t at, std::string_view needle, int level) {
  size_t i = at;
  for (const char c : needle) {
    if (i >= text.size()) return kNone;
    if (text[i] == '%') {
      size_t digits = i + 1;
      if (level == 2) {
        if (ReadHex(text, digits, 2) != 0x25) return kNone;
        digits += 2;
      }
      if (ReadHex(text, digits, 2) != static_cast<unsigned char>(c)) return kNone;
      i = digits + 2;
    } else if (text[i] == c || (c == ' ' && text[i] == '+')) {
      ++i;
    } else {
      return kNone;
    }
  }
  return i;
}

bool IsBase64Char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/' || c == '-' || c == '_';
}

bool SameBase64(char seen, char wanted) {
  return seen == wanted || (wanted == '+' && seen == '-') || (wanted == '/' && seen == '_');
}

// One character of base64 at text[at], decoded from \/ \u002b %2B %252B; `end` behind it. '\n'
// stands for a line break in any spelling, '\0' for none of all that.
char ReadBase64Char(std::string_view text, size_t at, size_t* end) {
  *end = at + 1;
  const char c = text[at];
  if (c == '\r') return '\n';
  if (c == '%') {
    int32_t value = ReadHex(text, at + 1, 2);
    *end = at + 3;
    if (value == 0x25) {
      value = ReadHex(text, at + 3, 2);
      *end = at + 5;
    }
    if (value == '\r') return '\n';
    return value > 0 && value < 0x80 ? static_cast<char>(value) : '\0';
  }
  if (c == '\\') {
    const size_t next = at + CountBackslashes(text, at);
    if (next >= text.size()) return '\0';
    *end = next + 1;
    if (text[next] == 'n' || text[next] == 'r' || text[next] == '\n') return '\n';
    if (text[next] == 'u') {
      const int32_t value = ReadHex(text, next + 1, 4);
      *end = next + 5;
      return value > 0 && value < 0x80 ? static_cast<char>(value) : '\0';
    }
    return text[next];
  }
  return c;
}

size_t SkipLineBreak(std::string_view text, size_t at) {
  size_t indent = 0;
  while (at < text.size() && indent < kIndentMax && (text[at] == ' ' || text[at] == '\t')) {
    ++at;
    ++indent;
  }
  return at;
}

size_t MatchBase64Core(std::string_view text, size_t at, std::string_view needle) {
  size_t i = at;
  for (size_t j = 0; j < needle.size();) {
    if (i >= text.size()) return kNone;
    if (SameBase64(text[i], needle[j])) {
      ++i;
      ++j;
      continue;
    }
    size_t end = i;
    const char c = ReadBase64Char(text, i, &end);
    if (c == '\n' && j > 0) {
      i = SkipLineBreak(text, end);
      // "\r\n" is one break; an empty line ends the encoding.
      if (i < text.size() && (text[i] == '\n' || text[i] == '\\')) {
        size_t second = i;
        if (ReadBase64Char(text, i, &second) == '\n') i = SkipLineBreak(text, second);
      }
      if (i < text.size() && text[i] == '\n') return kNone;
      continue;
    }
    if (c == '\0' || c == '\n' || !SameBase64(c, needle[j])) return kNone;
    i = end;
    ++j;
  }
  return i;
}

}  // namespace

Span MatchEscaped(std::string_view text, size_t at, std::string_view needle) {
  const char first = text[at];
  const bool plain = first == needle[0];
  if (!plain && first != '\\' && first != '%' && first != '+') return {at, at};
  // A run of backslashes is looked at once: from its first one for a needle that begins with a
  // backslash, from its last one for the others (an escape of their first character).
  const bool own_backslash = needle[0] == '\\';
  if (first == '\\' && !own_backslash && at + 1 < text.size() && text[at + 1] == '\\')
    return {at, at};
  const bool in_run = first == '\\' && own_backslash && at > 0 && text[at - 1] == '\\';
  if (text.compare(at, needle.size(), needle) == 0) return {at, at + needle.size()};
  if (!in_run) {
    const size_t end = MatchBackslashed(text, at, needle);
    if (end != kNone) return {at, end};
  }
  for (const int level : {1, 2}) {
    const size_t end = MatchPercent(text, at, needle, level);
    if (end != kNone) return {at, end};
  }
  return {at, at};
}

Span MatchBase64(std::string_view text, size_t at, std::string_view needle, bool edge_before,
                 bool edge_after) {
  const char first = text[at];
  if (first != '\\' && first != '%' && !SameBase64(first, needle[0])) return {at, at};
  size_t end = MatchBase64Core(text, at, needle);
  if (end == kNone) return {at, at};
  size_t begin = at;
  if (edge_before && begin > 0 && IsBase64Char(text[begin - 1])) --begin;
  if (edge_after && end < text.size() && IsBase64Char(text[end])) ++end;
  for (int padding = 0; padding < 2 && end < text.size() && text[end] == '='; ++padding) ++end;
  return {begin, end};
}

}  // namespace norma::ledger
