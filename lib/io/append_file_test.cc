#include "lib/io/append_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/text.h"
#include "lib/io/files.h"
#include "lib/testing/temp_dir.h"

using namespace norma;
using testing::TempDir;

namespace {

std::unique_ptr<AppendFile> Open(const std::string& path) {
  auto file = OpenAppendFile(path);
  REQUIRE(file.ok());
  return std::move(file).value();
}

Status Add(AppendFile& file, const std::string& line) {
  return file.Append([&](const FileTail&) -> Result<std::string> { return line; });
}

// What Append shows; nothing is written.
FileTail TailOf(AppendFile& file) {
  FileTail seen;
  const Status status = file.Append([&](const FileTail& tail) -> Result<std::string> {
    seen = tail;
    return Error{Code::kCancelled, "only looking"};
  });
  CHECK(status.error() == Error{Code::kCancelled, "only looking"});
  return seen;
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

// Runs `body` in a child process and gives its exit code.
template <typename Body>
int InChild(Body body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("append_file: a new file is private, parents too, and lines follow each other") {
  const TempDir folder;
  const auto file = Open(folder / "a/b/ledger.jsonl");
  CHECK(ModeOf(folder / "a") == 0700);
  CHECK(ModeOf(folder / "a/b") == 0700);
  CHECK(ModeOf(folder / "a/b/ledger.jsonl") == 0600);
  CHECK(Add(*file, "one").ok());
  CHECK(Add(*file, "").ok());
  CHECK(Add(*file, "three").ok());
  CHECK(file->Sync().ok());
  CHECK(folder.Read("a/b/ledger.jsonl") == "one\n\nthree\n");
  struct stat info {};
  REQUIRE(stat((folder / "a/b/ledger.jsonl").c_str(), &info) == 0);
  CHECK(file->Identity() == std::pair<uint64_t, uint64_t>{info.st_dev, info.st_ino});
}

TEST_CASE("append_file: an existing file keeps its mode, and a symlink is followed") {
  const TempDir folder;
  folder.Write("real", "old\n");
  chmod((folder / "real").c_str(), 0644);
  symlink("real", (folder / "link").c_str());
  const auto file = Open(folder / "link");
  CHECK(Add(*file, "new").ok());
  CHECK(folder.Read("real") == "old\nnew\n");
  CHECK(ModeOf(folder / "real") == 0644);
}

TEST_CASE("append_file: what is no regular file is refused at once") {
  const TempDir folder;
  mkfifo((folder / "fifo").c_str(), 0600);
  folder.Write("plain", "x");
  const std::string with_nul("a\0b", 3);
  for (const std::string& path :
       {std::string("/dev/full"), std::string("/dev/null"), folder.path(), folder / "fifo",
        folder / "plain/ledger.jsonl", std::string("/proc/norma-ledger.jsonl"), std::string(),
        with_nul, folder / std::string(300, 'n')}) {
    CAPTURE(path);
    const auto file = OpenAppendFile(path);
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().code == Code::kIo);
  }
  CHECK(OpenAppendFile("/dev/full").error().message == "/dev/full: is no regular file");
}

TEST_CASE("append_file: the tail is the last whole line and what a crash left behind it") {
  struct Case {
    std::string bytes;
    uint64_t size;
    std::string last_line;
    uint64_t torn;
  };
  const std::string block(64 * 1024, 'x');
  const std::string large(300'000, 'y');
  const std::vector<Case> cases = {
      {"", 0, "", 0},
      {"\n", 1, "", 0},
      {"a\n", 2, "a", 0},
      {"a\nb\n", 4, "b", 0},
      {"a\n\n", 3, "", 0},
      {"torn", 0, "", 4},
      {"a\nto", 2, "a", 2},
      {"a\n" + large + "\nt", large.size() + 3, large, 1},
      {"a\n" + large, 2, "a", large.size()},
      {block + "\n", block.size() + 1, block, 0},
      {"\n" + block, 1, "", block.size()},
      {"a\n" + block.substr(1) + "\n", block.size() + 2, block.substr(1), 0},
  };
  for (const Case& want : cases) {
    CAPTURE(want.bytes.size());
    const TempDir folder;
    folder.Write("f", want.bytes);
    const auto file = Open(folder / "f");
    const FileTail got = TailOf(*file);
    CHECK(got.size == want.size);
    CHECK(got.last_line == want.last_line);
    CHECK(got.torn_bytes == want.torn);
    CHECK(folder.Read("f") == want.bytes);  // a refusal changes nothing
    CHECK(Add(*file, "next").ok());
    CHECK(folder.Read("f") == want.bytes.substr(0, want.size) + "next\n");
  }
}

TEST_CASE("append_file: a file without line ends is refused and left alone") {
  const TempDir folder;
  folder.Write("f", "start\n");
  REQUIRE(truncate((folder / "f").c_str(), (65 << 20)) == 0);
  const auto file = Open(folder / "f");
  const Status status = Add(*file, "x");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("no line end within 64 MiB") != std::string::npos);
  struct stat info {};
  CHECK(stat((folder / "f").c_str(), &info) == 0);
  CHECK(info.st_size == (65 << 20));
}

TEST_CASE("append_file: a line of another writer is seen, one of our own is remembered") {
  const TempDir folder;
  const auto one = Open(folder / "f");
  const auto two = Open(folder / "f");
  CHECK(Add(*one, "from one").ok());
  CHECK(TailOf(*one).last_line == "from one");
  CHECK(TailOf(*two).last_line == "from one");
  CHECK(Add(*two, "from two").ok());
  CHECK(TailOf(*one).last_line == "from two");
  CHECK(Add(*one, "again").ok());
  CHECK(folder.Read("f") == "from one\nfrom two\nagain\n");
}

TEST_CASE("append_file: whatever happens to our lines but lines behind them is noticed") {
  struct Case {
    std::string what;
    std::function<void(const std::string&)> act;
    std::string why;  // "" when it is allowed
  };
  const auto put = [](const std::string& path, const std::string& bytes, int flags) {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | flags, 0600));
    return write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  };
  const std::vector<Case> cases = {
      {"appended", [&](const std::string& p) { CHECK(put(p, "x\n", O_APPEND)); }, ""},
      {"torn", [&](const std::string& p) { CHECK(put(p, "to", O_APPEND)); }, ""},
      {"cut", [&](const std::string& p) { CHECK(truncate(p.c_str(), 4) == 0); }, "cut short"},
      {"emptied", [&](const std::string& p) { CHECK(truncate(p.c_str(), 0) == 0); }, "cut short"},
      {"rewritten", [&](const std::string& p) { CHECK(put(p, "one\nTWO\nthree\n", O_TRUNC)); },
       "was rewritten"},
      {"moved", [&](const std::string& p) { CHECK(rename(p.c_str(), (p + ".old").c_str()) == 0); },
       "was moved away or replaced"},
      {"replaced",
       [&](const std::string& p) {
         CHECK(rename(p.c_str(), (p + ".old").c_str()) == 0);
         CHECK(put(p, "one\ntwo\n", 0));
       },
       "was moved away or replaced"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const TempDir folder;
    const auto file = Open(folder / "f");
    REQUIRE(Add(*file, "one").ok());
    REQUIRE(Add(*file, "two").ok());
    c.act(folder / "f");
    const Status status = Add(*file, "next");
    CHECK(status.ok() == c.why.empty());
    if (!status.ok()) CHECK(status.error().message.find(c.why) != std::string::npos);
  }
}

TEST_CASE("append_file: a symlink that leads nowhere makes no file at its end") {
  const TempDir folder;
  symlink("elsewhere", (folder / "link").c_str());
  const auto file = OpenAppendFile(folder / "link");
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().message.find("is a symlink to a file that does not exist") !=
        std::string::npos);
  CHECK(access((folder / "elsewhere").c_str(), F_OK) != 0);
}

