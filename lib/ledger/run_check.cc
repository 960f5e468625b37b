#include "lib/ledger/run_check.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "lib/chat/end_reason.h"

namespace norma::ledger {
namespace {

constexpr std::array<std::string_view, 7> kFreeKinds = {
    "hook.ran",   "loop.continued", "context.compacted", "mode.changed",
    "task.ended", "warning",        "run.started"};

// Between the parts of a key; cannot occur in an id that came through JSON unescaped by chance.
constexpr char kKeySeparator = '\x1f';

bool IsInteger(json::Value value) {
  return value.present() && (value.kind() == json::Kind::kInt || value.kind() == json::Kind::kUint);
}

std::string RequestKey(json::Value record) {
  return fmt::format("{}{}{}", record["id"].Str(), kKeySeparator, record["attempt"].Int());
}

std::string CallKey(json::Value record) {
  return fmt::format("{}{}{}", record["agent"].Str(), kKeySeparator, record["call"].Str());
}

bool IsBudgetReason(EndReason reason) {
  return reason == EndReason::kMaxTurns || reason == EndReason::kTimeout ||
         reason == EndReason::kBudgetExceeded;
}

// 128 + a signal's number, as a shell reports it.
bool IsSignalExit(int64_t code) {
  return code > 128 && code <= 192;
}

}  // namespace

void RunCheck::Take(json::Value record, const Report& fault) {
  const std::string_view kind = record["kind"].Str();
  if (kind == "run.started") {
    if (started_) fault("a second run.started");
  } else if (!started_) {
    fault(fmt::format("the run's first record is {}, not run.started", kind));
  }
  started_ = true;
  if (kind.substr(0, 8) == "request." || kind == "reply.received") {
    TakeRequest(kind, record, fault);
  } else if (kind == "call.judged" || kind == "call.finished") {
    TakeCall(kind, record, fault);
  } else if (kind == "action.started" || kind == "action.finished") {
    TakeAction(kind, record, fault);
  } else if (kind == "run.ended") {
    TakeEnd(record, fault);
  } else if (std::ranges::find(kFreeKinds, kind) == kFreeKinds.end()) {
    fault(fmt::format("unknown kind \"{}\" (a newer version wrote it, or nobody of ours)", kind));
  }
}

void RunCheck::TakeRequest(std::string_view kind, json::Value record, const Report& fault) {
  if (!record["id"].is_string() || !IsInteger(record["attempt"])) {
    fault(fmt::format("{} without id and attempt", kind));
    return;
  }
  const std::string key = RequestKey(record);
  const std::string name =
      fmt::format("request {} attempt {}", record["id"].Str(), record["attempt"].Int());
  if (kind == "request.sent") {
    ++sums_.requests;
    const json::Value reserved = record["reserved"];
    if (!reserved.is_null() && !IsInteger(reserved)) fault(name + ": reserved is no integer");
    if (!requests_.emplace(key, name).second) fault(name + " is sent twice");
    return;
  }
  if (kind != "request.failed" && kind != "reply.received") {
    fault(fmt::format("unknown kind \"{}\"", kind));
    return;
  }
  if (requests_.erase(key) == 0) fault(name + " is answered before it is sent, or twice");
  Bill(record, kind == "reply.received", fault);
}

void RunCheck::Bill(json::Value record, bool is_reply, const Report& fault) {
  const json::Value usage = record["usage"];
  if (is_reply) {
    ++sums_.replies;
    if (!usage.is_object()) fault("reply.received without usage");
  }
  if (usage.is_object()) {
    for (const std::string_view name :
         {"input", "output", "cache_read", "cache_write_5m", "cache_write_1h"}) {
      if (!IsInteger(usage[name])) fault(fmt::format("usage.{} is no integer", name));
    }
    sums_.input = SaturatingAdd(sums_.input, usage["input"].Int());
    sums_.output = SaturatingAdd(sums_.output, usage["output"].Int());
    sums_.cache_read = SaturatingAdd(sums_.cache_read, usage["cache_read"].Int());
    const int64_t write =
        SaturatingAdd(usage["cache_write_5m"].Int(), usage["cache_write_1h"].Int());
    sums_.cache_write = SaturatingAdd(sums_.cache_write, write);
  }
  const json::Value cost = record["cost"];
  if (IsInteger(cost)) {
    if (cost.Int() < 0) fault("cost is negative");
    sums_.cost = SaturatingAdd(priced_ ? sums_.cost.value_or(0) : 0, cost.Int());
    priced_ = true;
  } else if (cost.present() && !cost.is_null()) {
    fault("cost is no integer");
  } else if (is_reply || usage.is_object()) {
    if (is_reply) ++sums_.unpriced;
    if (!priced_) sums_.cost = std::nullopt;
  }
}

void RunCheck::TakeCall(std::string_view kind, json::Value record, const Report& fault) {
  if (!record["call"].is_string()) {
    fault(fmt::format("{} without call", kind));
    return;
  }
  const std::string key = CallKey(record);
  if (kind == "call.judged") {
    ++sums_.calls;
    const std::string_view verdict = record["verdict"].Str();
    if (verdict != "allow" && verdict != "deny" && verdict != "invalid") {
      fault(fmt::format("verdict \"{}\" is none of allow, deny, invalid", verdict));
    }
    if (verdict == "deny") {
      denied_.push_back({std::string(record["tool"].Str()), std::string(record["call"].Str()),
                         std::string(record["rule"].Str())});
    }
    OpenCall& call = calls_[key];
    ++call.count;
    call.allowed = call.allowed || verdict == "allow";
    call.tool = record["tool"].Str();
    return;
  }
  const auto open = calls_.find(key);
  if (open == calls_.end()) {
    fault(fmt::format("call {} is finished before it is judged, or twice", record["call"].Str()));
  } else if (--open->second.count == 0) {
    calls_.erase(open);
  }
}

void RunCheck::TakeAction(std::string_view kind, json::Value record, const Report& fault) {
  if (!record["id"].is_string()) {
    fault(fmt::format("{} without id", kind));
    return;
  }
  const std::string id(record["id"].Str());
  if (kind == "action.finished") {
    if (actions_.erase(id) == 0) {
      fault(fmt::format("action {} is finished before it is started, or twice", id));
    }
    return;
  }
  ++sums_.actions;
  const auto call = calls_.find(CallKey(record));
  if (call != calls_.end() && !call->second.allowed) {
    fault(fmt::format("action {} belongs to call {}, which was not allowed", id,
                      record["call"].Str()));
  }
  const std::string name = fmt::format("action {} ({})", id, record["action"].Str());
  if (!actions_.emplace(id, name).second) fault(fmt::format("action {} is started twice", id));
}

void RunCheck::TakeEnd(json::Value record, const Report& fault) {
  ended_ = true;
  for (const std::string& open : Open()) fault(open + ", although the run ended");
  const std::string_view name = record["reason"].Str();
  const std::optional<EndReason> reason = EndReasonOf(name);
  const json::Value exit_code = record["exit_code"];
  if (!reason.has_value()) {
    fault(fmt::format("reason \"{}\" is not in the closed list", name));
  } else if (!IsInteger(exit_code)) {
    fault("exit_code is no integer");
  } else {
    const bool by_signal = RowOf(*reason).exit_code < 0 && *reason != EndReason::kAbortedOutput;
    const bool fits =
        by_signal ? IsSignalExit(exit_code.Int()) : exit_code.Int() == ExitCodeOf(*reason);
    if (!fits) fault(fmt::format("reason {} with exit_code {}", name, exit_code.Int()));
    if (IsBudgetReason(*reason) && !record["limit"].is_object()) {
      fault(fmt::format("reason {} without the limit that was met", name));
    }
  }
  CompareTotals(record["totals"], fault);
  CompareDenied(record["denied"], fault);
}

void RunCheck::CompareTotals(json::Value totals, const Report& fault) const {
  if (!totals.is_object()) {
    fault("run.ended without totals");
    return;
  }
  struct Row {
    std::string_view name;
    int64_t sum;
  };
  const std::array rows = {
      Row{"requests", sums_.requests},     Row{"replies", sums_.replies},
      Row{"calls", sums_.calls},           Row{"actions", sums_.actions},
      Row{"input", sums_.input},           Row{"output", sums_.output},
      Row{"cache_read", sums_.cache_read}, Row{"cache_write", sums_.cache_write},
      Row{"unpriced", sums_.unpriced}};
  for (const Row& row : rows) {
    if (!IsInteger(totals[row.name]) || totals[row.name].Int() != row.sum) {
      fault(fmt::format("totals.{} is {}, the records sum to {}", row.name, totals[row.name].Int(),
                        row.sum));
    }
  }
  const json::Value cost = totals["cost"];
  if (!sums_.cost.has_value()) {
    if (!cost.present() || !cost.is_null())
      fault("totals.cost is not null, but nothing had a price");
  } else if (!IsInteger(cost) || cost.Int() != *sums_.cost) {
    fault(fmt::format("totals.cost is {}, the records sum to {}",
                      IsInteger(cost) ? std::to_string(cost.Int()) : "no integer", *sums_.cost));
  }
}

void RunCheck::CompareDenied(json::Value denied, const Report& fault) const {
  std::vector<Denied> listed;
  denied.EachElement([&](json::Value entry) {
    listed.push_back({std::string(entry["tool"].Str()), std::string(entry["call"].Str()),
                      std::string(entry["rule"].Str())});
  });
  if (listed != denied_) {
    fault(fmt::format("denied lists {} calls that are not the {} of the records", listed.size(),
                      denied_.size()));
  }
}

std::vector<std::string> RunCheck::Open() const {
  std::vector<std::string> open;
  for (const auto& [key, name] : requests_) open.push_back(name + " was sent, no answer recorded");
  for (const auto& [id, name] : actions_) open.push_back(name + " started, never finished");
  for (const auto& [key, call] : calls_) {
    open.push_back(fmt::format("call {} ({}) was judged, never finished",
                               key.substr(key.find(kKeySeparator) + 1), call.tool));
  }
  return open;
}

}  // namespace norma::ledger
