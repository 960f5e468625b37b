// Read on real files.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "lib/testing/tool_workshop.h"

using namespace norma;
using namespace norma::tool;
using norma::testing::ToolWorkshop;

namespace {

std::string Text(ToolWorkshop& shop, const std::string& arguments) {
  const ToolOutput output = shop.Call(ReadTool(), arguments);
  return (output.is_error ? "error: " : "") + output.text;
}

std::string Arguments(const std::string& path, int64_t offset = 0, int64_t limit = 0) {
  json::Writer out;
  out.BeginObject().Field("file_path", path);
  if (offset != 0) out.Field("offset", offset);
  if (limit != 0) out.Field("limit", limit);
  return out.EndObject().Take();
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("read: numbered lines, a last line break shows one more line") {
  ToolWorkshop shop;
  shop.dir.Write("two", "hello\nworld\n");
  shop.dir.Write("open", "a\nb");
  shop.dir.Write("empty", "");
  CHECK(Text(shop, Arguments("two")) == "     1\thello\n     2\tworld\n     3\t\n");
  CHECK(Text(shop, Arguments("open")) == "     1\ta\n     2\tb\n");
  CHECK(Text(shop, Arguments("two", 2, 1)) == "     2\tworld\n");
  CHECK(Text(shop, Arguments("two", 3)) == "     3\t\n");
  CHECK(Text(shop, Arguments("two", -4, 1)) == "     1\thello\n");
  CHECK(Text(shop, Arguments("two", 99)) == "(no lines in the requested range)");
  CHECK(Text(shop, Arguments("empty")) == "     1\t\n");
  CHECK(Text(shop, Arguments("empty", 2)) == "(file is empty)");
  CHECK(shop.context.begun().empty());
}

TEST_CASE("read: binary by a NUL in the first 8000 bytes, else text") {
  ToolWorkshop shop;
  shop.dir.Write("bin", std::string("abc\0def", 7));
  shop.dir.Write("late", std::string(9000, 'x') + std::string(1, '\0'));
  CHECK(Text(shop, Arguments("bin")) == "[binary file bin not shown — 7 bytes]");
  CHECK(Has(Text(shop, Arguments("late")), "     1\txxx"));
}

TEST_CASE("read: long lines are cut on a character, bad UTF-8 is repaired") {
  ToolWorkshop shop;
  shop.dir.Write("long", std::string(5000, 'y') + "\nz");
  shop.dir.Write("wide", std::string(1999, 'y') + "\xc3\xa9\n");
  shop.dir.Write("latin", "caf\xe9\n");
  CHECK(Text(shop, Arguments("long")) ==
        "     1\t" + std::string(2000, 'y') + " … [line cut, it has 5000 bytes]\n     2\tz\n");
  CHECK(Text(shop, Arguments("wide", 1, 1)) ==
        "     1\t" + std::string(1999, 'y') + " … [line cut, it has 2001 bytes]\n");
  CHECK(Text(shop, Arguments("latin", 1, 1)) == "     1\tcaf\xef\xbf\xbd\n");
}

TEST_CASE("read: pages follow each other without gap or overlap") {
  ToolWorkshop shop;
  std::string text, want;
  for (int i = 1; i <= 3000; ++i) text += "line " + std::to_string(i) + std::string(20, '.') + "\n";
  shop.dir.Write("big", text);
  std::string seen;
  int64_t offset = 1;
  int pages = 0;
  for (; pages < 20; ++pages) {
    const ToolOutput output = shop.Call(ReadTool(), Arguments("big", offset));
    CHECK(output.text.size() <= 31'000 + 100);
    const size_t note = output.text.find("\n[");
    seen += output.text.substr(0, note == std::string::npos ? note : note + 1);
    CHECK(output.truncated == (note != std::string::npos));
    if (note == std::string::npos) break;
    offset = std::stoll(output.text.substr(output.text.find("offset ", note) + 7));
  }
  CHECK(pages > 1);
  CHECK(seen == Text(shop, Arguments("big", 1, 1)) + seen.substr(seen.find("     2\t")));
  int64_t number = 1;
  for (size_t at = 0; at < seen.size(); at = seen.find('\n', at) + 1, ++number) {
    REQUIRE(std::stoll(seen.substr(at, 6)) == number);
  }
  CHECK(number == 3002);  // 3000 lines and the empty one behind the last break
}

TEST_CASE("read: the default limit says that more follows, a given limit does not") {
  ToolWorkshop shop;
  shop.dir.Write("many", std::string(5000, '\n'));
  CHECK(Has(Text(shop, Arguments("many")), "[more lines follow; continue with offset 2001]"));
  CHECK_FALSE(Has(Text(shop, Arguments("many", 1, 2000)), "["));
}

TEST_CASE("read: a budget smaller than one line still moves on") {
  ToolWorkshop shop;
  shop.env.output_bytes = 0;
  shop.dir.Write("f", std::string(1500, 'y') + "\nz\n");
  const std::string text = Text(shop, Arguments("f"));
  CHECK(Has(text, "continue with offset 2]"));
}

TEST_CASE("read: what is no regular file is an error at once") {
  ToolWorkshop shop({".", "/dev"});
  REQUIRE(mkfifo((shop.dir / "fifo").c_str(), 0600) == 0);
  shop.dir.Write("d/x", "");
  CHECK(Has(Text(shop, Arguments("fifo")), "error: Error reading fifo: "));
  CHECK(Has(Text(shop, Arguments("/dev/zero")), "error: "));
  CHECK(Has(Text(shop, Arguments("d")), "use LS or Glob"));
  CHECK(Has(Text(shop, Arguments("gone")), "error: Error reading gone: no such file"));
  CHECK(Has(Text(shop, Arguments("d/x/y")), "error: "));
  CHECK(Has(Text(shop, Arguments("")), "error: "));
  CHECK(Has(Text(shop, R"({"file_path":"a\u0000b"})"), "error: "));
}

TEST_CASE("read: a place outside the roots is denied whether it exists or not") {
  ToolWorkshop shop;
  const norma::testing::TempDir other;
  other.Write("secret", "top");
  std::filesystem::create_symlink(other.path(), shop.dir / "link");
  std::filesystem::create_symlink(other / "secret", shop.dir / "file");
  for (const std::string& path : {other / "secret", other / "nothing", std::string("link/secret"),
                                  std::string("link/nothing"), std::string("file"),
                                  std::string("./x/../link/secret"), std::string("/etc/passwd")}) {
    CAPTURE(path);
    const std::string text = Text(shop, Arguments(path));
    CHECK(text ==
          "error: denied: " + path +
              " is outside the folders this run may touch (tools.roots: " + shop.dir.path() + ")");
  }
}

TEST_CASE("read: a path that leads elsewhere when the call runs is refused") {
  ToolWorkshop shop;
  shop.dir.Write("a", "first");
  shop.dir.Write("b", "second");
  const auto document = json::Document::Parse(Arguments("a"));
  const auto prepared = ReadTool().prepare(document.value().root(), shop.env);
  REQUIRE(prepared.ok());
  std::filesystem::remove(shop.dir / "a");
  std::filesystem::create_symlink("b", shop.dir / "a");
  const ToolOutput output = prepared.value().run(shop.context);
  CHECK(output.is_error);
  CHECK_FALSE(Has(output.text, "second"));
}

TEST_CASE("read: a file made between judging and running is read") {
  ToolWorkshop shop;
  const auto document = json::Document::Parse(Arguments("new"));
  const auto prepared = ReadTool().prepare(document.value().root(), shop.env);
  shop.dir.Write("new", "here");
  CHECK(prepared.value().run(shop.context).text == "     1\there\n");
}

TEST_CASE("read: a cancelled call and one past its deadline end") {
  ToolWorkshop shop;
  shop.dir.Write("f", "x\n");
  shop.context.SetDeadline(shop.clock.Now());
  CHECK(Has(Text(shop, Arguments("f")), "time is over"));
  shop.context.SetDeadline(kNever);
  shop.context.Trip(Cancel::kDeadline);
  CHECK(Has(Text(shop, Arguments("f")), "cancelled"));
}
