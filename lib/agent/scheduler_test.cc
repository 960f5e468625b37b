#include "lib/agent/scheduler.h"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

using namespace norma;
using namespace norma::agent;

namespace {

// Lets a test hold a tool until it says go, and see which tools have begun.
class Stage {
 public:
  void Enter(const std::string& name) {
    std::unique_lock lock(mutex_);
    entered_ += name;
    ++inside_;
    most_inside_ = std::max(most_inside_, inside_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_.contains(name) || all_open_; });
    --inside_;
  }
  void Open(const std::string& name) {
    std::lock_guard lock(mutex_);
    open_[name] = true;
    changed_.notify_all();
  }
  void OpenAll() {
    std::lock_guard lock(mutex_);
    all_open_ = true;
    changed_.notify_all();
  }
  void WaitEntered(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_.size() >= count; });
  }
  std::string entered() {
    std::lock_guard lock(mutex_);
    return entered_;
  }
  int most_inside() {
    std::lock_guard lock(mutex_);
    return most_inside_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, bool> open_;
  bool all_open_ = false;
  std::string entered_;
  int inside_ = 0;
  int most_inside_ = 0;
};

struct Events : CallEvents {
  CallStart OnStart(const ToolCall& call) override {
    const auto run = runs.find(call.id);
    if (run == runs.end()) return tool::Fail("denied");
    return run->second;
  }
  void OnSkipped(const ToolCall& call) override { log += "skip " + call.id + ";"; }
  Result<std::string> OnBegin(const ToolCall& call, const tool::ActionReport&) override {
    if (refuse) return Error{Code::kBudget, "no more"};
    log += "begin " + call.id + ";";
    return "a-" + call.id;
  }
  void OnEnd(const ToolCall&, const std::string& id, const tool::ActionReport& outcome) override {
    log += "end " + id + (outcome.error.empty() ? "" : " lost") + ";";
  }
  MonoTime DeadlineOf(const ToolCall&) override { return kNever; }
  void OnFinished(const ToolCall& call, tool::ToolOutput&, bool synthetic, Millis) override {
    log += (synthetic ? "synthetic " : "finished ") + call.id + ";";
  }
  std::map<std::string, CallRun> runs;  // by call id; a call without one is denied
  std::string log;
  bool refuse = false;
};

struct House {
  tool::ToolEnv env;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  Events events;
  Stage stage;
  Cancel cancel;
  Scheduler scheduler{env, inbox, events, SystemClock()};

  void Add(const std::string& id, bool parallel) {
    Add(id, parallel, [this, id](tool::ToolContext&) {
      stage.Enter(id);
      return tool::ToolOutput{"out " + id, false, false};
    });
  }
  void Add(const std::string& id, bool parallel, CallRun run) {
    events.runs[id] = std::move(run);
    scheduler.Add(ToolCall{id, "T", "{}", "{}"},
                  parallel ? Scheduler::How::kParallel : Scheduler::How::kExclusive);
  }
  bool Wait() { return scheduler.WaitAll(cancel, kNever); }
};

std::vector<ToolResult> Results(std::initializer_list<const char*> ids) {
  std::vector<ToolResult> results;
  for (const char* id : ids) results.push_back({id, std::string("out ") + id, false});
  return results;
}

}  // namespace

TEST_CASE("scheduler: safe A, exclusive B, safe C: one after the other, C never with A") {
  House house;
  house.Add("A", true);
  house.Add("B", false);
  house.Add("C", true);
  house.stage.WaitEntered(1);
  CHECK(house.stage.entered() == "A");
  house.stage.OpenAll();
  REQUIRE(house.Wait());
  CHECK(house.stage.entered() == "ABC");
  CHECK(house.stage.most_inside() == 1);
  CHECK(house.scheduler.TakeResults() == Results({"A", "B", "C"}));
}

TEST_CASE("scheduler: results stand in call order whatever the order they end in") {
  House house;
  house.Add("A", true);
  house.Add("B", true);
  house.stage.WaitEntered(2);
  house.stage.Open("B");
  while (house.events.log.empty()) house.inbox->Serve();
  CHECK(house.events.log == "finished B;");
  house.stage.Open("A");
  REQUIRE(house.Wait());
  CHECK(house.events.log == "finished B;finished A;");
  CHECK(house.scheduler.TakeResults() == Results({"A", "B"}));
}

