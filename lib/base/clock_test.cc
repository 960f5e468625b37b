// The pure helpers as tables; the machine's clock only where it returns at once.
#include "lib/base/clock.h"

#include <doctest/doctest.h>

#include <csignal>
#include <thread>
#include <utility>

#include "lib/testing/hand_clock.h"

namespace norma {
namespace {

using namespace std::chrono_literals;

TEST_CASE("clock: a stamp is UTC with six decimals, before 1970 too") {
  const std::pair<std::chrono::microseconds, std::string_view> rows[] = {
      {0us, "1970-01-01T00:00:00.000000Z"},
      {1us, "1970-01-01T00:00:00.000001Z"},
      {1'796'117'400'123'456us, "2026-12-01T09:30:00.123456Z"},
      {951'782'400'000'000us, "2000-02-29T00:00:00.000000Z"},
      {4'102'444'799'999'999us, "2099-12-31T23:59:59.999999Z"},
      {-1us, "1969-12-31T23:59:59.999999Z"},
  };
  for (const auto& [since, want] : rows) {
    CHECK(FormatUtc(WallTime(std::chrono::duration_cast<WallTime::duration>(since))) == want);
  }
  // Nanoseconds are cut, not rounded: a stamp never lies in the future.
  CHECK(FormatUtc(WallTime(std::chrono::duration_cast<WallTime::duration>(1999ns))) ==
        "1970-01-01T00:00:00.000001Z");
}

TEST_CASE("clock: a poll never ends early, never waits below zero or above the cap") {
  const MonoTime now{1h};
  const std::pair<MonoTime, int> rows[] = {
      {now, 0},
      {now - 1ms, 0},
      {MonoTime{}, 0},
      {MonoTime::min(), 0},
      {now + 1ns, 1},  // rounded up: else the caller would spin
      {now + 1ms, 1},
      {now + 1500us, 2},
      {now + 500ms, 500},
      {now + 1s, 1000},
      {now + 1001ms, 1000},
      {now + 24h * 365 * 100, 1000},
      {kNever, 1000},
  };
  for (const auto& [deadline, want] : rows) CHECK(PollTimeout(now, deadline, 1000ms) == want);
  CHECK(PollTimeout(now, kNever, 0ms) == 0);
}

TEST_CASE("clock: the earlier of two limits, none counts as never") {
  const MonoTime now{1h};
  CHECK(EarlierOf(kNever, now, 5s) == now + 5s);
  CHECK(EarlierOf(now + 1s, now, 5s) == now + 1s);
  CHECK(EarlierOf(now + 9s, now, 5s) == now + 5s);
  CHECK(EarlierOf(now + 9s, now, 0s) == now + 9s);
  CHECK(EarlierOf(now + 9s, now, -1s) == now + 9s);
  CHECK(EarlierOf(kNever, now, 0s) == kNever);
}

TEST_CASE("clock: a limit too large for the clock means never, not a moment in the past") {
  const MonoTime now{1h};
  CHECK(EarlierOf(kNever, now, Millis::max()) == kNever);
  CHECK(EarlierOf(now + 9s, now, Millis::max()) == now + 9s);
  CHECK(EarlierOf(kNever, now, std::chrono::hours(24 * 365 * 1000)) == kNever);
}

TEST_CASE("clock: the machine's clock moves forward and does not wait for the past") {
  Clock& clock = SystemClock();
  const Cancel cancel;
  const MonoTime before = clock.Now();
  CHECK(clock.SleepUntil(before - 1h, cancel));
  CHECK(clock.SleepUntil(before, cancel));
  CHECK(clock.SleepUntil(before + 2ms, cancel));
  CHECK(clock.Now() >= before + 2ms);
  CHECK(clock.Wall() > WallTime(std::chrono::hours(24 * 365 * 50)));
}

TEST_CASE("clock: a cancel ends a sleep at once, before it and in the middle") {
  Clock& clock = SystemClock();
  Cancel tripped;
  tripped.Trip(SIGTERM);
  CHECK_FALSE(clock.SleepUntil(kNever, tripped));
  CHECK_FALSE(clock.SleepUntil(MonoTime{}, tripped));

  Cancel cancel;
  const MonoTime start = clock.Now();
  std::jthread other([&] { cancel.Trip(SIGINT); });
  CHECK_FALSE(clock.SleepUntil(kNever, cancel));
  CHECK(clock.Now() - start < 30s);
}

TEST_CASE("clock: the hand clock jumps over waits and counts them") {
  testing::HandClock clock;
  Cancel cancel;
  const MonoTime start = clock.Now();
  CHECK(clock.SleepUntil(start + 90s, cancel));
  CHECK(clock.Now() == start + 90s);
  CHECK(clock.SleepUntil(start, cancel));
  CHECK(clock.slept() == 90s);
  clock.Advance(1s);
  CHECK(clock.Now() == start + 91s);
  cancel.Trip(Cancel::kDeadline);
  CHECK_FALSE(clock.SleepUntil(start + 200s, cancel));
  CHECK(clock.slept() == 90s);
}

}  // namespace
}  // namespace norma
