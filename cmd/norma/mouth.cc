#include "cmd/norma/mouth.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cmd/norma/stdio.h"
#include "lib/base/text.h"

namespace norma::cmd {
namespace {

// After a signal the result still goes to a reader that reads, but nobody waits for ever.
constexpr Millis kWriteGrace{1'000};
constexpr size_t kLineBytesMax = 160;
constexpr const char* kReaderGone = "the reader of stdout went away";

// Code points that move a cursor, colour a screen, begin a line or turn the writing direction:
// U+0080-9F, U+2028-202E, U+2066-2069. What a model, a command or a provider says must not do that
// to whoever reads the log.
size_t ControlAt(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  if (byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) return 3;
  return byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9 ? 3 : 0;
}

std::string Printable(std::string_view text) {
  const std::string whole = RepairUtf8(text);
  std::string out;
  for (std::string_view rest = whole; !rest.empty();) {
    const size_t control = ControlAt(rest);
    out += control > 0 ? ' ' : rest.front();
    rest.remove_prefix(std::max<size_t>(control, 1));
  }
  return out;
}

std::string OneLine(std::string_view text) {
  return Printable(CutUtf8(text.substr(0, text.find('\n')), kLineBytesMax));
}

std::string Plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

Mouth::Mouth(const RunFlags& flags, const ledger::Redactor& redactor, Cancel& cancel,
             bool stdout_was_closed, MonoTime deadline)
    : format_(flags.output),
      quiet_(flags.quiet),
      verbose_(flags.verbose),
      redactor_(redactor),
      cancel_(cancel),
      live_(!flags.quiet && isatty(STDERR_FILENO) == 1),
      deadline_(deadline),
      lost_(stdout_was_closed ? kReaderGone : ""),
      started_(SystemClock().Now()) {}

void Mouth::ClearLive() {
  if (std::exchange(live_shown_, false)) Complain("\r\x1b[K");
}

void Mouth::Say(std::string_view line) {
  ClearLive();
  Complain(Printable(redactor_.Clean(fmt::format("norma: {}", line))) + "\n");
}

bool Mouth::WriteOut(std::string_view bytes) {
  if (!lost_.empty()) return false;
  switch (WriteAll(STDOUT_FILENO, bytes, cancel_, kWriteGrace, deadline_)) {
    case WriteOutcome::kDone:
      return true;
    case WriteOutcome::kReaderGone:
      lost_ = kReaderGone;
      return false;
    case WriteOutcome::kFailed:
      lost_ = fmt::format("stdout cannot be written: {}", std::strerror(errno));
      return false;
    case WriteOutcome::kInterrupted:
      lost_ = "the reader of stdout took nothing until the time was over";
      return false;
  }
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
  if (format_ == OutputFormat::kStreamJson && lost_.empty()) {
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

std::string Mouth::Deliver(const agent::RunResult& result) {
  if (lost_.empty() && ReaderIsGone(STDOUT_FILENO)) lost_ = kReaderGone;
  if (lost_.empty() && format_ == OutputFormat::kText && !result.text.empty()) {
    WriteOut(result.text.ends_with('\n') ? result.text : result.text + "\n");
  }
  return lost_;
}

int Mouth::Close(const agent::RunResult& result) {
  ClearLive();
  int exit_code = result.exit_code;
  if (format_ != OutputFormat::kText) {
    const std::string json = ResultJson(result, format_ == OutputFormat::kStreamJson) + "\n";
    if (!WriteOut(json) && exit_code == 0) {
      exit_code = ExitCodeOf(EndReason::kAbortedOutput);
      Say(fmt::format("{}: {}", RowOf(EndReason::kAbortedOutput).name, lost_));
    }
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
