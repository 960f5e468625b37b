// Cassettes, and the transports that write and play them.
#include "lib/io/cassette.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/io/files.h"
#include "lib/io/record_transport.h"
#include "lib/io/replay_transport.h"
#include "lib/testing/hand_clock.h"
#include "lib/testing/scripted_transport.h"
#include "lib/testing/temp_dir.h"

using namespace norma;
using namespace std::chrono_literals;
using norma::testing::HandClock;
using norma::testing::ScriptedExchange;
using norma::testing::ScriptedTransport;
using norma::testing::TempDir;

namespace {

const Redact kRedact = [](std::string_view text) {
  return ReplaceAll(text, "canary", "[redacted:KEY]");
};

HttpRequest Request(std::string_view body = R"({"a": 1, "b": [1.10, "x"]})") {
  HttpRequest request;
  request.url = "https://user:canary@api.example.com:8443/v1/messages?key=canary2&beta=true#f";
  request.headers = {{"x-api-key", "canary"},
                     {"Content-Type", "application/json"},
                     {"accept", "text/event-stream"},
                     {"authorization", "Bearer canary"}};
  request.body = body;
  return request;
}

struct Sink : HttpSink {
  void OnHead(const HttpHead& got) override { head = got; }
  Progress OnBytes(std::string_view bytes) override {
    body += bytes;
    return body.size() >= stop_at ? Progress::kStop : Progress::kEvent;
  }
  HttpHead head;
  std::string body;
  size_t stop_at = std::string::npos;
};

HttpOutcome Send(Transport& transport, const HttpRequest& request, Sink& sink) {
  const Cancel cancel;
  return transport.Send(request, sink, cancel, {});
}

// Records these exchanges for these bodies; gives the outcomes.
std::vector<HttpOutcome> Record(const std::string& folder, std::vector<ScriptedExchange> script,
                                const std::vector<std::string>& bodies) {
  HandClock clock;
  ScriptedTransport inner(clock, std::move(script));
  auto recording = Recording::Open(folder, kRedact);
  REQUIRE(recording.ok());
  const auto transport = NewRecordTransport(inner, *recording.value());
  std::vector<HttpOutcome> outcomes;
  for (const std::string& body : bodies) {
    Sink sink;
    outcomes.push_back(Send(*transport, Request(body), sink));
  }
  return outcomes;
}

json::Document Parsed(const std::string& text) {
  return json::Document::Parse(text).value();
}

}  // namespace

TEST_CASE("cassette: the canonical request holds what matters and no credential") {
  CHECK(CanonicalRequest(Request(), kRedact) ==
        R"({"method":"POST","url":"https://api.example.com:8443/v1/messages?key=***&beta=true",)"
        R"("headers":{"accept":"text/event-stream","content-type":"application/json"},)"
        R"("body":{"a":1,"b":[1.10,"x"]}})");
  CHECK(CanonicalRequest(Request("say canary"), kRedact)
            .find(R"("body_text":"say [redacted:KEY]")") != std::string::npos);
  CHECK(CanonicalRequest(Request("\xff\xfe"), kRedact).find("\"body_sha256\":\"") !=
        std::string::npos);
  // Another key, another user and another order of headers are the same request.
  HttpRequest other = Request();
  other.headers = {{"accept", "text/event-stream"}, {"content-type", "application/json"}};
  other.url = "https://api.example.com:8443/v1/messages?key=zzz&beta=true";
  CHECK(CanonicalRequest(other, kRedact) == CanonicalRequest(Request(), kRedact));
}

TEST_CASE("cassette: names sort as they were recorded, and say what they are") {
  CHECK(CassetteName(1, "POST", "https://u:p@api.example.com/v1/messages?k=v") ==
        "001-post-api.example.com-v1-messages");
  CHECK(CassetteName(1234, "GET", "http://127.0.0.1:80/") == "1234-get-127.0.0.1-80");
  CHECK(CassetteName(7, "POST", "https://h/" + std::string(300, 'a')).size() < 80);
  CHECK(CassetteNumber("001-x") == 1);
  CHECK(CassetteNumber("1234-x") == 1234);
  for (const char* other : {"", "x", "1-x", "000-x", "01a-x", "-01-x"}) {
    CHECK(CassetteNumber(other) == 0);
  }
}

