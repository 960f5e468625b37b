// SseReader: the event-stream grammar, at every cut.
#include "lib/llm/sse.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace norma;
using namespace norma::llm;

namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events ReadAll(const std::vector<std::string_view>& pieces) {
  Events events;
  SseReader reader([&](std::string_view name, std::string_view data) {
    events.emplace_back(name, data);
    return Status();
  });
  for (const std::string_view piece : pieces) CHECK(reader.Feed(piece).ok());
  CHECK(reader.End().ok());
  return events;
}

struct Case {
  std::string_view what;
  std::string_view stream;
  Events want;
};

const std::vector<Case> kCases = {
    {"LF", "event: a\ndata: 1\n\ndata: 2\n\n", {{"a", "1"}, {"", "2"}}},
    {"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", {{"a", "1"}, {"", "2"}}},
    {"CR", "event: a\rdata: 1\r\rdata: 2\r\r", {{"a", "1"}, {"", "2"}}},
    {"mixed ends",
     "event: a\r\ndata: 1\n\r\ndata: 2\r\n\rdata: 3\n\n",
     {{"a", "1"}, {"", "2"}, {"", "3"}}},
    {"BOM at the start only",
     "\xEF\xBB\xBF"
     "data: 1\n\n\xEF\xBB\xBF"
     "data: 2\n\ndata: 3\n\n",
     {{"", "1"}, {"", "3"}}},
    {"no blank after the colon", "data:x\n\ndata:  y\n\n", {{"", "x"}, {"", " y"}}},
    {"several data lines", "data: a\r\ndata: b\r\n\r\n", {{"", "a\nb"}}},
    {"an empty data line counts", "data: a\ndata\ndata: b\n\n", {{"", "a\n\nb"}}},
    {"comments and unknown fields",
     ": hi\nid: 7\nretry: 1\nfoo\ndata: x\n: there\n\n",
     {{"", "x"}}},
    {"keep-alives dispatch nothing", ": ping\n\n\n\n:\n\n", {}},
    {"a name without data is an event", "event: ping\n\n", {{"ping", ""}}},
    {"empty data without a name is none", "data:\n\ndata\n\n", {}},
    {"the name is trimmed", "event:  a \t\ndata: 1\n\n", {{"a", "1"}}},
    {"the last name counts and is reset",
     "event: a\nevent: b\ndata: 1\n\ndata: 2\n\n",
     {{"b", "1"}, {"", "2"}}},
    {"no final blank line", "data: 1\n\nevent: b\ndata: 2\n", {{"", "1"}, {"b", "2"}}},
    {"no final line end", "data: 1\n\ndata: 2", {{"", "1"}, {"", "2"}}},
    {"unicode line ends are text",
     "data: a\xE2\x80\xA8"
     "b\xE2\x80\xA9"
     "c\xC2\x85"
     "d\n\n",
     {{"",
       "a\xE2\x80\xA8"
       "b\xE2\x80\xA9"
       "c\xC2\x85"
       "d"}}},
    {"a multi-byte character", "data: \xF0\x9F\x98\x80\n\n", {{"", "\xF0\x9F\x98\x80"}}},
    {"colons in the value", "data: a: b:c\n\n", {{"", "a: b:c"}}},
    {"nothing", "", {}},
};

}  // namespace

TEST_CASE("sse: the grammar, whole") {
  for (const Case& c : kCases) {
    CAPTURE(c.what);
    CHECK(ReadAll({c.stream}) == c.want);
  }
}

TEST_CASE("sse: the same events whatever the chunks") {
  for (const Case& c : kCases) {
    CAPTURE(c.what);
    for (size_t cut = 0; cut <= c.stream.size(); ++cut) {
      CAPTURE(cut);
      CHECK(ReadAll({c.stream.substr(0, cut), c.stream.substr(cut)}) == c.want);
    }
    std::vector<std::string_view> bytes;
    for (size_t at = 0; at < c.stream.size(); ++at) bytes.push_back(c.stream.substr(at, 1));
    CHECK(ReadAll(bytes) == c.want);
  }
}

TEST_CASE("sse: a line beyond the cap is an error, not memory") {
  SseReader reader([](std::string_view, std::string_view) { return Status(); });
  const std::string chunk(1u << 20, 'x');
  Status status = reader.Feed("data: ");
  size_t fed = 0;
  while (status.ok() && fed < SseReader::kEventBytesMax * 2) {
    status = reader.Feed(chunk);
    fed += chunk.size();
  }
  REQUIRE(!status.ok());
  CHECK(status.error().code == Code::kModel);
  CHECK(fed <= SseReader::kEventBytesMax + chunk.size());
}

TEST_CASE("sse: an event of many lines beyond the cap is an error") {
  SseReader reader([](std::string_view, std::string_view) { return Status(); });
  const std::string line = "data: " + std::string(1u << 20, 'x') + "\n";
  Status status;
  size_t fed = 0;
  while (status.ok() && fed < SseReader::kEventBytesMax * 2) {
    status = reader.Feed(line);
    fed += line.size();
  }
  CHECK(!status.ok());
}

TEST_CASE("sse: an error from the callback ends the feed") {
  int calls = 0;
  SseReader reader([&](std::string_view, std::string_view) -> Status {
    ++calls;
    return Error{Code::kModel, "enough"};
  });
  const Status status = reader.Feed("data: 1\n\ndata: 2\n\n");
  REQUIRE(!status.ok());
  CHECK(status.error() == Error{Code::kModel, "enough"});
  CHECK(calls == 1);
}
