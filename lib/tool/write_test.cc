// Write, Edit and MultiEdit on real files: results, what is announced, what is refused.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/sha256.h"
#include "lib/testing/tool_workshop.h"

using namespace norma;
using namespace norma::tool;
using norma::testing::ToolWorkshop;

namespace {

std::string WriteArguments(const std::string& path, const std::string& content) {
  return json::Writer()
      .BeginObject()
      .Field("file_path", path)
      .Field("content", content)
      .EndObject()
      .Take();
}

std::string EditArguments(const std::string& path, const std::string& from, const std::string& to,
                          bool all = false) {
  return json::Writer()
      .BeginObject()
      .Field("file_path", path)
      .Field("old_string", from)
      .Field("new_string", to)
      .Field("replace_all", all)
      .EndObject()
      .Take();
}

std::string MultiArguments(const std::string& path,
                           const std::vector<std::pair<std::string, std::string>>& edits) {
  json::Writer out;
  out.BeginObject().Field("file_path", path).Key("edits").BeginArray();
  for (const auto& [from, to] : edits) {
    out.BeginObject().Field("old_string", from).Field("new_string", to).EndObject();
  }
  return out.EndArray().EndObject().Take();
}

std::string Text(const ToolOutput& output) {
  return (output.is_error ? "error: " : "") + output.text;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t FilesIn(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

TEST_CASE("write: makes parents, replaces, keeps the mode") {
  ToolWorkshop shop;
  CHECK(Text(shop.Call(WriteTool(), WriteArguments("a/b/c.txt", "x"))) ==
        "Created a/b/c.txt (1 bytes)");
  CHECK(Text(shop.Call(WriteTool(), WriteArguments("a/b/c.txt", "yy"))) ==
        "Overwrote a/b/c.txt (2 bytes)");
  CHECK(shop.dir.Read("a/b/c.txt") == "yy");
  CHECK(FilesIn(shop.dir / "a/b") == 1);
  chmod(shop.dir.Write("run.sh", "old").c_str(), 0755);
  shop.Call(WriteTool(), WriteArguments("run.sh", "new"));
  struct stat info {};
  REQUIRE(stat((shop.dir / "run.sh").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0755);
  CHECK(shop.dir.Read("run.sh") == "new");
}

TEST_CASE("write: one announced action per write, with both digests") {
  ToolWorkshop shop;
  shop.dir.Write("f", "old");
  shop.context.OnBegin([&](const ActionReport&) { CHECK(shop.dir.Read("f") == "old"); });
  shop.Call(WriteTool(), WriteArguments("f", "newer"));
  REQUIRE(shop.context.begun().size() == 1);
  const ActionReport& begun = shop.context.begun()[0];
  CHECK(begun.effect == "file");
  CHECK(begun.summary == "write f");
  CHECK(begun.path == "f");
  CHECK(begun.bytes == 5);
  CHECK(begun.sha256_before == Sha256Hex("old"));
  CHECK(begun.sha256_after.empty());
  REQUIRE(shop.context.balanced());
  CHECK(shop.context.ended()[0].second.sha256_after == Sha256Hex("newer"));
  CHECK(shop.context.ended()[0].second.error.empty());
}

TEST_CASE("write: a folder, a FIFO and a file used as a folder are refused unannounced") {
  ToolWorkshop shop;
  REQUIRE(mkfifo((shop.dir / "fifo").c_str(), 0600) == 0);
  shop.dir.Write("file", "x");
  CHECK(Has(Text(shop.Call(WriteTool(), WriteArguments(".", "x"))), "existing directory"));
  CHECK(Has(Text(shop.Call(WriteTool(), WriteArguments("fifo", "x"))), "not a regular file"));
  CHECK(shop.Call(WriteTool(), WriteArguments("file/x", "x")).is_error);
  CHECK(shop.Call(WriteTool(), WriteArguments("", "x")).is_error);
  CHECK(shop.context.begun().empty());
}

TEST_CASE("write: what the run thread refuses is not done") {
  ToolWorkshop shop;
  shop.context.RefuseWith("no more actions");
  CHECK(Has(Text(shop.Call(WriteTool(), WriteArguments("f", "x"))), "no more actions"));
  CHECK_FALSE(shop.dir.Has("f"));
  CHECK(shop.context.ended().empty());
}

TEST_CASE("write: a failure behind the announcement is reported in it") {
  ToolWorkshop shop;
  shop.context.OnBegin([&](const ActionReport&) { shop.dir.Write("a", "now a file"); });
  CHECK(shop.Call(WriteTool(), WriteArguments("a/b", "x")).is_error);
  REQUIRE(shop.context.balanced());
  CHECK_FALSE(shop.context.ended()[0].second.error.empty());
  CHECK(shop.context.ended()[0].second.sha256_after.empty());
}

TEST_CASE("write: outside the roots, in a read-only root and norma's own files are denied") {
  const norma::testing::TempDir other, library;
  other.Write("secret", "top secret");
  library.Write("book", "x");
  ToolWorkshop shop({"."}, {library.path()});
  std::filesystem::create_symlink(other.path(), shop.dir / "link");
  std::filesystem::create_symlink(other / "secret", shop.dir / "file");
  std::filesystem::create_symlink(other / "fresh", shop.dir / "dangling");
  for (const std::string& path : {other / "new", std::string("link/new"), std::string("dangling"),
                                  std::string("file"), library / "book"}) {
    CAPTURE(path);
    CHECK(Has(Text(shop.Call(WriteTool(), WriteArguments(path, "owned"))), "error: denied: "));
    CHECK(Has(Text(shop.Call(EditTool(), EditArguments(path, "top", "no"))), "error: denied: "));
  }
  CHECK(Has(Text(shop.Call(WriteTool(), WriteArguments(library / "book", "x"))), "only be read"));
  CHECK(FilesIn(other.path()) == 1);

  struct stat info {};
  REQUIRE(stat(shop.dir.Write("ledger.jsonl", "line").c_str(), &info) == 0);
  shop.env.protected_files = {{info.st_dev, info.st_ino}};
  shop.env.protected_paths = {shop.dir / "transcript.jsonl"};
  std::filesystem::create_hard_link(shop.dir / "ledger.jsonl", shop.dir / "hard");
  std::filesystem::create_symlink("ledger.jsonl", shop.dir / "soft");
  for (const char* path : {"ledger.jsonl", "hard", "soft", "transcript.jsonl"}) {
    CAPTURE(path);
    CHECK(Has(Text(shop.Call(WriteTool(), WriteArguments(path, "x"))), "denied: "));
  }
  CHECK(shop.dir.Read("ledger.jsonl") == "line");
  CHECK(shop.context.begun().empty());
}

TEST_CASE("write: a symlink below the roots is written through, not replaced") {
  ToolWorkshop shop;
  shop.dir.Write("real", "old");
  std::filesystem::create_symlink("real", shop.dir / "link");
  CHECK_FALSE(shop.Call(WriteTool(), WriteArguments("link", "new")).is_error);
  CHECK(shop.dir.Read("real") == "new");
  CHECK(std::filesystem::is_symlink(shop.dir / "link"));
  CHECK(shop.actions == std::vector<Action>{{Effect::kFileWrite, shop.dir / "real", "link"}});
}

TEST_CASE("edit: results and refusals on a file") {
  ToolWorkshop shop;
  shop.dir.Write("f", "x x");
  CHECK(Has(Text(shop.Call(EditTool(), EditArguments("f", "x", "y"))), "2 matches"));
  CHECK(shop.Call(EditTool(), EditArguments("f", "x", "x")).is_error);
  CHECK(shop.Call(EditTool(), EditArguments("f", "gone", "x")).is_error);
  CHECK(shop.Call(EditTool(), EditArguments("missing", "a", "x")).is_error);
  CHECK(shop.Call(EditTool(), EditArguments(".", "a", "x")).is_error);
  CHECK(shop.context.begun().empty());
  CHECK(Text(shop.Call(EditTool(), EditArguments("f", "x", "yy", true))) ==
        "Edited f (2 replacement(s))");
  CHECK(shop.dir.Read("f") == "yy yy");
  CHECK(shop.context.begun().size() == 1);
  CHECK(shop.context.begun()[0].summary == "edit f");
  CHECK(shop.context.balanced());
}

TEST_CASE("multiedit: all edits or none") {
  ToolWorkshop shop;
  shop.dir.Write("f", "one\r\ntwo");
  const std::string failed =
      Text(shop.Call(MultiEditTool(), MultiArguments("f", {{"one", "1"}, {"gone", "x"}})));
  CHECK(Has(failed, "error: Error editing f: edit 2 of 2: "));
  CHECK(shop.Call(MultiEditTool(), MultiArguments("f", {})).is_error);
  CHECK(shop.dir.Read("f") == "one\r\ntwo");
  CHECK(shop.context.begun().empty());
  CHECK(Text(shop.Call(MultiEditTool(), MultiArguments("f", {{"one", "uno"}, {"uno", "eins"}}))) ==
        "Applied 2 edits to f (2 replacement(s))");
  CHECK(shop.dir.Read("f") == "eins\r\ntwo");
  CHECK(shop.context.begun().size() == 1);
}

TEST_CASE("require_read: a file must have been read as it is now") {
  ToolWorkshop shop;
  ReadLog reads;
  shop.env.require_read = true;
  shop.env.reads = &reads;
  shop.dir.Write("f", "one two\n");
  const std::string edit = EditArguments("f", "one", "1");
  CHECK(Has(Text(shop.Call(EditTool(), edit)), "Read it first"));
  CHECK(Has(Text(shop.Call(WriteTool(), WriteArguments("f", "x"))), "Read it first"));
  CHECK_FALSE(shop.Call(WriteTool(), WriteArguments("new", "x")).is_error);
  shop.Call(ReadTool(), R"({"file_path":"f"})");
  CHECK_FALSE(shop.Call(EditTool(), edit).is_error);
  // An edit may follow an edit, and what we wrote counts as read.
  CHECK_FALSE(shop.Call(EditTool(), EditArguments("f", "two", "2")).is_error);
  CHECK_FALSE(shop.Call(EditTool(), EditArguments("new", "x", "y")).is_error);
  shop.dir.Write("f", "changed by others\n");
  CHECK(Has(Text(shop.Call(EditTool(), EditArguments("f", "by", "of"))), "Read it again"));
  shop.env.reads = nullptr;
  CHECK(shop.Call(EditTool(), EditArguments("f", "by", "of")).is_error);
}

TEST_CASE("write: a cancelled call writes nothing") {
  ToolWorkshop shop;
  shop.context.Trip(15);
  CHECK(shop.Call(WriteTool(), WriteArguments("f", "x")).is_error);
  CHECK_FALSE(shop.dir.Has("f"));
  CHECK(shop.context.begun().empty());
}
