// UTF-8 by the table of the Unicode standard (3.9, table 3-7), so that overlong forms, surrogates
// and code points above U+10FFFF are invalid everywhere in the same way. Knows no locale.
#include "lib/base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace norma {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kBlank = " \t\r\n\v\f";
constexpr std::string_view kHexDigits = "0123456789abcdef";

// Longer words are no typos; the bound also keeps the quadratic distance small.
constexpr size_t kNearestBytesMax = 64;

struct Sequence {
  size_t length;  // bytes of the code point, or of the maximal invalid part
  bool valid;
};

unsigned char ByteAt(std::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

bool IsContinuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

// Reads one code point at `at`, which is inside the text.
Sequence SequenceAt(std::string_view bytes, size_t at) {
  const unsigned char lead = ByteAt(bytes, at);
  if (lead < 0x80) return {1, true};
  size_t length = 0;
  unsigned char low = 0x80;  // bounds of the second byte alone carry all special cases
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, false};
  }
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= bytes.size()) return {i, false};
    const unsigned char byte = ByteAt(bytes, at + i);
    if (byte < low || byte > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

// The first byte at or after `at` that is not ASCII, or the end. Eight at a time: most text is
// ASCII, and this runs over every byte that enters or leaves.
size_t SkipAscii(std::string_view bytes, size_t at) {
  while (at + 8 <= bytes.size()) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & 0x8080808080808080ULL) != 0) break;
    at += 8;
  }
  while (at < bytes.size() && ByteAt(bytes, at) < 0x80) ++at;
  return at;
}

// The first invalid part at or after `at`, or the end.
size_t SkipValid(std::string_view bytes, size_t at) {
  while ((at = SkipAscii(bytes, at)) < bytes.size()) {
    const Sequence sequence = SequenceAt(bytes, at);
    if (!sequence.valid) return at;
    at += sequence.length;
  }
  return at;
}

// The start of the valid code point that `at` would split, or `at` itself.
size_t CodePointStart(std::string_view text, size_t at) {
  if (at >= text.size() || !IsContinuation(ByteAt(text, at))) return at;
  for (size_t back = 1; back <= 3 && back <= at; ++back) {
    if (IsContinuation(ByteAt(text, at - back))) continue;
    const Sequence sequence = SequenceAt(text, at - back);
    return sequence.valid && sequence.length > back ? at - back : at;
  }
  return at;
}

char LowerChar(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Optimal string alignment: insert, delete, replace, and swap of neighbours cost one each.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::array<size_t, kNearestBytesMax + 1> before{};  // two rows up
  std::array<size_t, kNearestBytesMax + 1> above{};
  std::array<size_t, kNearestBytesMax + 1> row{};
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = above;
    above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

bool IsValidUtf8(std::string_view bytes) {
  return SkipValid(bytes, 0) == bytes.size();
}

std::string RepairUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  size_t at = 0;
  while (true) {
    const size_t bad = SkipValid(bytes, at);
    out.append(bytes.substr(at, bad - at));
    if (bad == bytes.size()) return out;
    out.append(kReplacement);
    at = bad + SequenceAt(bytes, bad).length;
  }
}

std::string_view CutUtf8(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  return text.substr(0, CodePointStart(text, bytes_max));
}

std::string_view CutUtf8Tail(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  const size_t cut = text.size() - bytes_max;
  const size_t start = CodePointStart(text, cut);
  if (start == cut) return text.substr(cut);
  return text.substr(start + SequenceAt(text, start).length);
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(kBlank) == std::string_view::npos;
}

std::string ToLower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), LowerChar);
  return out;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  if (text.empty()) return {};
  if (text.back() == '\n') text.remove_suffix(1);
  return Split(text, '\n');
}

std::string Join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);  // nothing to find, rather than everywhere
  std::string out;
  size_t begin = 0;
  while (true) {
    const size_t at = text.find(from, begin);
    out.append(text.substr(begin, at - begin));
    if (at == std::string_view::npos) return out;
    out.append(to);
    begin = at + from.size();
  }
}

bool ContainsIgnoreCase(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return LowerChar(a) == LowerChar(b); };
  // Not std::ranges::search: clang 14 cannot compile the subrange of libstdc++ 12.
  return part.empty() ||
         std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kNearestBytesMax) return {};
  const std::string lower = ToLower(word);
  const std::string* best = nullptr;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > kNearestBytesMax) continue;
    const size_t shorter = std::min(candidate.size(), word.size());
    // One slip in a short word, one more for every three letters: else "x" means any letter.
    const size_t distance_max = std::min(std::max<size_t>(1, shorter / 3), shorter - 1);
    const size_t distance = EditDistance(lower, ToLower(candidate));
    if (distance > distance_max) continue;
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? ByteAt(bytes, at + i) : 0U);
    for (size_t i = 0; i < 4; ++i) {
      out += i <= count ? kDigits[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return out;
}

std::string UrlEncode(std::string_view bytes) {
  constexpr std::string_view kUpperHex = "0123456789ABCDEF";
  constexpr std::string_view kMarks = "-_.~";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    const char lower = LowerChar(c);
    const bool plain = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
                       kMarks.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kUpperHex[byte >> 4U], kUpperHex[byte & 15U]};
    }
  }
  return out;
}

std::string Hex(std::span<const unsigned char> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    out += kHexDigits[byte >> 4U];
    out += kHexDigits[byte & 15U];
  }
  return out;
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be shown as 1024.0 of the smaller unit.
  while (amount >= 1023.95 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace norma
