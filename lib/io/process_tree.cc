#include "lib/io/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "lib/base/text.h"
#include "lib/io/files.h"
#include "lib/io/process_children.h"

namespace norma {
namespace {

// The kernel limits an environment to a quarter of the stack limit, in practice 2 MiB.
constexpr size_t kEnvironBytesMax = 4u << 20;
constexpr size_t kStatBytesMax = 4096;
constexpr std::string_view kMarkerName = "NORMA_CALL=";

// At most `bytes_max` of a /proc file; empty when it cannot be read (gone, not ours).
std::string ReadProc(pid_t pid, const char* file, size_t bytes_max) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  std::string text;
  if (!fd.valid()) return text;
  std::array<char, 16384> block;
  while (text.size() < bytes_max) {
    const ssize_t count = read(fd.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(block.data(), static_cast<size_t>(count));
  }
  return text;
}

template <typename Number>
Number NumberAt(const std::vector<std::string_view>& fields, size_t index) {
  Number number{};
  if (index < fields.size()) {
    const std::string_view field = fields[index];
    std::from_chars(field.data(), field.data() + field.size(), number);
  }
  return number;
}

enum class Mark { kNone, kOurs, kOther };

// What NORMA_CALL in the environment says.
Mark MarkOf(pid_t pid, const KillScope& scope) {
  const std::string environ_bytes = ReadProc(pid, "environ", kEnvironBytesMax);
  for (const std::string_view entry : Split(environ_bytes, '\0')) {
    if (!entry.starts_with(kMarkerName)) continue;
    const std::string_view value = entry.substr(kMarkerName.size());
    const bool ours =
        !scope.marker.empty() &&
        (scope.marker_is_prefix ? value.starts_with(scope.marker) : value == scope.marker);
    return ours ? Mark::kOurs : Mark::kOther;
  }
  return Mark::kNone;
}

// We and those who started us: never a target, whatever their environment says.
std::set<pid_t> SelfAndAncestors(const std::vector<ProcessEntry>& entries) {
  std::set<pid_t> result;
  pid_t pid = getpid();
  while (pid > 0 && result.insert(pid).second) {
    const auto entry = std::ranges::find(entries, pid, &ProcessEntry::pid);
    pid = entry == entries.end() ? 0 : entry->parent;
  }
  return result;
}

// Through a pidfd whose start time was checked, so that a reused pid is never hit.
void SignalOne(const ProcessEntry& target, int signal) {
  const UniqueFd pidfd = OpenPidfd(target.pid);
  const auto now = FindProcess(target.pid);
  if (!now || now->start != target.start) return;
  if (pidfd.valid()) {
    syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
  } else {
    kill(target.pid, signal);
  }
}

}  // namespace

UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));  // always close-on-exec
}

std::optional<ProcessEntry> ParseStat(const std::string& line) {
  const size_t open_paren = line.find('(');
  const size_t close_paren = line.rfind(')');
  if (open_paren == std::string::npos || close_paren == std::string::npos) return std::nullopt;
  if (close_paren < open_paren || close_paren + 2 >= line.size()) return std::nullopt;
  ProcessEntry entry;
  std::from_chars(line.data(), line.data() + open_paren, entry.pid);
  // From here on as in proc(5), where "state" is field 3.
  const auto fields = Split(std::string_view(line).substr(close_paren + 2), ' ');
  constexpr size_t kFieldsMin = 20;
  if (fields.size() < kFieldsMin || fields[0].empty() || entry.pid <= 0) return std::nullopt;
  entry.state = fields[0][0];
  entry.parent = NumberAt<pid_t>(fields, 1);
  entry.group = NumberAt<pid_t>(fields, 2);
  entry.session = NumberAt<pid_t>(fields, 3);
  entry.threads = NumberAt<int>(fields, 17);
  entry.start = NumberAt<uint64_t>(fields, 19);
  return entry;
}

std::optional<ProcessEntry> FindProcess(pid_t pid) {
  return ParseStat(ReadProc(pid, "stat", kStatBytesMax));
}

std::vector<ProcessEntry> ListProcesses() {
  std::vector<ProcessEntry> entries;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return entries;
  while (const dirent* item = readdir(folder)) {
    const std::string_view name = item->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    if (const auto entry = FindProcess(pid)) entries.push_back(*entry);
  }
  closedir(folder);
  return entries;
}

TreeKiller::TreeKiller(KillScope scope) : scope_(std::move(scope)) {
  const auto eldest = FindProcess(scope_.child > 0 ? scope_.child : getpid());
  if (eldest) oldest_ = eldest->start;
}

bool TreeKiller::IsSeed(const ProcessEntry& entry, bool adopts) const {
  if (scope_.child > 0) {
    if (entry.pid == scope_.child) return true;
    // Other registered children are somebody else's, whatever they look like.
    if (children::IsRegistered(entry.pid)) return false;
    if (entry.session == scope_.child || entry.group == scope_.child) return true;
  }
  if (entry.start < oldest_) return false;
  if (scope_.all_descendants) return entry.parent == getpid();
  const bool orphan = adopts && entry.parent == getpid();
  if (scope_.marker.empty() && !orphan) return false;
  const Mark mark = MarkOf(entry.pid, scope_);
  return mark == Mark::kOurs || (orphan && mark == Mark::kNone);
}

std::vector<ProcessEntry> TreeKiller::Targets() const {
  const std::vector<ProcessEntry> entries = ListProcesses();
  const std::set<pid_t> spared = SelfAndAncestors(entries);
  // An orphan that left its session and dropped its environment can only be told by elimination:
  // it is the child's when no other child of ours has been around.
  const bool adopts = scope_.child > 0 && children::RegisteredCount() <= 1;
  std::set<pid_t> chosen;
  for (const ProcessEntry& entry : entries) {
    if (!spared.contains(entry.pid) && IsSeed(entry, adopts)) chosen.insert(entry.pid);
  }
  // Parents may come after their children in the list; each round finds one more generation.
  for (bool grew = true; grew;) {
    grew = false;
    for (const ProcessEntry& entry : entries) {
      if (spared.contains(entry.pid) || !chosen.contains(entry.parent)) continue;
      grew = chosen.insert(entry.pid).second || grew;
    }
  }
  std::vector<ProcessEntry> targets;
  for (const ProcessEntry& entry : entries) {
    if (chosen.contains(entry.pid) && entry.alive()) targets.push_back(entry);
  }
  return targets;
}

size_t TreeKiller::Signal(int signal) {
  std::vector<ProcessEntry> targets = Targets();
  if (scope_.child > 0 && targets.empty()) {
    // Without /proc the group is all we know; the child is not reaped, so its number is still its.
    const auto child = FindProcess(scope_.child);
    if (!child) kill(-scope_.child, signal);
    return 0;
  }
  const pid_t own_session = getsid(0);
  std::set<pid_t> groups;  // of sessions that our children made, so none of their members is ours
  for (const ProcessEntry& target : targets) {
    const bool first = signalled_.emplace(target.pid, target.start).second;
    if (signal != SIGKILL && !first) continue;
    SignalOne(target, signal);
    // A stopped process sees TERM only when it goes on.
    if (signal != SIGKILL) SignalOne(target, SIGCONT);
    if (target.session != own_session) groups.insert(target.group);
  }
  // The kernel signals a group as one step, which a process that forks faster than we look cannot
  // outrun. Only KILL: a second TERM could cut a handler short.
  if (signal == SIGKILL) {
    for (const pid_t group : groups) kill(-group, SIGKILL);
  }
  return targets.size();
}

}  // namespace norma
