// Requester: asks the model once and accounts for it. Before each attempt the worst case is
// reserved and the line is on disk; after it the purse is settled, before anybody interprets the
// reply (PRODUCT: "Reserve, then settle"). Run thread only.
#pragma once

#include <functional>
#include <string>

#include "lib/agent/scope.h"
#include "lib/llm/provider.h"

namespace norma::agent {

class Requester {
 public:
  Requester(RunScope& scope, llm::Provider& provider, bool may_cache);

  // One logical request. `on_call` fires while the reply still streams. A budget that does not
  // allow it answers kBudget with scope.limit_hit set; nothing was sent then.
  llm::Generated Ask(const ChatRequest& request,
                     const std::function<void(const ToolCall&)>& on_call);

 private:
  struct Open;  // the attempt in flight

  llm::Generated Generate(const ChatRequest& request, const llm::Callbacks& callbacks, Open& open);
  Result<int64_t> Fit(const ChatRequest& request, size_t body_bytes, Open& open);
  Status OnAttempt(const llm::Attempt& attempt, Open& open);
  Status OnFailure(const llm::AttemptFailure& failure, Open& open);
  void OnReply(const llm::Generated& generated, Open& open);
  static int64_t EstimateOutput(int64_t content_bytes, const Open& open);
  void FillUsage(const Message& message, const Open& open, Usage* usage) const;
  Error Refuse(LimitHit hit);
  // Books tokens and money of what one attempt brought; null when the model has no price.
  std::optional<Nano> Book(const Usage& usage, Open& open);

  RunScope& scope_;
  llm::Provider& provider_;
  const bool may_cache_;
};

}  // namespace norma::agent
