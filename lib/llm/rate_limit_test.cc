#include "lib/llm/rate_limit.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lib/testing/hand_clock.h"
#include "lib/testing/provider_run.h"

using namespace norma;
using namespace norma::llm;
using namespace std::chrono_literals;
using norma::testing::HandClock;

namespace {

std::vector<Millis> Waits(const RateLimit& limit, int requests, Millis apart = 0ms) {
  HandClock clock;
  RateLimiter limiter(limit, clock);
  const Cancel cancel;
  std::vector<Millis> waits;
  for (int n = 0; n < requests; ++n) {
    const auto waited = limiter.Acquire(kNever, cancel, {});
    waits.push_back(waited.ok() ? waited.value() : Millis(-1));
    clock.Advance(apart);
  }
  return waits;
}

using W = std::vector<Millis>;

}  // namespace

TEST_CASE("rate limit: the arithmetic of two buckets") {
  CHECK(Waits({}, 3) == W{0ms, 0ms, 0ms});
  CHECK(Waits({-1, 0, 5}, 2) == W{0ms, 0ms});
  // Half a token of capacity never covers a request: the very first one waits.
  CHECK(Waits({0.5, 0, 0}, 3) == W{1000ms, 2000ms, 2000ms});
  CHECK(Waits({2, 2, 0}, 3) == W{0ms, 0ms, 30000ms});
  CHECK(Waits({1, 0, 0}, 4) == W{0ms, 1000ms, 1000ms, 1000ms});
  CHECK(Waits({1, 0, 3}, 5) == W{0ms, 0ms, 0ms, 1000ms, 1000ms});
  CHECK(Waits({10, 0, 1}, 3) == W{0ms, 100ms, 100ms});
  CHECK(Waits({0, 60, 0}, 62).back() == 1000ms);
  CHECK(Waits({0, 60, 0}, 60).back() == 0ms);
  CHECK(Waits({1, 0, 0}, 3, 2s) == W{0ms, 0ms, 0ms});  // refilled, but never above the capacity
  CHECK(Waits({1, 0, 0}, 3, 500ms) == W{0ms, 500ms, 500ms});
  CHECK(Waits({1e-9, 0, 1}, 2) == W{0ms, -1ms});  // more than 24 h is refused
}

TEST_CASE("rate limit: who arrives together gets slots in order of arrival") {
  HandClock clock;
  RateLimiter limiter({1, 0, 1}, clock);
  const Cancel cancel;
  std::vector<Millis> told;
  // Each waiter is asked for its wait while nobody's time has passed.
  Cancel gone;
  gone.Trip(15);
  for (int n = 0; n < 3; ++n) {
    Cancel quick;
    [[maybe_unused]] const auto ignored = limiter.Acquire(kNever, quick, {}, [&](Millis wait) {
      told.push_back(wait);
      quick.Trip(15);  // the wait ends at once; its tokens stay taken
    });
  }
  CHECK(told == W{1000ms, 2000ms});
  CHECK(limiter.Acquire(kNever, gone, {}).error().code == Code::kCancelled);
  const auto last = limiter.Acquire(kNever, cancel, {});
  REQUIRE(last.ok());
  CHECK(last.value() == 3000ms);  // a call that was cancelled before it asked took none
}

TEST_CASE("rate limit: a wait that does not fit ends at once and takes nothing") {
  HandClock clock;
  RateLimiter limiter({0, 2, 0}, clock);
  const Cancel cancel;
  CHECK(limiter.Acquire(kNever, cancel, {}).ok());
  CHECK(limiter.Acquire(kNever, cancel, {}).ok());
  for (int n = 0; n < 3; ++n) {
    const auto refused = limiter.Acquire(clock.Now() + 29s, cancel, {});
    REQUIRE(!refused.ok());
    CHECK(refused.error() ==
          Error{Code::kTimeout,
                "model.rate_limit asks for a wait of 30.0 s, which would pass the "
                "time limit of the run"});
  }
  CHECK(clock.slept() == 0ms);
  CHECK(limiter.Acquire(clock.Now() + 31s, cancel, {}).value() == 30s);
}

TEST_CASE("rate limit: threads share one limiter") {
  RateLimiter limiter({1e6, 0, 8}, SystemClock());
  std::vector<std::thread> threads;
  std::atomic<int> granted{0};
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      const Cancel cancel;
      for (int i = 0; i < 50; ++i) granted += limiter.Acquire(kNever, cancel, {}).ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(granted == 200);
}

TEST_CASE("rate limit: a logical request takes one token, its retries none") {
  using norma::testing::GoodReply;
  using norma::testing::StatusAnswer;
  HandClock clock;
  const Cancel cancel;
  norma::testing::ScriptedTransport transport(
      clock, {StatusAnswer(503), StatusAnswer(503), GoodReply(), GoodReply()});
  auto inner = NewProvider(norma::testing::ModelConfig(), transport, clock);
  REQUIRE(inner.ok());
  RateLimiter limiter({0, 2, 0}, clock);
  const auto provider = NewRateLimited(std::move(inner).value(), limiter);
  CHECK(provider->Endpoint() == "http://model.test/base/v1/messages");
  ChatRequest request;
  request.messages = {std::make_shared<const Message>(Message{Role::kUser, {Text{"go"}}})};
  std::vector<Millis> told;
  Callbacks callbacks;
  callbacks.on_rate_wait = [&](Millis wait) { told.push_back(wait); };
  for (int n = 0; n < 2; ++n) {
    CHECK(provider->Generate(request, kNever, cancel, {}, callbacks).ok);
  }
  CHECK(told.empty());
  CHECK(transport.sent.size() == 4);
  const Generated late = provider->Generate(request, clock.Now() + 1s, cancel, {}, callbacks);
  CHECK(!late.ok);
  CHECK(late.error.code == Code::kTimeout);
  CHECK(transport.sent.size() == 4);
}
