// What Grep's content looks like, and its pages.
#include "lib/tool/grep_format.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace norma;
using namespace norma::tool;

namespace {

// Lines that hold "m" are the matches.
std::string Format(const std::string& text, const ContentStyle& style, uint64_t* count = nullptr,
                   uint64_t offset = 0, uint64_t limit = 0) {
  Page page(offset, limit);
  ContentEmitter shown("f", text, style, &page, 0);
  ContentEmitter counted("f", text, style, nullptr, 0);
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    if (text.substr(from, end - from).find('m') != std::string::npos) {
      shown.Match({from, end});
      counted.Match({from, end});
    }
    from = end + 1;
  }
  shown.Finish();
  counted.Finish();
  CHECK(shown.count() == counted.count());
  if (count != nullptr) *count = counted.count();
  return page.text();
}

// The same, written the slow and plain way.
std::string Plain(const std::string& text, uint64_t before, uint64_t after) {
  std::vector<std::string> lines;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  std::string out;
  size_t last = 0;  // number of the last line shown
  for (size_t i = 0; i < lines.size(); ++i) {
    bool near = false;
    for (size_t j = 0; j < lines.size(); ++j) {
      const bool match = lines[j].find('m') != std::string::npos;
      near = near || (match && (j >= i ? j - i <= before : i - j <= after));
    }
    if (!near) continue;
    if (!out.empty()) out += '\n';
    if (last > 0 && last != i && before + after > 0) out += "--\n";
    const char mark = lines[i].find('m') != std::string::npos ? ':' : '-';
    out += "f" + std::string(1, mark) + std::to_string(i + 1) + mark + lines[i];
    last = i + 1;
  }
  return out;
}

}  // namespace

TEST_CASE("grep format: matches, context and separators") {
  const std::string text = "a\nb\nm1\nc\nd\ne\nf\nm2\nm3";
  CHECK(Format(text, {}) == "f:3:m1\nf:8:m2\nf:9:m3");
  CHECK(Format(text, {false, 0, 0}) == "f:m1\nf:m2\nf:m3");
  CHECK(Format(text, {true, 1, 1}) == "f-2-b\nf:3:m1\nf-4-c\n--\nf-7-f\nf:8:m2\nf:9:m3");
  CHECK(Format(text, {false, 1, 0}) == "f-b\nf:m1\n--\nf-f\nf:m2\nf:m3");
  CHECK(Format(text, {true, 2, 2}) ==
        "f-1-a\nf-2-b\nf:3:m1\nf-4-c\nf-5-d\nf-6-e\nf-7-f\nf:8:m2\nf:9:m3");
  CHECK(Format("m\r\nx\n", {}) == "f:1:m\r");
  CHECK(Format("m \xe9\n", {}) == "f:1:m \xef\xbf\xbd");
}

TEST_CASE("grep format: equals the plain definition for random texts") {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (size_t i = random() % 30; i > 0; --i) {
      text += random() % 4 == 0 ? "m" : (random() % 5 == 0 ? "" : "x");
      if (i > 1 || random() % 2 == 0) text += '\n';
    }
    const uint64_t before = random() % 4, after = random() % 4;
    CAPTURE(text);
    CAPTURE(before);
    CAPTURE(after);
    REQUIRE(Format(text, {true, before, after}) == Plain(text, before, after));
  }
}

TEST_CASE("grep format: pages follow each other without gap or overlap") {
  const std::string text = "m1\nx\nm2\nx\nx\nx\nm3\nm4\n";
  const ContentStyle style{true, 1, 1};
  uint64_t total = 0;
  const std::string whole = Format(text, style, &total);
  std::string joined;
  for (uint64_t offset = 0; offset < total; offset += 3) {
    joined += (joined.empty() ? "" : "\n") + Format(text, style, nullptr, offset, 3);
  }
  CHECK(joined == whole);
}

TEST_CASE("grep format: the note names what is left") {
  Page page(2, 2);
  for (uint64_t i = 0; i < 5; ++i) page.Add(i, std::to_string(i));
  CHECK(page.text() == "2\n3");
  CHECK(page.Note(5) == "[1 more line; continue with offset 4]");
  CHECK(page.Note(4) == "");
  CHECK(page.Note(9) == "[5 more lines; continue with offset 4]");
  CHECK(Page(9, 2).Note(5) == "[no output: offset 9 is behind the last of 5 lines]");
  CHECK(Page(0, 2).Note(0) == "");
  Page open(1, 0);
  CHECK(open.Reaches(0, 2));
  CHECK_FALSE(open.Reaches(0, 1));
  CHECK(open.Reaches(1'000'000, 1));
  CHECK_FALSE(Page(0, 2).Reaches(2, 1));
}
