// Loop: the story of one run (spec/40 §4): ask, run the calls while the reply streams, append the
// results, ask again, until the model answers or something ends it. Owns the history. Run thread
// only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/agent/gate.h"
#include "lib/agent/requester.h"
#include "lib/agent/scope.h"
#include "lib/chat/message.h"

namespace norma::agent {

struct LoopOutcome {
  Ending ending;
  std::string text;   // the answer, parts of a cut one joined
  int64_t turns = 1;  // spec/40 §4.3: tool turns finished + 1, stays at N when limit N ends it
  bool has_stuck_worker = false;
};

class Loop {
 public:
  Loop(RunScope& scope, Gate& gate, Judge& judge, Requester& requester);

  LoopOutcome Run(const std::string& prompt);

 private:
  // Each step answers how the run ends, or nothing: it goes on.
  using Step = std::optional<Ending>;

  Step BeforeRequest();
  Step OneTurn();
  Step AfterOnlyReply(Scheduler& scheduler, const Message& message);
  Step OneReply(Scheduler& scheduler);
  // Ends and pairs every call of the reply, whatever it is doing.
  void EndCalls(Scheduler& scheduler, const std::string& reason);
  Step AfterFailedReply(const llm::Generated& generated, Scheduler& scheduler);
  Step AfterText(const llm::Generated& generated, const MessagePtr& message);
  // A reply that max_tokens cut: true when it is asked to go on, false when it has to do as it is.
  bool RecoverFromCut(const MessagePtr& message);
  Step AfterTools(Scheduler& scheduler);
  Step CheckTurnBudgets();
  // A budget is used up: settlement begins, or the run ends.
  Step OnLimit(EndReason reason, const LimitHit& hit);

  ChatRequest BuildRequest() const;
  void Append(Role role, std::vector<Block> blocks);
  void AppendText(std::string text);
  void Continue(std::string_view reason);

  RunScope& scope_;
  Gate& gate_;
  Judge& judge_;
  Requester& requester_;

  std::vector<MessagePtr> history_;
  std::string answer_;  // of this no-tool streak so far
  int64_t turn_ = 1;
  int64_t iterations_ = 0;
  int recoveries_ = 0;              // never reset within a run (spec/40 §4.4)
  bool asked_again_ = false;        // an empty answer gets one more request
  bool escalated_ = false;          // this request goes out with kEscalatedTokens
  std::optional<Ending> settling_;  // why settlement began
  int64_t settle_turns_ = 0;
  bool stuck_ = false;
};

}  // namespace norma::agent
