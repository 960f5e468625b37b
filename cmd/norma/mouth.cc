#include "cmd/norma/mouth.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

#include "cmd/norma/stdio.h"
#include "lib/base/text.h"

namespace norma::cmd {
namespace {

// After a signal the result still goes to a reader that reads, but nobody waits for ever.
constexpr Millis kWriteGrace{1'000};
constexpr size_t kLineBytesMax = 160;

std::string OneLine(std::string_view text) {
  std::string out(CutUtf8(text.substr(0, text.find('\n')), kLineBytesMax));
  for (char& c : out) {
    // A model's words must not move the cursor of whoever reads the log.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

std::string Plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

Mouth::Mouth(const RunFlags& flags, const ledger::Redactor& redactor, Cancel& cancel,
             bool stdout_was_closed)
    : format_(flags.output),
      quiet_(flags.quiet),
      verbose_(flags.verbose),
      redactor_(redactor),
      cancel_(cancel),
      live_(!flags.quiet && isatty(STDERR_FILENO) == 1),
      reader_gone_(stdout_was_closed),
      started_(SystemClock().Now()) {}

void Mouth::ClearLive() {
  if (std::exchange(live_shown_, false)) Complain("\r\x1b[K");
}

void Mouth::Say(std::string_view line) {
  ClearLive();
  Complain(redactor_.Clean(fmt::format("norma: {}\n", line)));
}

bool Mouth::WriteOut(std::string_view bytes) {
  if (reader_gone_) return false;
  const WriteOutcome outcome = WriteAll(STDOUT_FILENO, bytes, cancel_, kWriteGrace);
  if (outcome == WriteOutcome::kDone) return true;
  reader_gone_ = true;
  return false;
}

std::string Mouth::DescribeRecord(const ledger::Record& record) const {
  if (const auto* failed = std::get_if<ledger::RequestFailed>(&record)) {
    const std::string next = failed->retry_in_ms.has_value()
                                 ? fmt::format("; next try in {} ms", *failed->retry_in_ms)
                                 : "";
    return fmt::format("request {} attempt {} failed: {}{}", failed->id, failed->attempt,
                       OneLine(failed->message), next);
  }
  if (const auto* judged = std::get_if<ledger::CallJudged>(&record)) {
    if (judged->verdict == "allow") return "";
    return fmt::format("{} {}: {}", judged->tool, judged->verdict == "deny" ? "denied" : "not run",
                       OneLine(judged->reason));
  }
  if (const auto* action = std::get_if<ledger::ActionStarted>(&record)) {
    return OneLine(action->action);
  }
  if (const auto* warning = std::get_if<ledger::Warning>(&record)) {
    return "warning: " + OneLine(warning->message);
  }
  if (!verbose_) return "";
  if (const auto* sent = std::get_if<ledger::RequestSent>(&record)) {
    return fmt::format("request {} attempt {} to {}: {}, about {} tokens", sent->id, sent->attempt,
                       sent->endpoint, FormatBytes(static_cast<uint64_t>(sent->bytes)),
                       sent->estimated_tokens);
  }
  if (const auto* reply = std::get_if<ledger::ReplyReceived>(&record)) {
    return fmt::format("reply {}: {} after {} ms, {} in, {} out{}", reply->id, reply->stop_reason,
                       reply->duration_ms, reply->usage.input, reply->usage.output,
                       reply->cost.has_value() ? ", $" + FormatUsd(*reply->cost) : "");
  }
  if (const auto* done = std::get_if<ledger::CallFinished>(&record)) {
    return fmt::format("{} {} after {} ms", done->tool, done->is_error ? "failed" : "finished",
                       done->duration_ms);
  }
  if (const auto* next = std::get_if<ledger::LoopContinued>(&record)) {
    return "going on: " + next->reason;
  }
  return "";
}

void Mouth::OnRecord(const ledger::Record& record, std::string_view line) {
  if (format_ == OutputFormat::kStreamJson && !reader_gone_) {
    if (!WriteOut(std::string(line) + "\n")) cancel_.Trip(Cancel::kOutput);
  }
  if (quiet_) return;
  if (const std::string text = DescribeRecord(record); !text.empty()) Say(text);
}

void Mouth::OnTick(std::string_view doing) {
  if (quiet_) return;
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(SystemClock().Now() - started_).count();
  if (live_) {
    ClearLive();
    Complain(redactor_.Clean(fmt::format("norma: {} ({} s)", OneLine(doing), seconds)));
    live_shown_ = true;
  } else {
    Say(fmt::format("{} ({} s)", OneLine(doing), seconds));
  }
}

bool Mouth::Deliver(const agent::RunResult& result) {
  if (reader_gone_ || ReaderIsGone(STDOUT_FILENO)) return !(reader_gone_ = true);
  if (format_ != OutputFormat::kText || result.text.empty()) return true;
  return WriteOut(result.text.ends_with('\n') ? result.text : result.text + "\n");
}

int Mouth::Close(const agent::RunResult& result) {
  ClearLive();
  int exit_code = result.exit_code;
  if (format_ != OutputFormat::kText) {
    const std::string json = ResultJson(result, format_ == OutputFormat::kStreamJson) + "\n";
    if (!WriteOut(json) && exit_code == 0) exit_code = ExitCodeOf(EndReason::kAbortedOutput);
  }
  if (result.reason != EndReason::kCompleted) {
    Say(fmt::format("{}: {}", RowOf(result.reason).name, result.message));
  }
  if (quiet_) return exit_code;
  Say(fmt::format("{} · {}", RowOf(result.reason).name, Summary(result)));
  if (!result.ledger_head.empty()) {
    Say(fmt::format("ledger {} · head {}", result.ledger_path, result.ledger_head));
  }
  return exit_code;
}

std::string Summary(const agent::RunResult& result) {
  const ledger::Totals& totals = result.totals;
  std::string text = Plural(totals.requests, "request") + " · " + Plural(totals.calls, "call");
  if (!result.denied.empty()) text += fmt::format(" ({} denied)", result.denied.size());
  text += fmt::format(" · {} in, {} out", totals.input, totals.output);
  if (totals.cost.has_value()) {
    text += fmt::format(" · ${}", FormatUsd(*totals.cost));
  } else {
    text += " · cost unknown (no price for this model)";
  }
  if (result.killed_processes > 0) {
    text += fmt::format(" · {} killed", Plural(result.killed_processes, "left-over process"));
  }
  return text;
}

}  // namespace norma::cmd
