// HttpProvider with the Anthropic wire: attempts, retries, limits, and what every kind of answer
// becomes before the body. Time is in the hand.
#include "lib/llm/http_provider.h"

#include <doctest/doctest.h>

#include "lib/base/text.h"
#include "lib/testing/provider_run.h"

using namespace norma;
using namespace norma::llm;
using namespace norma::testing;
using namespace std::chrono_literals;

TEST_CASE("http provider: a reply comes through, and the request is what the wire says") {
  ProviderRun run;
  run.Go({GoodReply("tools")});
  REQUIRE(run.got.ok);
  CHECK(ReplyText(run.got.reply) == LlmTestData("anthropic/tools.want.json", true));
  CHECK(run.got.reply.request_id == "req_7");
  CHECK(run.got.status == 200);
  CHECK(run.got.attempt == 1);
  CHECK(run.calls.size() == 3);
  REQUIRE(run.transport->sent.size() == 1);
  const auto& sent = run.transport->sent[0];
  CHECK(sent.request.url == "http://model.test/base/v1/messages");
  CHECK(sent.request.method == "POST");
  const HttpHeaders want = {{"content-type", "application/json"},
                            {"accept", "text/event-stream"},
                            {"anthropic-version", "2023-06-01"},
                            {"x-api-key", "sk-test-canary-0123456789"},
                            {"user-agent", "norma"}};
  CHECK(sent.request.headers == want);
  CHECK(sent.request.idle_max == 120s);
  CHECK(sent.request.deadline == run.clock.Now() + 600s);
  REQUIRE(run.attempts.size() == 1);
  CHECK(run.attempts[0].endpoint == "http://model.test/base/v1/messages");
  CHECK(run.attempts[0].body_bytes == sent.body.size());
  CHECK(run.attempts[0].max_tokens == 1024);
  CHECK(run.sized == sent.body.size());
}

TEST_CASE("http provider: base URLs in all their spellings") {
  struct Row {
    std::string base, url, endpoint;
  };
  const std::vector<Row> rows = {
      {"http://h", "http://h/v1/messages", "http://h/v1/messages"},
      {"http://h/", "http://h/v1/messages", "http://h/v1/messages"},
      {"http://h//", "http://h/v1/messages", "http://h/v1/messages"},
      {"http://h/v1", "http://h/v1/v1/messages", "http://h/v1/v1/messages"},
      {"http://h:8080/a/b/", "http://h:8080/a/b/v1/messages", "http://h:8080/a/b/v1/messages"},
      {"http://h/a?k=v", "http://h/a/v1/messages?k=v", "http://h/a/v1/messages"},
      {"http://h?k=v", "http://h/v1/messages?k=v", "http://h/v1/messages"},
      {"HTTPS://[::1]:1", "HTTPS://[::1]:1/v1/messages", "HTTPS://[::1]:1/v1/messages"},
      {"", "https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"},
  };
  for (const Row& row : rows) {
    ProviderRun run;
    ProviderConfig config = ModelConfig();
    config.base_url = row.base;
    run.Go({GoodReply()}, config);
    CHECK(run.transport->sent[0].request.url == row.url);
    CHECK(run.attempts[0].endpoint == row.endpoint);
  }
}

