// Cost: sums over ledgers as their lines tell it, whoever wrote them.
#include <functional>
#include <unordered_map>

#include <fmt/core.h>

#include "lib/ledger/reader.h"

namespace norma::ledger {
namespace {

constexpr std::string_view kUnknown = "(unknown)";
// Effects that belong to no call of the model: starting an MCP server, installing a program.
constexpr std::string_view kNoCall = "(no call)";
constexpr size_t kDayBytes = 10;  // 2026-12-01

// What must be remembered of a run until it ends.
struct OpenRun {
  std::string model{kUnknown};
  std::map<std::string, Nano> requests;      // id and attempt → reservation
  std::map<std::string, std::string> calls;  // agent and call id → tool
};

std::string KeyOf(std::string_view a, std::string_view b) {
  return std::string(a).append(1, '\x1f').append(b);
}

void AddUsage(CostLine& line, json::Value usage) {
  line.input = SaturatingAdd(line.input, usage["input"].Int());
  line.output = SaturatingAdd(line.output, usage["output"].Int());
  line.cache_read = SaturatingAdd(line.cache_read, usage["cache_read"].Int());
  const int64_t write = SaturatingAdd(usage["cache_write_5m"].Int(), usage["cache_write_1h"].Int());
  line.cache_write = SaturatingAdd(line.cache_write, write);
}

class Summer {
 public:
  void Take(json::Value record) {
    const std::string_view kind = record["kind"].Str();
    const std::string run(record["run"].Str());
    if (kind == "run.started") {
      ++report_.runs;
      OpenRun& open = runs_[run];
      if (!record["model"].Str().empty()) open.model = record["model"].Str();
      return;
    }
    OpenRun& open = runs_[run];
    if (kind == "request.sent") {
      const std::string attempt = std::to_string(record["attempt"].Int());
      open.requests[KeyOf(record["id"].Str(), attempt)] = record["reserved"].Int();
      Count(record, open, [](CostLine& line) { ++line.requests; });
    } else if (kind == "reply.received" || kind == "request.failed") {
      const std::string attempt = std::to_string(record["attempt"].Int());
      open.requests.erase(KeyOf(record["id"].Str(), attempt));
      CountBill(record, open, kind == "reply.received");
    } else if (kind == "call.judged") {
      CountCall(record, open);
    } else if (kind == "call.finished") {
      open.calls.erase(KeyOf(record["agent"].Str(), record["call"].Str()));
    } else if (kind == "action.started") {
      const auto call = open.calls.find(KeyOf(record["agent"].Str(), record["call"].Str()));
      const std::string tool(call == open.calls.end() ? kNoCall : std::string_view(call->second));
      ++report_.by_tool[tool].actions;
      Count(record, open, [](CostLine& line) { ++line.actions; });
    } else if (kind == "run.ended") {
      Close(open);
      runs_.erase(run);
    }
  }

  CostReport Finish() {
    for (const auto& [run, open] : runs_) Close(open);
    return std::move(report_);
  }

 private:
  void Count(json::Value record, const OpenRun& open, const std::function<void(CostLine&)>& add) {
    add(report_.total);
    add(report_.by_model[open.model]);
    add(report_.by_day[std::string(record["t"].Str().substr(0, kDayBytes))]);
    add(report_.by_agent[std::string(record["agent"].Str())]);
  }

  void CountBill(json::Value record, const OpenRun& open, bool is_reply) {
    const json::Value usage = record["usage"];
    const json::Value cost = record["cost"];
    Count(record, open, [&](CostLine& line) {
      if (is_reply) ++line.replies;
      if (is_reply && (!cost.present() || cost.is_null())) ++line.unpriced;
      AddUsage(line, usage);
      line.cost = SaturatingAdd(line.cost, cost.Int());
    });
  }

  void CountCall(json::Value record, OpenRun& open) {
    const std::string tool(record["tool"].Str());
    open.calls[KeyOf(record["agent"].Str(), record["call"].Str())] = tool;
    const bool denied = record["verdict"].Str() == "deny";
    const auto add = [denied](CostLine& line) {
      ++line.calls;
      if (denied) ++line.denied;
    };
    add(report_.by_tool[tool]);
    Count(record, open, add);
  }

  void Close(const OpenRun& open) {
    for (const auto& [key, reserved] : open.requests) {
      ++report_.open_requests;
      report_.open_reserved = SaturatingAdd(report_.open_reserved, reserved);
    }
  }

  CostReport report_;
  std::unordered_map<std::string, OpenRun> runs_;
};

}  // namespace

Result<CostReport> Cost(const std::vector<std::string>& paths) {
  Summer summer;
  for (const std::string& path : paths) {
    Status broken;
    NORMA_TRY(ReadLines(
        path,
        [&](const RawLine& line) {
          if (line.value.present() && line.value["kind"].is_string()) {
            summer.Take(line.value);
            return true;
          }
          broken = Error{Code::kInvalid,
                         fmt::format("{}:{} is no ledger record, so its cost cannot be summed; "
                                     "see `norma ledger verify`",
                                     path, line.number)};
          return false;
        },
        nullptr));
    if (!broken.ok()) return broken.error();
  }
  return summer.Finish();
}

}  // namespace norma::ledger
