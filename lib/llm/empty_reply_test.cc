// A turn without any content: asked for again on openai-chat, billed, bounded, and never elsewhere.
#include <doctest/doctest.h>

#include "lib/testing/decoder_run.h"
#include "lib/testing/provider_run.h"

using namespace norma;
using namespace norma::llm;
using norma::testing::ModelConfig;
using norma::testing::ProviderRun;
using norma::testing::ScriptedExchange;
using norma::testing::SseData;
using norma::testing::StatusAnswer;

namespace {

ProviderConfig ChatConfig() {
  ProviderConfig config = ModelConfig();
  config.format = "openai-chat";
  return config;
}

ScriptedExchange Answer(const std::string& body) {
  ScriptedExchange exchange;
  if (!body.empty()) exchange.chunks = {body};
  return exchange;
}

std::string Finish(const std::string& reason, const std::string& delta = "{}") {
  return SseData(R"({"choices":[{"index":0,"delta":)" + delta + R"(,"finish_reason":")" + reason +
                 R"("}],"usage":{"prompt_tokens":9,"completion_tokens":1}})") +
         SseData("[DONE]");
}

const std::string kNothing = SseData("[DONE]");
const std::string kText = Finish("stop", R"({"content":"hi"})");

}  // namespace

TEST_CASE("empty replies: openai-chat is asked again, and each empty turn is a billed failure") {
  ProviderRun run;
  const Generated& got = run.Go({Answer(Finish("stop")), Answer(""), Answer(kText)}, ChatConfig());
  CHECK(got.ok);
  CHECK(TextOf(got.reply.message) == "hi");
  CHECK(got.attempt == 3);
  REQUIRE(run.failures.size() == 2);
  CHECK(run.failures[0].error_class == "empty_response");
  CHECK(run.failures[0].status == 200);
  CHECK(run.failures[0].stream_began);
  CHECK(run.failures[0].usage.input == 9);
  CHECK(run.failures[0].retry_in == Millis(500));
  CHECK(run.failures[1].retry_in == Millis(1000));
  CHECK(!run.failures[1].usage.reported);
  CHECK(run.transport->sent[0].body == run.transport->sent[2].body);
}

TEST_CASE("empty replies: when the tries are used up the empty turn is the answer") {
  for (const std::string& body : {kNothing, std::string(), Finish("stop")}) {
    ProviderRun run;
    const Generated& got = run.Go({Answer(body), Answer(body), Answer(body)}, ChatConfig());
    CHECK(got.ok);
    CHECK(got.reply.message.blocks.empty());
    CHECK(run.attempts.size() == 3);
  }
  ProviderConfig off = ChatConfig();
  for (const int retries : {0, -1}) {
    off.empty_retries = retries;
    ProviderRun run;
    CHECK(run.Go({Answer(kNothing)}, off).ok);
    CHECK(run.attempts.size() == 1);
  }
}

TEST_CASE("empty replies: what has a reason or any content is never asked again") {
  for (const std::string& body :
       {Finish("length"), Finish("content_filter"), Finish("stop", R"({"reasoning":"r"})"),
        Finish("stop", R"({"content":" "})")}) {
    ProviderRun run;
    CHECK(run.Go({Answer(body)}, ChatConfig()).ok);
    CHECK(run.attempts.size() == 1);
  }
  ProviderConfig responses = ModelConfig();
  responses.format = "openai-responses";
  ProviderRun run;
  CHECK(run.Go({Answer(
                   SseData(R"({"type":"response.completed","response":{"status":"completed"}})"))},
               responses)
            .ok);
  ProviderRun nothing;
  CHECK(!nothing.Go({Answer("")}, responses).ok);
}

TEST_CASE("empty replies: the retry ladder starts anew behind one, and time ends both") {
  ProviderRun run;
  ProviderConfig config = ChatConfig();
  config.retry.retries = 1;
  CHECK(run.Go({StatusAnswer(503), Answer(kNothing), StatusAnswer(503), Answer(kText)}, config).ok);
  CHECK(run.attempts.size() == 4);
  ProviderRun late;
  const Generated& got = late.Go({Answer(kNothing)}, ChatConfig(), late.clock.Now() + Millis(400));
  CHECK(got.ok);
  CHECK(late.attempts.size() == 1);
  ProviderRun stopped;
  stopped.callbacks.on_failure = [&](const AttemptFailure& failure) -> Status {
    stopped.failures.push_back(failure);
    return Error{Code::kBudget, "no money"};
  };
  CHECK(stopped.Go({Answer(kNothing)}, ChatConfig()).error.code == Code::kBudget);
}

TEST_CASE("empty replies: a JSON body without content counts too") {
  ProviderConfig config = ChatConfig();
  config.stream = false;
  ScriptedExchange empty =
      Answer(R"({"choices":[{"message":{"content":""},"finish_reason":"stop"}]})");
  ScriptedExchange good =
      Answer(R"({"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]})");
  empty.headers = good.headers = {{"content-type", "application/json"}};
  ProviderRun run;
  CHECK(TextOf(run.Go({empty, good}, config).reply.message) == "hi");
  CHECK(run.transport->sent[0].body.find("\"stream\":false") != std::string::npos);
}
