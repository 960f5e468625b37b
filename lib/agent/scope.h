// RunScope: what one agent of a run works with, and RunState: what all its agents share, on the run
// thread. Plain data and the verbs that every part needs: write a record, stop the run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/agent/inbox.h"
#include "lib/agent/observer.h"
#include "lib/agent/run.h"
#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/context/token_estimate.h"
#include "lib/ledger/ledger.h"
#include "lib/policy/budget.h"
#include "lib/policy/policy.h"
#include "lib/spec/run_spec.h"
#include "lib/tool/tool.h"

namespace norma::agent {

// Why a run is over. The first one counts.
struct Ending {
  EndReason reason = EndReason::kInternal;
  std::string message;
  std::optional<LimitHit> limit;
};

// What the agents of one run share and change. Run thread only.
struct RunState {
  explicit RunState(Budget limits) : budget(std::move(limits)) {}

  Budget budget;
  std::string doing = "starting";     // for the tick
  std::optional<Ending> fatal;        // ends the run whatever else happens
  std::optional<LimitHit> limit_hit;  // a budget refused a call or an effect
  std::string first_denied;           // the first denied call: on_denied: fail ends the run with it
  // Numbers and ids are unique in the run, whichever agent they belong to.
  int64_t requests = 0, calls = 0, actions = 0;
  std::set<std::string, std::less<>> call_ids;
  context::TokenEstimator estimator;  // every agent asks the same model
};

// What one agent (the main one or a subagent) works with.
struct RunScope {
  const spec::RunSpec& spec;
  Clock& clock;
  Cancel& cancel;
  Observer& observer;
  ledger::Ledger& ledger;
  RunState& state;
  Purse& purse;
  const PriceRow* price;  // nullptr: the model has no price
  const tool::ToolEnv& env;
  std::shared_ptr<Inbox> inbox;
  Policy policy;
  Mode mode = Mode::kDefault;       // live: plan mode changes it
  std::string agent = "main";       // as the ledger names it
  int depth = 0;                    // 0: the main agent
  std::vector<std::string> system;  // segments of its system prompt
  std::optional<int64_t> turns_max;
  bool one_request = false;  // a probe: the first reply ends the run, whatever it holds

  bool is_main() const { return depth == 0; }
  Budget& budget() const { return state.budget; }
  // Appends (and, for announcements, syncs). The first failure is fatal.
  Status Record(const ledger::Record& record);
  Status Announce(const ledger::Record& record);
  void Warn(std::string code, std::string message);
  // What follows a write: nothing, or the run ends.
  Status Written(Status status);
  // Ends the run as soon as possible: whoever waits is woken.
  void Fail(Ending ending);
  // The mode from now on; a line when it is another one.
  void ChangeMode(Mode to, std::string_view by);
};

// How a tripped cancel ends a run that was `streaming` or running tools.
Ending EndingOfCancel(const RunScope& scope, bool in_tools);
Ending EndingOfLimit(EndReason reason, const LimitHit& hit);

}  // namespace norma::agent