TEST_CASE("append_file: a deleted file is noticed") {
  const TempDir folder;
  const auto file = Open(folder / "f");
  CHECK(Add(*file, "one").ok());
  unlink((folder / "f").c_str());
  const Status status = Add(*file, "two");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("was deleted") != std::string::npos);
}

TEST_CASE("append_file: a line with a newline is a bug of the caller, and the lock is given back") {
  const TempDir folder;
  const auto file = Open(folder / "f");
  CHECK_THROWS_AS((void)Add(*file, "a\nb"), InternalError);
  const auto other = Open(folder / "f");
  CHECK(Add(*other, "fine").ok());
  CHECK(folder.Read("f") == "fine\n");
}

TEST_CASE("append_file: a line that does not fit leaves an intact prefix") {
  const TempDir folder;
  const std::string path = folder / "f";
  const int code = InChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto opened = OpenAppendFile(path);
    if (!opened.ok()) return 10;
    AppendFile& file = *opened.value();
    for (int i = 0; i < 9; ++i) {
      if (!Add(file, std::string(99, static_cast<char>('a' + i))).ok()) return 11;
    }
    if (Add(file, std::string(199, 'z')).ok()) return 12;  // 900 + 200: cut at 1000
    if (TailOf(file).size != 900 || TailOf(file).torn_bytes != 0) return 13;
    if (!Add(file, std::string(99, 'j')).ok()) return 14;  // it still fits
    if (Add(file, "k").ok()) return 15;                    // nothing fits any more: EFBIG
    return 0;
  });
  CHECK(code == 0);
  const std::string bytes = folder.Read("f");
  CHECK(bytes.size() == 1000);
  CHECK(bytes.ends_with("i\n" + std::string(99, 'j') + "\n"));
}