TEST_CASE("scheduler: at most ten parallel calls at once") {
  House house;
  for (char id = 'a'; id <= 'z'; ++id) house.Add(std::string(1, id), true);
  house.stage.WaitEntered(Scheduler::kParallelMax);
  house.stage.OpenAll();
  REQUIRE(house.Wait());
  CHECK(house.stage.most_inside() == static_cast<int>(Scheduler::kParallelMax));
  CHECK(house.scheduler.TakeResults().size() == 26);
}

TEST_CASE("scheduler: an answered call keeps its place and starts nothing") {
  House house;
  house.scheduler.Add(ToolCall{"no", "T", "", ""}, Scheduler::How::kExclusive);
  house.stage.OpenAll();
  house.Add("A", false);
  REQUIRE(house.Wait());
  CHECK(house.scheduler.TakeResults() ==
        std::vector<ToolResult>{{"no", "denied", true}, {"A", "out A", false}});
}

TEST_CASE("scheduler: an abort ends running calls, answers queued ones, and pairs every call") {
  House house;
  house.Add("run", false, [](tool::ToolContext& context) {
    REQUIRE(context.Begin({}).ok());
    SystemClock().SleepUntil(kNever, context.cancel());
    return tool::ToolOutput{"stopped early", true, false};
  });
  house.Add("queued", false);
  while (house.events.log.empty()) house.inbox->Serve();
  house.scheduler.Abort("Interrupted.");
  CHECK(house.events.log == "begin run;skip queued;synthetic queued;end a-run lost;finished run;");
  CHECK(house.scheduler.TakeResults() ==
        std::vector<ToolResult>{{"run", "stopped early", true}, {"queued", "Interrupted.", true}});
  CHECK_FALSE(house.scheduler.has_stuck_worker());
}

TEST_CASE("scheduler: a cancel or a deadline ends the wait") {
  House house;
  house.Add("A", true);
  house.cancel.Trip(15);
  CHECK_FALSE(house.Wait());
  house.stage.OpenAll();
  house.scheduler.Abort("x");
  House late;
  late.Add("A", true);
  CHECK_FALSE(late.scheduler.WaitAll(late.cancel, SystemClock().Now()));
  late.stage.OpenAll();
  late.scheduler.Abort("x");
}

TEST_CASE("scheduler: a tool that throws is an error result, a blank or broken text is repaired") {
  House house;
  house.Add("throws", true,
            [](tool::ToolContext&) -> tool::ToolOutput { throw std::runtime_error("boom"); });
  house.Add("blank", true, [](tool::ToolContext&) {
    return tool::ToolOutput{" \n", false, false};
  });
  house.Add("bytes", true, [](tool::ToolContext&) {
    return tool::ToolOutput{"a\xff", false, false};
  });
  REQUIRE(house.Wait());
  CHECK(house.scheduler.TakeResults() ==
        std::vector<ToolResult>{{"throws", "the tool failed unexpectedly: boom", true},
                                {"blank", "(no output)", false},
                                {"bytes", "a\xEF\xBF\xBD", false}});
}

TEST_CASE("scheduler: an effect that is refused does not happen") {
  House house;
  house.events.refuse = true;
  std::atomic<bool> acted{false};
  house.Add("A", false, [&](tool::ToolContext& context) {
    const Result<std::string> id = context.Begin({});
    if (!id.ok()) return tool::Fail(id.error().message);
    acted = true;
    return tool::ToolOutput{};
  });
  REQUIRE(house.Wait());
  CHECK_FALSE(acted);
  CHECK(house.scheduler.TakeResults() == std::vector<ToolResult>{{"A", "no more", true}});
}

TEST_CASE("scheduler: an effect a tool never ended is ended for it") {
  House house;
  house.Add("A", false, [](tool::ToolContext& context) {
    REQUIRE(context.Begin({}).ok());
    return tool::ToolOutput{"done", false, false};
  });
  REQUIRE(house.Wait());
  CHECK(house.events.log == "begin A;end a-A lost;finished A;");
  CHECK(house.scheduler.TakeResults().size() == 1);
}

TEST_CASE(
    "scheduler: after StopStarting queued and later calls are answered, running ones finish") {
  House house;
  house.Add("A", false);
  house.Add("B", false);
  house.stage.WaitEntered(1);
  house.scheduler.StopStarting("no more");
  house.Add("C", false);
  house.stage.OpenAll();
  REQUIRE(house.Wait());
  CHECK(house.stage.entered() == "A");
  CHECK(house.scheduler.TakeResults() == std::vector<ToolResult>{{"A", "out A", false},
                                                                 {"B", "no more", true},
                                                                 {"C", "no more", true}});
}
