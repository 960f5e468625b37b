#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/text.h"
#include "lib/io/process.h"
#include "lib/testing/temp_dir.h"
#include "lib/testing/tool_context.h"
#include "lib/tool/builtins.h"

using namespace norma;
using namespace norma::tool;
using testing::FakeToolContext;
using testing::RunTool;
using testing::TempDir;

namespace {

// Of this process alone: a second test run at the same time must not end what this one started.
std::string Marker() {
  return "bash-test-" + std::to_string(getpid());
}

struct Fixture {
  TempDir folder;
  TempDir spills;
  ToolEnv env;
  Fixture() {
    BecomeSubreaper();
    env.cwd = folder.path();
    env.private_dir = spills.path();
    env.child_env = {"PATH=/usr/local/bin:/usr/bin:/bin", "PAGER=less", "A=b"};
    env.run_marker = Marker();
    env.clock = &SystemClock();
  }
  ~Fixture() { KillDescendants(env.run_marker, Millis(100), SystemClock()); }
};

std::string Arguments(const std::string& command, int64_t timeout_ms = 0) {
  json::Writer writer;
  writer.BeginObject().Field("command", command);
  if (timeout_ms != 0) writer.Field("timeout_ms", timeout_ms);
  return writer.EndObject().Take();
}

Prepared Prepare(const std::string& arguments, const ToolEnv& env) {
  const auto document = json::Document::Parse(arguments);
  return BashTool().prepare(document.value().root(), env).value();
}

}  // namespace

TEST_CASE("bash: results say what was written and how it ended") {
  struct Case {
    std::string command, text;
    bool is_error;
  };
  const std::vector<Case> cases = {
      {"echo hi", "hi\n", false},
      {"true", "(command produced no output)", false},
      {"printf ' \\n\\t'", "(command produced no output)", false},
      {"printf 'a\\n\\n'", "a\n\n", false},
      {"exit 3", "(no output)\n\n[exit code 3]", true},
      {"echo out; echo err >&2; exit 7", "out\nerr\n\n[exit code 7]", true},
      {"printf x; exit 1", "x\n\n[exit code 1]", true},
      {"kill -9 $$", "(no output)\n\n[killed by signal 9 (SIGKILL), exit code -1]", true},
      {"kill 0; echo bad", "(no output)\n\n[killed by signal 15 (SIGTERM), exit code -1]", true},
      {"printf '\\377\\376x'", "\377\376x", false},
      {"  ", "the command is blank: nothing was run", true},
      {"", "the command is blank: nothing was run", true},
      {"cat; echo end", "end\n", false},
      {"echo $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $A $NORMA_CALL",
       "cat cat 0 b " + Marker() + ":call-1\n", false},
      {"env | grep -c ^PAGER=", "1\n", false},
      {"if", "bash: -c: line 2: syntax error: unexpected end of file\n\n[exit code 2]", true},
  };
  Fixture fixture;
  for (const Case& want : cases) {
    CAPTURE(want.command);
    FakeToolContext context(fixture.env);
    const ToolOutput got = RunTool(BashTool(), Arguments(want.command), context);
    CHECK(got.text == want.text);
    CHECK(got.is_error == want.is_error);
    CHECK_FALSE(got.truncated);
    CHECK(context.balanced());
  }
}

TEST_CASE("bash: the action is announced before the command runs and closed with its outcome") {
  Fixture fixture;
  FakeToolContext context(fixture.env);
  bool ran_before = true;
  context.OnBegin([&](const ActionReport&) { ran_before = fixture.folder.Has("ran"); });
  const std::string command = "\n  touch ran; echo hello # " + std::string(200, 'x') + "\nexit 4";
  RunTool(BashTool(), Arguments(command), context);
  CHECK_FALSE(ran_before);
  CHECK(fixture.folder.Has("ran"));
  REQUIRE(context.begun().size() == 1);
  REQUIRE(context.ended().size() == 1);
  const ActionReport& begun = context.begun()[0];
  CHECK(begun.effect == "process");
  CHECK(begun.command == command);
  CHECK(begun.summary == "bash: touch ran; echo hello # " + std::string(96, 'x') + "…");
  const auto& [id, ended] = context.ended()[0];
  CHECK(id == "a1");
  CHECK(ended.exit == 4);
  CHECK_FALSE(ended.signal.has_value());
  CHECK(ended.bytes == 6);
  CHECK_FALSE(ended.killed.has_value());
  CHECK_FALSE((ended.timed_out || ended.cancelled || ended.truncated));
  CHECK(ended.error.empty());
  CHECK(ended.duration.count() >= 0);
}

TEST_CASE("bash: a refused announcement runs nothing") {
  Fixture fixture;
  FakeToolContext context(fixture.env);
  context.RefuseWith("the ledger cannot be written");
  const ToolOutput got = RunTool(BashTool(), Arguments("touch ran"), context);
  CHECK(got.is_error);
  CHECK(got.text == "the ledger cannot be written");
  CHECK_FALSE(fixture.folder.Has("ran"));
  CHECK(context.ended().empty());
}

