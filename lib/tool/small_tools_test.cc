// Capture, sleep and TodoWrite.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "lib/base/text.h"
#include "lib/testing/hand_clock.h"
#include "lib/testing/temp_dir.h"
#include "lib/testing/tool_context.h"
#include "lib/tool/builtins.h"
#include "lib/tool/capture.h"

using namespace norma;
using namespace norma::tool;
using testing::FakeToolContext;
using testing::HandClock;
using testing::RunTool;
using testing::TempDir;

namespace {

std::vector<std::string> Shown(TodoList& list) {
  std::vector<std::string> lines;
  for (const TodoItem& item : list.items) lines.push_back(item.status + " " + item.content);
  return lines;
}

}  // namespace

TEST_CASE("capture: text within the budget is unchanged") {
  ToolEnv env;
  env.output_bytes = 10;
  const ToolOutput got = Capture("0123456789", env);
  CHECK(got.text == "0123456789");
  CHECK_FALSE(got.truncated);
  CHECK_FALSE(got.is_error);
}

TEST_CASE("capture: longer text goes to a private file whole, and the marker names it") {
  const TempDir folder;
  ToolEnv env;
  env.output_bytes = 8;
  env.private_dir = folder.path();
  env.cwd = folder.path();
  const std::string text = "one\n€€€\nthree";
  const ToolOutput got = Capture(text, env);
  CHECK(got.truncated);
  CHECK(
      got.text.starts_with("one\n€\n[cut: 7 of 19 bytes shown, 3 lines in all; the whole "
                           "output is in output-"));
  const size_t at = got.text.find("output-");
  const std::string name = got.text.substr(at, got.text.find(',', at) - at);
  CHECK(folder.Read(name) == text);
  struct stat info {};
  REQUIRE(stat((folder / name).c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  const ToolOutput second = Capture(text, env);
  CHECK(second.text != got.text);  // a file of its own
}

TEST_CASE("capture: without a place for the whole, start and end are kept") {
  ToolEnv env;
  env.output_bytes = 8;
  for (const std::string folder : {"", "/no/such/folder"}) {
    env.private_dir = folder;
    const ToolOutput got = Capture("abcd0123456789wxyz", env);
    CHECK(got.text == "abcd\n[10 of 18 bytes omitted here]\nwxyz");
    CHECK(got.truncated);
  }
}

TEST_CASE("capture: cuts never leave half a code point, and keep bytes that are none") {
  ToolEnv env;
  const std::string text = "aé€😀é€😀z\n";
  for (size_t head = 0; head <= text.size(); ++head) {
    for (size_t tail = 0; head + tail <= text.size(); ++tail) {
      const std::string_view view = text;
      CHECK(IsValidUtf8(
          JoinCut(view.substr(0, head), view.substr(view.size() - tail), view.size(), "", env)));
    }
  }
  CHECK(JoinCut("\377\377", "\200\200\200\200", 20, "", env) ==
        "\377\377\n[17 of 20 bytes omitted here]\n\200");
}

TEST_CASE("sleep: waits for 1 to 3600 seconds, not beyond the call's deadline or a cancel") {
  struct Case {
    std::string arguments;
    int deadline_s;  // 0: none
    std::string text;
    int slept_s;
  };
  const std::vector<Case> cases = {
      {R"({"seconds":3})", 0, "slept 3s", 3},
      {R"({"seconds":2.0})", 0, "slept 2s", 2},
      {R"({"seconds":0})", 0, "slept 1s", 1},
      {R"({"seconds":-7})", 0, "slept 1s", 1},
      {R"({"seconds":99999})", 0, "slept 3600s", 3600},
      {R"({"seconds":60})", 60, "slept 60s", 60},
      {R"({"seconds":60})", 5, "slept 5s of 60s: no time is left for this call", 5},
      {R"({"seconds":60})", -5, "slept 0s of 60s: no time is left for this call", 0},
  };
  for (const Case& want : cases) {
    CAPTURE(want.arguments);
    HandClock clock;
    ToolEnv env;
    env.clock = &clock;
    FakeToolContext context(env);
    if (want.deadline_s != 0) {
      context.SetDeadline(clock.Now() + std::chrono::seconds(want.deadline_s));
    }
    const ToolOutput got = RunTool(SleepTool(), want.arguments, context);
    CHECK(got.text == want.text);
    CHECK_FALSE(got.is_error);
    CHECK(clock.slept() == std::chrono::seconds(want.slept_s));
    CHECK(context.begun().empty());
  }
  HandClock clock;
  ToolEnv env;
  env.clock = &clock;
  FakeToolContext context(env);
  context.Trip(SIGTERM);
  const ToolOutput got = RunTool(SleepTool(), R"({"seconds":5})", context);
  CHECK(got.text == "sleep interrupted");
  CHECK_FALSE(got.is_error);
}

TEST_CASE("sleep: reads only, may run beside others, allows itself") {
  const auto document = json::Document::Parse(R"({"seconds":5})");
  const Prepared prepared = SleepTool().prepare(document.value().root(), ToolEnv{}).value();
  CHECK(prepared.read_only);
  CHECK(SleepTool().parallel);
  CHECK(prepared.own == OwnVerdict::kAllow);
  CHECK(prepared.actions.empty());
}

TEST_CASE("TodoWrite: replaces the whole list, clears it, and refuses unknown states") {
  TodoList list;
  ToolEnv env;
  env.todos = &list;
  FakeToolContext context(env);
  const Tool tool = TodoWriteTool();
  CHECK_FALSE(RunTool(tool,
                      R"({"todos":[{"content":"a","status":"completed"},
                                   {"content":"b","status":"in_progress"}]})",
                      context)
                  .is_error);
  CHECK(Shown(list) == std::vector<std::string>{"completed a", "in_progress b"});
  const ToolOutput refused = RunTool(
      tool, R"({"todos":[{"content":"c","status":"pending"},{"content":"d","status":"done"}]})",
      context);
  CHECK(refused.text ==
        "invalid: todos[1].status must be pending, in_progress or completed, not `done`");
  CHECK(Shown(list).size() == 2);
  CHECK_FALSE(RunTool(tool, R"({"todos":[{"content":"c","status":"pending"}]})", context).is_error);
  CHECK(Shown(list) == std::vector<std::string>{"pending c"});
  CHECK_FALSE(RunTool(tool, R"({"todos":[]})", context).is_error);
  CHECK(list.items.empty());
  CHECK(context.begun().empty());

  ToolEnv without;
  FakeToolContext lonely(without);
  CHECK(RunTool(tool, R"({"todos":[]})", lonely).is_error);
}

TEST_CASE("TodoWrite: is exclusive and no reading, allows itself and touches nothing") {
  const auto document = json::Document::Parse(R"({"todos":[]})");
  const Prepared prepared = TodoWriteTool().prepare(document.value().root(), ToolEnv{}).value();
  CHECK_FALSE(prepared.read_only);
  CHECK_FALSE(TodoWriteTool().parallel);
  CHECK(prepared.own == OwnVerdict::kAllow);
  CHECK(prepared.actions.empty());
}
