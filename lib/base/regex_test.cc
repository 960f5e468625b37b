// What callers rely on: RE2's syntax, its bounds, positions in bytes.
#include "lib/base/regex.h"

#include <doctest/doctest.h>

#include <vector>

namespace norma {
namespace {

Regex Must(std::string_view pattern, const RegexOptions& options = {}) {
  auto regex = Regex::Compile(pattern, options);
  REQUIRE_MESSAGE(regex.ok(), regex.error().message);
  return std::move(regex).value();
}

std::vector<Span> All(const Regex& regex, std::string_view text) {
  std::vector<Span> spans;
  Span span;
  for (size_t from = 0; from <= text.size() && regex.Find(text, from, &span);) {
    spans.push_back(span);
    from = span.end > span.begin ? span.end : span.end + 1;
  }
  return spans;
}

TEST_CASE("regex: matches anywhere, in full, and at positions") {
  const Regex digits = Must("[0-9]+");
  CHECK(digits.Matches("a12b"));
  CHECK_FALSE(digits.Matches("ab"));
  CHECK(digits.FullMatch("12"));
  CHECK_FALSE(digits.FullMatch("12b"));
  CHECK(All(digits, "1 22  333") == std::vector<Span>{{0, 1}, {2, 4}, {6, 9}});
  CHECK(All(Must("x*"), "ax") == std::vector<Span>{{0, 0}, {1, 2}, {2, 2}});
  CHECK(digits.pattern() == "[0-9]+");
}

TEST_CASE("regex: find sees what stands before the start") {
  Span span;
  CHECK_FALSE(Must("^b").Find("ab", 1, &span));
  CHECK_FALSE(Must("\\bb").Find("ab", 1, &span));
  CHECK(Must("\\bb").Find("a b", 1, &span));
  CHECK(span == Span{2, 3});
  CHECK_FALSE(Must("b").Find("ab", 3, &span));
  CHECK(Must("$").Find("ab", 2, &span));
  CHECK(span == Span{2, 2});
}

TEST_CASE("regex: the options do what they say") {
  CHECK(Must("STRASSE", {.ignore_case = true}).Matches("strasse"));
  CHECK_FALSE(Must("a.b").Matches("a\nb"));
  CHECK(Must("a.b", {.dot_matches_newline = true}).Matches("a\nb"));
  CHECK_FALSE(Must("^b$").Matches("a\nb\nc"));
  CHECK(Must("^b$", {.multi_line = true}).Matches("a\nb\nc"));
  CHECK(Must("^b$", {.multi_line = true}).pattern() == "^b$");
  CHECK(Must("a.b(", {.literal = true}).Matches("xa.b(x"));
  CHECK_FALSE(Must("a.b", {.literal = true}).Matches("axb"));
  CHECK(Must("^a", {.multi_line = true, .literal = true}).Matches("x^a"));
  CHECK(Must("a.b", {.bytes = true})
            .Matches("a\xFF"
                     "b"));
  CHECK_FALSE(
      Must("a.b").Matches("a\xFF"
                          "b"));
  CHECK(Must("^.$").Matches("\xC3\xA9"));
  CHECK_FALSE(Must("^.$", {.bytes = true}).Matches("\xC3\xA9"));
}

TEST_CASE("regex: NUL and an empty text are text like any other") {
  CHECK(Must("b").Matches(std::string_view("a\0b", 3)));
  CHECK(Must("^$").Matches(std::string_view()));
  Span span;
  CHECK(Must("").Find(std::string_view(), 0, &span));
  CHECK(span == Span{0, 0});
}

TEST_CASE("regex: a bad pattern is an error with the reason") {
  for (const std::string_view pattern :
       {"(", "[a", "a**", "(?=x)", "(?<!x)y", "(a)\\1", "\\", "x{1001}", "\xFF", "[[:nope:]]"}) {
    CAPTURE(pattern);
    const auto regex = Regex::Compile(pattern);
    REQUIRE_FALSE(regex.ok());
    CHECK(regex.error().code == Code::kInvalid);
    CHECK(regex.error().message.starts_with("bad regular expression: "));
  }
}

TEST_CASE("regex: a program or pattern that is too large is refused") {
  CHECK_FALSE(Regex::Compile("((((a{100}){100}){100}){100})").ok());
  CHECK_FALSE(Regex::Compile("(\\pL{500}){500}").ok());
  CHECK_FALSE(Regex::Compile(std::string(300 * 1024, 'a')).ok());
}

TEST_CASE("regex: deep nesting neither crashes nor hangs") {
  const auto nested = Regex::Compile(std::string(100'000, '(') + std::string(100'000, ')'));
  if (nested.ok()) CHECK(nested.value().Matches("x"));
}

TEST_CASE("regex: long lines and hostile patterns take linear time") {
  const std::string line(1'000'000, 'a');
  CHECK_FALSE(Must("(a*)*b").Matches(line));
  CHECK_FALSE(Must("(a|aa)+$b").Matches(line));
  CHECK(Must("^a+$").Matches(line));
}

}  // namespace
}  // namespace norma