TEST_CASE("http provider: configurations that cannot work are spec errors") {
  using Change = std::function<void(ProviderConfig&)>;
  const std::vector<Change> changes = {
      [](ProviderConfig& c) { c.base_url = "model.test"; },
      [](ProviderConfig& c) { c.base_url = "ftp://h"; },
      [](ProviderConfig& c) { c.base_url = "http://"; },
      [](ProviderConfig& c) { c.base_url = "http://:80"; },
      [](ProviderConfig& c) { c.base_url = "http://u:p@h"; },
      [](ProviderConfig& c) { c.base_url = "http://h/#x"; },
      [](ProviderConfig& c) { c.base_url = "http://h /"; },
      [](ProviderConfig& c) { c.proxy = "p:8080"; },
      [](ProviderConfig& c) { c.proxy = "ftp://p"; },
      [](ProviderConfig& c) { c.proxy = "http://"; },
      [](ProviderConfig& c) { c.api_key = "sk-secret-secret\n"; },
      [](ProviderConfig& c) { c.api_key = "sk-secret\x7f"; },
      [](ProviderConfig& c) { c.api_key = "sk-secret-sécret"; },
      [](ProviderConfig& c) {
        c.headers = {{"X-Api-Key", "v"}};
      },
      [](ProviderConfig& c) {
        c.headers = {{"Authorization", "v"}};
      },
      [](ProviderConfig& c) {
        c.headers = {{"a b", "v"}};
      },
      [](ProviderConfig& c) {
        c.headers = {{"a", "v\r\nx: y"}};
      },
      [](ProviderConfig& c) {
        c.headers = {{"", "v"}};
      },
      [](ProviderConfig& c) { c.extra_body = R"({"model":"x"})"; },
      [](ProviderConfig& c) { c.format = "antropic"; },
      [](ProviderConfig& c) {
        c.format = "openai-chat";
        c.max_token_key = "max_output_tokens";
      },
      [](ProviderConfig& c) {
        c.format = "openai-responses";
        c.extra_body = R"({"store":true})";
      },
  };
  HandClock clock;
  ScriptedTransport transport(clock, {});
  for (size_t n = 0; n < changes.size(); ++n) {
    CAPTURE(n);
    ProviderConfig config = ModelConfig();
    changes[n](config);
    const auto provider = NewProvider(config, transport, clock);
    REQUIRE(!provider.ok());
    CHECK(provider.error().code == Code::kSpec);
    CHECK(provider.error().message.find("secret") == std::string::npos);
  }
}

TEST_CASE("http provider: headers of the spec take the place of ours") {
  ProviderRun run;
  ProviderConfig config = ModelConfig();
  config.headers = {
      {"Anthropic-Version", "2030-01-01"}, {"anthropic-beta", "a,b"}, {"User-Agent", "x"}};
  config.api_key.clear();
  run.Go({GoodReply()}, config);
  const HttpHeaders want = {{"content-type", "application/json"},
                            {"accept", "text/event-stream"},
                            {"anthropic-version", "2030-01-01"},
                            {"anthropic-beta", "a,b"},
                            {"user-agent", "x"}};
  CHECK(run.transport->sent[0].request.headers == want);
}

TEST_CASE("http provider: retryable answers are tried again with the same bytes") {
  ProviderRun run;
  run.Go({StatusAnswer(503), StatusAnswer(429), StatusAnswer(529), GoodReply()});
  REQUIRE(run.got.ok);
  CHECK(run.got.attempt == 4);
  CHECK(run.clock.slept() == 3500ms);
  CHECK(run.transport->sent.size() == 4);
  for (const auto& sent : run.transport->sent) CHECK(sent.body == run.transport->sent[0].body);
  REQUIRE(run.failures.size() == 3);
  CHECK(run.failures[1].attempt.number == 2);
  CHECK(run.failures[1].status == 429);
  CHECK(run.failures[1].error_class == "status");
  CHECK(run.failures[1].message == "anthropic: status 429: no");
  CHECK(run.failures[1].retry_in == Millis(1000));
  CHECK(!run.failures[1].stream_began);
}

TEST_CASE("http provider: the ladder ends") {
  for (const int retries : {-1, 0, 1, 3}) {
    ProviderRun run;
    ProviderConfig config = ModelConfig();
    config.retry.retries = retries;
    run.Go(std::vector<ScriptedExchange>(9, StatusAnswer(503)), config);
    CHECK(!run.got.ok);
    const size_t want = retries > 0 ? static_cast<size_t>(retries) + 1 : 1;
    CHECK(run.transport->sent.size() == want);
    CHECK(run.got.error == Error{Code::kModel, "anthropic: status 503: no"});
    CHECK(!run.failures.back().retry_in.has_value());
  }
}