TEST_CASE("recording: two files an exchange, readable, private and without secrets") {
  const TempDir temp;
  const std::string folder = temp / "deep/tapes";
  ScriptedExchange exchange;
  exchange.headers = {{"content-type", "text/event-stream"},
                      {"request-id", "req_canary"},
                      {"set-cookie", "session=1"},
                      {"date", "today"}};
  exchange.chunks = {"data: can", "ary\n\n"};
  Record(folder, {exchange}, {R"({"a":"canary"})"});
  const std::string stem = folder + "/001-post-api.example.com-8443-v1-messages";
  const std::string want =
      "{\n  \"norma_cassette\": 1,\n  \"key\": \"" +
      Sha256Hex(CanonicalRequest(Request(R"({"a":"canary"})"), kRedact)) +
      "\",\n  \"request\": {\n    \"method\": \"POST\",\n    \"url\": "
      "\"https://api.example.com:8443/v1/messages?key=***&beta=true\",\n    \"headers\": {\n      "
      "\"accept\": \"text/event-stream\",\n      \"content-type\": \"application/json\"\n    },\n"
      "    \"body\": {\n      \"a\": \"[redacted:KEY]\"\n    }\n  },\n  \"response\": {\n    "
      "\"status\": 200,\n    \"headers\": [\n      [\n        \"content-type\",\n        "
      "\"text/event-stream\"\n      ],\n      [\n        \"request-id\",\n        "
      "\"req_[redacted:KEY]\"\n      ]\n    ],\n    \"body_file\": "
      "\"001-post-api.example.com-8443-v1-messages.body\"\n  }\n}\n";
  CHECK(ReadRegularFile(stem + ".json", 1 << 20).value() == want);
  CHECK(ReadRegularFile(stem + ".body", 1 << 20).value() == "data: [redacted:KEY]\n\n");
  struct stat status {};
  REQUIRE(stat((stem + ".json").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE(stat(folder.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  // A second recording goes on behind the first.
  Record(folder, {exchange}, {"{}"});
  CHECK(CassetteNames(folder).value().back().substr(0, 4) == "002-");
}

TEST_CASE("recording: a folder that cannot be written is an error before anything is sent") {
  const TempDir temp;
  const std::string file = temp.Write("file", "x");
  for (const std::string& folder : {file, file + "/below", std::string("/proc/nothing")}) {
    CAPTURE(folder);
    const auto recording = Recording::Open(folder, kRedact);
    REQUIRE(!recording.ok());
    CHECK(recording.error().code == Code::kIo);
    CHECK(recording.error().message.find("cannot write recordings to " + folder) == 0);
  }
}

TEST_CASE("recording: an exchange that cannot be written ends by that name") {
  const TempDir temp;
  HandClock clock;
  ScriptedExchange exchange;
  exchange.chunks = {"data: x\n\n"};
  ScriptedTransport inner(clock, {exchange});
  auto recording = Recording::Open(temp / "t", kRedact);
  REQUIRE(recording.ok());
  REQUIRE(rmdir((temp / "t").c_str()) == 0);
  const auto transport = NewRecordTransport(inner, *recording.value());
  Sink sink;
  const HttpOutcome outcome = Send(*transport, Request(), sink);
  REQUIRE(outcome.error);
  CHECK(outcome.error->failure == HttpFailure::kRecord);
  CHECK(outcome.error->permanent);
}

TEST_CASE("replay: what was recorded comes back: whole, refused, cut and without an answer") {
  const TempDir temp;
  ScriptedExchange whole, refused, cut, none;
  whole.chunks = {std::string(40'000, 'w'), "end"};
  refused.status = 429;
  refused.headers = {{"retry-after", "7"}};
  refused.chunks = {"slow down"};
  cut.chunks = {"half"};
  cut.error = HttpError{HttpFailure::kBroken, "it broke", false};
  none.status = 0;
  none.error = HttpError{HttpFailure::kTls, "no trust", true};
  Record(temp.path(), {whole, refused, cut, none}, {"{}", "{}", "{}", "[]"});

  HandClock clock;
  auto tape = ReplayTape::Open(temp.path(), kRedact);
  REQUIRE(tape.ok());
  const auto transport = NewReplayTransport(*tape.value(), clock);
  Sink first, second, third, fourth;
  const HttpOutcome one = Send(*transport, Request("{}"), first);
  CHECK(!one.error);
  CHECK(one.head.status == 200);
  CHECK(first.body == std::string(40'000, 'w') + "end");
  // The other request is not in the way of the order of these.
  const HttpOutcome four = Send(*transport, Request("[]"), fourth);
  REQUIRE(four.error);
  CHECK(four.error->failure == HttpFailure::kTls);
  CHECK(four.error->permanent);
  CHECK(four.head.status == 0);
  const HttpOutcome two = Send(*transport, Request("{}"), second);
  CHECK(!two.error);
  CHECK(two.head.status == 429);
  CHECK(second.head.Find("retry-after") == "7");
  CHECK(second.body == "slow down");
  const HttpOutcome three = Send(*transport, Request("{}"), third);
  REQUIRE(three.error);
  CHECK(three.error->failure == HttpFailure::kBroken);
  CHECK(three.error->message == "it broke");
  CHECK(third.body == "half");
  Sink last;
  const HttpOutcome over = Send(*transport, Request("{}"), last);
  REQUIRE(over.error);
  CHECK(over.error->failure == HttpFailure::kReplayMiss);
  CHECK(over.error->permanent);
  CHECK(over.error->message.find("all 3 of this very request were played already") !=
        std::string::npos);
  CHECK(clock.slept() == 0ms);
}

TEST_CASE("replay: a sink that refuses, a cancel and a deadline end it as they end a live one") {
  const TempDir temp;
  ScriptedExchange exchange;
  exchange.chunks = {"data"};
  Record(temp.path(), {exchange}, {"{}"});
  HandClock clock;
  auto tape = ReplayTape::Open(temp.path(), kRedact);
  REQUIRE(tape.ok());
  const auto transport = NewReplayTransport(*tape.value(), clock);
  Sink sink;
  Cancel cancel;
  cancel.Trip(15);
  CHECK(transport->Send(Request("{}"), sink, cancel, {}).error->failure == HttpFailure::kCancelled);
  HttpRequest late = Request("{}");
  late.deadline = clock.Now();
  CHECK(Send(*transport, late, sink).error->failure == HttpFailure::kTotal);
  sink.stop_at = 1;
  CHECK(Send(*transport, Request("{}"), sink).error->failure == HttpFailure::kStopped);
}

TEST_CASE("replay: a miss names the nearest recording and where it differs") {
  const TempDir temp;
  ScriptedExchange exchange;
  exchange.chunks = {"x"};
  Record(temp.path(), {exchange, exchange},
         {R"({"m":[{"t":"hello world"}],"n":1})", R"({"m":[{"t":"hello there"}],"n":1})"});
  HandClock clock;
  auto tape = ReplayTape::Open(temp.path(), kRedact);
  REQUIRE(tape.ok());
  const auto transport = NewReplayTransport(*tape.value(), clock);
  Sink sink;
  const auto miss = [&](const std::string& body) {
    const HttpOutcome outcome = Send(*transport, Request(body), sink);
    REQUIRE(outcome.error);
    CHECK(outcome.error->failure == HttpFailure::kReplayMiss);
    return outcome.error->message;
  };
  const std::string text = miss(R"({"m":[{"t":"hello thezz canary"}],"n":1})");
  CHECK(text.find("; the nearest is 002-post-api.example.com-8443-v1-messages.json, which differs "
                  "first in body.m[0].t at byte 9: recorded \"hello there\", now \"hello thezz "
                  "[redacted:KEY]\"") != std::string::npos);
  CHECK(text.find("user") == std::string::npos);
  CHECK(miss(R"({"m":[{"t":"hello world"}],"n":2})").find("body.n: recorded 1, now 2") !=
        std::string::npos);
  CHECK(miss(R"({"n":1,"m":[{"t":"hello world"}]})").find("another spelling or order") !=
        std::string::npos);
  const TempDir empty;
  auto nothing = ReplayTape::Open(empty.path(), kRedact);
  REQUIRE(nothing.ok());
  CHECK(nothing.value()->Next(Request()).error().message.find("holds none at all") !=
        std::string::npos);
}

TEST_CASE("replay: a folder or file that is no recording is an error at once") {
  const TempDir temp;
  CHECK(ReplayTape::Open(temp / "absent", kRedact).error().code == Code::kIo);
  for (
      const char* bad :
      {"", "{", "{}", R"({"norma_cassette":2,"key":"k","request":{}})",
       R"({"norma_cassette":1,"key":"k","request":{},"response":{"status":-4}})",
       R"({"norma_cassette":1,"key":"k","request":{},"response":{"status":0,"error":{"failure":"x"}}})"}) {
    CAPTURE(bad);
    temp.Write("001-x.json", bad);
    const auto tape = ReplayTape::Open(temp.path(), kRedact);
    REQUIRE(!tape.ok());
    CHECK(tape.error().code == Code::kInvalid);
    CHECK(tape.error().message.find("001-x.json is no recording: ") != std::string::npos);
  }
}

TEST_CASE("cassette diff: every kind of difference has its path") {
  struct Row {
    std::string recorded, now, want;
  };
  const std::vector<Row> rows = {
      {R"({"a":1})", R"({"a":1})", ""},
      {R"({"a":1.0})", R"({"a":1})", "a: recorded 1, now 1"},
      {R"({"a":1,"b":2})", R"({"a":1})", "b: recorded 2, now (nothing)"},
      {R"({"a":1})", R"({"a":1,"b":null})", "b: recorded (nothing), now null"},
      {R"({"a":[1,2]})", R"({"a":[1]})", "a[1]: recorded 2, now (nothing)"},
      {R"({"a":[]})", R"({"a":{}})", "a: recorded a list of 0, now an object"},
      {R"({"a":{"b":[{"c":true}]}})", R"({"a":{"b":[{"c":false}]}})",
       "a.b[0].c: recorded true, now false"},
      {R"({"a":"same then x"})", R"({"a":"same then y"})",
       R"(a at byte 10: recorded "same then x", now "same then y")"},
      {R"({"a":"012345678901234567890123456789x"})", R"({"a":"012345678901234567890123456789"})",
       R"(a at byte 30: recorded …"01234567890123456789x", now …"01234567890123456789")"},
  };
  for (const Row& row : rows) {
    const json::Document recorded = Parsed(row.recorded), now = Parsed(row.now);
    CHECK(FirstDifference(recorded.root(), now.root()).text == row.want);
  }
}
