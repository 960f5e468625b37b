// RunScope: what one run owns and its parts share, on the run thread. Plain data and the two verbs
// that every part needs: write a record, stop the run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lib/agent/inbox.h"
#include "lib/agent/observer.h"
#include "lib/agent/run.h"
#include "lib/base/cancel.h"
#include "lib/base/clock.h"
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

struct RunScope {
  const spec::RunSpec& spec;
  Clock& clock;
  Cancel& cancel;
  Observer& observer;
  ledger::Ledger& ledger;
  Policy policy;
  Budget budget;
  Purse& purse;
  const PriceRow* price;  // nullptr: the model has no price
  tool::ToolEnv env;
  std::shared_ptr<Inbox> inbox;
  std::string doing = "starting";     // for the tick
  std::optional<Ending> fatal;        // ends the run whatever else happens
  std::optional<LimitHit> limit_hit;  // a budget refused a call or an effect

  bool one_request = false;  // a probe: the first reply ends the run, whatever it holds

  // Appends (and, for announcements, syncs). The first failure is fatal.
  Status Record(const ledger::Record& record);
  Status Announce(const ledger::Record& record);
  void Warn(std::string code, std::string message);
  // What follows a write: nothing, or the run ends.
  Status Written(Status status);
  // Ends the run as soon as possible: whoever waits is woken.
  void Fail(Ending ending);
};

// How a tripped cancel ends a run that was `streaming` or running tools.
Ending EndingOfCancel(const RunScope& scope, bool in_tools);
Ending EndingOfLimit(EndReason reason, const LimitHit& hit);

}  // namespace norma::agent
