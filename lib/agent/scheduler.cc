#include "lib/agent/scheduler.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <future>
#include <system_error>
#include <thread>

#include "lib/base/text.h"

namespace norma::agent {
namespace {

constexpr Millis kPollMax{60'000};

// Waits for the inbox or the cancel, at most until `deadline`.
void WaitFor(const Inbox& inbox, const Cancel* cancel, MonoTime now, MonoTime deadline) {
  std::array<pollfd, 2> waits{pollfd{inbox.fd(), POLLIN, 0}, pollfd{-1, POLLIN, 0}};
  if (cancel != nullptr) waits[1].fd = cancel->fd();
  poll(waits.data(), waits.size(), PollTimeout(now, deadline, kPollMax));
}

// Providers refuse blank results, and JSON wants UTF-8 (spec/41 W15).
void Normalise(tool::ToolOutput& output) {
  output.text = RepairUtf8(output.text);
  if (IsBlank(output.text)) output.text = "(no output)";
}

// A tool's own fault is the model's to know, not the end of the run (spec/40 W6).
tool::ToolOutput RunGuarded(const CallRun& run, CallContext& context) {
  tool::ToolOutput output;
  try {
    output = run(context);
  } catch (const std::exception& error) {
    output = tool::Fail(std::string("the tool failed unexpectedly: ") + error.what());
  } catch (...) {
    output = tool::Fail("the tool failed unexpectedly");
  }
  Normalise(output);
  return output;
}

}  // namespace

// One call. Owned by the run thread; its worker only carries it in letters.
struct Scheduler::Slot {
  ToolCall call;
  How how = How::kExclusive;
  State state = State::kQueued;
  MonoTime started{};
  MonoTime deadline = kNever;
  ToolResult result;
  std::vector<std::string> follow_ups;
  std::vector<std::string> open_actions;  // begun, not ended
  std::thread worker;
};

// A call's connection. Shared with its worker, so that a stuck one never touches freed memory. On
// the run thread nobody else could serve the inbox meanwhile, so letters are run at once there.
class Scheduler::Context : public CallContext {
 public:
  Context(Scheduler& scheduler, std::shared_ptr<Slot> slot)
      : env_(scheduler.env_),
        inbox_(scheduler.inbox_),
        events_(scheduler.events_),
        cancel_(scheduler.cancel_),
        slot_(std::move(slot)),
        call_id_(slot_->call.id),
        deadline_(slot_->deadline) {}

  const tool::ToolEnv& env() const override { return env_; }
  const Cancel& cancel() const override { return *cancel_; }
  MonoTime deadline() const override { return deadline_; }
  const std::string& call_id() const override { return call_id_; }

  Result<std::string> Begin(const tool::ActionReport& action) override {
    Result<std::string> id = Error{Code::kCancelled, "the call was ended"};
    Ask([&] {
      id = events_.OnBegin(slot_->call, action);
      if (id.ok()) slot_->open_actions.push_back(id.value());
    });
    return id;
  }

  void End(const std::string& action_id, const tool::ActionReport& outcome) override {
    const auto end = [slot = slot_, &events = events_, action_id, outcome] {
      const auto at = std::find(slot->open_actions.begin(), slot->open_actions.end(), action_id);
      if (at == slot->open_actions.end()) return;  // ended for it after an abort
      slot->open_actions.erase(at);
      events.OnEnd(slot->call, action_id, outcome);
    };
    if (slot_->how == How::kOnRunThread) return end();
    inbox_->Post(end);
  }

  bool Ask(std::function<void()> letter) override {
    if (slot_->how == How::kOnRunThread) {
      letter();
      return true;
    }
    auto answer = std::make_shared<std::promise<bool>>();
    std::future<bool> future = answer->get_future();
    // The letter may look at the worker's stack: it is run only while the worker waits here.
    const bool posted = inbox_->Post([slot = slot_, answer, letter = std::move(letter)] {
      const bool open = slot->state != State::kAnswered;
      if (open) letter();
      answer->set_value(open);
    });
    answer.reset();  // a letter that is dropped breaks the promise: the wait below ends
    if (!posted) return false;
    try {
      return future.get();
    } catch (const std::future_error&) {
      return false;
    }
  }

