// norma ledger verify|cost: what other runs left, read independently of the writer.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "cmd/norma/commands.h"
#include "cmd/norma/stdio.h"
#include "lib/base/json.h"
#include "lib/base/money.h"
#include "lib/chat/end_reason.h"
#include "lib/ledger/reader.h"

namespace norma::cmd {
namespace {

constexpr int kNotIntact = 1;
constexpr Millis kGrace{1'000};

int Print(std::string_view text, int exit_code) {
  const Cancel never;
  return WriteAll(STDOUT_FILENO, text, never, kGrace) == WriteOutcome::kDone
             ? exit_code
             : ExitCodeOf(EndReason::kAbortedOutput);
}

std::string Table(std::string_view title, const std::map<std::string, ledger::CostLine>& rows) {
  if (rows.empty()) return "";
  std::string out = fmt::format("\nby {}\n", title);
  for (const auto& [name, line] : rows) {
    out +=
        fmt::format("  {:<28} {:>14}  {:>6} requests  {:>10} in  {:>9} out  {:>5} calls\n", name,
                    "$" + FormatUsd(line.cost), line.requests, line.input, line.output, line.calls);
  }
  return out;
}

// Tools cost nothing of their own: a reply's cost is the model's.
std::string ToolTable(const std::map<std::string, ledger::CostLine>& rows) {
  if (rows.empty()) return "";
  std::string out = "\nby tool\n";
  for (const auto& [name, line] : rows) {
    out += fmt::format("  {:<28} {:>6} calls  {:>6} denied  {:>6} actions\n", name, line.calls,
                       line.denied, line.actions);
  }
  return out;
}

void WriteLine(json::Writer& out, const ledger::CostLine& line) {
  out.BeginObject().Field("cost_usd", FormatUsd(line.cost)).Field("requests", line.requests);
  out.Field("replies", line.replies).Field("calls", line.calls).Field("denied", line.denied);
  out.Field("actions", line.actions).Field("input", line.input).Field("output", line.output);
  out.Field("cache_read", line.cache_read).Field("cache_write", line.cache_write);
  out.Field("unpriced", line.unpriced).EndObject();
}

std::string CostJson(const ledger::CostReport& report) {
  json::Writer out;
  out.BeginObject().Field("runs", report.runs);
  out.Key("total");
  WriteLine(out, report.total);
  const auto group = [&](std::string_view name,
                         const std::map<std::string, ledger::CostLine>& rows) {
    out.Key(name).BeginObject();
    for (const auto& [key, line] : rows) {
      out.Key(key);
      WriteLine(out, line);
    }
    out.EndObject();
  };
  group("by_model", report.by_model);
  group("by_tool", report.by_tool);
  group("by_day", report.by_day);
  group("by_agent", report.by_agent);
  out.Field("open_requests", report.open_requests);
  out.Field("open_reserved_usd", FormatUsd(report.open_reserved)).EndObject();
  return out.Take() + "\n";
}

std::string CostText(const ledger::CostReport& report) {
  const ledger::CostLine& total = report.total;
  std::string out = fmt::format(
      "total ${}  ({} runs, {} requests, {} in, {} out, {} calls, {} actions, {} denied)\n",
      FormatUsd(total.cost), report.runs, total.requests, total.input, total.output, total.calls,
      total.actions, total.denied);
  if (total.unpriced > 0) {
    out += fmt::format("{} replies have no price: the true cost is higher\n", total.unpriced);
  }
  if (report.open_requests > 0) {
    out +=
        fmt::format("{} requests were sent and no answer was recorded (a crash): up to ${} more\n",
                    report.open_requests, FormatUsd(report.open_reserved));
  }
  return out + Table("model", report.by_model) + ToolTable(report.by_tool) +
         Table("day", report.by_day);
}

}  // namespace

int LedgerVerifyCommand(const std::vector<std::string>& files) {
  int worst = 0;
  std::string out;
  for (const std::string& file : files) {
    const Result<ledger::Verification> found = ledger::Verify(file);
    if (!found.ok()) {
      Complain(fmt::format("norma: {}\n", found.error().message));
      worst = worst == kNotIntact ? worst : ExitCodeOf(EndReason::kUsage);
      continue;
    }
    out += fmt::format("{}: {}\n", file, ledger::Describe(found.value()));
    const int code = found.value().exit_code();
    if (code == kNotIntact || worst == 0) worst = code;
  }
  return Print(out, worst);
}

int LedgerCostCommand(const std::vector<std::string>& files, bool as_json) {
  const Result<ledger::CostReport> report = ledger::Cost(files);
  if (!report.ok()) {
    Complain(fmt::format("norma: {}\n", report.error().message));
    return ExitCodeOf(EndReason::kUsage);
  }
  return Print(as_json ? CostJson(report.value()) : CostText(report.value()), 0);
}

}  // namespace norma::cmd
