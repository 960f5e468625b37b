// .gitignore rules as git documents them.
#include "lib/tool/gitignore.h"

#include <doctest/doctest.h>

#include <string>

using namespace norma::tool;

namespace {

using Verdict = IgnoreFile::Verdict;

bool Ignored(const char* rules, const char* path, bool is_folder = false) {
  return IgnoreFile::Parse(rules).Check(path, is_folder) == Verdict::kIgnored;
}

}  // namespace

TEST_CASE("gitignore: names, extensions and anchors") {
  CHECK(Ignored("*.log\n", "a/b/x.log"));
  CHECK(Ignored("build\n", "a/build"));
  CHECK_FALSE(Ignored("/build\n", "a/build"));
  CHECK(Ignored("/build\n", "build"));
  CHECK_FALSE(Ignored("doc/x\n", "a/doc/x"));
  CHECK(Ignored("doc/x\n", "doc/x"));
  CHECK(Ignored("**/doc/x\n", "a/doc/x"));
  CHECK(Ignored("a/**/z\n", "a/z"));
  CHECK(Ignored("a/**\n", "a/b"));
  CHECK_FALSE(Ignored("a/**\n", "a", true));
  CHECK_FALSE(Ignored("{a,b}\n", "a"));
}

TEST_CASE("gitignore: a trailing slash means folders only") {
  CHECK(Ignored("out/\n", "x/out", true));
  CHECK_FALSE(Ignored("out/\n", "x/out", false));
  CHECK_FALSE(Ignored("a/out/\n", "b/a/out", true));
}

TEST_CASE("gitignore: the last matching line decides, negation brings back") {
  CHECK_FALSE(Ignored("*.log\n!keep.log\n", "keep.log"));
  CHECK(Ignored("!keep.log\n*.log\n", "keep.log"));
  CHECK(IgnoreFile::Parse("*.log\n").Check("x.txt", false) == Verdict::kSilent);
  CHECK(IgnoreFile::Parse("!x\n").Check("x", false) == Verdict::kKept);
}

TEST_CASE("gitignore: comments, escapes, blanks, CR and BOM") {
  CHECK_FALSE(Ignored("# x\n", "# x"));
  CHECK(Ignored("\\#x\n", "#x"));
  CHECK(Ignored("\\!x\n", "!x"));
  CHECK(Ignored("x   \n", "x"));
  CHECK(Ignored("x\\ \n", "x "));
  CHECK(Ignored("x\r\n", "x"));
  CHECK(Ignored("\xef\xbb\xbfx\n", "x"));
  CHECK(Ignored("x", "x"));
  CHECK(IgnoreFile::Parse("\n \n#\n!\n/\n[\n").empty());
}

TEST_CASE("gitignore: a deeper file beats a shallower one") {
  auto outer = std::make_shared<IgnoreLevel>();
  outer->file = IgnoreFile::Parse("*.log\n/top\n");
  IgnoreLevel inner{outer, "src", IgnoreFile::Parse("!x.log\n/only\n")};
  CHECK_FALSE(IsIgnored(&inner, "src/x.log", false));
  CHECK(IsIgnored(&inner, "src/y.log", false));
  CHECK(IsIgnored(&inner, "src/only", false));
  CHECK_FALSE(IsIgnored(&inner, "src/a/only", false));
  CHECK(IsIgnored(outer.get(), "top", true));
  CHECK_FALSE(IsIgnored(&inner, "src/top", true));
  CHECK_FALSE(IsIgnored(nullptr, "x", false));
}
