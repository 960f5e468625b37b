// Grep on real trees, with the built-in search and with ripgrep in front of it.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "lib/io/process.h"
#include "lib/testing/tool_workshop.h"
#include "lib/tool/grep_rg.h"

using namespace norma;
using namespace norma::tool;
using norma::testing::ToolWorkshop;

namespace {

std::string Text(const ToolOutput& output) {
  return (output.is_error ? "error: " : "") + output.text;
}

std::string Grep(ToolWorkshop& shop, const std::string& fields) {
  return Text(shop.Call(GrepTool(), "{" + fields + "}"));
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void Fill(const ToolWorkshop& shop) {
  shop.dir.Write("b.txt", "needle 1\nhay\nneedle 2\nx\ny\nneedle");
  shop.dir.Write("a/c.py", "# Needle\nneedle\n");
  shop.dir.Write(".hid", "needle\n");
  shop.dir.Write("ign.log", "needle\n");
  shop.dir.Write(".gitignore", "*.log\n");
  shop.dir.Write("node_modules/x", "needle");
  shop.dir.Write("bin", std::string("needle\0", 7));
  shop.dir.Write(".git/config", "needle");
  shop.dir.Write("crlf.txt", "needle\r\nb\r\n");
  shop.dir.Write("-dash", "needle\n");
  shop.dir.Write("latin", "needle \xe9\n");
  shop.dir.Write("late", std::string(9000, '.') + std::string(1, '\0') + "\nneedle\n");
}

// Time passes with every look at the clock.
class FastClock : public norma::testing::HandClock {
 public:
  MonoTime Now() override {
    Advance(step);
    return HandClock::Now();
  }
  Millis step{0};
};

}  // namespace

TEST_CASE("grep: files, content, count") {
  ToolWorkshop shop;
  Fill(shop);
  CHECK(Grep(shop, R"("pattern":"needle")") == "-dash\n.hid\na/c.py\nb.txt\ncrlf.txt\nlate\nlatin");
  CHECK(Grep(shop, R"("pattern":"needle","output_mode":"count","glob":"*.txt")") ==
        "b.txt: 3\ncrlf.txt: 1");
  CHECK(Grep(shop, R"("pattern":"needle","output_mode":"content","glob":"[bcl]*")") ==
        "a/c.py:2:needle\nb.txt:1:needle 1\nb.txt:3:needle 2\nb.txt:6:needle\n"
        "crlf.txt:1:needle\r\nlate:2:needle\nlatin:1:needle \xef\xbf\xbd");
  CHECK(Grep(shop, R"("pattern":"hay","output_mode":"content","-C":1,"-A":9)") ==
        "b.txt-1-needle 1\nb.txt:2:hay\nb.txt-3-needle 2");
  CHECK(Grep(shop,
             R"("pattern":"needle","output_mode":"content","-i":true,"-n":false,"type":"py")") ==
        "a/c.py:# Needle\na/c.py:needle");
  CHECK(Grep(shop, R"("pattern":"^needle$","output_mode":"content","glob":"*.txt")") ==
        "b.txt:6:needle");
  CHECK(Grep(shop, R"("pattern":"-dash")") == "No matches found");
  CHECK(shop.context.begun().empty());
}

TEST_CASE("grep: a file, a folder, a link, a missing place, a place outside") {
  ToolWorkshop shop;
  Fill(shop);
  std::filesystem::create_symlink("a", shop.dir / "link");
  REQUIRE(mkfifo((shop.dir / "fifo").c_str(), 0600) == 0);
  CHECK(Grep(shop, R"("pattern":"hay","path":"b.txt","output_mode":"content")") == "b.txt:2:hay");
  CHECK(Grep(shop, R"("pattern":"needle","path":"b.txt","output_mode":"count")") == "b.txt: 3");
  CHECK(Grep(shop, R"("pattern":"needle","path":"ign.log")") == "ign.log");
  CHECK(Grep(shop, R"("pattern":"needle","path":"a")") == "c.py");
  CHECK(Grep(shop, R"("pattern":"needle","path":"link")") == "c.py");
  CHECK(Grep(shop, R"("pattern":"needle","path":"bin")") ==
        "No matches found\n[the file is binary and was not searched]");
  CHECK(Has(Grep(shop, R"("pattern":"x","path":"gone")"), "error: Error searching gone: no such"));
  CHECK(Has(Grep(shop, R"("pattern":"x","path":"fifo")"), "error: "));
  CHECK(Has(Grep(shop, R"("pattern":"x","path":"/etc")"), "error: denied: "));
}

TEST_CASE("grep: pages") {
  ToolWorkshop shop;
  for (const char* name : {"1", "2", "3", "4", "5"}) shop.dir.Write(name, "needle\n");
  CHECK(Grep(shop, R"("pattern":"needle","head_limit":2,"offset":2)") ==
        "3\n4\n[1 more line; continue with offset 4]");
  CHECK(Grep(shop, R"("pattern":"needle","head_limit":0)") == "1\n2\n3\n4\n5");
  CHECK(Grep(shop, R"("pattern":"needle","head_limit":-1,"offset":4)") == "5");
  CHECK(Grep(shop, R"("pattern":"needle","offset":9)") ==
        "[no output: offset 9 is behind the last of 5 lines]");
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += "needle\n";
  shop.dir.Write("many", lines);
  CHECK(Has(Grep(shop, R"("pattern":"needle","path":"many","output_mode":"content")"),
            "many:250:needle\n[50 more lines; continue with offset 250]"));
}

TEST_CASE("grep: bad arguments are errors that say what to do") {
  ToolWorkshop shop;
  CHECK(Has(Grep(shop, R"("pattern":"(")"), "error: Error searching .: invalid regex: "));
  CHECK(Has(Grep(shop, R"x("pattern":"a(?=b)")x"), "no look-around"));
  CHECK(Has(Grep(shop, R"("pattern":"x","output_mode":"nonsense")"), "unknown output_mode"));
  CHECK(Has(Grep(shop, R"("pattern":"x","glob":"[z-")"), "the glob can match nothing"));
  CHECK(Has(Grep(shop, R"("pattern":"a\\nb")"), "set multiline"));
}

TEST_CASE("grep: multiline") {
  ToolWorkshop shop;
  shop.dir.Write("f", "a\nneedle\nhay\nb\nneedle hay\n");
  CHECK(Grep(shop, R"("pattern":"needle.hay","multiline":true,"output_mode":"content")") ==
        "f:2:needle\nf:3:hay\nf:5:needle hay");
  CHECK(Grep(shop, R"("pattern":"^hay$","multiline":true,"output_mode":"content")") == "f:3:hay");
}

TEST_CASE("grep: a search cut by time never says that there is nothing") {
  ToolWorkshop shop;
  for (int i = 0; i < 200; ++i) shop.dir.Write("f" + std::to_string(i), "hay\n");
  FastClock clock;
  clock.step = Millis{500};
  shop.env.clock = &clock;
  const ToolOutput cut = shop.Call(GrepTool(), R"({"pattern":"needle"})");
  CHECK_FALSE(Has(cut.text, "No matches"));
  CHECK(Has(cut.text, "Nothing found so far\n[search incomplete: "));
  CHECK(cut.truncated);
  // What was found is counted, even when no time is left to show it.
  shop.context.SetDeadline(clock.Now() + Millis{20'000});
  const ToolOutput content = shop.Call(GrepTool(), R"({"pattern":"hay","output_mode":"content"})");
  CHECK(Has(content.text, "[search incomplete: "));
  CHECK_FALSE(Has(content.text, "behind the last"));
  CHECK(content.truncated);
  shop.context.SetDeadline(kNever);
  shop.env.clock = &shop.clock;
  shop.context.Trip(15);
  CHECK(Has(Grep(shop, R"("pattern":"needle")"), "cancelled"));
}

TEST_CASE("grep: files over the size cap are told") {
  ToolWorkshop shop;
  shop.dir.Write("small", "needle\n");
  shop.dir.Write("large", "needle\n");
  std::filesystem::resize_file(shop.dir / "large", (16u << 20) + 1);
  CHECK(Grep(shop, R"("pattern":"needle")") == "small\n[1 file(s) over 16 MiB were not searched]");
  CHECK(Grep(shop, R"("pattern":"absent")") ==
        "No matches found\n[1 file(s) over 16 MiB were not searched]");
}

TEST_CASE("grep: a ripgrep that fails or lies changes nothing") {
  ToolWorkshop shop;
  Fill(shop);
  const std::string want = Grep(shop, R"("pattern":"needle","-i":true)");
  const norma::testing::TempDir tools;
  shop.env.child_env = {"PATH=/usr/bin:/bin"};
  shop.env.clock = &SystemClock();
  for (const char* script :
       {"exit 2", "exit 127", "kill -9 $$", "printf './b.txt\\0./etc\\0'", "printf 'garbage'"}) {
    CAPTURE(script);
    shop.env.ripgrep = tools.Write("rg", std::string("#!/bin/sh\n") + script + "\n");
    chmod(shop.env.ripgrep.c_str(), 0755);
    CHECK(Grep(shop, R"("pattern":"needle","-i":true)") == want);
  }
  shop.env.ripgrep = "/nonexistent/rg";
  CHECK(Grep(shop, R"("pattern":"needle","-i":true)") == want);
}

TEST_CASE("grep: byte for byte the same with and without ripgrep") {
  const char* path = getenv("PATH");
  const std::string ripgrep = FindProgram("rg", path == nullptr ? "/usr/bin:/bin" : path);
  if (ripgrep.empty()) {
    MESSAGE("skipped: no rg on PATH");
    return;
  }
  ToolWorkshop shop;
  Fill(shop);
  shop.env.clock = &SystemClock();
  shop.env.child_env = {"RIPGREP_CONFIG_PATH=" + shop.dir.Write("rgrc", "--max-count=0\n")};
  shop.dir.Write(".ignore", "b.txt\n");
  shop.dir.Write(".rgignore", "*.py\n");
  shop.dir.Write("utf16", std::string("\xff\xfen\0e\0e\0d\0l\0e\0", 14));
  shop.dir.Write("bom16", "\xff\xfeneedle\n");
  shop.dir.Write("we\nird name", "needle\n");
  shop.dir.Write("kelvin", "tas\xe2\x84\xaa force\n");
  shop.dir.Write("surrogate",
                 "nee\xed\xa0\x80"
                 "dle needle\n");
  std::mt19937 random(3);
  const std::vector<std::string> atoms = {"needle", "hay",  "x",     " ",        "\n",
                                          "\n",     "\r\n", "\t",    "\xc3\xa9", "\xe9",
                                          "Needle", "foo(", "-dash", "\\"};
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (size_t k = random() % 60; k > 0; --k) text += atoms[random() % atoms.size()];
    shop.dir.Write(
        "d" + std::to_string(i % 7) + "/f" + std::to_string(i) + (i % 3 ? ".txt" : ".py"), text);
  }
  const std::vector<std::string> patterns = {
      "needle",       "^needle$",      "needle.*hay",
      "hay|foo\\\\(", "\\\\bhay\\\\b", "[nN]eedle",
      "(?i)NEEDLE",   "-dash",         "hay\\\\s+needle",
      "\xc3\xa9",     "x{2,}",         "\\\\w+le",
      "needle$",      "absent",        "e.d",
      "[^n]eedle",    "task force",    "hay|needle|foo\\\\(|-dash",
      "needle\\\\n",  "foo\\\\(",      "hay needle|needle hay"};
  const std::vector<std::string> variants = {
      "",
      R"(,"output_mode":"content")",
      R"(,"output_mode":"count","-i":true)",
      R"(,"output_mode":"content","-i":true,"-C":1,"head_limit":40,"offset":3)",
      R"(,"output_mode":"content","multiline":true,"type":"py")",
      R"(,"glob":"d1/**")"};
  int shortcut = 0;
  for (const std::string& pattern : patterns) {
    for (const std::string& variant : variants) {
      const std::string fields = "\"pattern\":\"" + pattern + "\"" + variant;
      CAPTURE(fields);
      shop.env.ripgrep.clear();
      const std::string builtin = Grep(shop, fields);
      shop.env.ripgrep = ripgrep;
      CHECK(Grep(shop, fields) == builtin);
    }
    shortcut += RipgrepSafe(FindRequiredTexts(pattern, false));
  }
  CHECK(shortcut > 5);
}

TEST_CASE("grep: ripgrep is asked for fixed texts and its answer is used") {
  ToolWorkshop shop;
  Fill(shop);
  const norma::testing::TempDir tools;
  shop.env.clock = &SystemClock();
  shop.env.child_env = {"PATH=/usr/bin:/bin"};
  shop.env.ripgrep = tools.Write(
      "rg", "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + (tools / "asked") + "\nprintf './b.txt\\0'\n");
  chmod(shop.env.ripgrep.c_str(), 0755);
  CHECK(Grep(shop, R"("pattern":"n[e]+d","-i":true)") ==
        "-dash\n.hid\na/c.py\nb.txt\ncrlf.txt\nlate\nlatin");
  CHECK_FALSE(tools.Has("asked"));  // no fixed text can be proven
  CHECK(Grep(shop, R"("pattern":"^need.*","-i":true)") == "b.txt");
  CHECK(Has(tools.Read("asked"), "--no-config\n"));
  CHECK(Has(tools.Read("asked"), "-e\nneed\n--\n./-dash\n"));
  CHECK_FALSE(Has(tools.Read("asked"), "ign.log"));
}
