// Tables for text.h: each row is one input and the whole output.
#include "lib/base/text.h"

#include <doctest/doctest.h>

#include <utility>

namespace norma {
namespace {

constexpr std::string_view kBad = "\xEF\xBF\xBD";

// Bytes with `?` for each U+FFFD, so that a row can be read.
std::string Repaired(std::string_view bytes) {
  const std::string repaired = RepairUtf8(bytes);
  CHECK(IsValidUtf8(repaired));
  return ReplaceAll(repaired, kBad, "?");
}

TEST_CASE("text: each maximal invalid part becomes one U+FFFD, as WHATWG has it") {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {std::string_view("a\0b", 3), std::string_view("a\0b", 3)},
      {"\x80", "?"},                           // lone continuation
      {"\x80\xBF", "??"},                      // each is a part of its own
      {"\xC0\xAF", "??"},                      // overlong slash
      {"\xC1\xBF", "??"},                      //
      {"\xE0\x80\xAF", "???"},                 // overlong, three bytes
      {"\xE0\x9F\xBF", "???"},                 //
      {"\xF0\x80\x80\xAF", "????"},            // overlong, four bytes
      {"\xF0\x8F\xBF\xBF", "????"},            //
      {"\xED\xA0\x80", "???"},                 // a surrogate in UTF-8
      {"\xED\xA0\xBD\xED\xB8\x80", "??????"},  // a CESU-8 pair
      {"\xF4\x90\x80\x80", "????"},            // above U+10FFFF
      {"\xF5\x80\x80\x80", "????"},            //
      {"\xFF\xFE", "??"},                      // a UTF-16 byte order mark
      {"\xC3", "?"},                           // cut at the end
      {"\xE2\x82", "?"},                       // two bytes of three: one part
      {"\xF0\x9F\x98", "?"},                   // three bytes of four: one part
      {"\xF0\x9Fx", "?x"},                     //
      {"\xE2\x82\xE2\x82\xAC", "?\xE2\x82\xAC"},
      {"\xF0\x9F\xF0\x9F\x98\x80", "?\xF0\x9F\x98\x80"},
      {"\xC3\x28", "?("},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A"},  // the Unicode standard's table 3-11
      {"\xED\x9F\xBF\xEE\x80\x80", "\xED\x9F\xBF\xEE\x80\x80"},  // the neighbours of surrogates
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},                  // U+10FFFF
      {"ascii ascii ascii \xFF ascii ascii", "ascii ascii ascii ? ascii ascii"},
  };
  for (const auto& row : rows) {
    const auto& bytes = row.first;
    const auto& want = row.second;
    CAPTURE(Hex(std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())));
    CHECK(Repaired(bytes) == want);
    CHECK(IsValidUtf8(bytes) == (RepairUtf8(bytes) == bytes));
  }
}

TEST_CASE("text: repair finds a bad byte at every offset of a word") {
  for (size_t length = 0; length < 40; ++length) {
    for (size_t at = 0; at < length; ++at) {
      std::string bytes(length, 'x');
      bytes[at] = '\xFF';
      CHECK_FALSE(IsValidUtf8(bytes));
      CHECK(Repaired(bytes) == std::string(at, 'x') + "?" + std::string(length - at - 1, 'x'));
    }
  }
}

