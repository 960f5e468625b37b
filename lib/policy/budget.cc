// Counting against limits with saturating integers: a number that a provider or a spec makes
// absurdly large uses a budget up, it never wraps round and opens it again.
#include "lib/policy/budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace norma {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

LimitHit ToolHit(std::string_view tool, std::string_view what, std::string value) {
  return {fmt::format("per_tool.{}.{}", tool, what), std::move(value)};
}

// start + wait, or kNever when that is beyond the clock's range.
MonoTime After(MonoTime start, Millis wait) {
  if (start == kNever) return kNever;
  const MonoTime from = std::max(start, MonoTime{});
  const auto room = std::chrono::duration_cast<Millis>(kNever - from);
  return wait >= room ? kNever : start + std::max(wait, Millis{0});
}

}  // namespace

std::string_view NameOf(Limit limit) {
  return kLimitNames[static_cast<size_t>(limit)];
}

Purse::Purse(std::optional<Nano> limit, Nano settlement_reserve)
    : limit_(limit), held_back_(settlement_reserve) {
  NORMA_CHECK(settlement_reserve >= 0);
}

Nano Purse::AvailableLocked() const {
  if (!limit_.has_value()) return kUnlimited;
  const Nano taken = SaturatingAdd(spent_, SaturatingAdd(reserved_, held_back_));
  return taken >= *limit_ ? 0 : *limit_ - taken;
}

bool Purse::Reserve(Nano amount) {
  NORMA_CHECK(amount >= 0);
  std::lock_guard lock(mutex_);
  if (!limit_.has_value()) return true;
  if (amount > AvailableLocked()) return false;
  reserved_ += amount;  // cannot overflow: the sum is at most the limit
  return true;
}

void Purse::Settle(Nano reserved, Nano actual) {
  NORMA_CHECK(reserved >= 0 && actual >= 0);
  std::lock_guard lock(mutex_);
  if (limit_.has_value()) {
    NORMA_CHECK(reserved <= reserved_);
    reserved_ -= reserved;
  }
  spent_ = SaturatingAdd(spent_, actual);
}

void Purse::BeginSettlement() {
  std::lock_guard lock(mutex_);
  held_back_ = 0;
}

Nano Purse::Available() const {
  std::lock_guard lock(mutex_);
  return AvailableLocked();
}

Nano Purse::spent() const {
  std::lock_guard lock(mutex_);
  return spent_;
}

Budget::Budget(const BudgetLimits& limits, MonoTime started) : limits_(limits), started_(started) {}

std::optional<int64_t> Budget::LimitOf(Limit limit) const {
  switch (limit) {
    case Limit::kTurns:
      return limits_.turns;
    case Limit::kWall:
      if (!limits_.wall.has_value()) return std::nullopt;
      return limits_.wall->count();
    case Limit::kCostUsd:
      return limits_.cost;
    case Limit::kRequests:
      return limits_.requests;
    case Limit::kInputTokens:
      return limits_.input_tokens;
    case Limit::kOutputTokens:
      return limits_.output_tokens;
    case Limit::kCalls:
      return limits_.calls;
    case Limit::kActions:
      return limits_.actions;
  }
  return 0;  // no limit we know: nothing fits
}

int64_t Budget::Used(Limit limit) const {
  return used_[static_cast<size_t>(limit)];
}

int64_t Budget::Left(Limit limit) const {
  const std::optional<int64_t> max = LimitOf(limit);
  if (!max.has_value()) return kUnlimited;
  return *max > Used(limit) ? *max - Used(limit) : 0;
}

bool Budget::Fits(Limit limit, int64_t n) const {
  // Even nothing does not fit into a budget that was overrun.
  const std::optional<int64_t> max = LimitOf(limit);
  return !max.has_value() || (Used(limit) <= *max && std::max<int64_t>(n, 0) <= Left(limit));
}

void Budget::Charge(Limit limit, int64_t n) {
  int64_t& used = used_[static_cast<size_t>(limit)];
  used = SaturatingAdd(used, std::max<int64_t>(n, 0));  // a negative report gives nothing back
}

std::optional<LimitHit> Budget::Exhausted() const {
  for (size_t i = 0; i < kLimitCount; ++i) {
    const auto limit = static_cast<Limit>(i);
    if (limit == Limit::kTurns || limit == Limit::kWall) continue;
    if (Left(limit) == 0) return HitOf(limit);
  }
  return std::nullopt;
}