TEST_CASE("http provider: other statuses are errors at once, with the provider's words") {
  for (const int status : {201, 204, 400, 401, 403, 404, 405, 409, 422, 501}) {
    ProviderRun run;
    run.Go({StatusAnswer(status)});
    CHECK(run.got.error ==
          Error{Code::kModel, "anthropic: status " + std::to_string(status) + ": no"});
    CHECK(run.got.status == status);
    CHECK(run.transport->sent.size() == 1);
  }
  ProviderRun redirect;
  redirect.Go({StatusAnswer(307, {{"location", "https://u:p@elsewhere/x?k=v"}})});
  CHECK(redirect.got.error.message ==
        "anthropic: status 307: redirects are not followed (to https://elsewhere/x); set "
        "model.base_url");
  ProviderRun full;
  full.Go({StatusAnswer(400, {}, "prompt is too long: 2 > 1")});
  CHECK(full.got.error.code == Code::kContextFull);
  ProviderRun large;
  large.Go({StatusAnswer(413)});
  CHECK(large.got.error.code == Code::kContextFull);
}

TEST_CASE("http provider: Retry-After counts when it is longer, within the deadline") {
  const auto slept = [](const HttpHeaders& headers) {
    ProviderRun run;
    run.Go({StatusAnswer(429, headers), GoodReply()});
    CHECK(run.got.ok);
    return run.clock.slept();
  };
  CHECK(slept({{"retry-after", "7"}}) == 7s);
  CHECK(slept({{"retry-after", "0"}}) == 500ms);
  CHECK(slept({{"retry-after", "garbage"}}) == 500ms);
  CHECK(slept({{"retry-after-ms", "900"}}) == 900ms);

  for (const char* wait : {"60", "9e9"}) {
    ProviderRun run;
    run.Go({StatusAnswer(429, {{"retry-after", wait}}), GoodReply()}, ModelConfig(),
           run.clock.Now() + 30s);
    CHECK(!run.got.ok);
    CHECK(run.clock.slept() == 0ms);
    CHECK(run.transport->sent.size() == 1);
    CHECK(run.got.error.message.find("status 429") != std::string::npos);
    CHECK(run.got.error.message.find("not tried again: the wait of ") != std::string::npos);
    CHECK(run.failures[0].retry_after == std::string(wait));
    CHECK(!run.failures[0].retry_in.has_value());
  }
  ProviderRun endless;
  endless.Go({StatusAnswer(429, {{"retry-after", "90000"}}), GoodReply()});
  CHECK(!endless.got.ok);
  CHECK(endless.clock.slept() == 0ms);
  ProviderRun forbidden;
  forbidden.Go({StatusAnswer(503, {{"x-should-retry", "false"}}), GoodReply()});
  CHECK(forbidden.transport->sent.size() == 1);
}

TEST_CASE("http provider: what breaks before an answer is tried again, unless it never can work") {
  struct Row {
    HttpFailure failure;
    bool permanent, again;
    Code code;
    std::string error_class;
  };
  using F = HttpFailure;
  const std::vector<Row> rows = {
      {F::kDns, false, true, Code::kNetwork, "dns"},
      {F::kConnect, false, true, Code::kNetwork, "connect"},
      {F::kConnectTimeout, false, true, Code::kNetwork, "connect"},
      {F::kSend, false, true, Code::kNetwork, "connect"},
      {F::kBroken, false, true, Code::kNetwork, "broken_stream"},
      {F::kIdle, false, true, Code::kModel, "idle"},
      {F::kTls, false, true, Code::kNetwork, "tls"},
      {F::kTls, true, false, Code::kNetwork, "tls"},
      {F::kProxy, false, true, Code::kNetwork, "proxy"},
      {F::kProxy, true, false, Code::kNetwork, "proxy"},
      {F::kBadUrl, true, false, Code::kNetwork, "bad_url"},
      {F::kTotal, false, false, Code::kModel, "total"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.error_class);
    ProviderRun run;
    run.Go({BrokenExchange(row.failure, row.permanent), GoodReply()});
    CHECK(run.got.ok == row.again);
    REQUIRE(run.failures.size() == 1);
    CHECK(run.failures[0].error_class == row.error_class);
    CHECK(run.failures[0].message == "anthropic: h:1: it broke");
    if (!row.again) CHECK(run.got.error.code == row.code);
    ProviderRun last;
    ProviderConfig config = ModelConfig();
    config.retry.retries = 0;
    last.Go({BrokenExchange(row.failure, row.permanent)}, config);
    CHECK(last.got.error.code == row.code);
  }
}
