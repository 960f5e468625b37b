#include "lib/io/process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "lib/io/process_children.h"
#include "lib/io/process_tree.h"
#include "lib/testing/temp_dir.h"

using namespace norma;
using testing::TempDir;

namespace {

const std::string kPath = "PATH=/usr/local/bin:/usr/bin:/bin";

// A marker of its own for each test: what a failing test leaves behind must not disturb another.
std::string FreshMarker() {
  static int next = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++next) + ":call";
}

ProcessSpec Bash(const std::string& command) {
  ProcessSpec spec;
  spec.argv = {"bash", "-c", command};
  spec.env = {kPath};
  spec.marker = FreshMarker();
  return spec;
}

ProcessResult Run(const ProcessSpec& spec) {
  BecomeSubreaper();
  const Cancel cancel;
  return RunProcess(spec, SystemClock(), cancel);
}

ProcessResult RunFor(ProcessSpec spec, int millis) {
  spec.deadline = SystemClock().Now() + Millis(millis);
  spec.term_grace = Millis(300);
  return Run(spec);
}

// What others do takes its time: in the middle of its exec a process shows no environment, and an
// orphan is ours only when its parent is gone. At most 5 s.
bool Becomes(int wanted, const std::function<int()>& count) {
  const Cancel never;
  const MonoTime give_up = SystemClock().Now() + Millis(5'000);
  while (count() != wanted) {
    if (SystemClock().Now() >= give_up) return false;
    SystemClock().SleepUntil(SystemClock().Now() + Millis(5), never);
  }
  return true;
}

// Living processes whose environment carries the marker.
int Alive(const std::string& marker) {
  int count = 0;
  for (const ProcessEntry& entry : ListProcesses()) {
    if (!entry.alive()) continue;
    std::ifstream in("/proc/" + std::to_string(entry.pid) + "/environ", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.find("NORMA_CALL=" + marker) != std::string::npos) ++count;
  }
  return count;
}

bool IsAlive(pid_t pid) {
  const auto entry = FindProcess(pid);
  return entry && entry->alive();
}

// Of a number that a command wrote into a file.
pid_t PidIn(const TempDir& folder, const std::string& name) {
  return static_cast<pid_t>(std::atoi(folder.Read(name).c_str()));
}

int Zombies() {
  int count = 0;
  for (const ProcessEntry& entry : ListProcesses()) {
    if (entry.parent == getpid() && !entry.alive()) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("process: exit codes, signals and output are reported as they are") {
  struct Case {
    std::string command;
    int exit_code;
    int signal;
    std::string output;
  };
  const std::vector<Case> cases = {
      {"true", 0, 0, ""},
      {"exit 3", 3, 0, ""},
      {"exit 255", 255, 0, ""},
      {"echo out; echo err >&2; exit 7", 7, 0, "out\nerr\n"},
      {"kill -9 $$", -1, SIGKILL, ""},
      {"kill -TERM $$", -1, SIGTERM, ""},
      {"printf 'a\\0b\\377'", 0, 0, std::string("a\0b\377", 4)},
      {"exec 1>&- 2>&-; exit 4", 4, 0, ""},
      {"no-such-command 2>/dev/null", 127, 0, ""},
  };
  for (const Case& want : cases) {
    CAPTURE(want.command);
    const ProcessResult got = Run(Bash(want.command));
    CHECK(got.started);
    CHECK(got.exit_code == want.exit_code);
    CHECK(got.signal == want.signal);
    CHECK(got.head == want.output);
    CHECK(got.tail.empty());
    CHECK(got.bytes == want.output.size());
    CHECK_FALSE((got.timed_out || got.cancelled || got.output_overflow));
    CHECK(got.killed == 0);
  }
  CHECK(Zombies() == 0);
}

TEST_CASE("process: the child has its own session, no terminal, no input and no signal of ours") {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const ProcessResult got =
      Run(Bash("read -r _ _ _ _ pgrp sid tty _ < /proc/self/stat; "
               "[ $sid = $$ ] && [ $tty = 0 ] && echo alone; cat; echo end; (: < /dev/tty) "
               "2>/dev/null || echo no tty; "
               "set -- $(grep -E '^Sig(Blk|Ign)' /proc/self/status); "
               "echo $1 $((0x$2 & 0x7fffffff)) $3 $((0x$4 & 0x7fffffff)); "
               "ls /proc/self/fd | tr '\\n' ' '"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // `ls` holds the folder it reads as descriptor 3. Signals from 32 on are the C library's own.
  CHECK(got.head == "alone\nend\nno tty\nSigBlk: 0 SigIgn: 0\n0 1 2 3 ");
}

TEST_CASE("process: a child whose output is closed is not waited for any longer") {
  ProcessSpec spec = Bash("true");
  spec.drain_grace = Millis(60'000);
  CHECK(Run(spec).duration < Millis(30'000));
}

TEST_CASE("process: kill 0 hits the child alone") {
  const ProcessResult got = Run(Bash("kill 0; echo survived"));
  CHECK(got.signal == SIGTERM);
  CHECK(got.head.empty());
}

TEST_CASE("process: environment, folder, marker and input arrive") {
  const TempDir folder;
  ProcessSpec spec = Bash("cat; pwd; echo $A; echo $NORMA_CALL; env | grep -c .");
  spec.env = {kPath, "A=last word", "NORMA_CALL=somebody else's"};
  spec.cwd = folder.path();
  spec.stdin_bytes = std::string(300'000, 'x') + "\n";
  const ProcessResult got = Run(spec);
  CHECK(got.bytes > 300'000);
  // PATH, A, NORMA_CALL; bash adds PWD, SHLVL and _.
  const std::string want = folder.path() + "\nlast word\n" + spec.marker + "\n6\n";
  CHECK(got.tail.ends_with("x\n" + want));
}

TEST_CASE("process: what cannot start says why") {
  const TempDir folder;
  folder.Write("plain", "echo no interpreter line\n");
  folder.Write("lost", "#!/no/such/interpreter\n");
  chmod((folder / "plain").c_str(), 0755);
  chmod((folder / "lost").c_str(), 0755);
  struct Case {
    std::string program, argument, cwd, why;
  };
  const std::vector<Case> cases = {
      {"no-such-program", "", "", "no-such-program: no such program on PATH"},
      {"/no/such/program", "", "", "/no/such/program: No such file or directory"},
      {"bash", "", folder / "gone", "does not exist or is no folder"},
      {"bash", "", folder / "plain", "does not exist or is no folder"},
      {folder / "plain", "", "", "it is no program and has no `#!` line"},
      {folder / "lost", "", "", "the interpreter that its first line names is missing"},
      {folder.path(), "", "", "Permission denied"},
      {"bash", std::string(200'000, 'x'), "", "put long text into a file"},
  };
  for (const Case& item : cases) {
    CAPTURE(item.program);
    ProcessSpec spec;
    spec.argv = {item.program, item.argument};
    spec.env = {kPath};
    spec.cwd = item.cwd;
    const ProcessResult got = Run(spec);
    CHECK_FALSE(got.started);
    CHECK(got.start_error.find(item.why) != std::string::npos);
    CHECK(got.exit_code == -1);
  }
  CHECK(children::RegisteredCount() == 0);
}

TEST_CASE("process: nothing is started after a cancel or a deadline") {
  Cancel cancel;
  cancel.Trip(SIGTERM);
  const TempDir folder;
  ProcessSpec spec = Bash("touch began");
  spec.cwd = folder.path();
  CHECK(RunProcess(spec, SystemClock(), cancel).cancelled);
  CHECK(RunFor(spec, -1).timed_out);
  CHECK_FALSE(folder.Has("began"));
}

TEST_CASE("process: background children do not hold the call and live on until they are ended") {
  for (const std::string command :
       {"sleep 300 & echo hi", "setsid sleep 300 & echo hi",
        "( ( setsid sleep 300 & ) & ); echo hi", "nohup sleep 300 >/dev/null 2>&1 & echo hi"}) {
    CAPTURE(command);
    const ProcessSpec spec = Bash(command);
    const ProcessResult got = Run(spec);
    CHECK(got.exit_code == 0);
    CHECK(got.head == "hi\n");
    CHECK(got.killed == 0);
    CHECK(got.duration < Millis(2'000));
    CHECK(Becomes(1, [&] { return Alive(spec.marker); }));
    CHECK(KillDescendants(spec.marker, Millis(1'000), SystemClock()) == 1);
    CHECK(Becomes(0, [&] { return Alive(spec.marker); }));
  }
  CHECK(Becomes(0, Zombies));
}

TEST_CASE("process: a background child may go on writing to the pipe of a call that is over") {
  const TempDir folder;
  ProcessSpec spec =
      Bash("(until [ -e go ]; do sleep 0.01; done; echo log line; touch alive) & echo hi");
  spec.cwd = folder.path();
  CHECK(Run(spec).head == "hi\n");
  spec.argv[2] = "touch go; for i in {1..500}; do [ -e alive ] && exit 0; sleep 0.01; done; exit 1";
  CHECK(Run(spec).exit_code == 0);
  KillDescendants(spec.marker, Millis(1'000), SystemClock());
}

TEST_CASE("process: output that comes shortly after the shell's end is still taken") {
  ProcessSpec spec = Bash("echo one > >(sleep 0.02; cat)");
  spec.drain_grace = Millis(10'000);  // ends with the pipe, not with the time
  const ProcessResult got = Run(spec);
  CHECK(got.head == "one\n");
  CHECK(got.duration < Millis(5'000));
}

TEST_CASE("process: a timeout ends the child and everything it started") {
  struct Case {
    std::string command;
    std::string output;
  };
  const std::vector<Case> cases = {
      {"echo early; sleep 300", "early\n"},
      {"trap '' TERM; echo deaf; while :; do sleep 0.05; done", "deaf\n"},
      {"setsid sleep 300 & sleep 300", ""},
      {"( ( setsid sleep 300 & ) & ); sleep 300", ""},
      {"nohup sleep 300 & disown; sleep 300", ""},
      {"kill -STOP $$", ""},
      {"trap 'echo bye; exit' TERM; sleep 300 & wait", "bye\n"},
      {"exec >&- 2>&-; sleep 300", ""},
      {"for i in 1 2 3 4 5 6 7 8; do setsid bash -c 'trap \"\" TERM; sleep 300; sleep 300' & done; "
       "wait",
       ""},
  };
  for (const Case& want : cases) {
    CAPTURE(want.command);
    const ProcessSpec spec = Bash(want.command);
    const ProcessResult got = RunFor(spec, 250);
    CHECK(got.timed_out);
    CHECK_FALSE(got.cancelled);
    CHECK(got.head == want.output);
    CHECK(got.killed >= 1);
    CHECK(got.duration >= Millis(250));
    CHECK(got.duration < Millis(3'000));
    CHECK(Alive(spec.marker) == 0);
  }
  CHECK(Zombies() == 0);
}

TEST_CASE("process: a child that dropped its marker is found by descent, session or as an orphan") {
  for (const std::string command :
       {"env -i sleep 300 & echo $! > pid; sleep 300",
        "env -i setsid sleep 300 & echo $! > pid; sleep 300",
        "( env -i setsid bash -c 'echo $$ > pid; exec sleep 300' & ) ; sleep 300"}) {
    CAPTURE(command);
    const TempDir folder;
    ProcessSpec spec = Bash(command);
    spec.cwd = folder.path();
    CHECK(RunFor(spec, 300).timed_out);
    const pid_t pid = PidIn(folder, "pid");
    REQUIRE(pid > 0);
    CHECK_FALSE(IsAlive(pid));
  }
}

TEST_CASE("process: a fork storm is ended") {
  const ProcessSpec spec =
      Bash("trap '' TERM; f() { sleep 0.01; f & }; for i in 1 2 3 4; do f & done; sleep 300");
  CHECK(RunFor(spec, 200).timed_out);
  CHECK(Alive(spec.marker) == 0);
}

TEST_CASE("process: a timeout leaves the children of other calls alone") {
  BecomeSubreaper();
  const ProcessSpec other = Bash("setsid sleep 300 & echo hi");
  CHECK(Run(other).head == "hi\n");
  const ProcessSpec spec = Bash("sleep 300");
  CHECK(RunFor(spec, 100).timed_out);
  CHECK(Alive(other.marker) == 1);
  CHECK(KillDescendants(other.marker, Millis(1'000), SystemClock()) == 1);
}

TEST_CASE("process: a cancel ends everything within three seconds, however deaf") {
  for (const std::string command : {"sleep 300", "setsid sleep 300 & sleep 300",
                                    "trap '' TERM INT HUP; while :; do sleep 1; done"}) {
    CAPTURE(command);
    ProcessSpec spec = Bash(command);
    spec.term_grace = Millis(60'000);
    BecomeSubreaper();
    Cancel cancel;
    std::thread tripper([&] {
      const Cancel never;
      SystemClock().SleepUntil(SystemClock().Now() + Millis(100), never);
      cancel.Trip(SIGTERM);
    });
    const ProcessResult got = RunProcess(spec, SystemClock(), cancel);
    tripper.join();
    CHECK(got.cancelled);
    CHECK_FALSE(got.timed_out);
    CHECK(got.duration < Millis(3'000));
    CHECK(Alive(spec.marker) == 0);
  }
}

TEST_CASE("process: long output keeps its start and its end, and is whole in the file") {
  const TempDir folder;
  ProcessSpec spec = Bash("seq 1 100000");
  spec.head_bytes_max = 10;
  spec.tail_bytes_max = 14;
  spec.spill_path = folder / "spill";
  const ProcessResult got = Run(spec);
  CHECK(got.exit_code == 0);
  CHECK(got.head == "1\n2\n3\n4\n5\n");
  CHECK(got.tail == "\n99999\n100000\n");
  CHECK(got.bytes == 588'895);
  CHECK(got.omitted == 588'895 - 24);
  CHECK(got.spilled);
  const std::string whole = folder.Read("spill");
  CHECK(whole.size() == got.bytes);
  CHECK(whole.starts_with("1\n2\n3\n"));
  CHECK(whole.find("\n49999\n50000\n50001\n") != std::string::npos);
  struct stat info {};
  CHECK(stat(spec.spill_path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("process: output that just fits makes no file") {
  const TempDir folder;
  ProcessSpec spec = Bash("printf 0123456789");
  spec.head_bytes_max = 4;
  spec.tail_bytes_max = 6;
  spec.spill_path = folder / "spill";
  const ProcessResult got = Run(spec);
  CHECK(got.head == "0123456789");
  CHECK(got.tail.empty());
  CHECK(got.omitted == 0);
  CHECK_FALSE(got.spilled);
  CHECK_FALSE(folder.Has("spill"));
}

TEST_CASE("process: a spill file that exists or cannot be made is not used") {
  const TempDir folder;
  folder.Write("taken", "old");
  for (const std::string name : {"taken", "gone/spill"}) {
    ProcessSpec spec = Bash("seq 1 1000");
    spec.head_bytes_max = spec.tail_bytes_max = 10;
    spec.spill_path = folder / name;
    const ProcessResult got = Run(spec);
    CHECK(got.exit_code == 0);
    CHECK_FALSE(got.spilled);
    CHECK(got.omitted == got.bytes - 20);
  }
  CHECK(folder.Read("taken") == "old");
}

TEST_CASE("process: endless output is cut at its limit, with bounded memory and disk") {
  const TempDir folder;
  for (const std::string command : {"yes", "yes >&2", "cat /dev/zero", "trap '' TERM; yes"}) {
    CAPTURE(command);
    ProcessSpec spec = Bash(command);
    spec.output_bytes_max = 5 << 20;
    spec.spill_path = folder / ("spill " + std::to_string(command.size()) + command.substr(0, 3));
    const ProcessResult got = RunFor(spec, 20'000);
    CHECK(got.output_overflow);
    CHECK_FALSE(got.timed_out);
    CHECK(got.bytes == spec.output_bytes_max);
    CHECK(got.head.size() == spec.head_bytes_max);
    CHECK(got.tail.size() == spec.tail_bytes_max);
    CHECK(std::filesystem::file_size(spec.spill_path) == spec.output_bytes_max);
    CHECK(Alive(spec.marker) == 0);
  }
}

TEST_CASE("process: stderr can be read apart") {
  ProcessSpec spec = Bash("echo out; seq 1 20000 >&2; echo last >&2");
  spec.merge_stderr = false;
  const ProcessResult got = Run(spec);
  CHECK(got.head == "out\n");
  CHECK(got.error_output.size() == 64 * 1024);
  CHECK(got.error_output.ends_with("20000\nlast\n"));
}

TEST_CASE("process: many at once take their own exit codes, and strays are reaped") {
  BecomeSubreaper();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&right, i] {
      for (int k = 0; k < 10; ++k) {
        const int code = i * 10 + k;
        ProcessSpec spec;
        spec.argv = {"bash", "-c", "(setsid true &); exit " + std::to_string(code)};
        spec.env = {kPath};
        spec.marker = "many";
        const Cancel cancel;
        if (RunProcess(spec, SystemClock(), cancel).exit_code == code) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 80);
  KillDescendants("", Millis(1'000), SystemClock());
  CHECK(Zombies() == 0);
  CHECK(children::RegisteredCount() == 0);
}

TEST_CASE("process: KillDescendants ends what ignores TERM and finds nothing the second time") {
  const ProcessSpec spec =
      Bash("setsid bash -c 'trap \"\" TERM; echo up; while :; do sleep 1; done' & sleep 0.1");
  Run(spec);
  CHECK(KillDescendants("", Millis(100), SystemClock()) >= 1);
  CHECK(Alive(spec.marker) == 0);
  CHECK(KillDescendants("", Millis(100), SystemClock()) == 0);
}

TEST_CASE("process: strays are reaped although a registered child waits as a zombie") {
  const pid_t kept = children::Spawn([] {
    const pid_t pid = fork();
    if (pid == 0) _exit(5);
    return pid;
  });
  const pid_t stray = fork();
  if (stray == 0) _exit(6);
  while (IsAlive(kept) || IsAlive(stray)) std::this_thread::yield();
  children::ReapStrays();
  CHECK_FALSE(FindProcess(stray).has_value());
  siginfo_t info{};
  CHECK(children::Reap(kept, &info));
  CHECK(info.si_status == 5);
}

TEST_CASE("process: a stat line is read whatever the program is called") {
  const std::string tail = " 5 6 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 4242 99 98";
  const auto entry = ParseStat("17 (a) S 1 (b)) Z" + tail);
  REQUIRE(entry);
  CHECK(entry->pid == 17);
  CHECK(entry->state == 'Z');
  CHECK(entry->parent == 5);
  CHECK(entry->group == 6);
  CHECK(entry->session == 7);
  CHECK(entry->threads == 3);
  CHECK(entry->start == 4242);
  CHECK(entry->alive());  // its main thread ended, two others run
  for (const std::string bad : {"", "17", "17 (x)", "17 (x) ", ")(", "17 (x) S 1 2"}) {
    CHECK_FALSE(ParseStat(bad).has_value());
  }
}

TEST_CASE("process: programs are found on absolute folders of PATH only") {
  const TempDir folder;
  folder.Write("bin/tool", "#!/bin/sh\n");
  folder.Write("bin/data", "x");
  folder.Write("late/tool", "#!/bin/sh\n");
  chmod((folder / "bin/tool").c_str(), 0755);
  chmod((folder / "late/tool").c_str(), 0755);
  const std::string bin = folder / "bin";
  CHECK(FindProgram("tool", "/nowhere:" + bin + ":" + (folder / "late")) == bin + "/tool");
  CHECK(FindProgram("data", bin).empty());           // not executable
  CHECK(FindProgram("bin", folder.path()).empty());  // a folder
  CHECK(FindProgram("tool", "").empty());
  CHECK(FindProgram("", bin).empty());
  CHECK(FindProgram("./tool", bin) == "./tool");
  CHECK(FindProgram("CMakeLists.txt", ":.:..").empty());
}
