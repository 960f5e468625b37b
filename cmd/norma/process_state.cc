#include "cmd/norma/process_state.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "lib/base/text.h"
#include "lib/io/process.h"

extern char** environ;

namespace norma::cmd {
namespace {

// The handler's only way to the run. Set once, before the handler is installed.
Cancel* g_cancel = nullptr;

void OnSignal(int signal) {
  g_cancel->Trip(signal);
}

// A descriptor that is closed would be taken by the next file we open: a ledger on fd 1 would get
// the answer written into it.
bool OpenIfClosed(int fd, int flags) {
  if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) return false;
  const int null = open("/dev/null", flags);
  if (null >= 0 && null != fd) {
    dup2(null, fd);
    close(null);
  }
  return true;
}

void InstallSignals() {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(2)
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file size limit
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&ours, number);
    struct sigaction old {};
    sigaction(number, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;  // nohup and background jobs asked for that
    struct sigaction action {};
    action.sa_handler = OnSignal;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
  sigprocmask(SIG_UNBLOCK, &ours, nullptr);
}

agent::Environment CopyEnvironment() {
  agent::Environment copy;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    copy.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return copy;
}

// "" when it was deleted or cannot be named: anything else, `/` above all, would make the roots of
// the tools something that nobody allowed.
std::string CurrentFolder() {
  std::array<char, PATH_MAX> buffer{};
  if (getcwd(buffer.data(), buffer.size()) == nullptr || buffer[0] != '/') return "";
  return buffer.data();
}

// No child may read our memory or write to our descriptors through /proc. Being non-dumpable keeps
// everybody out but those with CAP_SYS_PTRACE, which root's children would have; they lose it here
// for good. Only root has it to lose, so a refusal means nothing. Holds for threads started later.
void KeepChildrenOut() {
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SYS_PTRACE, 0, 0);
  prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return;
  sets[CAP_TO_INDEX(CAP_SYS_PTRACE)].inheritable &= ~CAP_TO_MASK(CAP_SYS_PTRACE);
  syscall(SYS_capset, &header, sets.data());
}

std::string HostName() {
  std::array<char, 256> buffer{};
  return gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "";
}

}  // namespace

ProcessState::ProcessState()
    : stdin_was_closed(OpenIfClosed(STDIN_FILENO, O_RDONLY)),
      stdout_was_closed(OpenIfClosed(STDOUT_FILENO, O_WRONLY)),
      stderr_was_closed(OpenIfClosed(STDERR_FILENO, O_WRONLY)),
      started(SystemClock().Now()) {
  // A child that inherits a caller's pipe could write into it, or keep it open after the run.
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  g_cancel = &cancel;
  InstallSignals();
  BecomeSubreaper();
  environment = CopyEnvironment();
  cwd = CurrentFolder();
  host = HostName();
}

void ProcessState::EraseFromEnvironment(const std::vector<std::string>& names) {
  KeepChildrenOut();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    char* equals = std::strchr(*entry, '=');
    if (equals == nullptr) continue;
    const std::string_view name(*entry, static_cast<size_t>(equals - *entry));
    for (const std::string& secret : names) {
      if (name == secret) explicit_bzero(equals + 1, std::strlen(equals + 1));
    }
  }
}

std::string ProcessState::NewRunId() const {
  std::array<unsigned char, 6> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    // Without randomness the clock and the pid still tell runs of one machine apart.
    const auto nanos = SystemClock().Now().time_since_epoch().count();
    std::memcpy(random.data(), &nanos, random.size());
    random[5] = static_cast<unsigned char>(getpid());
  }
  std::string stamp = FormatUtc(SystemClock().Wall()).substr(0, 19);  // 2026-12-01T09:30:00
  std::erase(stamp, '-');
  std::erase(stamp, ':');
  return fmt::format("{}-{}", stamp, Hex(random));
}

}  // namespace norma::cmd
