// The script model: same callbacks, same retry policy, no network.
#include "lib/llm/script_provider.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/testing/hand_clock.h"

using namespace norma;
using namespace norma::llm;
using namespace std::chrono_literals;

namespace {

struct Play {
  testing::HandClock clock;
  Cancel cancel;
  Wake wake;
  std::unique_ptr<Provider> provider;
  std::vector<std::string> told;
  std::vector<AttemptFailure> failures;
  size_t bytes = 0;

  explicit Play(Script script, int retries = 3) {
    ProviderConfig config;
    config.format = "script";
    config.script = std::move(script);
    config.retry.retries = retries;
    provider = NewScriptProvider(config, clock);
  }

  Generated Ask(std::vector<Block> blocks = {Text{"go"}}, MonoTime deadline = kNever) {
    ChatRequest request;
    request.messages = {std::make_shared<const Message>(Message{Role::kUser, std::move(blocks)})};
    Callbacks callbacks;
    callbacks.on_size = [&](size_t size) -> Result<int64_t> {
      bytes = size;
      return request.max_tokens;
    };
    callbacks.on_attempt = [&](const Attempt& attempt) -> Status {
      told.push_back("attempt " + std::to_string(attempt.number) + " " + attempt.endpoint);
      return {};
    };
    callbacks.on_failure = [&](const AttemptFailure& failure) -> Status {
      failures.push_back(failure);
      return {};
    };
    callbacks.on_text = [&](std::string_view text) { told.push_back("text " + std::string(text)); };
    callbacks.on_thinking = [&](std::string_view text) {
      told.push_back("thinking " + std::string(text));
    };
    callbacks.on_call = [&](const ToolCall& call) { told.push_back("call " + call.id); };
    return provider->Generate(request, deadline, cancel, wake, callbacks);
  }
};

ScriptReply Says(const std::string& text) {
  ScriptReply reply;
  reply.text = text;
  return reply;
}

ScriptReply Fails(int status, const std::string& message = "overloaded") {
  ScriptReply reply;
  reply.error = ScriptError{status, message};
  return reply;
}

}  // namespace

TEST_CASE("script: a reply is streamed and returned whole") {
  ScriptReply reply = Says("I look.");
  reply.thinking = "hm";
  reply.calls = {{"", "Bash", R"({ "command": "ls" })"}, {"mine", "Bash", "{\"a\":"}};
  reply.usage_input = 100;
  reply.usage_output = 20;
  reply.usage_cache_read = 30;
  Play play({{reply}, false});
  const Generated got = play.Ask();
  REQUIRE(got.ok);
  const Message want{Role::kAssistant,
                     {Thinking{"hm", ""}, Text{"I look."},
                      ToolCall{"call_1_1", "Bash", R"({ "command": "ls" })", R"({"command":"ls"})"},
                      ToolCall{"mine", "Bash", "{\"a\":", ""}}};
  CHECK(got.reply.message == want);
  CHECK(got.reply.stop_reason == "tool_use");
  Usage usage;
  usage.reported = true;
  usage.input = 100;
  usage.output = 20;
  usage.cache_read = 30;
  CHECK(got.reply.usage == usage);
  CHECK(play.told == std::vector<std::string>{"attempt 1 script", "thinking hm", "text I look.",
                                              "call call_1_1", "call mine"});
  CHECK(play.bytes > 0);
}

TEST_CASE("script: usage that is not written is zero, and reported") {
  Play play({{Says("x")}, false});
  const Generated got = play.Ask();
  CHECK(got.reply.usage.reported);
  CHECK(got.reply.usage.input == 0);
  CHECK(got.reply.stop_reason == "end_turn");
}

TEST_CASE("script: running out is an error that counts, unless the last one repeats") {
  Play play({{Says("one"), Says("two")}, false});
  CHECK(play.Ask().ok);
  CHECK(play.Ask().ok);
  const Generated out = play.Ask();
  CHECK(!out.ok);
  CHECK(out.error == Error{Code::kModel,
                           "script: it has 2 replies, and this is request 3; add a reply, or "
                           "`repeat: true`"});
  CHECK(play.failures.size() == 1);
  Play nothing(Script{{}, true});
  CHECK(!nothing.Ask().ok);

  ScriptReply calls;
  calls.calls = {{"", "LS", "{}"}};
  Play endless({{calls}, true});
  std::vector<std::string> ids;
  for (int n = 0; n < 3; ++n) {
    ids.push_back(std::get<ToolCall>(endless.Ask().reply.message.blocks[0]).id);
  }
  CHECK(ids == std::vector<std::string>{"call_1_1", "call_2_1", "call_3_1"});
}

TEST_CASE("script: expect looks at texts and results of the newest user message") {
  const auto ask = [](std::vector<Block> blocks) {
    ScriptReply reply = Says("Done.");
    reply.expect = "total 0";
    Play play({{reply}, false});
    return play.Ask(std::move(blocks));
  };
  CHECK(ask({ToolResult{"t", "total 0\n", false}}).ok);
  CHECK(ask({Text{"the total 0"}}).ok);
  const Generated got = ask({ToolResult{"t", "total 1", false}});
  CHECK(got.error == Error{Code::kModel,
                           "script: reply 1 expects \"total 0\" in the newest user message, which "
                           "is \"total 1\""});
}

TEST_CASE("script: errors act like HTTP answers") {
  Play play({{Fails(529), Fails(503), Says("third")}, false});
  const Generated got = play.Ask();
  CHECK(got.ok);
  CHECK(got.attempt == 3);
  CHECK(play.clock.slept() == 1500ms);
  REQUIRE(play.failures.size() == 2);
  CHECK(play.failures[0].status == 529);
  CHECK(play.failures[0].message == "script: status 529: overloaded");
  CHECK(play.failures[0].retry_in == Millis(500));

  Play bad({{Fails(400, "nonsense"), Says("never")}, false});
  CHECK(bad.Ask().error == Error{Code::kModel, "script: status 400: nonsense"});
  Play full({{Fails(400, "prompt is too long")}, false});
  CHECK(full.Ask().error.code == Code::kContextFull);
  Play network({{Fails(0, "no route")}, false}, 0);
  CHECK(network.Ask().error == Error{Code::kNetwork, "script: no route"});
  Play none({{Fails(503), Says("never")}, false}, -1);
  CHECK(none.Ask().error.code == Code::kModel);
}

TEST_CASE("script: a delay passes on the clock, serves the thread, ends with cancel and deadline") {
  ScriptReply slow = Says("late");
  slow.delay = 5s;
  Play play({{slow}, true});
  const int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
  int served = 0;
  play.wake = {fd, [&] {
                 uint64_t value = 0;
                 if (read(fd, &value, sizeof value) == sizeof value) ++served;
               }};
  CHECK(play.Ask().ok);
  CHECK(play.clock.slept() == 5s);
  CHECK(served == 1);
  const Generated late = play.Ask({Text{"go"}}, play.clock.Now() + 2s);
  CHECK(late.error.code == Code::kTimeout);
  CHECK(play.clock.slept() == 7s);
  play.wake.serve = [&] { play.cancel.Trip(15); };
  const uint64_t one = 1;
  CHECK(write(fd, &one, sizeof one) == sizeof one);
  CHECK(play.Ask().error.code == Code::kCancelled);
  CHECK(play.failures.back().error_class == "cancelled");
  close(fd);
}
