// What HttpProvider makes of answers: streams that break, pages that are no replies, cancels and
// deadlines. Time is in the hand; the last test goes over a real socket.
#include "lib/llm/http_provider.h"

#include <doctest/doctest.h>

#include "lib/base/text.h"
#include "lib/testing/loopback_server.h"
#include "lib/testing/provider_run.h"

using namespace norma;
using namespace norma::llm;
using namespace norma::testing;
using namespace std::chrono_literals;

TEST_CASE("http provider: a stream that began is never sent again") {
  const std::string stream = LlmTestData("anthropic/tools.sse");
  for (const HttpFailure failure :
       {HttpFailure::kBroken, HttpFailure::kIdle, HttpFailure::kTotal}) {
    for (size_t cut = 0; cut < stream.size(); cut += 97) {
      ProviderRun run;
      ScriptedExchange exchange;
      exchange.chunks = {stream.substr(0, cut)};
      exchange.error = HttpError{failure, "it broke"};
      run.Go({exchange, GoodReply()});
      REQUIRE(!run.got.ok);
      CHECK(run.transport->sent.size() == 1);
      CHECK(run.got.error == Error{Code::kModel, "anthropic: status 200: it broke"});
      CHECK(run.failures[0].stream_began == (run.failures[0].usage.reported));
    }
  }
}

TEST_CASE("http provider: a cut stream tells what came, for the bill") {
  ProviderRun run;
  ScriptedExchange exchange = GoodReply("tools");
  const std::string stream = exchange.chunks[0];
  exchange.chunks = {stream.substr(0, stream.find("event: from_the_future"))};
  run.Go({exchange});
  CHECK(run.got.error ==
        Error{Code::kModel, "anthropic: status 200: the stream ended early: no message_stop came"});
  const AttemptFailure& failure = run.failures[0];
  CHECK(failure.error_class == "broken_stream");
  CHECK(failure.stream_began);
  CHECK(failure.usage.input == 109);
  CHECK(failure.content_bytes > 60);
  CHECK(failure.request_id == "req_7");
  CHECK(run.got.reply.message.blocks.size() == 3);
  CHECK(run.calls.size() == 2);
}

