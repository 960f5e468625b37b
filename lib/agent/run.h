// RunOne: one prompt from the spec to the last ledger line. Builds what a run owns, runs the loop,
// catches what must not escape, and writes exactly one run.ended on every path that wrote
// run.started. Reads no environment and no flag: everything comes in through RunInput.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/agent/observer.h"
#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/chat/end_reason.h"
#include "lib/io/append_file.h"
#include "lib/io/http.h"
#include "lib/ledger/record.h"
#include "lib/ledger/redactor.h"
#include "lib/llm/provider.h"
#include "lib/llm/rate_limit.h"
#include "lib/spec/run_spec.h"

namespace norma::agent {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct RunInput {
  const spec::RunSpec* spec = nullptr;
  llm::ProviderConfig provider;
  const ledger::Redactor* redactor = nullptr;
  std::string version;
  std::string run_id;
  std::string prompt;
  bool prompt_was_repaired = false;  // invalid UTF-8 became U+FFFD
  std::string cwd;                   // absolute
  std::string ledger_path;           // absolute, {run} replaced
  std::string temp_folder;           // TMPDIR
  std::string host;
  Environment environment;                   // of this process, whole; children get a part of it
  std::vector<std::string> protected_paths;  // files no tool may write: spec and the like
  std::string ripgrep;                       // absolute path or empty
  MonoTime started{};                        // the process's start: budgets.wall counts from here
  Millis tick{30'000};                       // how often Observer::OnTick is called while waiting
  int watch_output_fd = -1;                  // stdout when a reader that goes away must end the run
  std::string replay_folder;                 // answers come from here; empty: from the network
  bool one_request = false;  // a probe: whatever the first reply holds, the run is completed
};

// The places where tests put something else.
struct Seams {
  Clock* clock = nullptr;
  Transport* transport = nullptr;
  std::function<Result<std::unique_ptr<AppendFile>>(const std::string& path)> open_ledger;
  llm::RateLimiter* rate_limiter = nullptr;  // shared by all runs of the process; may be null
};

struct RunResult {
  std::string run;
  EndReason reason = EndReason::kInternal;
  int exit_code = 1;
  std::string limit_name, limit_value;
  std::string message;  // for stderr; empty when completed
  std::string text;     // the answer, redacted
  ledger::Totals totals;
  int64_t turns = 0;
  std::vector<ledger::Denied> denied;
  std::string ledger_path;  // empty: none was made
  std::string ledger_head;  // SHA-256 of the last line
  int64_t killed_processes = 0;
  Millis duration{0};
  // A tool worker could not be stopped: leave with _exit, a normal exit would wait for it.
  bool has_stuck_worker = false;
};

RunResult RunOne(const RunInput& input, const Seams& seams, Cancel& cancel, Observer& observer);

// The object of `-o json`; with `as_event` the last line of `-o stream-json` ("kind":"result").
std::string ResultJson(const RunResult& result, bool as_event);

}  // namespace norma::agent
