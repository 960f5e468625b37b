#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "lib/io/files.h"
#include "lib/testing/temp_dir.h"

using namespace norma;
using testing::TempDir;

namespace {

// base/in is the root and the working folder; base/two a second root; base/ro a read-only one;
// base/out lies outside.
struct House {
  TempDir base;
  House() {
    base.Write("in/file", "inside");
    base.Write("in/sub/deep", "deep");
    base.Write("two/other", "second root");
    base.Write("ro/spill", "spilled");
    base.Write("out/secret", "top secret");
    base.Write("inside-twin/x", "name starts like the root");
    Link("../out", "in/link-dir");
    Link("../out/secret", "in/link-file");
    Link(base / "out/secret", "in/link-absolute");
    Link("../out/fresh", "in/dangling-out");
    Link("sub/fresh", "in/dangling-in");
    Link("../two", "in/link-two");
    Link("sub", "in/link-sub");
    Link("file", "in/link-in");
    Link("loop-b", "in/loop-a");
    Link("loop-a", "in/loop-b");
    Link("../in/file", "out/back");
    Link("..", "in/sub/up");
    mkfifo((base / "in/fifo").c_str(), 0600);
  }
  void Link(const std::string& target, const std::string& name) const {
    REQUIRE(symlink(target.c_str(), (base / name).c_str()) == 0);
  }
  Roots Open() const {
    auto roots = Roots::Open({".", "../two"}, base / "in", {base / "ro"});
    REQUIRE(roots.ok());
    return std::move(roots).value();
  }
};

std::string Describe(const Result<Place>& place, const std::string& base) {
  if (!place.ok()) {
    switch (place.error().code) {
      case Code::kDenied:
        return "denied";
      case Code::kInvalid:
        return "invalid";
      case Code::kIo:
        return "io";
      default:
        return "unexpected";
    }
  }
  static const std::vector<std::string> kKinds = {"none", "file", "folder", "other"};
  const Place& found = place.value();
  return kKinds[static_cast<size_t>(found.kind)] + " " + std::to_string(found.root) + " " +
         found.below + " " + found.real.substr(base.size());
}

}  // namespace

