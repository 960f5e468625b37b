// Child processes: own session and process group, no terminal, stdin from /dev/null, output read
// with a bound, killed with everything they started. Knows no agent word. Code that starts a child
// in another way registers it (io/process_children.h), else it counts as an orphan that may be
// reaped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/base/result.h"

namespace norma {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is looked up by PATH of `env`
  std::vector<std::string> env;   // NAME=value, complete
  std::string cwd;
  std::string stdin_bytes;   // empty: /dev/null
  std::string marker;        // put into the child's environment as NORMA_CALL: whose it is
  bool merge_stderr = true;  // stderr into the same stream as stdout; else stderr is read apart
  size_t head_bytes_max = 15'000;  // kept from the start of the output …
  size_t tail_bytes_max = 15'000;  // … and from its end
  // The whole output goes there (0600, must not exist) once it exceeds head + tail; "" = nowhere.
  std::string spill_path;
  uint64_t output_bytes_max = 50ull << 20;  // more output kills the process
  MonoTime deadline = kNever;               // then TERM to the group, `term_grace`, KILL
  Millis term_grace{2'000};
  Millis drain_grace{200};  // how long a pipe held open by others is read after the child ended
};

struct ProcessResult {
  bool started = false;
  std::string start_error;  // why not
  int exit_code = -1;       // valid when signal == 0
  int signal = 0;           // what ended it
  bool timed_out = false;
  bool cancelled = false;
  bool output_overflow = false;
  std::string head;  // whole output when !omitted
  std::string tail;
  uint64_t omitted = 0;      // bytes between head and tail
  uint64_t bytes = 0;        // all that was read
  std::string error_output;  // stderr, last 64 KiB, when !merge_stderr
  bool spilled = false;
  int killed = 0;  // processes that got KILL or TERM from us
  Millis duration{0};
};

// Blocks until the child ended and its output was taken. After a timeout, a cancel or an overflow
// nothing that carries `marker` or descends from the child is left alive. After a normal end
// children in the background live on: KillDescendants ends them with the run.
ProcessResult RunProcess(const ProcessSpec& spec, Clock& clock, const Cancel& cancel);

// Orphans of our children become our children instead of init's; SIGCHLD is set to its default, for
// a process that ignores it learns no exit codes. Once per process, early.
void BecomeSubreaper();

// Ends every process that descends from this one (or, with a marker prefix, only those whose
// environment holds NORMA_CALL=<prefix>…): TERM, `grace`, KILL, until none is left or 5 s passed.
// Returns how many there were.
int KillDescendants(const std::string& marker_prefix, Millis grace, Clock& clock);

// An executable file of this name on PATH (a name with a slash is taken as it is); "" when none.
// Relative and empty entries of PATH are skipped: the model can write to the current folder.
std::string FindProgram(const std::string& name, const std::string& path_variable);

}  // namespace norma
