// Bytes and UTF-8: repair, cutting on code points, trimming, lists, near misses, encodings. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

bool IsValidUtf8(std::string_view bytes);
// Each maximal invalid part becomes one U+FFFD (WHATWG); NUL stays. Valid text comes back as it is.
std::string RepairUtf8(std::string_view bytes);
// The longest prefix of at most `bytes_max` bytes that does not split a code point.
std::string_view CutUtf8(std::string_view text, size_t bytes_max);
// The longest suffix of at most `bytes_max` bytes that does not start inside a code point.
std::string_view CutUtf8Tail(std::string_view text, size_t bytes_max);

std::string_view Trim(std::string_view text);  // blank, tab, CR, LF, VT, FF
bool IsBlank(std::string_view text);
std::string ToLower(std::string_view text);  // ASCII
std::vector<std::string_view> Split(std::string_view text, char separator);
std::vector<std::string_view> SplitLines(std::string_view text);  // at LF; a last LF adds no line
std::string Join(std::span<const std::string> parts, std::string_view separator);
std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);
bool ContainsIgnoreCase(std::string_view text, std::string_view part);

// The candidate that a typo of `word` most likely meant, empty when none is near.
std::string Nearest(std::string_view word, std::span<const std::string> candidates);

std::string Base64(std::string_view bytes);             // padded
std::string UrlEncode(std::string_view bytes);          // all but [A-Za-z0-9-_.~]
std::string Hex(std::span<const unsigned char> bytes);  // lower case

// "12.3 MiB", "512 B": for people.
std::string FormatBytes(uint64_t bytes);

}  // namespace norma
