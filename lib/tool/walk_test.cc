// LS, Glob and the walk they share with Grep.
#include "lib/tool/walk.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/testing/tool_workshop.h"

using namespace norma;
using namespace norma::tool;
using norma::testing::ToolWorkshop;

namespace {

std::vector<std::string> Paths(ToolWorkshop& shop, const std::string& top, WalkOptions options,
                               WalkOutcome* outcome = nullptr) {
  std::vector<std::string> found;
  const auto place = shop.env.roots->Resolve(top);
  REQUIRE(place.ok());
  const auto walked =
      Walk(*shop.env.roots, place.value(), options, shop.clock, shop.context.cancel(),
           [&](const WalkEntry& entry) { found.emplace_back(entry.below); });
  REQUIRE(walked.ok());
  if (outcome != nullptr) *outcome = walked.value();
  std::sort(found.begin(), found.end());
  return found;
}

WalkOptions Ignoring() {
  WalkOptions options;
  options.gitignore = true;
  return options;
}

std::string Text(const ToolOutput& output) {
  return (output.is_error ? "error: " : "") + output.text;
}

void SetTime(const std::string& path, int64_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

}  // namespace

TEST_CASE("walk: skips tool folders, follows no symlink") {
  ToolWorkshop shop;
  for (const char* name : {"a.go", "src/b.go", ".hid/c.go", "node_modules/n.go", "src/vendor/v.go",
                           ".git/config", "vendorx/d.go"}) {
    shop.dir.Write(name, "");
  }
  std::filesystem::create_symlink("/", shop.dir / "src/root");
  std::filesystem::create_symlink("..", shop.dir / "src/loop");
  CHECK(Paths(shop, ".", {}) == std::vector<std::string>{".hid/c.go", "a.go", "src/b.go",
                                                         "src/loop", "src/root", "vendorx/d.go"});
  // Named on purpose it is searched, also through a link.
  CHECK(Paths(shop, "node_modules", {}) == std::vector<std::string>{"n.go"});
  std::filesystem::create_symlink("src", shop.dir / "link");
  CHECK(Paths(shop, "link", {}) == std::vector<std::string>{"b.go", "loop", "root"});
}

TEST_CASE("walk: .gitignore files nest, from the root down, with and without git") {
  ToolWorkshop shop;
  shop.dir.Write(".gitignore", "*.log\n/build/\n!keep.log\n");
  shop.dir.Write("src/.gitignore", "!x.log\n/only\n");
  for (const char* name : {"a.log", "keep.log", "build/x", "src/x.log", "src/y.log", "src/only",
                           "src/deep/only", "src/build/x"}) {
    shop.dir.Write(name, "");
  }
  CHECK(Paths(shop, ".", Ignoring()) == std::vector<std::string>{".gitignore", "keep.log",
                                                                 "src/.gitignore", "src/build/x",
                                                                 "src/deep/only", "src/x.log"});
  // A search that begins deeper obeys the same rules.
  CHECK(Paths(shop, "src", Ignoring()) ==
        std::vector<std::string>{".gitignore", "build/x", "deep/only", "x.log"});
  CHECK(Paths(shop, "src/deep", Ignoring()) == std::vector<std::string>{"only"});
  // Named on purpose, an ignored folder is searched.
  CHECK(Paths(shop, "build", Ignoring()) == std::vector<std::string>{"x"});
}

TEST_CASE("walk: stops at its bounds and says so") {
  ToolWorkshop shop;
  for (int i = 0; i < 20; ++i)
    shop.dir.Write("d" + std::to_string(i % 4) + "/f" + std::to_string(i), "");
  WalkOutcome outcome;
  WalkOptions few;
  few.entries_max = 10;
  CHECK(Paths(shop, ".", few, &outcome).size() <= 10);
  CHECK(outcome.too_many);
  WalkOptions late;
  late.deadline = shop.clock.Now();
  CHECK(Paths(shop, ".", late, &outcome).empty());
  CHECK(outcome.timed_out);
  CHECK_FALSE(DescribeGaps(outcome, late).empty());
  shop.context.Trip(2);
  Paths(shop, ".", {}, &outcome);
  CHECK(outcome.cancelled);
}

TEST_CASE("walk: a folder that cannot be read is counted, not hidden") {
  if (geteuid() == 0) {
    MESSAGE("skipped: root reads everything");
    return;
  }
  ToolWorkshop shop;
  shop.dir.Write("a", "");
  shop.dir.Write("shut/b", "");
  chmod((shop.dir / "shut").c_str(), 0);
  WalkOutcome outcome;
  CHECK(Paths(shop, ".", {}, &outcome) == std::vector<std::string>{"a"});
  CHECK(outcome.folders_unreadable == 1);
  chmod((shop.dir / "shut").c_str(), 0700);
}

TEST_CASE("ls: folders first, sizes, symlinks as files") {
  ToolWorkshop shop;
  for (const char* name : {"src/b.go", "src/deep/x", "src/Z/x"}) shop.dir.Write(name, "y");
  std::filesystem::create_symlink("deep", shop.dir / "src/a");
  CHECK(Text(shop.Call(LsTool(), R"({"path":"src"})")) == "Z/\ndeep/\na\t4 bytes\nb.go\t1 bytes");
  CHECK(Text(shop.Call(LsTool(), "{}")) == "src/");
  std::filesystem::create_directory(shop.dir / "empty");
  CHECK(Text(shop.Call(LsTool(), R"({"path":"empty"})")) == "(empty directory)");
  CHECK(shop.Call(LsTool(), R"({"path":"gone"})").is_error);
  CHECK(shop.Call(LsTool(), R"({"path":"src/b.go"})").is_error);
  CHECK(Text(shop.Call(LsTool(), R"({"path":"/etc"})")).find("denied: ") != std::string::npos);
}

TEST_CASE("glob: newest first, ties by path, paths joined with the folder searched") {
  ToolWorkshop shop;
  for (const char* name : {"src/a.go", "src/deep/b.go", "c.go", "z.txt"}) shop.dir.Write(name, "");
  SetTime(shop.dir / "src/a.go", 1000);
  SetTime(shop.dir / "c.go", 1000);
  SetTime(shop.dir / "src/deep/b.go", 2000);
  const std::string base = shop.dir.path() + "/";
  const std::string all = base + "src/deep/b.go\n" + base + "c.go\n" + base + "src/a.go";
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"*.go"})")) == all);
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"**/*.go"})")) == all);
  CHECK(Text(shop.Call(GlobTool(), "{\"pattern\":\"" + base + "**/*.go\"}")) == all);
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"src/*.go"})")) == base + "src/a.go");
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"*.go","path":"src/deep"})")) ==
        base + "src/deep/b.go");
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"*.md"})")) == "No files found");
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"[z-"})")) ==
        "No files found\n[the pattern can match nothing: a [ is not closed]");
}

TEST_CASE(
    "glob: a missing folder is an error, a linked one is searched, an outside one is denied") {
  ToolWorkshop shop;
  shop.dir.Write("src/a.go", "");
  std::filesystem::create_symlink("src", shop.dir / "link");
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"*.go","path":"link"})")) ==
        shop.dir / "src/a.go");
  CHECK(shop.Call(GlobTool(), R"({"pattern":"*","path":"gone"})").is_error);
  CHECK(shop.Call(GlobTool(), R"({"pattern":"*","path":"src/a.go"})").is_error);
  CHECK(Text(shop.Call(GlobTool(), R"({"pattern":"*","path":"/etc"})")).find("error: denied: ") ==
        0);
}

TEST_CASE("glob: a search that was cut never says that there is nothing") {
  ToolWorkshop shop;
  shop.dir.Write("a.go", "");
  shop.context.SetDeadline(shop.clock.Now());
  const ToolOutput output = shop.Call(GlobTool(), R"({"pattern":"*.go"})");
  CHECK(output.text.find("No files found") == std::string::npos);
  CHECK(output.text.find("incomplete") != std::string::npos);
  CHECK(output.truncated);
}