TEST_CASE("bash: a timeout keeps the output so far and names the limit that applied") {
  Fixture fixture;
  {
    FakeToolContext context(fixture.env);
    const ToolOutput got = RunTool(BashTool(), Arguments("echo early; sleep 60", 400), context);
    CHECK(got.is_error);
    CHECK(got.text == "early\n\n[command timed out after 400 ms and was killed]");
    const ActionReport& ended = context.ended().at(0).second;
    CHECK(ended.timed_out);
    CHECK(ended.killed.value_or(0) >= 1);
    CHECK(ended.signal == SIGTERM);
  }
  {
    FakeToolContext context(fixture.env);
    context.SetDeadline(SystemClock().Now() + Millis(300));
    const ToolOutput got = RunTool(BashTool(), Arguments("sleep 60", 60'000), context);
    CHECK(got.is_error);
    CHECK(got.text.find("no time is left for this call]") != std::string::npos);
    CHECK(context.ended().at(0).second.timed_out);
  }
  {
    fixture.env.bash_timeout = Millis(1'000);
    FakeToolContext context(fixture.env);
    const ToolOutput got = RunTool(BashTool(), Arguments("sleep 60", -5), context);
    CHECK(got.text == "(no output)\n\n[command timed out after 1 s and was killed]");
  }
}

TEST_CASE("bash: a cancel ends the command and is said") {
  Fixture fixture;
  FakeToolContext context(fixture.env);
  // Tripped as soon as the action is announced: before the child is there.
  context.OnBegin([&](const ActionReport&) { context.Trip(SIGTERM); });
  const ToolOutput got = RunTool(BashTool(), Arguments("touch ran"), context);
  CHECK(got.is_error);
  CHECK(context.ended().at(0).second.cancelled);
  CHECK_FALSE(fixture.folder.Has("ran"));
}

TEST_CASE("bash: background children do not hold the call") {
  Fixture fixture;
  FakeToolContext context(fixture.env);
  const ToolOutput got = RunTool(BashTool(), Arguments("sleep 300 & echo hi"), context);
  CHECK(got.text == "hi\n");
  CHECK_FALSE(got.is_error);
}

TEST_CASE("bash: long output is shown as start and end on code points, and the file is named") {
  Fixture fixture;
  fixture.env.output_bytes = 20;
  FakeToolContext context(fixture.env);
  // 3 bytes each: neither half of the budget ends on a code point.
  const ToolOutput got =
      RunTool(BashTool(), Arguments("for i in {1..100}; do printf '€'; done; exit 2"), context);
  CHECK(got.is_error);
  CHECK(got.truncated);
  CHECK(IsValidUtf8(got.text));
  CHECK(got.text.starts_with("€€€\n[282 of 300 bytes omitted here; the whole output is in "));
  CHECK(got.text.ends_with("with Read or Grep]\n€€€\n\n[exit code 2]"));
  CHECK(context.ended().at(0).second.truncated);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(fixture.spills.path())) {
    files.push_back(entry.path());
  }
  REQUIRE(files.size() == 1);
  CHECK(got.text.find(files[0].string()) != std::string::npos);
  CHECK(std::filesystem::file_size(files[0]) == 300);
}

TEST_CASE("bash: endless output is ended") {
  Fixture fixture;
  FakeToolContext context(fixture.env);
  const ToolOutput got = RunTool(BashTool(), Arguments("yes", 60'000), context);
  CHECK(got.is_error);
  CHECK(got.text.size() < 31'000);
  CHECK(got.text.ends_with("\n\n[command killed: it wrote more than 50.0 MiB]"));
  CHECK(context.ended().at(0).second.error == "too much output");
}

TEST_CASE("bash: what cannot start is an error with an end") {
  Fixture fixture;
  fixture.env.cwd = fixture.folder / "gone";
  FakeToolContext context(fixture.env);
  const ToolOutput got = RunTool(BashTool(), Arguments("true"), context);
  CHECK(got.is_error);
  CHECK(got.text.starts_with("[failed to run: the working folder "));
  CHECK_FALSE(context.ended().at(0).second.error.empty());
  CHECK_FALSE(context.ended().at(0).second.exit.has_value());

  fixture.env.cwd = fixture.folder.path();
  FakeToolContext second(fixture.env);
  const ToolOutput long_command =
      RunTool(BashTool(), Arguments("# " + std::string(200'000, 'x')), second);
  CHECK(long_command.text.find("put long text into a file") != std::string::npos);
}

TEST_CASE(
    "bash: prepare names the process, denies the floor and refuses what cannot be run as judged") {
  Fixture fixture;
  const Prepared plain = Prepare(Arguments("ls -l"), fixture.env);
  CHECK_FALSE(plain.read_only);
  CHECK_FALSE(BashTool().parallel);
  CHECK(plain.own == OwnVerdict::kAsk);
  CHECK(plain.actions == std::vector<Action>{{Effect::kProcess, "ls -l", "ls -l"}});
  const Prepared floor = Prepare(Arguments("rm -rf /"), fixture.env);
  CHECK(floor.own == OwnVerdict::kDeny);
  CHECK_FALSE(floor.own_message.empty());

  FakeToolContext context(fixture.env);
  const ToolOutput got = RunTool(BashTool(), R"({"command":"echo a\u0000; echo b"})", context);
  CHECK(got.text.starts_with("invalid: "));
  CHECK(context.begun().empty());
}
