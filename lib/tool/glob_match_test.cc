// Table tests of the glob matcher.
#include "lib/tool/glob_match.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace norma::tool;

namespace {

struct Row {
  const char* pattern;
  const char* path;
  bool matches;
};

void CheckRows(const std::vector<Row>& rows, const GlobOptions& options = {}) {
  for (const Row& row : rows) {
    CAPTURE(row.pattern);
    CAPTURE(row.path);
    CHECK(PathGlob::Compile(row.pattern, options).Matches(row.path) == row.matches);
  }
}

}  // namespace

TEST_CASE("glob: a pattern without a slash meets the base name at any depth") {
  CheckRows({{"*.go", "a/b/x.go", true},
             {"*.go", "x.go", true},
             {"*.go", "x.go/y", false},
             {"x.go", "a/x.go", true},
             {"*", ".hidden", true},
             {"x*y*z", "a/x1y2z", true},
             {"x*y*z", "a/x1y2", false},
             {"??", "a/bc", true},
             {"?", "\xc3\xa9", true},
             {"?", "\xe9", true},
             {"", "a", false}});
}

TEST_CASE("glob: a pattern with a slash is anchored at the root") {
  CheckRows({{"src/*.go", "src/a/x.go", false},
             {"src/*.go", "src/x.go", true},
             {"./src/*.go", "src/x.go", true},
             {"src//x.go", "src/x.go", true},
             {"src/", "src", false},
             {"*/x.go", "a/x.go", true},
             {"*/x.go", "a/b/x.go", false}});
}

TEST_CASE("glob: a double star stands for any number of segments, none included") {
  CheckRows({{"**/*.go", "x.go", true},
             {"**/*.go", "a/b/x.go", true},
             {"a/**/b", "a/b", true},
             {"a/**/b", "a/x/y/b", true},
             {"a/**/b", "a/x/y/c", false},
             {"a/**/**/b", "a/b", true},
             {"a/**", "a", true},
             {"a/**", "a/b/c", true},
             {"a/**", "b/a/c", false},
             {"**/dir/**", "x/dir/y", true},
             {"**/m/**/m/x", "m/1/m/2/m/x", true},
             {"a**b", "a/b", false},
             {"a**b", "axxb", true}});
  GlobOptions ignore;
  ignore.deep_tail = true;
  CheckRows({{"a/**", "a", false}, {"a/**", "a/b", true}, {"a/**/b", "a/b", true}}, ignore);
}

TEST_CASE("glob: classes, ranges, negation and escapes") {
  CheckRows({{"[abc].c", "b.c", true},
             {"[a-c].c", "d.c", false},
             {"[!a-c].c", "d.c", true},
             {"[^a-c].c", "a.c", false},
             {"[]x]", "]", true},
             {"[a-]", "-", true},
             {"[\\]]", "]", true},
             {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true},
             {"\\*.c", "*.c", true},
             {"\\*.c", "a.c", false},
             {"a\\[b", "a[b", true}});
}

TEST_CASE("glob: braces are alternatives, and still match themselves") {
  CheckRows({{"*.{ts,tsx}", "a/x.tsx", true},
             {"*.{ts,tsx}", "a/x.js", false},
             {"{a,b/{c,d}}/x", "b/d/x", true},
             {"{a,b/{c,d}}/x", "b/x", false},
             {"{a}", "{a}", true},
             {"{a,b", "{a,b", true},
             {"x{,.bak}", "x", true},
             {"x{,.bak}", "x.bak", true}});
  GlobOptions plain;
  plain.braces = false;
  CheckRows({{"{a,b}", "a", false}, {"{a,b}", "{a,b}", true}}, plain);
}

TEST_CASE("glob: a malformed pattern matches nothing and says why") {
  for (const char* pattern : {"[z-", "[", "[a", "a\\", "src/[", ""}) {
    CAPTURE(pattern);
    const PathGlob glob = PathGlob::Compile(pattern);
    CHECK_FALSE(glob.problem().empty());
    CHECK_FALSE(glob.Matches("[z-"));
    CHECK_FALSE(glob.Matches("z"));
  }
}

TEST_CASE("glob: hostile patterns stay cheap") {
  std::string pattern, path, stars;
  for (int i = 0; i < 200; ++i) {
    pattern += "**/a/";
    path += "a/";
    stars += "*a";
  }
  CHECK_FALSE(PathGlob::Compile(pattern + "b").Matches(path + "c"));
  CHECK_FALSE(PathGlob::Compile(stars + "b").Matches(std::string(5000, 'a')));
  std::string braces;
  for (int i = 0; i < 40; ++i) braces += "{a,b}";
  CHECK(PathGlob::Compile(braces).Matches(braces));  // too many: taken as plain characters
}
