#include "lib/io/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "lib/base/text.h"
#include "lib/io/errno_text.h"
#include "lib/io/files.h"
#include "lib/io/process_children.h"
#include "lib/io/process_output.h"
#include "lib/io/process_tree.h"

namespace norma {
namespace {

constexpr size_t kErrorOutputBytesMax = 64 * 1024;
constexpr size_t kReadBytes = 64 * 1024;
// After a cancel the whole process must be gone within 3 s: this much for TERM, the next for KILL.
constexpr Millis kCancelGraceMax{1'000};
constexpr Millis kCancelKillMax{1'500};
constexpr Millis kKillMax{5'000};
// How often what is being killed is looked at: often at first, most go at once.
constexpr Millis kKillTickFirst{2};
constexpr Millis kKillTickMax{50};
// Without a pidfd the child's end is found by asking this often.
constexpr Millis kAskTick{10};
constexpr Millis kWaitMax{60'000};
// Blocks that are still read after everything was killed; a pipe holds 16 by default.
constexpr int kLastBlocksMax = 64;

std::string_view ValueIn(const std::vector<std::string>& env, std::string_view name) {
  std::string_view value;
  for (const std::string_view entry : env) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      value = entry.substr(name.size() + 1);  // the last one wins
    }
  }
  return value;
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// posix_spawn tells a number and neither the step nor the file that failed.
std::string StartError(int error, const std::string& program, const ProcessSpec& spec) {
  if (!spec.cwd.empty() && !IsDirectory(spec.cwd)) {
    return "the working folder " + spec.cwd + " does not exist or is no folder";
  }
  std::string text = program + ": " + ErrnoText(error);
  if (error == E2BIG) {
    text += " (one argument may have 128 KiB): put long text into a file";
  } else if (error == ENOEXEC) {
    text += ": it is no program and has no `#!` line";
  } else if (error == ENOENT && access(program.c_str(), F_OK) == 0) {
    text += ": the interpreter that its first line names is missing";
  }
  return text;
}

// Our descriptors must not stand on 0-2, where the child's are put.
UniqueFd AboveStandard(UniqueFd fd) {
  if (!fd.valid() || fd.get() > 2) return fd;
  return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

struct Pipe {
  UniqueFd reader;  // non-blocking
  UniqueFd writer;
};

bool OpenPipe(Pipe& pipe) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  pipe.reader = AboveStandard(UniqueFd(ends[0]));
  pipe.writer = AboveStandard(UniqueFd(ends[1]));
  if (!pipe.reader.valid() || !pipe.writer.valid()) return false;
  return fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK) == 0;
}

// The input as an anonymous file: nothing to pump, no broken pipe, no dead lock.
UniqueFd InputFile(const std::string& bytes) {
  UniqueFd fd = AboveStandard(UniqueFd(memfd_create("stdin", MFD_CLOEXEC)));
  std::string_view left = bytes;
  while (fd.valid() && !left.empty()) {
    const ssize_t count = write(fd.get(), left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return UniqueFd();
    left.remove_prefix(static_cast<size_t>(count));
  }
  if (fd.valid()) lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Attributes and file actions of one spawn; both need destroying.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    // Ignored signals (SIGPIPE, SIGXFSZ, a nohup's SIGHUP) would otherwise be inherited.
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Input(int fd) {
    if (fd < 0) {
      posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions_, fd, 0);
    }
  }
  void Output(int fd, int as) { posix_spawn_file_actions_adddup2(&actions_, fd, as); }
  void Folder(const std::string& path) {
    if (!path.empty()) posix_spawn_file_actions_addchdir_np(&actions_, path.c_str());
  }
  int Spawn(pid_t* pid, const std::string& program, char* const* argv, char* const* env) {
    return posix_spawn(pid, program.c_str(), &actions_, &attributes_, argv, env);
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

// One child from start to end. The phases follow each other downwards; none is entered twice.
class Runner {
 public:
  Runner(const ProcessSpec& spec, Clock& clock, const Cancel& cancel)
      : spec_(spec),
        clock_(clock),
        cancel_(cancel),
        output_(spec.head_bytes_max, spec.tail_bytes_max, spec.spill_path),
        errors_(0, kErrorOutputBytesMax, "") {}

  ProcessResult Run() {
    const MonoTime begin = clock_.Now();
    children::EmptyKeptPipes();
    if (MayStart(begin) && Start()) {
      while (phase_ != Phase::kDone) {
        Step(clock_.Now());
        if (phase_ != Phase::kDone) WaitAndRead();
      }
      Finish();
    }
    result_.duration = std::chrono::duration_cast<Millis>(clock_.Now() - begin);
    return std::move(result_);
  }

 private:
  enum class Phase {
    kRunning,
    kDrain,  // the child ended by itself; others may hold its pipe
    kTerm,   // everything got TERM
    kKill,   // everything gets KILL
    kDone
  };

  bool MayStart(MonoTime now);
  bool Start();
  void Step(MonoTime now);
  void StepRunning(MonoTime now);
  void StepKilling(MonoTime now);
  void BeginKill(MonoTime now);
  void WaitAndRead();
  Millis WaitCap() const;
  bool Read(UniqueFd& fd, OutputBuffer& buffer);
  void CheckEnded();
  bool PipesClosed() const { return !out_.reader.valid() && !err_.reader.valid(); }
  void Finish();
  void TakeStatus();

  const ProcessSpec& spec_;
  Clock& clock_;
  const Cancel& cancel_;
  OutputBuffer output_;
  OutputBuffer errors_;
  ProcessResult result_;
  Pipe out_;
  Pipe err_;
  UniqueFd pidfd_;
  pid_t pid_ = -1;
  Phase phase_ = Phase::kRunning;
  bool ended_ = false;  // the child is a zombie: not reaped before all is over, so that its pid,
                        // group and session stay its own
  MonoTime phase_until_ = kNever;
  Millis tick_ = kKillTickFirst;
  std::optional<TreeKiller> killer_;
};

bool Runner::MayStart(MonoTime now) {
  result_.cancelled = cancel_.tripped();
  result_.timed_out = !result_.cancelled && now >= spec_.deadline;
  if (result_.cancelled) result_.start_error = "cancelled before it was started";
  if (result_.timed_out) result_.start_error = "its time was over before it was started";
  return result_.start_error.empty();
}

bool Runner::Start() {
  NORMA_CHECK(!spec_.argv.empty());
  const std::string program = FindProgram(spec_.argv[0], std::string(ValueIn(spec_.env, "PATH")));
  if (program.empty()) {
    result_.start_error = spec_.argv[0] + ": no such program on PATH";
    return false;
  }
  UniqueFd input;
  if (!spec_.stdin_bytes.empty()) input = InputFile(spec_.stdin_bytes);
  const bool input_good = input.valid() || spec_.stdin_bytes.empty();
  if (!input_good || !OpenPipe(out_) || (!spec_.merge_stderr && !OpenPipe(err_))) {
    result_.start_error = "no pipe for its input or output: " + ErrnoText(errno);
    return false;
  }
  std::vector<std::string> argv = spec_.argv;
  std::vector<std::string> env = spec_.env;
  if (!spec_.marker.empty()) {
    std::erase_if(env, [](const std::string& entry) { return entry.starts_with("NORMA_CALL="); });
    env.push_back("NORMA_CALL=" + spec_.marker);
  }
  SpawnPlan plan;
  plan.Input(input.get());
  plan.Output(out_.writer.get(), 1);
  plan.Output(spec_.merge_stderr ? out_.writer.get() : err_.writer.get(), 2);
  plan.Folder(spec_.cwd);
  int error = 0;
  pid_ = children::Spawn([&] {
    pid_t pid = -1;
    error = plan.Spawn(&pid, program, Pointers(argv).data(), Pointers(env).data());
    return error == 0 ? pid : -1;
  });
  out_.writer.reset();
  err_.writer.reset();
  if (pid_ <= 0) {
    result_.start_error = StartError(error, program, spec_);
    return false;
  }
  pidfd_ = OpenPidfd(pid_);
  result_.started = true;
  return true;
}

void Runner::Step(MonoTime now) {
  switch (phase_) {
    case Phase::kRunning:
      return StepRunning(now);
    case Phase::kDrain:
      if (result_.output_overflow) return BeginKill(now);
      if (PipesClosed() || now >= phase_until_) phase_ = Phase::kDone;
      return;
    case Phase::kTerm:
    case Phase::kKill:
      return StepKilling(now);
    case Phase::kDone:
      return;
  }
}

void Runner::StepRunning(MonoTime now) {
  if (!pidfd_.valid()) CheckEnded();
  if (ended_) {
    phase_ = PipesClosed() ? Phase::kDone : Phase::kDrain;
    phase_until_ = now + spec_.drain_grace;
    return;
  }
  if (result_.output_overflow) return BeginKill(now);
  result_.cancelled = cancel_.tripped();
  result_.timed_out = !result_.cancelled && now >= spec_.deadline;
  if (result_.cancelled || result_.timed_out) BeginKill(now);
}

void Runner::BeginKill(MonoTime now) {
  phase_ = Phase::kTerm;
  phase_until_ =
      now + (result_.cancelled ? std::min(spec_.term_grace, kCancelGraceMax) : spec_.term_grace);
  killer_.emplace(KillScope{.child = pid_, .marker = spec_.marker});
  StepKilling(now);
}

void Runner::StepKilling(MonoTime now) {
  // A signal of ours hurries what a timeout began gently.
  if (phase_ == Phase::kTerm && cancel_.tripped() && !result_.cancelled) {
    phase_until_ = std::min(phase_until_, now + kCancelGraceMax);
  }
  if (phase_ == Phase::kTerm && now >= phase_until_) {
    phase_ = Phase::kKill;
    phase_until_ = now + (cancel_.tripped() ? kCancelKillMax : kKillMax);
    tick_ = kKillTickFirst;
  }
  children::ReapStrays();
  const size_t left = killer_->Signal(phase_ == Phase::kTerm ? SIGTERM : SIGKILL);
  CheckEnded();
  if ((left == 0 && ended_) || (phase_ == Phase::kKill && now >= phase_until_)) {
    phase_ = Phase::kDone;
  }
}

Millis Runner::WaitCap() const {
  switch (phase_) {
    case Phase::kRunning:
      return pidfd_.valid() ? kWaitMax : kAskTick;
    case Phase::kDrain:
      return kWaitMax;
    case Phase::kTerm:
    case Phase::kKill:
    case Phase::kDone:
      return tick_;
  }
  return tick_;
}

void Runner::WaitAndRead() {
  const bool running = phase_ == Phase::kRunning;
  const MonoTime until = running ? spec_.deadline : phase_until_;
  // poll skips negative descriptors. What stays readable for ever is asked only while it is news.
  std::array<pollfd, 4> waits{pollfd{out_.reader.get(), POLLIN, 0},
                              pollfd{err_.reader.get(), POLLIN, 0},
                              pollfd{ended_ ? -1 : pidfd_.get(), POLLIN, 0},
                              pollfd{running ? cancel_.fd() : -1, POLLIN, 0}};
  const int ready = poll(waits.data(), waits.size(), PollTimeout(clock_.Now(), until, WaitCap()));
  if (!running) tick_ = std::min(tick_ * 2, kKillTickMax);
  if (ready <= 0) return;  // time, or EINTR: the loop looks at the clock
  if (waits[0].revents != 0) Read(out_.reader, output_);
  if (waits[1].revents != 0) Read(err_.reader, errors_);
  if (waits[2].revents != 0) ended_ = true;
}

// One block; closes the pipe at its end. False when there was nothing.
bool Runner::Read(UniqueFd& fd, OutputBuffer& buffer) {
  if (!fd.valid()) return false;
  std::array<char, kReadBytes> block;
  const ssize_t count = read(fd.get(), block.data(), block.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    fd.reset();
    return false;
  }
  std::string_view bytes(block.data(), static_cast<size_t>(count));
  if (result_.output_overflow) return true;  // thrown away, so that the dying can still write
  result_.bytes += bytes.size();
  if (result_.bytes > spec_.output_bytes_max) {
    bytes.remove_suffix(static_cast<size_t>(result_.bytes - spec_.output_bytes_max));
    result_.bytes = spec_.output_bytes_max;
    result_.output_overflow = true;
  }
  buffer.Add(bytes);
  return true;
}

void Runner::CheckEnded() {
  if (ended_) return;
  siginfo_t info{};
  const int outcome = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  ended_ = (outcome == 0 && info.si_pid == pid_) || (outcome != 0 && errno == ECHILD);
}

void Runner::Finish() {
  if (killer_) {
    for (int i = 0; i < kLastBlocksMax && Read(out_.reader, output_); ++i) {
    }
    for (int i = 0; i < kLastBlocksMax && Read(err_.reader, errors_); ++i) {
    }
    result_.killed = killer_->signalled();
  } else {
    if (out_.reader.valid()) children::KeepPipe(std::move(out_.reader));
    if (err_.reader.valid()) children::KeepPipe(std::move(err_.reader));
  }
  TakeStatus();
  children::ReapStrays();
  result_.omitted = output_.omitted();
  result_.spilled = output_.spilled();
  result_.tail = output_.Tail();
  result_.head = output_.TakeHead();
  if (result_.omitted == 0) result_.head += std::exchange(result_.tail, {});
  result_.error_output = errors_.Tail();
}

void Runner::TakeStatus() {
  siginfo_t info{};
  // A child that not even KILL ended (stuck in the kernel) stays registered; ReapStrays leaves it.
  if (!children::Reap(pid_, &info)) {
    result_.signal = SIGKILL;
    return;
  }
  if (info.si_code == CLD_EXITED) {
    result_.exit_code = info.si_status;
  } else if (info.si_pid == pid_) {
    result_.signal = info.si_status;
  }
}

bool HasChildren() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool IsProgram(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

ProcessResult RunProcess(const ProcessSpec& spec, Clock& clock, const Cancel& cancel) {
  return Runner(spec, clock, cancel).Run();
}

void BecomeSubreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
  // Whoever started us may ignore SIGCHLD; the kernel would then throw every exit status away.
  signal(SIGCHLD, SIG_DFL);
}

int KillDescendants(const std::string& marker_prefix, Millis grace, Clock& clock) {
  if (marker_prefix.empty() && !HasChildren()) {
    children::CloseKeptPipes();
    return 0;  // as a subreaper we then have no descendants either; the usual end of a run
  }
  const Cancel never;  // ending the children is what a cancel wants
  TreeKiller killer(KillScope{
      .all_descendants = marker_prefix.empty(), .marker = marker_prefix, .marker_is_prefix = true});
  const MonoTime kill_at = clock.Now() + grace;
  const MonoTime give_up = kill_at + kKillMax;
  Millis tick = kKillTickFirst;
  while (true) {
    const MonoTime now = clock.Now();
    children::ReapStrays();
    const size_t left = killer.Signal(now < kill_at ? SIGTERM : SIGKILL);
    if (left == 0 || now >= give_up) break;
    clock.SleepUntil(now + tick, never);
    tick = std::min(tick * 2, kKillTickMax);
  }
  children::ReapStrays();
  if (marker_prefix.empty()) children::CloseKeptPipes();
  return killer.signalled();
}

std::string FindProgram(const std::string& name, const std::string& path_variable) {
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) return name;
  for (const std::string_view folder : Split(path_variable, ':')) {
    // An empty or relative entry means the current folder, where a model can put a file.
    if (!folder.starts_with('/')) continue;
    std::string path = std::string(folder) + "/" + name;
    if (IsProgram(path)) return path;
  }
  return {};
}

}  // namespace norma
