// Runs the calls of one reply (spec/40 §3): parallel ones together, an exclusive one alone, nothing
// overtakes an exclusive call; results in call order whatever the order they end in. Calls are
// added while the reply still streams. Knows no policy, no ledger and no model: CallEvents decides,
// when a call's turn comes, whether it runs. All methods on the run thread; tools run on workers,
// but for the few that work on the run itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/agent/inbox.h"
#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/chat/message.h"
#include "lib/tool/tool.h"

namespace norma::agent {

// A running call's connection, with what the agent's own wrappers need beside a tool.
class CallContext : public tool::ToolContext {
 public:
  // Runs `letter` on the run thread and returns when it was run; false: the call was ended or the
  // run is over, and it never will be.
  virtual bool Ask(std::function<void()> letter) = 0;
};

// What a call comes to when its turn has come: it runs, or it is answered without running.
using CallRun = std::function<tool::ToolOutput(CallContext&)>;
using CallStart = std::variant<CallRun, tool::ToolOutput>;

// Asked and told on the run thread, in the order things happen.
class CallEvents {
 public:
  virtual ~CallEvents() = default;
  // The call's turn has come: judge it. In arrival order, after the results of every call before it
  // that it has to wait for (what they changed counts).
  virtual CallStart OnStart(const ToolCall& call) = 0;
  // Its turn will never come: it is going to be answered without having been judged.
  virtual void OnSkipped(const ToolCall& call) = 0;
  // An effect is about to happen: record it and let it go, or refuse it. Gives the action's id.
  virtual Result<std::string> OnBegin(const ToolCall& call, const tool::ActionReport& action) = 0;
  virtual void OnEnd(const ToolCall& call, const std::string& action_id,
                     const tool::ActionReport& outcome) = 0;
  // Latest moment for a call that starts now (hard wall, per-tool wall).
  virtual MonoTime DeadlineOf(const ToolCall& call) = 0;
  // Exactly once per added call. `synthetic`: the tool itself never answered.
  virtual void OnFinished(const ToolCall& call, tool::ToolOutput& output, bool synthetic,
                          Millis duration) = 0;
};

class Scheduler {
 public:
  static constexpr size_t kParallelMax = 10;
  // How long workers get to notice that they were cancelled. Bash needs its own TERM grace within.
  static constexpr Millis kAbortMax{8'000};
  // After a signal the whole process is gone within 3 s.
  static constexpr Millis kSignalAbortMax{2'600};

  Scheduler(const tool::ToolEnv& env, std::shared_ptr<Inbox> inbox, CallEvents& events,
            Clock& clock);
  ~Scheduler();

  enum class How {
    kExclusive,    // alone, on a worker
    kParallel,     // beside other parallel calls
    kOnRunThread,  // alone, inside WaitAll: for what works on the run itself (a subagent, the mode)
  };
  // Starts at once or when its turn comes.
  void Add(ToolCall call, How how);

  // Waits until every call is answered. False when `cancel` tripped or `deadline` passed first;
  // Abort must follow then.
  bool WaitAll(const Cancel& cancel, MonoTime deadline);
  // Nothing more starts; running calls are cancelled and awaited (at most `wait_max`); what did not
  // answer gets a synthetic error result with this reason.
  void Abort(const std::string& reason, Millis wait_max = kAbortMax);
  // No call that has not started yet will: it is answered with this reason instead.
  void StopStarting(const std::string& reason);

  bool AllAnswered() const;
  bool empty() const { return slots_.empty(); }
  // Results in call order; every call has one. Only when AllAnswered().
  std::vector<ToolResult> TakeResults();
  // What the calls of the last TakeResults want said to the model behind the results, in call
  // order.
  std::vector<std::string> TakeFollowUps() { return std::exchange(follow_ups_, {}); }
  // A worker did not even stop when it was cancelled: the process must leave with _exit.
  bool has_stuck_worker() const { return stuck_; }

 private:
  enum class State { kQueued, kRunning, kAnswered };
  struct Slot;
  class Context;

  void StartEligible();
  // Runs the call of the run thread whose turn has come; false when there is none.
  bool RunOwnCall();
  void Start(const std::shared_ptr<Slot>& slot);
  void Launch(const std::shared_ptr<Slot>& slot, CallRun run);
  void Skip(Slot& slot);
  void Answer(Slot& slot, tool::ToolOutput output, bool synthetic);

  const tool::ToolEnv& env_;
  std::shared_ptr<Inbox> inbox_;  // shared: a stuck worker may post after the run is gone
  CallEvents& events_;
  Clock& clock_;
  // Tools watch this one, not the run's: a broken stream ends the calls but not yet the run.
  std::shared_ptr<Cancel> cancel_;
  std::vector<std::shared_ptr<Slot>> slots_;  // in arrival order
  std::vector<std::string> follow_ups_;
  bool closed_ = false;  // nothing starts any more
  std::string closed_reason_;
  bool stuck_ = false;
};

}  // namespace norma::agent
