// Which lines match: the fast ways against trying every line alone.
#include "lib/tool/grep_scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace norma;
using namespace norma::tool;

namespace {

const std::vector<std::string> kPatterns = {
    "needle",      "^needle$",   "needle$",  "^",        "$",          "^$",      "",
    "x*",          "\\s+need",   "^\\s*$",   "[^x]*",    "e[^q]*n",    "\\w+",    "\\bne",
    "ne|xx",       "needle|hay", "(?s)x.*e", "\\Aneed",  "dle\\z",     "hay\\n",  "n.*d",
    "(?-m)^ne",    "\\S\\s\\S",  "\\r$",     "dle\\r?$", "(?i)NEEDLE", "[^a-z]$", "\xc3\xa9.",
    "(ne|ha)[ey]", "e{2}",       "\\Bd",     "n\\x65",   ".",          "a|",      "\\n"};

std::vector<Span> Lines(std::string_view text) {
  std::vector<Span> lines;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    lines.push_back({from, end});
    from = end + 1;
  }
  return lines;
}

std::vector<Span> Scan(const LineMatcher& matcher, std::string_view text) {
  std::vector<Span> found;
  matcher.Scan(
      text,
      [&](const Span& line) {
        found.push_back(line);
        return true;
      },
      [] { return false; });
  return found;
}

Regex PlainRegex(const std::string& pattern, bool ignore_case, bool dot) {
  RegexOptions options;
  options.multi_line = true;
  options.ignore_case = ignore_case;
  options.dot_matches_newline = dot;
  return Regex::Compile(pattern, options).value();
}

std::string RandomText(std::mt19937& random) {
  static const std::vector<std::string> kAtoms = {
      "needle",   "hay",  "x",      " ",  "\n", "\n", "\n", "\r\n", "\t",
      "\xc3\xa9", "\xe9", "NEEDLE", "ne", "q",  "1",  "",   "ee",   "\xed\xa0\x80"};
  std::string text;
  for (size_t i = random() % 40; i > 0; --i) text += kAtoms[random() % kAtoms.size()];
  return text;
}

}  // namespace

TEST_CASE("grep scan: equals trying every line alone") {
  std::mt19937 random(11);
  for (const std::string& pattern : kPatterns) {
    for (const bool ignore_case : {false, true}) {
      const auto matcher = LineMatcher::Compile({pattern, ignore_case, false});
      REQUIRE(matcher.ok());
      const Regex regex = PlainRegex(pattern, ignore_case, false);
      for (int round = 0; round < 60; ++round) {
        const std::string text = RandomText(random);
        std::vector<Span> want;
        for (const Span& line : Lines(text)) {
          if (regex.Matches(text.substr(line.begin, line.end - line.begin))) want.push_back(line);
        }
        CAPTURE(pattern);
        CAPTURE(text);
        REQUIRE(Scan(matcher.value(), text) == want);
      }
    }
  }
}

TEST_CASE("grep scan: multiline visits the lines that overlap any match of the whole text") {
  std::mt19937 random(12);
  for (const std::string& pattern : kPatterns) {
    const auto matcher = LineMatcher::Compile({pattern, false, true});
    REQUIRE(matcher.ok());
    const Regex regex = PlainRegex(pattern, false, true);
    for (int round = 0; round < 60; ++round) {
      const std::string text = RandomText(random);
      std::vector<Span> matches;
      Span match;
      for (size_t at = 0; at <= text.size() && regex.Find(text, at, &match);) {
        matches.push_back(match);
        at = match.end > match.begin ? match.end : match.end + 1;
      }
      std::vector<Span> want;
      for (const Span& line : Lines(text)) {
        const bool hit = std::any_of(matches.begin(), matches.end(), [&](const Span& m) {
          return m.begin == m.end ? line.begin <= m.begin && m.begin <= line.end
                                  : line.begin < m.end && m.begin <= line.end;
        });
        if (hit) want.push_back(line);
      }
      CAPTURE(pattern);
      CAPTURE(text);
      REQUIRE(Scan(matcher.value(), text) == want);
    }
  }
}

TEST_CASE("grep scan: patterns that run over line breaks stay linear") {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "line with a needle\n";
  const auto overrun = LineMatcher::Compile({"h[^#]*q|zzz", false, false});
  CHECK(Scan(overrun.value(), text).empty());
  const auto greedy = LineMatcher::Compile({"n[^#]*", false, false});
  CHECK(Scan(greedy.value(), text).size() == 50'000);
  // One huge line with a match at every byte.
  const auto many = LineMatcher::Compile({"a", false, true});
  CHECK(Scan(many.value(), std::string(1 << 20, 'a')).size() == 1);
}

TEST_CASE("grep scan: the visitor and the stop question end it") {
  const std::string text(10'000, '\n');
  const auto matcher = LineMatcher::Compile({"", false, false});
  int seen = 0;
  matcher.value().Scan(
      text, [&](const Span&) { return ++seen < 3; }, [] { return false; });
  CHECK(seen == 3);
  seen = 0;
  matcher.value().Scan(
      text, [&](const Span&) { return ++seen > 0; }, [] { return true; });
  CHECK(seen < 1'000);
}

TEST_CASE("grep scan: a bad expression is an error with the engine's reason") {
  const auto matcher = LineMatcher::Compile({"(", false, false});
  REQUIRE_FALSE(matcher.ok());
  CHECK(matcher.error().message.find("missing") != std::string::npos);
}
