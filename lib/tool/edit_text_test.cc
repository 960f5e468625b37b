// The text half of Edit: a table, and a property over random texts.
#include "lib/tool/edit_text.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "lib/base/text.h"

using namespace norma;
using namespace norma::tool;

namespace {

constexpr size_t kMax = 1 << 20;

std::string Edited(std::string_view text, const TextEdit& edit) {
  const auto result = ApplyEdit(text, edit, kMax);
  return result.ok() ? result.value().text : "error: " + result.error().message;
}

bool Refused(std::string_view text, const TextEdit& edit, std::string_view word) {
  const auto result = ApplyEdit(text, edit, kMax);
  return !result.ok() && result.error().message.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("edit: bytes outside the place stay as they are") {
  struct Row {
    std::string text, old_text, new_text, want;
  };
  const std::vector<Row> rows = {
      {"one\r\ntwo\r\nthree\r\n", "two", "2", "one\r\n2\r\nthree\r\n"},
      {"\xef\xbb\xbf"
       "alpha\nbeta",
       "beta", "B",
       "\xef\xbb\xbf"
       "alpha\nB"},
      {"a\r\nb\nc\rd\n\n", "b", "BB", "a\r\nBB\nc\rd\n\n"},
      {"\xff\xfe x \x80 y\n", " x ", " z ", "\xff\xfe z \x80 y\n"},
      {"aaa", "aa", "b", "ba"},
      {std::string("a\0b", 3), "b", "c", std::string("a\0c", 3)},
      {"no newline", "newline", "end", "no end"},
      {"", "", "new", "new"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(Edited(row.text, {row.old_text, row.new_text, false}) == row.want);
  }
}

TEST_CASE("edit: LF text matches a CRLF file and takes over its breaks") {
  struct Row {
    std::string text, old_text, new_text, want;
  };
  const std::vector<Row> rows = {
      {"l1\r\nl2\r\nl3", "l1\nl2", "m1\nm2", "m1\r\nm2\r\nl3"},
      {"a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"},
      {"a\r\nb", "b", "b\nc", "a\r\nb\r\nc"},
      {"a\r\n\r\nb\r\n", "\nb", "\nc", "a\r\n\r\nc\r\n"},
      {"a\r\nb\r\n", "\nb", "", "a\r\n"},
      {"a\r\nb\nc\r\nd\n", "c", "x\ny", "a\r\nb\nx\r\ny\r\nd\n"},
      {"a\r\nb\nc\r\nd\n", "b", "x\ny", "a\r\nx\ny\nc\r\nd\n"},
      {"a\nb\n", "a\nb", "x\ny", "x\ny\n"},
      {"a\r\nb\nc\r\n", "a\nb\nc", "x\ny", "x\r\ny\r\n"},
      // A CR that is spelled out is meant.
      {"a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"},
      {"a\nb\n", "a\nb", "a\r\nb", "a\r\nb\n"},
      {"a\rb", "a", "x\ny", "x\ny\rb"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CAPTURE(row.old_text);
    CHECK(Edited(row.text, {row.old_text, row.new_text, false}) == row.want);
  }
  CHECK(Edited("a\r\nb\r\na\r\nb\r\n", {"a\nb", "x\ny\nz", true}) ==
        "x\r\ny\r\nz\r\nx\r\ny\r\nz\r\n");
}

TEST_CASE("edit: not found, not unique, nothing to do") {
  CHECK(Refused("x x", {"x", "y", false}, "2 matches"));
  CHECK(Refused("x x", {"x", "x", false}, "same"));
  CHECK(Refused("x x", {"gone", "y", false}, "not found"));
  CHECK(Refused("ab", {"", "y", false}, "3 matches"));
  CHECK(Refused("a\r\nb\r\na\r\nb", {"a\nb", "y", false}, "2 matches"));
  CHECK(Refused("a\rb", {"a\nb", "y", false}, "not found"));
  CHECK(Edited("x x", {"x", "yy", true}) == "yy yy");
  CHECK(Edited("\xc3\xa9z", {"", "-", true}) == "-\xc3\xa9-z-");
  CHECK(Edited("abc", {"b", "", false}) == "ac");
}

TEST_CASE("edit: a result over the limit is refused before it is built") {
  const std::string text(1000, 'a');
  CHECK_FALSE(ApplyEdit(text, {"a", std::string(1000, 'b'), true}, 10'000).ok());
  CHECK(ApplyEdit(text, {"a", "b", true}, 1000).ok());
}

TEST_CASE("edit: prefix and suffix survive any edit of any text") {
  std::mt19937 random(7);
  const std::vector<std::string> atoms = {"a",  "b",    "\n",   "\r\n",         "\r", " ",
                                          "\t", "\xff", "\x80", "\xef\xbb\xbf", "é",  "xyz"};
  const auto text = [&](size_t length) {
    std::string out;
    for (size_t i = 0; i < length; ++i) out += atoms[random() % atoms.size()];
    return out;
  };
  for (int round = 0; round < 3000; ++round) {
    const std::string prefix = text(random() % 12), suffix = text(random() % 12);
    const std::string mark = "<#" + text(random() % 4) + "#>", fresh = text(random() % 6);
    std::string spelled = mark;  // the model may write LF for every break
    if (random() % 2 == 0) spelled = ReplaceAll(spelled, "\r\n", "\n");
    if (spelled == fresh) continue;
    const auto result = ApplyEdit(prefix + mark + suffix, {spelled, fresh, false}, kMax);
    if (!result.ok()) {
      // Only a CR of its own beside the break keeps an LF spelling from matching.
      CHECK(spelled.find('\r') != std::string::npos);
      continue;
    }
    const std::string& got = result.value().text;
    REQUIRE(got.size() >= prefix.size() + suffix.size());
    CHECK(got.substr(0, prefix.size()) == prefix);
    CHECK(got.substr(got.size() - suffix.size()) == suffix);
    std::string middle = got.substr(prefix.size(), got.size() - prefix.size() - suffix.size());
    if (middle != fresh) {
      middle = ReplaceAll(middle, "\r\n", "\n");
      CHECK(middle == fresh);
    }
  }
}
