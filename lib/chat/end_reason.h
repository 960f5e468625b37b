// The closed list of end reasons, one exit code each (PRODUCT: "End reasons and exit codes").
// Everything that prints, documents or checks a reason reads this table.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace norma {

enum class EndReason {
  kCompleted,
  kInternal,
  kUsage,
  kMaxTurns,
  kTimeout,
  kBudgetExceeded,
  kModelError,
  kPromptTooLong,
  kStopHookPrevented,
  kPromptRefused,
  kDenied,
  kOutputInvalid,
  kLedgerError,
  kSetupFailed,
  kReplayMiss,
  kEmptyAnswer,
  kRefused,
  kAbortedStreaming,
  kAbortedTools,
  kAbortedOutput,
};

struct EndReasonRow {
  EndReason reason;
  std::string_view name;
  int exit_code;  // -1: 128 + the signal's number
  std::string_view when;
};

inline constexpr std::array kEndReasons = {
    EndReasonRow{EndReason::kCompleted, "completed", 0, "the model ended its turn with an answer"},
    EndReasonRow{EndReason::kInternal, "internal", 1, "a bug of norma; please report it"},
    EndReasonRow{EndReason::kUsage, "usage", 2,
                 "bad flag, spec, prompt or price table: nothing was started"},
    EndReasonRow{EndReason::kMaxTurns, "max_turns", 3, "budgets.turns ended the run"},
    EndReasonRow{EndReason::kTimeout, "timeout", 3, "budgets.wall or --deadline ended the run"},
    EndReasonRow{EndReason::kBudgetExceeded, "budget_exceeded", 3,
                 "another budget ended the run; `limit` names it"},
    EndReasonRow{EndReason::kModelError, "model_error", 4,
                 "the provider failed after retries, refused the key, or answered nonsense"},
    EndReasonRow{EndReason::kPromptTooLong, "prompt_too_long", 5,
                 "the context overflowed and compaction could not cure it"},
    EndReasonRow{EndReason::kStopHookPrevented, "stop_hook_prevented", 6,
                 "a stop hook ended the run"},
    EndReasonRow{EndReason::kPromptRefused, "prompt_refused", 6, "a prompt hook refused the run"},
    EndReasonRow{EndReason::kDenied, "denied", 7, "a call was denied and on_denied is `fail`"},
    EndReasonRow{EndReason::kOutputInvalid, "output_invalid", 8,
                 "the answer does not satisfy output.schema after the allowed re-asks"},
    EndReasonRow{EndReason::kLedgerError, "ledger_error", 9,
                 "the ledger cannot be opened or written"},
    EndReasonRow{EndReason::kSetupFailed, "setup_failed", 10,
                 "a required MCP server, sandbox or tool is not there"},
    EndReasonRow{EndReason::kReplayMiss, "replay_miss", 10,
                 "a replay has no recording for a request"},
    EndReasonRow{EndReason::kEmptyAnswer, "empty_answer", 11,
                 "the model ended without text, also after one re-ask"},
    EndReasonRow{EndReason::kRefused, "refused", 11, "the model refused"},
    EndReasonRow{EndReason::kAbortedStreaming, "aborted_streaming", -1,
                 "a signal came while the model was asked"},
    EndReasonRow{EndReason::kAbortedTools, "aborted_tools", -1, "a signal came while tools ran"},
    EndReasonRow{EndReason::kAbortedOutput, "aborted_output", -1,
                 "the reader of stdout went away (141)"},
};

// Exit codes that belong to no run: `ledger verify` 1/3, `batch` 12 and 13, `explain` 7.

constexpr const EndReasonRow& RowOf(EndReason reason) {
  for (const EndReasonRow& row : kEndReasons) {
    if (row.reason == reason) return row;
  }
  return kEndReasons[1];
}

// 128 + signal for the aborted reasons (141 = SIGPIPE for aborted_output).
constexpr int ExitCodeOf(EndReason reason, int signal = 0) {
  const int code = RowOf(reason).exit_code;
  if (code >= 0) return code;
  return reason == EndReason::kAbortedOutput ? 128 + 13 : 128 + signal;
}

constexpr std::optional<EndReason> EndReasonOf(std::string_view name) {
  for (const EndReasonRow& row : kEndReasons) {
    if (row.name == name) return row.reason;
  }
  return std::nullopt;
}

}  // namespace norma
