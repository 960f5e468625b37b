// The process as the operating system gave it to us: descriptors, signals, environment. Read once,
// at the start; nobody below cmd/ looks at any of it.
#pragma once

#include <string>
#include <vector>

#include "lib/agent/run.h"
#include "lib/base/cancel.h"
#include "lib/base/clock.h"

namespace norma::cmd {

class ProcessState {
 public:
  // Opens missing standard descriptors, ignores SIGPIPE and SIGXFSZ, routes INT, TERM and HUP to
  // `cancel` (unless they were ignored on entry, as nohup does), becomes a subreaper.
  ProcessState();

  // First, and so before `cancel` opens a descriptor: a standard one that is closed would be taken
  // by whatever is opened next.
  const bool stdin_was_closed;
  const bool stdout_was_closed;
  const bool stderr_was_closed;

  const MonoTime started;
  Cancel cancel;
  agent::Environment environment;
  std::string cwd;  // "" when the current folder does not exist any more
  std::string host;

  // Overwrites the values of these variables in our own environment block and closes
  // /proc/PID/environ, mem and fd to our children, root's too (PRODUCT: "Secrets").
  void EraseFromEnvironment(const std::vector<std::string>& names);

  // A run id: UTC time and 48 random bits.
  std::string NewRunId() const;
};

}  // namespace norma::cmd