TEST_CASE("text: a cut at any byte leaves whole code points, head and tail") {
  const std::string_view text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";  // 1, 2, 3, 4, 1 bytes
  const size_t head[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  const size_t tail[] = {0, 1, 1, 1, 1, 5, 5, 5, 8, 8, 10, 11, 11};
  REQUIRE(text.size() == 11);
  for (size_t bytes_max = 0; bytes_max < std::size(head); ++bytes_max) {
    CAPTURE(bytes_max);
    CHECK(CutUtf8(text, bytes_max) == text.substr(0, head[bytes_max]));
    CHECK(CutUtf8Tail(text, bytes_max) == text.substr(text.size() - tail[bytes_max]));
    CHECK(IsValidUtf8(CutUtf8(text, bytes_max)));
    CHECK(IsValidUtf8(CutUtf8Tail(text, bytes_max)));
  }
}

TEST_CASE("text: a cut of invalid bytes never cuts more than asked") {
  const std::string bytes(10, '\x80');
  CHECK(CutUtf8(bytes, 4).size() == 4);
  CHECK(CutUtf8Tail(bytes, 4).size() == 4);
  CHECK(CutUtf8("\xE2\x28\x80\x80", 3).size() == 3);
  CHECK(CutUtf8("\xC3\xA9\x80\x80", 3).size() == 3);
  CHECK(CutUtf8("abc", static_cast<size_t>(-1)) == "abc");
}

TEST_CASE("text: trim takes the six blanks off both ends only") {
  CHECK(Trim(" \t\r\n\v\f a b \n") == "a b");
  CHECK(Trim(" \n ").empty());
  CHECK(Trim("").empty());
  CHECK(Trim("\xC2\xA0x") == "\xC2\xA0x");
  CHECK(IsBlank(" \t\r\n\v\f"));
  CHECK(IsBlank(""));
  CHECK_FALSE(IsBlank(std::string_view("\0", 1)));
}

TEST_CASE("text: split keeps empty parts, lines drop only the last line feed") {
  using Parts = std::vector<std::string_view>;
  CHECK(Split("", ',') == Parts{""});
  CHECK(Split("a,,b,", ',') == Parts{"a", "", "b", ""});
  CHECK(SplitLines("").empty());
  CHECK(SplitLines("\n") == Parts{""});
  CHECK(SplitLines("a\nb") == Parts{"a", "b"});
  CHECK(SplitLines("a\r\nb\n\n") == Parts{"a\r", "b", ""});
  CHECK(SplitLines("a\xE2\x80\xA8"
                   "b\xC2\x85"
                   "c") == Parts{"a\xE2\x80\xA8"
                                 "b\xC2\x85"
                                 "c"});
}

TEST_CASE("text: join, replace and search without case") {
  const std::vector<std::string> parts = {"a", "", "c"};
  CHECK(Join(parts, ", ") == "a, , c");
  CHECK(Join({}, ", ").empty());
  CHECK(ReplaceAll("aXXbXX", "XX", "Y") == "aYbY");
  CHECK(ReplaceAll("aaa", "aa", "b") == "ba");
  CHECK(ReplaceAll("aaa", "a", "aa") == "aaaaaa");
  CHECK(ReplaceAll("abc", "", "-") == "abc");
  CHECK(ToLower("\xC3\x84"
                "AbZ[") ==
        "\xC3\x84"
        "abz[");
  CHECK(ContainsIgnoreCase("Rate LIMIT reached", "limit"));
  CHECK(ContainsIgnoreCase("x", ""));
  CHECK_FALSE(ContainsIgnoreCase("", "x"));
}

TEST_CASE("text: a typo finds the name that was meant, anything else finds none") {
  const std::vector<std::string> names = {"model", "mode", "max_tokens", "allow", "Bash", "on"};
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"modle", "model"},  // two neighbours swapped
      {"mdoe", "mode"},    //
      {"alow", "allow"},   //
      {"bash", "Bash"},    // case is no distance
      {"max_token", "max_tokens"},
      {"maxtokens", "max_tokens"},
      {"mode", "mode"},
      {"x", ""},   // one letter is near to nothing
      {"zz", ""},  //
      {"deny", ""},
      {"", ""},
  };
  for (const auto& [word, want] : rows) CHECK(Nearest(word, names) == want);
  CHECK(Nearest(std::string(100'000, 'a'), names).empty());
  CHECK(Nearest("model", {}).empty());
}

TEST_CASE("text: encodings") {
  const std::pair<std::string_view, std::string_view> base64[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xFB\xFF\xFE", "+//+"},
      {std::string_view("\0\0", 2), "AAA="},
  };
  for (const auto& [bytes, want] : base64) CHECK(Base64(bytes) == want);
  CHECK(UrlEncode("aZ09-_.~") == "aZ09-_.~");
  CHECK(UrlEncode("a b/c?d=e&f+\xC3\xA9%") == "a%20b%2Fc%3Fd%3De%26f%2B%C3%A9%25");
  const unsigned char bytes[] = {0x00, 0x0F, 0xA5, 0xFF};
  CHECK(Hex(bytes) == "000fa5ff");
}

TEST_CASE("text: sizes for people") {
  const std::pair<uint64_t, std::string_view> rows[] = {
      {0, "0 B"},
      {512, "512 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {12'897'485, "12.3 MiB"},
      {1'048'575, "1.0 MiB"},  // not "1024.0 KiB"
      {50 * 1024 * 1024, "50.0 MiB"},
      {UINT64_MAX, "16.0 EiB"},
  };
  for (const auto& [bytes, want] : rows) CHECK(FormatBytes(bytes) == want);
}

}  // namespace
}  // namespace norma
