// Gate: every tool call of the model passes here (spec/40 §2): found, validated, prepared, judged
// and recorded when its turn comes, so that what earlier calls changed (a file, a link, the mode)
// counts. Also writes the lines of what the tools then do. Run thread only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/agent/scheduler.h"
#include "lib/agent/scope.h"
#include "lib/base/json_schema.h"
#include "lib/chat/message.h"
#include "lib/ledger/record.h"
#include "lib/policy/policy.h"
#include "lib/tool/tool.h"

namespace norma::agent {

// What a call comes to before anything runs. Shared with `norma explain`.
struct Judged {
  enum class Kind { kInvalid, kDenied, kAllowed };
  Kind kind = Kind::kInvalid;
  Verdict verdict;          // of the policy; empty for kInvalid
  std::string message;      // what the model is told when it does not run
  tool::Prepared prepared;  // for kAllowed
};

// Looks up, validates and judges one call. `offered` are the tools of this run.
class Judge {
 public:
  Judge(const Policy& policy, std::vector<const tool::Tool*> offered);
  // `input`: the checked arguments (ToolCall::valid_input).
  Judged Look(std::string_view tool, const std::string& input, const tool::ToolEnv& env, Mode mode);
  const std::vector<const tool::Tool*>& offered() const { return offered_; }
  const tool::Tool* Find(std::string_view name) const;

 private:
  const Policy& policy_;
  std::vector<const tool::Tool*> offered_;
  std::map<std::string, JsonSchema, std::less<>> schemas_;  // compiled when first needed
};

class Gate : public CallEvents {
 public:
  Gate(RunScope& scope, Judge& judge);

  // A reply begins: calls go to this scheduler from now on.
  void BeginReply(Scheduler* scheduler);
  // What stands in history instead of what the model wrote.
  struct Taken {
    std::string id;
    std::string name;
  };
  // The next call of the reply goes to the scheduler.
  Taken Take(const ToolCall& call);
  // These tools are refused from now on (settlement).
  void Disable(const std::vector<std::string>& tools, std::string why);
  bool IsDisabled(std::string_view tool) const { return disabled_.contains(tool); }

  CallStart OnStart(const ToolCall& call) override;
  void OnSkipped(const ToolCall& call) override;
  Result<std::string> OnBegin(const ToolCall& call, const tool::ActionReport& action) override;
  void OnEnd(const ToolCall& call, const std::string& action_id,
             const tool::ActionReport& outcome) override;
  MonoTime DeadlineOf(const ToolCall& call) override;
  void OnFinished(const ToolCall& call, tool::ToolOutput& output, bool synthetic,
                  Millis duration) override;

 private:
  std::string UniqueId(const ToolCall& call, bool* duplicate);
  // Looks at the call and writes its call.judged.
  Judged LookAndRecord(const ToolCall& call);
  Judged Look(const ToolCall& call);
  std::string RefusalOf(const ToolCall& call, const Judged& judged);
  std::optional<LimitHit> BudgetAgainst(const ToolCall& call) const;
  void RecordJudged(const ToolCall& call, const Judged& judged);

  RunScope& scope_;
  Judge& judge_;
  Scheduler* scheduler_ = nullptr;
  std::set<std::string, std::less<>> disabled_;
  std::string disabled_why_;
  std::set<std::string, std::less<>> reply_ids_;   // as the model gave them in this reply
  std::set<std::string, std::less<>> duplicates_;  // our ids of calls that share a model's id
  std::map<std::string, std::string, std::less<>> misnamed_;  // our id, what the model wrote
};

}  // namespace norma::agent