TEST_CASE("roots: a path resolves to where it really is, or is refused") {
  const House house;
  const Roots roots = house.Open();
  const std::string base = house.base.path();
  struct Case {
    std::string path, want;
  };
  const std::vector<Case> cases = {
      {"file", "file 0 file /in/file"},
      {"./sub//deep", "file 0 sub/deep /in/sub/deep"},
      {base + "/in/sub/../file", "file 0 file /in/file"},
      {".", "folder 0 . /in"},
      {"sub/", "folder 0 sub /in/sub"},
      {"sub/.", "folder 0 sub /in/sub"},
      {"file/", "io"},
      {"file/.", "io"},
      {"file/x", "io"},
      {"file/..", "io"},
      {"new", "none 0 new /in/new"},
      {"a/b/c", "none 0 a/b/c /in/a/b/c"},
      {"gone/../file", "file 0 file /in/file"},
      {"gone/../../out/secret", "denied"},
      {"..", "denied"},
      {"../out/secret", "denied"},
      {"../inside-twin/x", "denied"},
      {"../in/file", "file 0 file /in/file"},
      {"/etc/passwd", "denied"},
      {"/etc/passwd/x", "denied"},
      {"/", "denied"},
      {"/no/such/folder", "denied"},
      {"link-dir", "denied"},
      {"link-dir/", "denied"},
      {"link-dir/secret", "denied"},
      {"link-dir/new", "denied"},
      {"link-dir/../file", "denied"},  // ../file of base/out, not of base/in
      {"./x/../link-dir/secret", "denied"},
      {"link-file", "denied"},
      {"link-absolute", "denied"},
      {"dangling-out", "denied"},
      {"dangling-in", "none 0 sub/fresh /in/sub/fresh"},
      {"link-sub/deep", "file 0 sub/deep /in/sub/deep"},
      {"link-sub/../file", "file 0 file /in/file"},
      {"link-in", "file 0 file /in/file"},
      {"link-in/", "io"},
      {"link-two/other", "file 1 other /two/other"},
      {"link-two/../out/secret", "denied"},
      {"sub/up/file", "file 0 file /in/file"},
      {"sub/up/sub/up/sub/deep", "file 0 sub/deep /in/sub/deep"},
      {base + "/out/back", "file 0 file /in/file"},  // spelled outside, really inside
      {base + "/two/other", "file 1 other /two/other"},
      {base + "/ro/spill", "file 2 spill /ro/spill"},
      {"loop-a", "io"},
      {"loop-a/x", "io"},
      {"/proc/self/root/etc/passwd", "denied"},
      {"/proc/self/root" + base + "/in/file", "file 0 file /in/file"},
      {"/proc/self/cwd/x", "denied"},
      {"/proc/self/fd/0", "denied"},
      {"/dev/stdin", "denied"},
      {"fifo", "other 0 fifo /in/fifo"},
      {std::string(300, 'n'), "io"},
      {std::string(70'000, 'n'), "invalid"},
      {"", "invalid"},
      {std::string("file\0x", 6), "invalid"},
  };
  for (const Case& item : cases) {
    CAPTURE(item.path);
    CHECK(Describe(roots.Resolve(item.path), base) == item.want);
  }
}

TEST_CASE("roots: a place says how it was spelled and which file it is") {
  const House house;
  const Place place = house.Open().Resolve("sub/../link-in").value();
  struct stat info {};
  REQUIRE(stat((house.base / "in/file").c_str(), &info) == 0);
  CHECK(place.spelled == "sub/../link-in");
  CHECK(place.lexical == house.base / "in/link-in");
  CHECK(place.real == house.base / "in/file");
  CHECK(place.device == info.st_dev);
  CHECK(place.inode == info.st_ino);
  CHECK(place.bytes == 6);
}

TEST_CASE("roots: writing is refused in a read-only root, also inside another root") {
  const House house;
  const Roots roots = house.Open();
  const auto place = roots.Resolve(house.base / "ro/new", true);
  REQUIRE_FALSE(place.ok());
  CHECK(place.error().code == Code::kDenied);
  const Place read = roots.Resolve(house.base / "ro/spill").value();
  CHECK(roots.WriteAtomic(read, "x").error().code == Code::kDenied);
  CHECK(house.base.Read("ro/spill") == "spilled");

  const Roots nested =
      std::move(Roots::Open({house.base / "in"}, house.base / "in", {house.base / "in/sub"}))
          .value();
  CHECK(nested.Resolve("sub/x", true).error().code == Code::kDenied);
  CHECK(nested.Resolve("other/x", true).ok());
  CHECK(nested.Resolve("new-folder/", true).error().code == Code::kIo);
}

TEST_CASE("roots: a root is opened through a symlink, and a missing one is named") {
  const House house;
  house.Link("in", "alias");
  const Roots roots = std::move(Roots::Open({house.base / "alias"}, house.base.path())).value();
  CHECK(roots.paths() == std::vector<std::string>{house.base / "in"});
  CHECK(roots.Resolve("alias/file").value().below == "file");
  CHECK(roots.Resolve("in/file").value().below == "file");
  CHECK(roots.Resolve("two/other").error().code == Code::kDenied);
  for (const std::string bad : {"gone", "in/file"}) {
    const auto refused = Roots::Open({bad}, house.base.path());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kSpec);
    CHECK(refused.error().message.find("the root " + bad) != std::string::npos);
  }
  const Roots top = std::move(Roots::Open({"/"}, house.base.path())).value();
  CHECK(top.Read(top.Resolve("in/file").value(), 100).value() == "inside");
  CHECK(top.Resolve("/").value().below == ".");
}

TEST_CASE("roots: with and without openat2, nothing leads outside and special files do not hang") {
  for (const bool walk : {false, true}) {
    CAPTURE(walk);
    const House house;
    Roots roots = house.Open();
    if (walk) roots.ForceWalk();
    const auto read = [&](const std::string& path) -> std::string {
      auto place = roots.Resolve(path);
      if (!place.ok()) return "unresolved";
      auto bytes = roots.Read(place.value(), 1000);
      return bytes.ok() ? bytes.value() : "refused";
    };
    CHECK(read("file") == "inside");
    CHECK(read("sub/deep") == "deep");
    CHECK(read("link-two/other") == "second root");
    CHECK(read(house.base / "ro/spill") == "spilled");
    CHECK(read("fifo") == "refused");
    CHECK(read("sub") == "refused");
    CHECK(read("gone") == "refused");
    CHECK(roots.Read(roots.Resolve("gone").value(), 9).error().code == Code::kNotFound);
    CHECK(roots.Read(roots.Resolve("gone/deeper").value(), 9).error().code == Code::kNotFound);
    CHECK(roots.Read(roots.Resolve("file").value(), 5).error() ==
          Error{Code::kInvalid, "file has 6 B; at most 5 B are read"});

    // What was resolved is replaced before it is opened.
    struct Swap {
      std::string path;
      std::string victim;  // becomes …
      std::string target;  // … a symlink to this
    };
    for (const Swap& swap :
         {Swap{"file", "in/file", "../out/secret"}, Swap{"sub/deep", "in/sub", "../out"},
          Swap{"sub/secret", "in/sub", "../out"}}) {
      CAPTURE(swap.path);
      const House fresh;
      Roots victim = fresh.Open();
      if (walk) victim.ForceWalk();
      const Place place = victim.Resolve(swap.path).value();
      std::filesystem::remove_all(fresh.base / swap.victim);
      fresh.Link(swap.target, swap.victim);
      CHECK_FALSE(victim.Read(place, 1000).ok());
      CHECK_FALSE(victim.OpenDirectory(place).ok());
      CHECK_FALSE(victim.WriteAtomic(place, "owned").ok());
      CHECK(fresh.base.Read("out/secret") == "top secret");
      CHECK_FALSE(fresh.base.Has("out/deep"));
      CHECK(std::filesystem::is_symlink(fresh.base / swap.victim));
    }
    // … or becomes a FIFO: opened without blocking, then refused.
    const Place place = roots.Resolve("file").value();
    std::filesystem::remove(house.base / "in/file");
    mkfifo((house.base / "in/file").c_str(), 0600);
    CHECK_FALSE(roots.OpenRegular(place).ok());
    CHECK_FALSE(roots.WriteAtomic(place, "x").ok());

    CHECK(roots.OpenDirectory(roots.Resolve(".").value()).ok());
    CHECK(roots.OpenDirectory(roots.Resolve("link-two").value()).ok());
    CHECK(roots.OpenDirectory(roots.Resolve("sub/deep").value()).error().message ==
          "sub/deep is no folder");
  }
}

TEST_CASE("roots: a device below a root is refused before it is opened") {
  Roots roots = std::move(Roots::Open({"/dev"}, "/")).value();
  for (const std::string path : {"/dev/zero", "/dev/full", "/dev/tty"}) {
    const auto place = roots.Resolve(path);
    if (!place.ok()) continue;
    CHECK(place.value().kind != FileKind::kRegular);
    CHECK_FALSE(roots.Read(place.value(), 100).ok());
    CHECK_FALSE(roots.WriteAtomic(place.value(), "x").ok());
  }
}

TEST_CASE("roots: a race between links and opens never leads outside") {
  for (const bool walk : {false, true}) {
    const House house;
    Roots roots = house.Open();
    if (walk) roots.ForceWalk();
    house.base.Write("in/real/secret", "harmless");
    std::atomic<bool> stop{false};
    std::thread swapper([&] {
      const std::string flip = house.base / "in/flip";
      while (!stop) {
        symlink("../out", flip.c_str());
        unlink(flip.c_str());
        rename((house.base / "in/real").c_str(), flip.c_str());
        rename(flip.c_str(), (house.base / "in/real").c_str());
      }
    });
    for (int i = 0; i < 3000; ++i) {
      const auto place = roots.Resolve("flip/secret");
      if (!place.ok()) continue;
      const auto bytes = roots.Read(place.value(), 100);
      if (bytes.ok()) CHECK(bytes.value() == "harmless");
      if (i % 10 == 0) (void)roots.WriteAtomic(place.value(), "harmless");
    }
    stop = true;
    swapper.join();
    CHECK(house.base.Read("out/secret") == "top secret");
  }
}

TEST_CASE("roots: a root that was deleted gives errors, not another folder") {
  const House house;
  Roots roots = std::move(Roots::Open({"two"}, house.base.path())).value();
  const Place place = roots.Resolve("two/other").value();
  std::filesystem::remove_all(house.base / "two");
  house.Link("out", "two");
  house.base.Write("out/other", "planted");
  CHECK_FALSE(roots.Read(place, 100).ok());
  CHECK_FALSE(roots.WriteAtomic(place, "x").ok());
  CHECK(roots.Resolve("two/other").error().code == Code::kDenied);
  CHECK(house.base.Read("out/other") == "planted");
}

TEST_CASE("roots: writing is atomic, makes parents, keeps modes and leaves nothing behind") {
  const House house;
  const Roots roots = house.Open();
  const auto write = [&](const std::string& path, const std::string& bytes) {
    const auto place = roots.Resolve(path, true);
    if (!place.ok()) return place.error().message;
    const Status status = roots.WriteAtomic(place.value(), bytes);
    return status.ok() ? std::string() : status.error().message;
  };
  const auto mode = [&](const std::string& name) {
    struct stat info {};
    REQUIRE(stat((house.base / name).c_str(), &info) == 0);
    return info.st_mode & 07777;
  };
  const mode_t old_umask = umask(0027);
  CHECK(write("a/b/c.txt", "x").empty());
  CHECK(mode("in/a") == 0750);
  CHECK(mode("in/a/b/c.txt") == 0640);
  umask(old_umask);
  CHECK(write("a/b/c.txt", "yy").empty());
  CHECK(house.base.Read("in/a/b/c.txt") == "yy");
  CHECK(mode("in/a/b/c.txt") == 0640);
  house.base.Write("in/run.sh", "old");
  chmod((house.base / "in/run.sh").c_str(), 04755);
  CHECK(write("run.sh", "new").empty());
  CHECK(mode("in/run.sh") == 04755);
  CHECK(write("link-in", "through a link").empty());
  CHECK(house.base.Read("in/file") == "through a link");
  CHECK(std::filesystem::is_symlink(house.base / "in/link-in"));
  CHECK(write("dangling-in", "made").empty());
  CHECK(house.base.Read("in/sub/fresh") == "made");
  CHECK(write(std::string(250, 'n'), "a long name").empty());

  CHECK(write(".", "x") == ". is a folder and cannot be written");
  CHECK(write("sub", "x") == "sub is a folder and cannot be written");
  CHECK(write("fifo", "x") == "fifo is a FIFO, no regular file, and cannot be written");
  CHECK_FALSE(write("run.sh/x", "x").empty());
  CHECK_FALSE(write("link-dir/new", "x").empty());
  CHECK_FALSE(write(std::string(300, 'n'), "x").empty());
  int temps = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(house.base.path())) {
    if (entry.path().filename().string().starts_with(".norma-")) ++temps;
  }
  CHECK(temps == 0);
  CHECK(std::filesystem::directory_iterator(house.base / "in/a/b") !=
        std::filesystem::directory_iterator());
}

TEST_CASE("roots: a file that its owner protected is not replaced") {
  if (geteuid() == 0) return;  // nothing is protected from root
  const House house;
  const Roots roots = house.Open();
  chmod((house.base / "in/file").c_str(), 0444);
  CHECK_FALSE(roots.WriteAtomic(roots.Resolve("file", true).value(), "x").ok());
  CHECK(house.base.Read("in/file") == "inside");
}
