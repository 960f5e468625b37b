// HeadReader and the rules for headers.
#include "lib/io/http_head.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace norma;

namespace {

// Feeds lines; true when the head ended exactly once, at the last line.
bool ReadsTo(const std::vector<std::string>& lines, const HttpHead& want) {
  HeadReader reader;
  for (size_t at = 0; at < lines.size(); ++at) {
    const bool last = at + 1 == lines.size();
    const auto step = reader.Feed(lines[at] + "\r\n");
    if (step != (last ? HeadReader::Step::kHead : HeadReader::Step::kMore)) return false;
  }
  return reader.done() && reader.head().status == want.status &&
         reader.head().headers == want.headers;
}

}  // namespace

TEST_CASE("http head: names in lower case, values trimmed, in order") {
  CHECK(ReadsTo({"HTTP/1.1 200 OK", "Content-Type:  a/b ", "X:1", "x:", "no colon", ""},
                {200, {{"content-type", "a/b"}, {"x", "1"}, {"x", ""}}}));
  CHECK(ReadsTo({"HTTP/2 529", ""}, {529, {}}));
  CHECK(ReadsTo({"HTTP/1.0 404 Not Found", "A: b", "  c", "\td", ""}, {404, {{"a", "b c d"}}}));
}

TEST_CASE("http head: interim heads leave nothing behind") {
  CHECK(ReadsTo({"HTTP/1.1 100 Continue", "X: no", "", "HTTP/1.1 103 Early", "Y: no", "",
                 "HTTP/1.1 200 OK", "Z: yes", ""},
                {200, {{"z", "yes"}}}));
}

TEST_CASE("http head: trailers change nothing, a head without status never ends") {
  HeadReader reader;
  reader.Feed("HTTP/1.1 200 OK\r\n");
  CHECK(reader.Feed("\r\n") == HeadReader::Step::kHead);
  CHECK(reader.Feed("late: 1\r\n") == HeadReader::Step::kMore);
  CHECK(reader.Feed("\r\n") == HeadReader::Step::kMore);
  CHECK(reader.head().headers.empty());
  HeadReader nonsense;
  nonsense.Feed("HTTP/1.1 abc\r\n");
  CHECK(nonsense.Feed("\r\n") == HeadReader::Step::kMore);
  CHECK(!nonsense.done());
}

TEST_CASE("http head: beyond the cap it is refused") {
  HeadReader reader;
  const std::string line = "x: " + std::string(1000, 'a') + "\r\n";
  size_t lines = 0;
  while (reader.Feed(line) != HeadReader::Step::kTooLarge) REQUIRE(++lines < 1000);
  CHECK(lines * line.size() <= HeadReader::kBytesMax);
}

TEST_CASE("http head: what may go out as a header") {
  CHECK(IsHeaderName("x-api-key"));
  for (const char* bad : {"", "a b", "a:", "a\r\n", "ä", "(a)"}) CHECK(!IsHeaderName(bad));
  CHECK(IsHeaderValue("a b\tc; ü"));
  CHECK(IsHeaderValue(""));
  for (const char* bad : {"a\r\nb: c", "a\n", "\x7f", "\x01"}) CHECK(!IsHeaderValue(bad));
}
