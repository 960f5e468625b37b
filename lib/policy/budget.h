// Budgets as hard stops: a table indexed by kind, and a purse that reserves before it spends.
// Integers only. One owner thread, except Purse, which batch workers share.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/money.h"
#include "lib/base/result.h"

namespace norma {

enum class Limit {
  kTurns,
  kWall,
  kCostUsd,
  kRequests,
  kInputTokens,
  kOutputTokens,
  kCalls,
  kActions
};
inline constexpr std::array<std::string_view, 8> kLimitNames = {
    "turns", "wall", "cost_usd", "requests", "input_tokens", "output_tokens", "calls", "actions"};
inline constexpr size_t kLimitCount = kLimitNames.size();
static_assert(static_cast<size_t>(Limit::kActions) + 1 == kLimitCount);
std::string_view NameOf(Limit limit);

struct ToolLimit {
  std::optional<int64_t> calls;
  std::optional<Millis> wall;
  friend bool operator==(const ToolLimit&, const ToolLimit&) = default;
};

struct BudgetLimits {
  std::optional<int64_t> turns, requests, input_tokens, output_tokens, calls, actions;
  std::optional<Millis> wall;
  Millis grace{30'000};
  std::optional<Nano> cost;
  Nano settlement_reserve = 0;  // held back from the work, free in settlement
  std::map<std::string, ToolLimit, std::less<>> per_tool;
  friend bool operator==(const BudgetLimits&, const BudgetLimits&) = default;
};

// Which budget ended the run: `limit` of run.ended.
struct LimitHit {
  std::string name;   // "turns", "cost_usd", "per_tool.Bash.calls", …
  std::string value;  // as a person writes it: "40", "15m", "0.5"
  friend bool operator==(const LimitHit&, const LimitHit&) = default;
};

// Money shared by everybody who draws on it. Thread-safe.
class Purse {
 public:
  explicit Purse(std::optional<Nano> limit, Nano settlement_reserve = 0);
  // Takes `amount` out of what is free (limit − spent − open reservations − settlement reserve
  // unless settling); false and no change when it does not fit. No limit: always true.
  bool Reserve(Nano amount);
  // Gives a reservation back and books what it really cost (which may exceed it). Settle(0, cost)
  // books money that was spent without a reservation, as on resume.
  void Settle(Nano reserved, Nano actual);
  void BeginSettlement();
  // What Reserve could take now; no limit: INT64_MAX.
  Nano Available() const;
  Nano spent() const;
  std::optional<Nano> limit() const { return limit_; }

 private:
  const std::optional<Nano> limit_;
  mutable std::mutex mutex_;  // guards the three below; held for a few instructions
  Nano spent_ = 0;
  Nano reserved_ = 0;  // stays 0 without a limit: nothing is held against it
  Nano held_back_ = 0;

  Nano AvailableLocked() const;
};

// Counters of one run against its limits. Owned by the run thread.
class Budget {
 public:
  Budget(const BudgetLimits& limits, MonoTime started);

  // Would `n` more fit? Does not count them. kWall is never charged: ask WallReached.
  bool Fits(Limit limit, int64_t n) const;
  void Charge(Limit limit, int64_t n);
  int64_t Used(Limit limit) const;
  // What is left; INT64_MAX without a limit.
  int64_t Left(Limit limit) const;

  // The limit that is used up, in the order of the enum, wall and turns excluded (they are seen at
  // turn boundaries only, spec/40 §4.7).
  std::optional<LimitHit> Exhausted() const;
  // The name of a limit and its value; the value is empty where there is no limit.
  LimitHit HitOf(Limit limit) const;

  bool WallReached(MonoTime now) const;  // soft: at a turn boundary
  MonoTime SoftDeadline() const;         // kNever without a wall budget
  MonoTime HardDeadline() const;         // wall + grace

  // Per-tool budgets. Fits answers for one more call; wall is what is left for it.
  std::optional<LimitHit> ToolCallFits(std::string_view tool) const;
  void ChargeToolCall(std::string_view tool);
  void ChargeToolWall(std::string_view tool, Millis spent);
  std::optional<Millis> ToolWallLeft(std::string_view tool) const;
  LimitHit ToolWallHit(std::string_view tool) const;

  const BudgetLimits& limits() const { return limits_; }

 private:
  struct ToolUse {  // kept for tools with a limit alone
    int64_t calls = 0;
    Millis wall{0};
  };
  std::optional<int64_t> LimitOf(Limit limit) const;
  const ToolLimit* LimitOf(std::string_view tool) const;
  ToolUse UseOf(std::string_view tool) const;

  BudgetLimits limits_;
  MonoTime started_;
  std::array<int64_t, kLimitCount> used_{};
  std::map<std::string, ToolUse, std::less<>> tools_;
};

std::string FormatMillis(Millis duration);  // "15m", "1m30s", "1.5s", "250ms", "0s"; exact
// An amount of a budget in its own unit: "40", "15m" (of milliseconds), "0.5" (of nano-dollars).
std::string FormatLimit(Limit limit, int64_t amount);

}  // namespace norma