TEST_CASE("http provider: 200 answers that are no reply are named, and not sent again") {
  struct Row {
    std::string what, type;
    std::vector<std::string> chunks;
    std::string message, error_class;
  };
  const std::string none = "the answer is no reply of a model: content-type ";
  const std::vector<Row> rows = {
      {"page",
       "text/html",
       {"<html>Sign in</html>"},
       none + "text/html, body: <html>Sign in</html>",
       "bad_body"},
      {"long page",
       "text/html",
       {std::string(9000, 'x')},
       none + "text/html, body: " + std::string(200, 'x') + "…",
       "bad_body"},
      {"empty stream", "text/event-stream", {}, none + "text/event-stream, empty body", "bad_body"},
      {"only comments",
       "text/event-stream",
       {": x\n\n"},
       none + "text/event-stream, body: : x",
       "bad_body"},
      {"JSON as a stream",
       "text/event-stream",
       {"{\"a\":1}"},
       none + "text/event-stream, body: {\"a\":1}",
       "bad_body"},
      {"nothing", "", {}, none + "(none), empty body", "bad_body"},
      {"text", "", {"hello"}, none + "(none), body: hello", "bad_body"},
      {"error as JSON",
       "application/json",
       {R"({"error":{"message":"boom"}})"},
       "boom",
       "bad_body"},
      {"damaged JSON",
       "application/json; charset=utf-8",
       {"{\"content\":["},
       "the body is no JSON object: {\"content\":[",
       "bad_body"},
      {"empty JSON", "application/json", {}, none + "application/json, empty body", "bad_body"},
      {"error event",
       "text/event-stream",
       {"event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"boom\"}}\n\n"},
       "boom",
       "stream_error"},
      {"error event without its blank line",
       "text/event-stream",
       {"data: {\"type\":\"error\",\"error\":{\"message\":\"boom\"}}"},
       "boom",
       "stream_error"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    ProviderRun run;
    ScriptedExchange exchange;
    exchange.headers.clear();
    if (!row.type.empty()) exchange.headers = {{"content-type", row.type}};
    exchange.chunks = row.chunks;
    run.Go({exchange, GoodReply()});
    CHECK(run.got.error == Error{Code::kModel, "anthropic: status 200: " + row.message});
    CHECK(run.transport->sent.size() == 1);
    CHECK(run.failures[0].error_class == row.error_class);
  }
}

TEST_CASE("http provider: a JSON body is a reply, asked for or not") {
  const std::string body =
      R"({"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",)"
      R"("usage":{"input_tokens":1,"output_tokens":2}})";
  for (const bool stream : {true, false}) {
    for (const char* type : {"application/json", ""}) {
      ProviderRun run;
      ProviderConfig config = ModelConfig();
      config.stream = stream;
      ScriptedExchange exchange;
      exchange.headers.clear();
      if (*type != '\0') exchange.headers = {{"content-type", type}};
      exchange.chunks = {body.substr(0, 30), body.substr(30)};
      run.Go({exchange}, config);
      REQUIRE(run.got.ok);
      CHECK(run.text == "hi");
      CHECK(run.got.reply.usage.output == 2);
      CHECK((run.transport->sent[0].request.idle_max == (stream ? 120s : 0s)));
    }
  }
  ProviderRun streamed;
  ProviderConfig config = ModelConfig();
  config.stream = false;
  streamed.Go({GoodReply()}, config);
  CHECK(streamed.got.ok);
}

TEST_CASE("http provider: a cancel ends it wherever it is") {
  ProviderRun before;
  before.cancel.Trip(15);
  CHECK(before.Go({GoodReply()}).error.code == Code::kCancelled);
  CHECK(before.attempts.empty());

  ProviderRun during;
  ScriptedExchange hang = GoodReply();
  hang.chunks[0].resize(400);
  hang.during = [&] { during.cancel.Trip(2); };
  during.Go({hang, GoodReply()});
  CHECK(during.got.error.code == Code::kCancelled);
  CHECK(during.failures[0].error_class == "cancelled");
  CHECK(during.failures[0].stream_began);

  ProviderRun error_body;
  ScriptedExchange slow = StatusAnswer(503);
  slow.during = [&] { error_body.cancel.Trip(2); };
  CHECK(error_body.Go({slow, GoodReply()}).error.code == Code::kCancelled);
  CHECK(error_body.transport->sent.size() == 1);

  ProviderRun waiting;
  waiting.callbacks.on_failure = [&](const AttemptFailure& failure) -> Status {
    waiting.failures.push_back(failure);
    waiting.cancel.Trip(15);
    return {};
  };
  CHECK(waiting.Go({StatusAnswer(503), GoodReply()}).error.code == Code::kCancelled);
  CHECK(waiting.transport->sent.size() == 1);
  CHECK(waiting.clock.slept() == 0ms);
}

TEST_CASE("http provider: the run's deadline is a timeout, the attempt's limit a failure") {
  ProviderRun run;
  ScriptedExchange slow = BrokenExchange(HttpFailure::kTotal);
  slow.takes = 30s;
  run.Go({slow, GoodReply()}, ModelConfig(), run.clock.Now() + 30s);
  CHECK(run.got.error.code == Code::kTimeout);
  CHECK(run.failures[0].error_class == "timeout");
  CHECK(run.got.duration == 30s);

  ProviderRun late;
  CHECK(late.Go({GoodReply()}, ModelConfig(), late.clock.Now()).error.code == Code::kTimeout);
  CHECK(late.attempts.empty());
}

TEST_CASE("http provider: the callbacks decide") {
  ProviderRun lowered;
  lowered.callbacks.on_size = [](size_t) -> Result<int64_t> { return int64_t{300}; };
  lowered.Go({GoodReply()});
  CHECK(lowered.transport->sent[0].body.find("\"max_tokens\":300,") != std::string::npos);
  CHECK(lowered.attempts[0].max_tokens == 300);
  CHECK(lowered.attempts[0].body_bytes == lowered.transport->sent[0].body.size());

  ProviderRun poor;
  poor.callbacks.on_size = [](size_t) -> Result<int64_t> {
    return Error{Code::kBudget, "no money"};
  };
  CHECK(poor.Go({GoodReply()}).error == Error{Code::kBudget, "no money"});
  CHECK(poor.transport->sent.empty());

  ProviderRun full_disk;
  full_disk.callbacks.on_failure = [&](const AttemptFailure& failure) -> Status {
    full_disk.failures.push_back(failure);
    return Error{Code::kLedger, "disk full"};
  };
  CHECK(full_disk.Go({StatusAnswer(503), GoodReply()}).error == Error{Code::kLedger, "disk full"});
  CHECK(full_disk.transport->sent.size() == 1);

  HandClock clock;
  ScriptedTransport transport(clock, {GoodReply()});
  const auto provider = NewProvider(ModelConfig(), transport, clock);
  Callbacks refuse;
  refuse.on_attempt = [](const Attempt&) -> Status { return Error{Code::kLedger, "x"}; };
  const Cancel cancel;
  CHECK(provider.value()->Generate({}, kNever, cancel, {}, refuse).error ==
        Error{Code::kLedger, "x"});
  CHECK(transport.sent.empty());
  CHECK(provider.value()->Generate({}, kNever, cancel, {}, {}).ok);
}

TEST_CASE("http provider: no message holds the key, and none is long") {
  ProviderRun run;
  run.Go({StatusAnswer(401, {}, "bad key sk-test-canary-0123456789 " + std::string(9000, 'x'))});
  CHECK(run.got.error.message.find("canary") == std::string::npos);
  CHECK(run.got.error.message.find("[redacted]") != std::string::npos);
  CHECK(run.failures[0].message.size() <= 2048);
  ProviderRun huge;
  ScriptedExchange exchange = StatusAnswer(500);
  exchange.chunks = std::vector<std::string>(40, std::string(10'000, 'y'));
  ProviderConfig config = ModelConfig();
  config.retry.retries = 0;
  huge.Go({exchange}, config);
  CHECK(huge.got.error.message == "anthropic: status 500: " + std::string(500, 'y') + "…");
}

TEST_CASE("http provider: over a real socket, keep-alives do not hold the idle limit open") {
  const std::string head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
  const std::string stream = LlmTestData("anthropic/text.sse");
  const std::string begin = stream.substr(0, stream.find("event: content_block_stop"));
  for (const std::string beat :
       {": ping\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n", "\n"}) {
    LoopbackAnswer answer{{head, begin}, 40ms, LoopbackAnswer::Then::kHang};
    for (int n = 0; n < 30; ++n) answer.parts.push_back(beat);
    LoopbackServer server({answer, {{HttpAnswer("no")}}});
    ProviderConfig config = ModelConfig();
    config.base_url = server.url("");
    config.timeouts.idle = 250ms;
    const auto transport = NewCurlTransport(SystemClock());
    const auto provider = NewProvider(config, *transport, SystemClock());
    REQUIRE(provider.ok());
    const Cancel cancel;
    const Generated got = provider.value()->Generate({}, kNever, cancel, {}, {});
    CHECK(!got.ok);
    CHECK(got.error.code == Code::kModel);
    CHECK(got.error.message.find("idle limit") != std::string::npos);
    CHECK(got.duration < 1000ms);
    CHECK(server.requests().size() == 1);
    CHECK(!TextOf(got.reply.message).empty());
  }
}
