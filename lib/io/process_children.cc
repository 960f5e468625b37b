#include "lib/io/process_children.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/io/process_tree.h"

namespace norma::children {
namespace {

constexpr size_t kKeptPipesMax = 32;
// Read from one kept pipe at one visit, so that an endless writer cannot hold us.
constexpr int kBlocksPerVisitMax = 32;
// Strays reaped in one visit; the rest waits for the next one.
constexpr int kStraysPerVisitMax = 4096;
// A pipe is made this large when it is kept, so that a talkative server blocks late.
constexpr int kKeptPipeBytes = 1 << 20;

struct Table {
  // Shared while a child is being started, exclusive while strays are reaped: a child that ends at
  // once must be in `pids` before the reaper can look at it.
  std::shared_mutex spawning;
  std::mutex mutex;  // guards the rest
  std::set<pid_t> pids;
  std::vector<UniqueFd> pipes;
};

Table& TheTable() {
  static Table* table = new Table;  // never destroyed: worker threads may outlive statics
  return *table;
}

// False when the writers are gone.
bool Empty(int fd) {
  std::array<char, 65536> block;
  for (int i = 0; i < kBlocksPerVisitMax; ++i) {
    const ssize_t count = read(fd, block.data(), block.size());
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
  }
  return true;
}

}  // namespace

pid_t Spawn(const std::function<pid_t()>& spawn) {
  Table& table = TheTable();
  std::shared_lock starting(table.spawning);
  const pid_t pid = spawn();
  if (pid > 0) {
    std::lock_guard lock(table.mutex);
    table.pids.insert(pid);
  }
  return pid;
}

bool Reap(pid_t pid, siginfo_t* info) {
  Table& table = TheTable();
  // Reaping and forgetting are one step: between them the pid could be another thread's new child.
  std::lock_guard lock(table.mutex);
  *info = {};
  const int outcome = waitid(P_PID, static_cast<id_t>(pid), info, WEXITED | WNOHANG);
  if (outcome == 0 && info->si_pid == 0) return false;
  if (outcome != 0 && errno == EINTR) return false;
  // ECHILD: somebody ignores SIGCHLD and the kernel has reaped it; its status is lost.
  table.pids.erase(pid);
  return true;
}

bool IsRegistered(pid_t pid) {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  return table.pids.contains(pid);
}

size_t RegisteredCount() {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  return table.pids.size();
}

void ReapStrays() {
  Table& table = TheTable();
  std::unique_lock no_spawns(table.spawning, std::try_to_lock);
  if (!no_spawns.owns_lock()) return;  // a zombie may wait until the next visit
  std::lock_guard lock(table.mutex);
  for (int i = 0; i < kStraysPerVisitMax; ++i) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (table.pids.contains(info.si_pid)) break;  // it hides the others: look at each of them
    waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
  }
  for (const ProcessEntry& entry : ListProcesses()) {
    if (entry.parent != getpid() || entry.state != 'Z' || table.pids.contains(entry.pid)) continue;
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(entry.pid), &info, WEXITED | WNOHANG);
  }
}

void KeepPipe(UniqueFd fd) {
  fcntl(fd.get(), F_SETPIPE_SZ, kKeptPipeBytes);  // may be refused; the pipe then stays small
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  if (table.pipes.size() >= kKeptPipesMax) table.pipes.erase(table.pipes.begin());
  table.pipes.push_back(std::move(fd));
}

void EmptyKeptPipes() {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  std::erase_if(table.pipes, [](const UniqueFd& fd) { return !Empty(fd.get()); });
}

void CloseKeptPipes() {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  table.pipes.clear();
}

}  // namespace norma::children