LimitHit Budget::HitOf(Limit limit) const {
  const std::optional<int64_t> max = LimitOf(limit);
  return {std::string(NameOf(limit)), max.has_value() ? FormatLimit(limit, *max) : std::string()};
}

MonoTime Budget::SoftDeadline() const {
  return limits_.wall.has_value() ? After(started_, *limits_.wall) : kNever;
}

MonoTime Budget::HardDeadline() const {
  return After(SoftDeadline(), limits_.grace);
}

bool Budget::WallReached(MonoTime now) const {
  const MonoTime deadline = SoftDeadline();
  return deadline != kNever && now >= deadline;
}

const ToolLimit* Budget::LimitOf(std::string_view tool) const {
  const auto found = limits_.per_tool.find(tool);
  return found == limits_.per_tool.end() ? nullptr : &found->second;
}

Budget::ToolUse Budget::UseOf(std::string_view tool) const {
  const auto found = tools_.find(tool);
  return found == tools_.end() ? ToolUse{} : found->second;
}

std::optional<LimitHit> Budget::ToolCallFits(std::string_view tool) const {
  const ToolLimit* limit = LimitOf(tool);
  if (limit == nullptr) return std::nullopt;
  if (limit->calls.has_value() && UseOf(tool).calls >= *limit->calls) {
    return ToolHit(tool, "calls", std::to_string(*limit->calls));
  }
  if (ToolWallLeft(tool) == Millis{0}) return ToolWallHit(tool);
  return std::nullopt;
}

void Budget::ChargeToolCall(std::string_view tool) {
  if (LimitOf(tool) == nullptr) return;
  int64_t& calls = tools_[std::string(tool)].calls;
  calls = SaturatingAdd(calls, 1);
}

void Budget::ChargeToolWall(std::string_view tool, Millis spent) {
  if (LimitOf(tool) == nullptr) return;
  Millis& wall = tools_[std::string(tool)].wall;
  wall = Millis{SaturatingAdd(wall.count(), std::max<int64_t>(spent.count(), 0))};
}

std::optional<Millis> Budget::ToolWallLeft(std::string_view tool) const {
  const ToolLimit* limit = LimitOf(tool);
  if (limit == nullptr || !limit->wall.has_value()) return std::nullopt;
  const Millis used = UseOf(tool).wall;
  return *limit->wall > used ? *limit->wall - used : Millis{0};
}

LimitHit Budget::ToolWallHit(std::string_view tool) const {
  const ToolLimit* limit = LimitOf(tool);
  const bool known = limit != nullptr && limit->wall.has_value();
  return ToolHit(tool, "wall", known ? FormatMillis(*limit->wall) : std::string());
}

std::string FormatMillis(Millis duration) {
  if (duration.count() == 0) return "0s";
  // Unsigned, because the most negative duration has no positive twin.
  const auto count = static_cast<uint64_t>(duration.count());
  const uint64_t ms = duration.count() < 0 ? 0 - count : count;
  const std::string sign = duration.count() < 0 ? "-" : "";
  if (ms < 1000) return fmt::format("{}{}ms", sign, ms);
  const uint64_t hours = ms / 3'600'000;
  const uint64_t minutes = ms / 60'000 % 60;
  const uint64_t seconds = ms / 1000 % 60;
  const uint64_t rest = ms % 1000;
  std::string out = sign;
  if (hours > 0) out += fmt::format("{}h", hours);
  if (minutes > 0) out += fmt::format("{}m", minutes);
  if (rest > 0) {
    std::string decimals = fmt::format("{:03}", rest);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    out += fmt::format("{}.{}s", seconds, decimals);
  } else if (seconds > 0) {
    out += fmt::format("{}s", seconds);
  }
  return out;
}

std::string FormatLimit(Limit limit, int64_t amount) {
  switch (limit) {
    case Limit::kWall:
      return FormatMillis(Millis{amount});
    case Limit::kCostUsd:
      return FormatUsd(amount);
    case Limit::kTurns:
    case Limit::kRequests:
    case Limit::kInputTokens:
    case Limit::kOutputTokens:
    case Limit::kCalls:
    case Limit::kActions:
      break;
  }
  return std::to_string(amount);
}

}  // namespace norma
