#include "lib/policy/budget.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "lib/testing/hand_clock.h"

namespace norma {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// ------------------------------------------------------------------------- purse

TEST_CASE("purse: what is reserved is not there for anybody else") {
  Purse purse(100);
  CHECK(purse.Available() == 100);
  CHECK(purse.Reserve(60));
  CHECK(purse.Available() == 40);
  CHECK_FALSE(purse.Reserve(41));
  CHECK(purse.Available() == 40);
  CHECK(purse.Reserve(40));
  CHECK_FALSE(purse.Reserve(1));
  CHECK(purse.Reserve(0));
  CHECK(purse.spent() == 0);
}

TEST_CASE("purse: settling gives the reservation back and books the real cost") {
  Purse purse(100);
  REQUIRE(purse.Reserve(60));
  purse.Settle(60, 25);
  CHECK(purse.spent() == 25);
  CHECK(purse.Available() == 75);
  // An attempt that failed before it was billed.
  REQUIRE(purse.Reserve(75));
  purse.Settle(75, 0);
  CHECK(purse.Available() == 75);
  // Money of an attempt whose answer nobody saw, on resume.
  purse.Settle(0, 75);
  CHECK(purse.spent() == 100);
  CHECK_FALSE(purse.Reserve(1));
}

TEST_CASE("purse: a bill above its reservation is booked in full and closes the purse") {
  Purse purse(100);
  REQUIRE(purse.Reserve(90));
  purse.Settle(90, 130);
  CHECK(purse.spent() == 130);
  CHECK(purse.Available() == 0);
  CHECK_FALSE(purse.Reserve(1));
}

TEST_CASE("purse: the settlement's reserve is held back from the work and free in settlement") {
  Purse purse(70, 30);
  CHECK(purse.Available() == 40);
  CHECK_FALSE(purse.Reserve(41));
  REQUIRE(purse.Reserve(40));
  purse.Settle(40, 40);
  CHECK(purse.Available() == 0);
  purse.BeginSettlement();
  CHECK(purse.Available() == 30);
  purse.BeginSettlement();
  CHECK(purse.Available() == 30);
  CHECK(purse.Reserve(30));
}

TEST_CASE("purse: a reserve larger than the limit leaves nothing for the work") {
  Purse purse(10, 30);
  CHECK(purse.Available() == 0);
  purse.BeginSettlement();
  CHECK(purse.Available() == 10);
}

TEST_CASE("purse: without a limit everything fits and the sum is still kept") {
  Purse purse(std::nullopt, 5);
  CHECK(purse.limit() == std::nullopt);
  CHECK(purse.Available() == kMax);
  CHECK(purse.Reserve(kMax));
  CHECK(purse.Reserve(kMax));
  purse.Settle(kMax, kMax);
  purse.Settle(kMax, 1);
  CHECK(purse.spent() == kMax);
  CHECK(purse.Available() == kMax);
}

TEST_CASE("purse: a limit of nothing allows nothing, and amounts at the edge do not wrap") {
  CHECK_FALSE(Purse(0).Reserve(1));
  Purse purse(kMax, kMax);
  CHECK(purse.Available() == 0);
  purse.BeginSettlement();
  CHECK(purse.Reserve(kMax));
  CHECK_FALSE(purse.Reserve(1));
  purse.Settle(kMax, kMax);
  purse.Settle(0, kMax);
  CHECK(purse.spent() == kMax);
  CHECK(purse.Available() == 0);
}

TEST_CASE("purse: our own arithmetic mistakes are caught") {
  Purse purse(100);
  CHECK_THROWS_AS(purse.Reserve(-1), InternalError);
  REQUIRE(purse.Reserve(10));
  CHECK_THROWS_AS(purse.Settle(11, 0), InternalError);
  CHECK_THROWS_AS(purse.Settle(-1, 0), InternalError);
  CHECK_THROWS_AS(purse.Settle(1, -1), InternalError);
  CHECK_THROWS_AS(Purse(100, -1), InternalError);
  CHECK(purse.Available() == 90);
}

TEST_CASE("purse: 8 threads never take or spend more than there is") {
  constexpr Nano kLimit = 100'000;
  Purse purse(kLimit, 10'000);
  std::array<Nano, 8> spent{};
  std::vector<std::thread> workers;
  for (size_t w = 0; w < spent.size(); ++w) {
    workers.emplace_back([&purse, &spent, w] {
      std::mt19937 random(static_cast<unsigned>(w));
      for (int i = 0; i < 5'000; ++i) {
        const auto worst = static_cast<Nano>(random() % 500);
        if (!purse.Reserve(worst)) continue;
        const auto actual = static_cast<Nano>(random() % static_cast<unsigned>(worst + 1));
        spent[w] += actual;
        purse.Settle(worst, actual);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  Nano sum = 0;
  for (const Nano one : spent) sum += one;
  CHECK(purse.spent() == sum);
  CHECK(sum <= kLimit - 10'000);
  CHECK(sum > kLimit - 10'000 - 500);  // the loops are long enough to use it up
  purse.BeginSettlement();
  CHECK(purse.Available() == kLimit - sum);
}

// One run's life with several requests open at a time: reserve, settle in any order, begin
// settlement at some moment. Returns what was broken, or nothing.
std::string LiveOnce(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](Nano bound) {
    return static_cast<Nano>(random() % static_cast<uint64_t>(bound));
  };
  const Nano limit = below(10'000);
  const Nano reserve = below(limit + 1);
  Purse purse(limit, reserve);
  std::vector<Nano> open;
  Nano spent = 0;
  const int settles_at = static_cast<int>(random() % 60);
  for (int step = 0; step < 60; ++step) {
    if (step == settles_at) {
      purse.BeginSettlement();
      Nano still_open = 0;
      for (const Nano one : open) still_open += one;
      if (purse.Available() < reserve) return "the settlement's reserve was touched";
      if (purse.Available() != limit - spent - still_open) return "the sum does not add up";
    }
    if (open.size() < 4 && random() % 2 == 0) {
      const Nano worst = below(1'000);
      const Nano free = purse.Available();
      const bool got = purse.Reserve(worst);
      if (got != (worst <= free)) return "Reserve and Available disagree";
      if (got) open.push_back(worst);
    } else if (!open.empty()) {
      const size_t which = static_cast<size_t>(random()) % open.size();
      const Nano actual = below(open[which] + 1);
      purse.Settle(open[which], actual);
      spent += actual;
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    }
    if (purse.spent() != spent || spent > limit) return "more was spent than there is";
    if (step < settles_at && spent > limit - reserve) return "the work spent the reserve";
  }
  return {};
}

TEST_CASE("purse: 10,000 random lives never pass the limit nor touch the settlement's reserve") {
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    const std::string broken = LiveOnce(seed);
    REQUIRE_MESSAGE(broken.empty(), broken, ", seed ", seed);
  }
}

// ------------------------------------------------------------------------- budget

BudgetLimits Limits() {
  BudgetLimits limits;
  limits.turns = 40;
  limits.wall = minutes(15);
  limits.cost = 500'000'000;
  limits.requests = 3;
  limits.input_tokens = 5'000;
  limits.output_tokens = 3'000;
  limits.calls = 2;
  limits.actions = 1;
  return limits;
}

TEST_CASE("budget: a limit lets exactly its number through") {
  testing::HandClock clock;
  Budget budget(Limits(), clock.Now());
  CHECK(budget.Fits(Limit::kRequests, 3));
  CHECK_FALSE(budget.Fits(Limit::kRequests, 4));
  budget.Charge(Limit::kRequests, 2);
  CHECK(budget.Used(Limit::kRequests) == 2);
  CHECK(budget.Left(Limit::kRequests) == 1);
  CHECK(budget.Fits(Limit::kRequests, 1));
  CHECK_FALSE(budget.Fits(Limit::kRequests, 2));
  budget.Charge(Limit::kRequests, 1);
  CHECK(budget.Left(Limit::kRequests) == 0);
  CHECK(budget.Fits(Limit::kRequests, 0));
  CHECK_FALSE(budget.Fits(Limit::kRequests, 1));
  // Counted apart from all others.
  CHECK(budget.Left(Limit::kCalls) == 2);
}

TEST_CASE("budget: an overrun leaves nothing, not even for nothing") {
  Budget budget(Limits(), MonoTime{});
  budget.Charge(Limit::kInputTokens, 6'000);
  CHECK(budget.Used(Limit::kInputTokens) == 6'000);
  CHECK(budget.Left(Limit::kInputTokens) == 0);
  CHECK_FALSE(budget.Fits(Limit::kInputTokens, 0));
}

TEST_CASE("budget: no limit always fits and is still counted") {
  Budget budget(BudgetLimits{}, MonoTime{});
  for (size_t i = 0; i < kLimitCount; ++i) {
    const auto limit = static_cast<Limit>(i);
    CHECK(budget.Fits(limit, kMax));
    budget.Charge(limit, 7);
    CHECK(budget.Used(limit) == 7);
    CHECK(budget.Left(limit) == kMax);
    CHECK(budget.HitOf(limit) == LimitHit{std::string(kLimitNames[i]), ""});
  }
  CHECK(budget.Exhausted() == std::nullopt);
}

TEST_CASE("budget: absurd numbers use a budget up, they never open it again") {
  Budget budget(Limits(), MonoTime{});
  budget.Charge(Limit::kOutputTokens, -1'000);
  CHECK(budget.Used(Limit::kOutputTokens) == 0);
  CHECK(budget.Fits(Limit::kOutputTokens, -5));
  CHECK_FALSE(budget.Fits(Limit::kOutputTokens, kMax));
  budget.Charge(Limit::kOutputTokens, kMax);
  budget.Charge(Limit::kOutputTokens, kMax);
  CHECK(budget.Used(Limit::kOutputTokens) == kMax);
  CHECK_FALSE(budget.Fits(Limit::kOutputTokens, 1));
  CHECK(budget.Left(Limit::kOutputTokens) == 0);
}

TEST_CASE("budget: a limit of zero fits nothing") {
  BudgetLimits limits;
  limits.calls = 0;
  const Budget budget(limits, MonoTime{});
  CHECK_FALSE(budget.Fits(Limit::kCalls, 1));
  CHECK(budget.Exhausted() == LimitHit{"calls", "0"});
}

TEST_CASE("budget: the exhausted limit is named in the order of the list, turns and wall apart") {
  Budget budget(Limits(), MonoTime{});
  budget.Charge(Limit::kTurns, 100);
  budget.Charge(Limit::kWall, kMax);
  CHECK(budget.Exhausted() == std::nullopt);
  budget.Charge(Limit::kActions, 1);
  CHECK(budget.Exhausted() == LimitHit{"actions", "1"});
  budget.Charge(Limit::kCalls, 2);
  CHECK(budget.Exhausted() == LimitHit{"calls", "2"});
  budget.Charge(Limit::kCostUsd, 499'999'999);
  CHECK(budget.Exhausted() == LimitHit{"calls", "2"});
  budget.Charge(Limit::kCostUsd, 1);
  CHECK(budget.Exhausted() == LimitHit{"cost_usd", "0.5"});
}

TEST_CASE("budget: a hit says name and value as a person writes them") {
  const Budget budget(Limits(), MonoTime{});
  CHECK(budget.HitOf(Limit::kTurns) == LimitHit{"turns", "40"});
  CHECK(budget.HitOf(Limit::kWall) == LimitHit{"wall", "15m"});
  CHECK(budget.HitOf(Limit::kCostUsd) == LimitHit{"cost_usd", "0.5"});
  CHECK(budget.HitOf(Limit::kRequests) == LimitHit{"requests", "3"});
  CHECK(budget.HitOf(Limit::kInputTokens) == LimitHit{"input_tokens", "5000"});
  CHECK(budget.HitOf(Limit::kOutputTokens) == LimitHit{"output_tokens", "3000"});
}

TEST_CASE("budget: wall is soft at its end and hard after the grace") {
  testing::HandClock clock;
  const MonoTime start = clock.Now();
  const Budget budget(Limits(), start);
  CHECK(budget.SoftDeadline() == start + minutes(15));
  CHECK(budget.HardDeadline() == start + minutes(15) + seconds(30));
  CHECK_FALSE(budget.WallReached(start));
  CHECK_FALSE(budget.WallReached(start + minutes(15) - Millis(1)));
  CHECK(budget.WallReached(start + minutes(15)));
}

TEST_CASE("budget: without wall there is no deadline, with an absurd one neither") {
  const Budget none(BudgetLimits{}, MonoTime{} + hours(1));
  CHECK(none.SoftDeadline() == kNever);
  CHECK(none.HardDeadline() == kNever);
  CHECK_FALSE(none.WallReached(MonoTime{} + hours(1'000'000)));
  BudgetLimits limits;
  limits.wall = Millis::max();
  limits.grace = Millis::max();
  const Budget absurd(limits, MonoTime{} + hours(1));
  CHECK(absurd.SoftDeadline() == kNever);
  CHECK(absurd.HardDeadline() == kNever);
  limits.wall = seconds(1);
  const Budget long_grace(limits, MonoTime{} + hours(1));
  CHECK(long_grace.SoftDeadline() == MonoTime{} + hours(1) + seconds(1));
  CHECK(long_grace.HardDeadline() == kNever);
  // Nothing is the shortest time, and a time before the clock's zero does not overflow.
  limits.wall = Millis{0};
  limits.grace = Millis{0};
  const Budget zero(limits, MonoTime{} - hours(1));
  CHECK(zero.HardDeadline() == MonoTime{} - hours(1));
  CHECK(zero.WallReached(MonoTime{} - hours(1)));
}

TEST_CASE("budget: a tool's calls and time are counted for that tool alone") {
  BudgetLimits limits;
  limits.per_tool["Bash"] = ToolLimit{2, minutes(5)};
  Budget budget(limits, MonoTime{});
  CHECK(budget.ToolCallFits("Bash") == std::nullopt);
  CHECK(budget.ToolWallLeft("Bash") == minutes(5));
  budget.ChargeToolCall("Bash");
  budget.ChargeToolCall("Read");
  budget.ChargeToolCall("bash");
  CHECK(budget.ToolCallFits("Bash") == std::nullopt);
  budget.ChargeToolWall("Bash", minutes(2));
  budget.ChargeToolWall("Bash", Millis(-5));
  CHECK(budget.ToolWallLeft("Bash") == minutes(3));
  budget.ChargeToolCall("Bash");
  CHECK(budget.ToolCallFits("Bash") == LimitHit{"per_tool.Bash.calls", "2"});
  CHECK(budget.ToolCallFits("Read") == std::nullopt);
  CHECK(budget.ToolWallLeft("Read") == std::nullopt);
}

TEST_CASE("budget: a tool whose time is used up gets no further call") {
  BudgetLimits limits;
  limits.per_tool["Bash"] = ToolLimit{std::nullopt, Millis(1500)};
  Budget budget(limits, MonoTime{});
  budget.ChargeToolWall("Bash", Millis(1499));
  CHECK(budget.ToolCallFits("Bash") == std::nullopt);
  budget.ChargeToolWall("Bash", Millis::max());
  budget.ChargeToolWall("Bash", Millis::max());
  CHECK(budget.ToolWallLeft("Bash") == Millis(0));
  CHECK(budget.ToolCallFits("Bash") == LimitHit{"per_tool.Bash.wall", "1.5s"});
  CHECK(budget.ToolWallHit("Bash") == LimitHit{"per_tool.Bash.wall", "1.5s"});
  CHECK(budget.ToolWallHit("Read") == LimitHit{"per_tool.Read.wall", ""});
}

// ------------------------------------------------------------------------- texts

TEST_CASE("budget: durations are written short and exact") {
  const std::pair<Millis, const char*> cases[] = {
      {Millis(0), "0s"},
      {Millis(1), "1ms"},
      {Millis(250), "250ms"},
      {Millis(999), "999ms"},
      {seconds(1), "1s"},
      {Millis(1500), "1.5s"},
      {Millis(1001), "1.001s"},
      {seconds(59), "59s"},
      {minutes(1), "1m"},
      {seconds(90), "1m30s"},
      {Millis(60'250), "1m0.25s"},
      {minutes(15), "15m"},
      {hours(1), "1h"},
      {hours(1) + seconds(5), "1h5s"},
      {hours(1) + minutes(30), "1h30m"},
      {hours(25), "25h"},
      {Millis(-1500), "-1.5s"},
      {Millis::max(), "2562047788015h12m55.807s"},
      {Millis::min(), "-2562047788015h12m55.808s"},
  };
  for (const auto& [duration, want] : cases) CHECK(FormatMillis(duration) == want);
}

TEST_CASE("budget: an amount is written in the unit of its limit") {
  CHECK(FormatLimit(Limit::kTurns, 40) == "40");
  CHECK(FormatLimit(Limit::kWall, 900'000) == "15m");
  CHECK(FormatLimit(Limit::kCostUsd, 500'000'000) == "0.5");
  CHECK(FormatLimit(Limit::kCostUsd, 100'000'000) == "0.1");
  CHECK(FormatLimit(Limit::kCostUsd, 1) == "0.000000001");
  CHECK(FormatLimit(Limit::kInputTokens, kMax) == "9223372036854775807");
}

}  // namespace
}  // namespace norma
