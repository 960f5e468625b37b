// What may be concluded from a pattern without running it.
#include "lib/tool/grep_literals.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace norma::tool;

TEST_CASE("grep texts: what every match must hold") {
  struct Row {
    const char* pattern;
    std::vector<std::string> any_of;
    bool exact;
  };
  const std::vector<Row> rows = {
      {"needle", {"needle"}, true},
      {"-dash", {"-dash"}, true},
      {"a\\.b\\(", {"a.b("}, true},
      {"(foo)bar", {"foobar"}, true},
      {"^needle$", {"needle"}, false},
      {"\\bfoo\\b", {"foo"}, false},
      {"foo.*barbaz", {"barbaz"}, false},
      {"foo|bar", {"foo", "bar"}, false},
      {"x(?:foo|barr)y", {"foo", "barr"}, false},
      {"foo|.*", {}, false},
      {"foo|b", {}, false},
      {"fo+o", {"fo"}, false},
      {"ab+cde", {"bcde"}, false},
      {"abc?", {"ab"}, false},
      {"abc*def", {"def"}, false},
      {"ab(cd)*", {"ab"}, false},
      {"(abc){0,3}de", {"de"}, false},
      {"(abc){2}d", {"abcd"}, false},
      {"(abc)+?d", {"abcd"}, false},
      {"a{b}c", {"a{b}c"}, true},
      {"[abc]def", {"def"}, false},
      {"[]x]def", {"def"}, false},
      {"[^]x]def", {"def"}, false},
      {"[[:alpha:]]def", {"def"}, false},
      {"[\\]]def", {"def"}, false},
      {"foo\\nbarr", {"barr"}, false},
      {"foo\nbarr", {"barr"}, false},
      {"foo\\s+bars", {"bars"}, false},
      {"(?P<name>foo)", {"foo"}, true},
      {"na\xc3\xafve", {"na\xc3\xafve"}, true},
      {"xx\xc3\xa9*", {"xx"}, false},
      {"(?i)foo", {}, false},
      {"foo(?i:bar)", {}, false},
      {"\\Qfoo\\E", {}, false},
      {"\\x41bc", {}, false},
      {"\\pLfoo", {}, false},
      {"a", {}, false},
      {"", {}, false},
      {".", {}, false},
      {"()", {}, false},
      {"(foo", {}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.pattern);
    const RequiredTexts got = FindRequiredTexts(row.pattern, false);
    CHECK(got.any_of == row.any_of);
    CHECK(got.exact == row.exact);
  }
}

TEST_CASE(
    "grep texts: letters with case variants outside ASCII prove nothing when case is ignored") {
  CHECK(FindRequiredTexts("needle", true).any_of == std::vector<std::string>{"needle"});
  CHECK_FALSE(FindRequiredTexts("needle", true).exact);
  CHECK(FindRequiredTexts("task force", true).any_of == std::vector<std::string>{" force"});
  CHECK(FindRequiredTexts("\xc3\xa9t\xc3\xa9", true).any_of.empty());
}

TEST_CASE("grep texts: deep nesting is given up, not followed") {
  const std::string deep = std::string(5000, '(') + "foo" + std::string(5000, ')');
  CHECK(FindRequiredTexts(deep, false).any_of.empty());
}
