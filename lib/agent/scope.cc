#include "lib/agent/scope.h"

#include <csignal>

#include <fmt/core.h>

namespace norma::agent {
namespace {

Ending LedgerEnding(const Error& error) {
  return {EndReason::kLedgerError, error.message, {}};
}

std::string SignalName(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return fmt::format("signal {}", signal);
  }
}

}  // namespace

Status RunScope::Record(const ledger::Record& record) {
  return Written(ledger.Append(record, agent));
}

Status RunScope::Announce(const ledger::Record& record) {
  return Written(ledger.Announce(record, agent));
}

Status RunScope::Written(Status status) {
  if (!status.ok()) Fail(LedgerEnding(status.error()));
  return status;
}

void RunScope::Warn(std::string code, std::string message) {
  // A failure is kept in `fatal`; the caller has nothing else to do about it.
  [[maybe_unused]] const Status ignored =
      Record(ledger::Warning{std::move(code), std::move(message)});
}

void RunScope::Fail(Ending ending) {
  if (!state.fatal.has_value()) state.fatal = std::move(ending);
  cancel.Trip(Cancel::kInternal);
}

void RunScope::ChangeMode(Mode to, std::string_view by) {
  if (to == mode) return;
  ledger::ModeChanged record{std::string(NameOf(mode)), std::string(NameOf(to)), std::string(by)};
  mode = to;
  [[maybe_unused]] const Status ignored = Record(record);  // kept in state.fatal
}

Ending EndingOfCancel(const RunScope& scope, bool in_tools) {
  if (scope.state.fatal.has_value()) return *scope.state.fatal;
  const int cause = scope.cancel.cause();
  if (cause == Cancel::kOutput) {
    return {EndReason::kAbortedOutput, "the reader of stdout went away", {}};
  }
  if (cause == Cancel::kDeadline) {
    return EndingOfLimit(EndReason::kTimeout, scope.budget().HitOf(Limit::kWall));
  }
  if (cause > 0) {
    return {in_tools ? EndReason::kAbortedTools : EndReason::kAbortedStreaming,
            fmt::format("stopped by {} {}", SignalName(cause),
                        in_tools ? "while tools ran" : "while the model was asked"),
            {}};
  }
  return {EndReason::kInternal, "the run was cancelled without a cause", {}};
}

Ending EndingOfLimit(EndReason reason, const LimitHit& hit) {
  return {reason, fmt::format("budgets.{} ({}) is used up", hit.name, hit.value), hit};
}

}  // namespace norma::agent
