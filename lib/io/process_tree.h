// Finds and signals everything a child started, wherever it went: below it, orphaned to us, in a
// session or group of its own, or only to be known by NORMA_CALL in its environment. Works from
// snapshots of /proc, so the caller repeats until nothing is left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/io/files.h"

namespace norma {

// Not valid where the kernel has no pidfds. (glibc's own header lacks C linkage before 2.37.)
UniqueFd OpenPidfd(pid_t pid);

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  int threads = 0;
  uint64_t start = 0;  // clock ticks since boot; with the pid it names a process for good

  // A zombie whose other threads still run is alive.
  bool alive() const { return (state != 'Z' && state != 'X') || threads > 1; }
};

// All processes we can see. Empty without /proc.
std::vector<ProcessEntry> ListProcesses();
std::optional<ProcessEntry> FindProcess(pid_t pid);

// The fields of a /proc/PID/stat line; the program's name in it may hold blanks and parentheses.
std::optional<ProcessEntry> ParseStat(const std::string& line);

// Whose processes are meant.
struct KillScope {
  pid_t child = 0;               // a child that has not been reaped yet, and all that came of it
  bool all_descendants = false;  // everything below this process
  std::string marker;            // NORMA_CALL=<marker> in the environment; "" = not looked at
  bool marker_is_prefix = false;
};

class TreeKiller {
 public:
  explicit TreeKiller(KillScope scope);

  // Sends `signal` to every living process of the scope; TERM at most once to each. Returns how
  // many there are.
  size_t Signal(int signal);
  // Different processes that were signalled so far.
  int signalled() const { return static_cast<int>(signalled_.size()); }

 private:
  std::vector<ProcessEntry> Targets() const;
  bool IsSeed(const ProcessEntry& entry, bool adopts) const;

  KillScope scope_;
  uint64_t oldest_ = 0;  // start time; nothing that is older can belong to the scope
  std::set<std::pair<pid_t, uint64_t>> signalled_;
};

}  // namespace norma