 private:
  const tool::ToolEnv& env_;
  std::shared_ptr<Inbox> inbox_;
  CallEvents& events_;
  std::shared_ptr<Cancel> cancel_;
  std::shared_ptr<Slot> slot_;
  const std::string call_id_;
  const MonoTime deadline_;
};

Scheduler::Scheduler(const tool::ToolEnv& env, std::shared_ptr<Inbox> inbox, CallEvents& events,
                     Clock& clock)
    : env_(env),
      inbox_(std::move(inbox)),
      events_(events),
      clock_(clock),
      cancel_(std::make_shared<Cancel>()) {}

Scheduler::~Scheduler() {
  // Every path awaits or aborts its calls first; an exception that unwinds must not std::terminate.
  cancel_->Trip(Cancel::kInternal);
  for (const auto& slot : slots_) {
    if (slot->worker.joinable()) slot->worker.detach();
  }
}

void Scheduler::Add(ToolCall call, How how) {
  auto slot = std::make_shared<Slot>();
  slot->call = std::move(call);
  slot->how = how;
  slots_.push_back(slot);
  if (closed_) {
    Skip(*slot);
  } else {
    StartEligible();
  }
}

void Scheduler::StartEligible() {
  size_t running = 0;
  bool exclusive_running = false;
  for (const auto& slot : slots_) {
    if (slot->state != State::kRunning) continue;
    ++running;
    exclusive_running = exclusive_running || slot->how != How::kParallel;
  }
  // By index: judging a call may stop the starting, which answers what is still queued.
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (closed_ || exclusive_running || running >= kParallelMax) return;
    const std::shared_ptr<Slot> slot = slots_[i];
    if (slot->state != State::kQueued) continue;
    // An exclusive call waits for everything before it and lets nothing behind it overtake.
    if (slot->how != How::kParallel && running > 0) return;
    if (slot->how == How::kOnRunThread) return;  // RunOwnCall
    Start(slot);
    if (slot->state != State::kRunning) continue;  // answered without running
    ++running;
    exclusive_running = slot->how != How::kParallel;
  }
}

bool Scheduler::RunOwnCall() {
  // By index: a subagent's calls have a scheduler of their own, but judging may stop the starting.
  for (size_t i = 0; i < slots_.size(); ++i) {
    const std::shared_ptr<Slot> slot = slots_[i];
    if (slot->state == State::kAnswered) continue;
    if (slot->state != State::kQueued || slot->how != How::kOnRunThread) return false;
    Start(slot);
    StartEligible();
    return true;
  }
  return false;
}

void Scheduler::Start(const std::shared_ptr<Slot>& slot) {
  CallStart start = events_.OnStart(slot->call);
  if (auto* answer = std::get_if<tool::ToolOutput>(&start)) {
    Answer(*slot, std::move(*answer), false);
  } else {
    Launch(slot, std::get<CallRun>(std::move(start)));
  }
}

void Scheduler::Launch(const std::shared_ptr<Slot>& slot, CallRun run) {
  NORMA_CHECK(run != nullptr);
  slot->state = State::kRunning;
  slot->started = clock_.Now();
  slot->deadline = events_.DeadlineOf(slot->call);
  auto context = std::make_shared<Context>(*this, slot);
  if (slot->how == How::kOnRunThread) {
    tool::ToolOutput output = RunGuarded(run, *context);
    Answer(*slot, std::move(output), false);
    return;
  }
  const auto work = [this, slot, context, run = std::move(run), inbox = inbox_] {
    auto output = std::make_shared<tool::ToolOutput>(RunGuarded(run, *context));
    inbox->Post([this, slot, output] {
      if (slot->state != State::kRunning) return;  // answered by an abort: the first one counts
      Answer(*slot, std::move(*output), false);
      StartEligible();
    });
  };
  try {
    slot->worker = std::thread(work);
  } catch (const std::system_error& error) {
    // What the model started may have used up every process of the user.
    Answer(*slot, tool::Fail(fmt::format("Not run: no thread can be started ({})", error.what())),
           false);
  }
}

void Scheduler::Skip(Slot& slot) {
  events_.OnSkipped(slot.call);
  Answer(slot, tool::Fail(closed_reason_), true);
}

void Scheduler::Answer(Slot& slot, tool::ToolOutput output, bool synthetic) {
  const Millis duration = slot.state == State::kRunning
                              ? std::chrono::duration_cast<Millis>(clock_.Now() - slot.started)
                              : Millis{0};
  slot.state = State::kAnswered;
  // A tool that began an effect and never ended it: the ledger must not keep it open.
  for (const std::string& id : std::exchange(slot.open_actions, {})) {
    tool::ActionReport lost;
    lost.cancelled = synthetic;
    lost.error = "its end was not seen";
    events_.OnEnd(slot.call, id, lost);
  }
  events_.OnFinished(slot.call, output, synthetic, duration);
  slot.result = ToolResult{slot.call.id, std::move(output.text), output.is_error};
  slot.follow_ups = std::move(output.follow_ups);
}

bool Scheduler::AllAnswered() const {
  return std::all_of(slots_.begin(), slots_.end(),
                     [](const auto& slot) { return slot->state == State::kAnswered; });
}

bool Scheduler::WaitAll(const Cancel& cancel, MonoTime deadline) {
  inbox_->Serve();
  while (!AllAnswered()) {
    const MonoTime now = clock_.Now();
    if (cancel.tripped() || now >= deadline) return false;
    if (RunOwnCall()) continue;
    WaitFor(*inbox_, &cancel, now, deadline);
    inbox_->Serve();
  }
  return true;
}

void Scheduler::StopStarting(const std::string& reason) {
  closed_ = true;
  closed_reason_ = reason;
  for (const auto& slot : slots_) {
    if (slot->state == State::kQueued) Skip(*slot);
  }
}

void Scheduler::Abort(const std::string& reason, Millis wait_max) {
  StopStarting(reason);
  cancel_->Trip(Cancel::kInternal);
  const MonoTime give_up = clock_.Now() + wait_max;
  inbox_->Serve();
  while (!AllAnswered()) {
    const MonoTime now = clock_.Now();
    if (now >= give_up) break;
    WaitFor(*inbox_, nullptr, now, give_up);
    inbox_->Serve();
  }
  for (const auto& slot : slots_) {
    if (slot->state != State::kRunning) continue;
    Answer(*slot, tool::Fail(reason), true);
    slot->worker.detach();  // in an uninterruptible call: only leaving the process ends it
    stuck_ = true;
  }
}

std::vector<ToolResult> Scheduler::TakeResults() {
  NORMA_CHECK(AllAnswered());
  std::vector<ToolResult> results;
  results.reserve(slots_.size());
  for (const auto& slot : slots_) {
    if (slot->worker.joinable()) slot->worker.join();
    results.push_back(std::move(slot->result));
    for (std::string& text : slot->follow_ups) follow_ups_.push_back(std::move(text));
  }
  slots_.clear();
  return results;
}

}  // namespace norma::agent
