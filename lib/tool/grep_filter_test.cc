// Grep's glob and type fields.
#include "lib/tool/grep_filter.h"

#include <doctest/doctest.h>

using namespace norma::tool;

TEST_CASE("grep filter: globs are path globs, a leading ! leaves out") {
  CHECK(GrepFilter("", "").Takes("a/b"));
  CHECK(GrepFilter("*.txt", "").Takes("a/b.txt"));
  CHECK_FALSE(GrepFilter("*.txt", "").Takes("a/b.md"));
  CHECK(GrepFilter("src/**/*.{ts,tsx}", "").Takes("src/a/b.tsx"));
  CHECK(GrepFilter("/x.c", "").Takes("x.c"));
  CHECK_FALSE(GrepFilter("/x.c", "").Takes("a/x.c"));
  CHECK_FALSE(GrepFilter("!*.txt", "").Takes("a/b.txt"));
  CHECK(GrepFilter("!*.txt", "").Takes("a/b.md"));
  CHECK_FALSE(GrepFilter("[z-", "").problem().empty());
}

TEST_CASE("grep filter: types by any of their names and in any case, unknown ones as extension") {
  CHECK(GrepFilter("", "py").Takes("a/b.pyi"));
  CHECK(GrepFilter("", "Python").Takes("b.py"));
  CHECK(GrepFilter("", "cpp").Takes("b.h"));
  CHECK_FALSE(GrepFilter("", "c").Takes("b.hpp"));
  CHECK(GrepFilter("", "xyz").Takes("a/b.xyz"));
  CHECK_FALSE(GrepFilter("src/*", "go").Takes("src/a.py"));
  CHECK_FALSE(GrepFilter("src/*", "go").Takes("lib/a.go"));
}
