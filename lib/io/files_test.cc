#include "lib/io/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/testing/temp_dir.h"

using namespace norma;
using testing::TempDir;

namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("files: paths are joined and cleaned by text") {
  struct Case {
    std::string folder, path, want;
  };
  const std::vector<Case> cases = {
      {"/a", "b", "/a/b"},      {"/a", "/b", "/b"},      {"/a/", "./b//c/", "/a/b/c"},
      {"/a", "..", "/"},        {"/a", "../../..", "/"}, {"/", "x", "/x"},
      {"a", "../../b", "../b"}, {"", ".", "/"},          {"/a/b", "../c/./d", "/a/c/d"},
  };
  for (const Case& item : cases) {
    CAPTURE(item.path);
    CHECK(JoinPath(item.folder, item.path) == item.want);
  }
  CHECK(CleanPath("") == ".");
  CHECK(CleanPath("./") == ".");
  CHECK(CleanPath("../x/..") == "..");
  CHECK(CleanPath("//x//") == "/x");
}

TEST_CASE("files: an operator's file is read whole or refused") {
  const TempDir folder;
  const std::string path = folder.Write("f", "0123456789");
  symlink("f", (folder / "link").c_str());
  mkfifo((folder / "fifo").c_str(), 0600);
  CHECK(ReadRegularFile(path, 10).value() == "0123456789");
  CHECK(ReadRegularFile(folder / "link", 10).value() == "0123456789");
  CHECK(ReadRegularFile(folder.Write("empty", ""), 0).value().empty());
  CHECK(ReadRegularFile(path, 9).error() ==
        Error{Code::kInvalid, path + " has 10 B; at most 9 B are read"});
  CHECK(ReadRegularFile(folder / "gone", 9).error().code == Code::kNotFound);
  CHECK(ReadRegularFile(folder.path(), 9).error().code == Code::kIo);
  CHECK(ReadRegularFile(folder / "fifo", 9).error().code == Code::kIo);
  CHECK(ReadRegularFile("/dev/zero", 9).error().code == Code::kIo);
  CHECK(ReadRegularFile(folder / "f/x", 9).error().code == Code::kIo);
  CHECK(ReadRegularFile(std::string("f\0g", 3), 9).error().code == Code::kInvalid);
  // Its size is told as 0, so it is read to its end, and the limit holds all the same.
  CHECK(ReadRegularFile("/proc/self/status", 1 << 20).value().starts_with("Name:"));
  CHECK(ReadRegularFile("/proc/self/status", 10).error().code == Code::kInvalid);
}

TEST_CASE("files: an operator's file is replaced whole, with the mode that was asked for") {
  const TempDir folder;
  folder.Write("sub/f", "old");
  symlink("sub/f", (folder / "link").c_str());
  symlink("sub/fresh", (folder / "dangling").c_str());
  CHECK(WriteFileAtomic(folder / "new", "one", 0640).ok());
  CHECK(folder.Read("new") == "one");
  CHECK(ModeOf(folder / "new") == 0640);
  CHECK(WriteFileAtomic(folder / "link", "two", 0600).ok());
  CHECK(folder.Read("sub/f") == "two");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(WriteFileAtomic(folder / "dangling", "three", 0600).ok());
  CHECK(folder.Read("sub/fresh") == "three");
  CHECK(WriteFileAtomic(folder / "gone/f", "x", 0600).error().code == Code::kNotFound);
  CHECK(WriteFileAtomic(folder / "sub", "x", 0600).error().code == Code::kIo);
  CHECK(WriteFileAtomic("/dev/null", "x", 0600).error().code == Code::kIo);
  CHECK(WriteFileAtomic(folder / "f/", "x", 0600).error().code == Code::kIo);
  CHECK(WriteFileAtomic("", "x", 0600).error().code == Code::kInvalid);
  CHECK(Names(folder.path()) == std::vector<std::string>{"dangling", "link", "new", "sub"});
  CHECK(Names(folder / "sub") == std::vector<std::string>{"f", "fresh"});
}

TEST_CASE("files: a write that does not fit changes nothing and leaves no temp file") {
  const TempDir folder;
  folder.Write("f", "old");
  const pid_t pid = fork();
  if (pid == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string bytes(5000, 'x');
    _exit(WriteFileAtomic(folder / "f", bytes, 0600).ok() ? 1 : 0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
  CHECK(folder.Read("f") == "old");
  CHECK(Names(folder.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("files: a private folder is private and goes with everything in it") {
  const TempDir base;
  base.Write("outside/kept", "x");
  std::string path;
  {
    auto made = PrivateFolder::Make(base.path());
    REQUIRE(made.ok());
    PrivateFolder first = std::move(made).value();
    path = first.path();
    CHECK(path.starts_with(base / "norma-"));
    CHECK(ModeOf(path) == 0700);
    PrivateFolder second = std::move(first);  // moved from: removes nothing
    CHECK(std::filesystem::exists(path));
    std::filesystem::create_directories(path + "/a/b/c");
    std::filesystem::create_directories(path + "/locked/inner");
    symlink((base / "outside").c_str(), (path + "/link").c_str());
    symlink("..", (path + "/a/up").c_str());
    mkfifo((path + "/fifo").c_str(), 0600);
    chmod((path + "/locked/inner").c_str(), 0);
    chmod((path + "/locked").c_str(), 0);
    // Deeper than we want to hold descriptors, and than a path may be long.
    int at = open(path.c_str(), O_RDONLY | O_DIRECTORY);
    const std::string name(100, 'd');
    for (int i = 0; i < 100; ++i) {
      mkdirat(at, name.c_str(), 0700);
      const int next = openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
      close(at);
      at = next;
    }
    close(openat(at, "leaf", O_CREAT | O_WRONLY, 0600));
    close(at);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(base.Read("outside/kept") == "x");
  CHECK(Names(base.path()) == std::vector<std::string>{"outside"});
  const auto refused = PrivateFolder::Make(base / "gone");
  CHECK(refused.error().code == Code::kIo);
}