TEST_CASE("append_file: eight processes and two threads each share a file and lose no line") {
  constexpr int kWriters = 8;
  constexpr int kLines = 100;
  const TempDir folder;
  const std::string path = folder / "shared/f";
  std::vector<pid_t> pids;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t pid = fork();
    if (pid != 0) {
      pids.push_back(pid);
      continue;
    }
    auto opened = OpenAppendFile(path);
    if (!opened.ok()) _exit(1);
    bool good = true;
    const auto write_lines = [&](const std::string& name) {
      for (int i = 0; i < kLines; ++i) {
        // Each line repeats the end of the one before it: a lost or torn one breaks the chain.
        const Status status =
            opened.value()->Append([&](const FileTail& tail) -> Result<std::string> {
              const std::string last = tail.last_line.substr(0, tail.last_line.find(' '));
              return name + "-" + std::to_string(i) + " " + last + " " +
                     std::string(static_cast<size_t>(i) * 37, '.');
            });
        if (!status.ok()) good = false;
      }
    };
    const std::string name = std::to_string(writer);
    std::thread other([&] { write_lines(name + "b"); });
    write_lines(name + "a");
    other.join();
    _exit(good ? 0 : 2);
  }
  for (const pid_t pid : pids) {
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  const std::string bytes = folder.Read("shared/f");
  CHECK(bytes.ends_with("\n"));
  std::set<std::string> names;
  std::string last;
  for (const std::string_view line : SplitLines(bytes)) {
    const auto parts = Split(line, ' ');
    REQUIRE(parts.size() == 3);
    CHECK(parts[1] == last);
    last = parts[0];
    names.insert(last);
  }
  CHECK(names.size() == kWriters * 2 * kLines);
}

TEST_CASE("append_file: a writer that is killed leaves whole lines and no lock") {
  const TempDir folder;
  const std::string path = folder / "f";
  for (int round = 0; round < 5; ++round) {
    const pid_t pid = fork();
    if (pid == 0) {
      auto opened = OpenAppendFile(path);
      while (opened.ok() && Add(*opened.value(), std::string(5000, 'x')).ok()) {
      }
      _exit(1);
    }
    struct stat info {};
    const off_t before = stat(path.c_str(), &info) == 0 ? info.st_size : 0;
    while (stat(path.c_str(), &info) != 0 || info.st_size < before + 100'000)
      std::this_thread::yield();
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    const auto file = Open(path);
    CHECK(Add(*file, std::string(5000, 'x')).ok());
  }
  for (const std::string_view line : SplitLines(folder.Read("f"))) CHECK(line.size() == 5000);
}
