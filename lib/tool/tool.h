// Tool: data and one function. prepare() turns checked arguments into a Prepared: what it will
// touch, what the tool itself says of it, and a closure over the parsed arguments, so that the
// judged call is the executed one. Tools never see the ledger, the history or a model.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/io/files.h"
#include "lib/policy/policy.h"

namespace norma::tool {

// What a tool tells of an effect, before and after it. Field names: ledger/record.h ActionDetail.
struct ActionReport {
  std::string effect;   // process, file, http, mcp, search, install
  std::string summary;  // one line for people: "bash: make -j2", "write src/x.c"
  std::string method, host, path, proxy;
  std::optional<int64_t> hop, status, exit, signal, bytes, killed;
  std::string sha256_before, sha256_after;
  std::string command;
  bool fallback = false, timed_out = false, cancelled = false, truncated = false;
  std::string error;
  Millis duration{0};  // of the effect itself, for End
};

struct TodoItem {
  std::string content;
  std::string status;  // pending | in_progress | completed
};
// Written by TodoWrite (an exclusive call), read by the loop between turns.
struct TodoList {
  std::mutex mutex;  // guards items
  std::vector<TodoItem> items;
};

class ReadLog;  // read_log.h

// Everything the tools of one run share. Const while tools run.
struct ToolEnv {
  const Roots* roots = nullptr;
  std::string cwd;                     // absolute
  std::vector<std::string> child_env;  // NAME=value, provider keys already gone
  size_t output_bytes = 30'000;        // budget of one result
  std::string private_dir;             // the run's own folder (an implicit read-only root)
  Millis bash_timeout{120'000};
  std::string run_marker;  // prefix of NORMA_CALL
  std::string ripgrep;     // absolute path, "" = built-in backend only
  std::vector<std::pair<uint64_t, uint64_t>> protected_files;  // device, inode: ledger, spec …
  std::vector<std::string> protected_paths;                    // the same by real path
  bool require_read = false;                                   // tools.edit.require_read
  ReadLog* reads = nullptr;  // needed when require_read is set; has its own lock
  TodoList* todos = nullptr;
  Clock* clock = nullptr;
};

// One call's connection to the run thread. Lives as long as the call runs.
class ToolContext {
 public:
  virtual ~ToolContext() = default;
  virtual const ToolEnv& env() const = 0;
  virtual const Cancel& cancel() const = 0;
  // The call must be over by then (per-tool wall, hard wall).
  virtual MonoTime deadline() const = 0;
  virtual const std::string& call_id() const = 0;
  // Announces an effect: judged, counted, written and synced by the run thread before this returns.
  // An error means: do not do it, return what the error says. Gives the action's id.
  virtual Result<std::string> Begin(const ActionReport& action) = 0;
  // The effect is over. Must follow each Begin on every path.
  virtual void End(const std::string& action_id, const ActionReport& outcome) = 0;
};

struct ToolOutput {
  std::string text;  // may hold any bytes; the run thread repairs UTF-8 and blank results
  bool is_error = false;
  bool truncated = false;  // text is not all there was
  // User messages that follow the results of the reply (a skill's instructions).
  std::vector<std::string> follow_ups = {};
};

struct Prepared {
  bool read_only = false;
  OwnVerdict own = OwnVerdict::kAsk;
  std::string own_message;                      // why, for an own deny
  std::vector<Action> actions;                  // what its arguments say it will touch
  std::function<ToolOutput(ToolContext&)> run;  // once, on a worker thread
};

struct Tool {
  std::string name;
  std::string description;            // our own words; for the model
  std::string input_schema;           // JSON text, object, draft-07
  bool read_only = false;             // for every input (Prepared may say more for one)
  bool parallel = false;              // its calls may run beside other parallel calls
  OwnVerdict own = OwnVerdict::kAsk;  // usual own verdict, for `norma check` (Prepared decides)
  // Arguments are schema-checked. An error makes the call `invalid`: nothing is judged or run.
  std::function<Result<Prepared>(json::Value arguments, const ToolEnv& env)> prepare;
  bool on_run_thread = false;  // works on the run itself: its calls run on the run thread
};

// The built-in tools in the contract's order. One line per tool in builtin.cc.
const std::vector<Tool>& BuiltinTools();
const Tool* FindBuiltin(std::string_view name);

// Shared by the tools: output over the budget is spilled to the private folder and cut to the first
// `budget` bytes with a marker that names size, lines and file (spec/41 §1.2).
ToolOutput Capture(std::string text, const ToolEnv& env);
inline ToolOutput Fail(std::string message) {
  return ToolOutput{.text = std::move(message), .is_error = true};
}

}  // namespace norma::tool
