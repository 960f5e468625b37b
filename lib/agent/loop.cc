#include "lib/agent/loop.h"

#include <fmt/core.h>

#include "lib/base/text.h"

namespace norma::agent {
namespace {

constexpr int64_t kIterationsMax = 10'000;  // a backstop behind every budget
constexpr int kRecoveriesMax = 3;
constexpr int64_t kEscalatedTokens = 64'000;

constexpr std::string_view kResumeNudge =
    "Your reply was cut off by the output limit. Go on exactly where it stopped: no apology, no "
    "summary of what you already wrote.";
constexpr std::string_view kEmptyNudge =
    "Your last reply held no text and no tool call. Give your answer now.";

// Stop reasons after which the text is the answer. A cut one that cannot be resumed any more is
// used as it is (spec/40 §4.4).
bool IsWholeAnswer(std::string_view stop) {
  return stop.empty() || stop == "end_turn" || stop == "stop_sequence" || stop == "tool_use" ||
         stop == "max_tokens";
}

}  // namespace

Loop::Loop(RunScope& scope, Gate& gate, Judge& judge, Requester& requester)
    : scope_(scope), gate_(gate), judge_(judge), requester_(requester) {}

LoopOutcome Loop::Run(const std::string& prompt) {
  AppendText(prompt);
  Step end;
  while (!end.has_value()) {
    end = BeforeRequest();
    if (!end.has_value()) end = OneTurn();
  }
  LoopOutcome outcome;
  outcome.ending = std::move(*end);
  outcome.text = std::move(answer_);
  outcome.turns = turn_;
  outcome.has_stuck_worker = stuck_;
  return outcome;
}

Loop::Step Loop::BeforeRequest() {
  if (scope_.state.fatal.has_value()) return *scope_.state.fatal;
  if (scope_.cancel.tripped()) return EndingOfCancel(scope_, false);
  if (++iterations_ > kIterationsMax) {
    return EndingOfLimit(EndReason::kMaxTurns,
                         LimitHit{"iterations", std::to_string(kIterationsMax)});
  }
  return std::nullopt;
}

ChatRequest Loop::BuildRequest() const {
  ChatRequest request;
  request.system = scope_.system;
  request.system_static = request.system.size();
  request.messages = history_;
  for (const tool::Tool* tool : judge_.offered()) {
    if (scope_.policy.DeniesOutright(tool->name) || gate_.IsDisabled(tool->name)) continue;
    request.tools.push_back({tool->name, tool->description, tool->input_schema});
  }
  request.max_tokens = escalated_ ? kEscalatedTokens : scope_.spec.model.max_tokens;
  return request;
}

Loop::Step Loop::OneTurn() {
  Scheduler scheduler(scope_.env, scope_.inbox, gate_, scope_.clock);
  gate_.BeginReply(&scheduler);
  try {
    return OneReply(scheduler);
  } catch (const std::exception& error) {
    // A bug of ours must not leave a call open or a tool running behind run.ended.
    EndCalls(scheduler, "Interrupted: the run ended.");
    return Ending{EndReason::kInternal, fmt::format("{}; please report this", error.what()), {}};
  }
}

void Loop::EndCalls(Scheduler& scheduler, const std::string& reason) {
  if (scheduler.empty()) return;
  scheduler.Abort(reason,
                  scope_.cancel.cause() > 0 ? Scheduler::kSignalAbortMax : Scheduler::kAbortMax);
  stuck_ = stuck_ || scheduler.has_stuck_worker();
  [[maybe_unused]] const std::vector<ToolResult> paired = scheduler.TakeResults();
}

Loop::Step Loop::OneReply(Scheduler& scheduler) {
  std::vector<Gate::Taken> taken;  // the calls so far, in the order they stand in the reply
  scope_.state.doing = "waiting for the model";
  llm::Generated generated = requester_.Ask(
      BuildRequest(), [&](const ToolCall& call) { taken.push_back(gate_.Take(call)); });
  if (!generated.ok) return AfterFailedReply(generated, scheduler);

  size_t nth = 0;
  for (Block& block : generated.reply.message.blocks) {
    auto* call = std::get_if<ToolCall>(&block);
    if (call == nullptr) continue;
    if (nth == taken.size())
      taken.push_back(gate_.Take(*call));  // a decoder that told of it only now
    call->id = taken[nth].id;
    call->name = taken[nth++].name;
  }
  const auto message = std::make_shared<const Message>(std::move(generated.reply.message));
  if (scope_.one_request && !scope_.state.fatal.has_value())
    return AfterOnlyReply(scheduler, *message);
  if (nth == 0) return AfterText(generated, message);
  answer_.clear();
  asked_again_ = false;
  escalated_ = false;
  history_.push_back(message);
  return AfterTools(scheduler);
}

Loop::Step Loop::AfterOnlyReply(Scheduler& scheduler, const Message& message) {
  scheduler.Abort("Interrupted: a probe runs no calls.");
  [[maybe_unused]] const std::vector<ToolResult> paired = scheduler.TakeResults();
  answer_ = TextOf(message);
  return Ending{EndReason::kCompleted, "", {}};
}

Loop::Step Loop::AfterFailedReply(const llm::Generated& generated, Scheduler& scheduler) {
  // Calls that started before the stream broke are ended and paired: nothing goes on behind the
  // last record (spec/40 W3).
  EndCalls(scheduler, "Interrupted: the reply that made this call broke off.");
  // Half of an answer is no answer; the ledger has what came.
  answer_.clear();
  if (scope_.state.fatal.has_value()) return *scope_.state.fatal;
  if (scope_.cancel.tripped()) return EndingOfCancel(scope_, false);
  const std::string& message = generated.error.message;
  switch (generated.error.code) {
    case Code::kBudget:
      NORMA_CHECK(scope_.state.limit_hit.has_value());
      return OnLimit(EndReason::kBudgetExceeded,
                     *std::exchange(scope_.state.limit_hit, std::nullopt));
    case Code::kTimeout: {
      Ending ending = EndingOfLimit(EndReason::kTimeout, scope_.budget().HitOf(Limit::kWall));
      ending.message += ": " + message;
      return ending;
    }
    case Code::kReplayMiss:
      return Ending{EndReason::kReplayMiss, message, {}};
    case Code::kIo:  // the recording cannot be written
      return Ending{EndReason::kSetupFailed, message, {}};
    case Code::kContextFull:
      return Ending{EndReason::kPromptTooLong, message, {}};
    case Code::kInternal:
      return Ending{EndReason::kInternal, message, {}};
    case Code::kLedger:
      return Ending{EndReason::kLedgerError, message, {}};
    case Code::kUsage:
    case Code::kSpec:
    case Code::kNotFound:
    case Code::kDenied:
    case Code::kInvalid:
    case Code::kCancelled:
    case Code::kNetwork:
    case Code::kModel:
      return Ending{EndReason::kModelError, message, {}};
  }
  return Ending{EndReason::kInternal, message, {}};
}

bool Loop::RecoverFromCut(const MessagePtr& message) {
  if (scope_.spec.model.escalate && !escalated_ &&
      scope_.spec.model.max_tokens < kEscalatedTokens) {
    // The cut reply is asked for anew and whole: it must not stand in the history as a prefill.
    escalated_ = true;
    Continue("max_output_tokens_escalate");
    return true;
  }
  escalated_ = false;
  if (recoveries_ < kRecoveriesMax) {
    ++recoveries_;
    answer_ += TextOf(*message);
    if (!message->blocks.empty()) history_.push_back(message);
    AppendText(std::string(kResumeNudge));
    Continue("max_output_tokens_recovery");
    return true;
  }
  return false;
}

Loop::Step Loop::AfterText(const llm::Generated& generated, const MessagePtr& message) {
  const std::string& stop = generated.reply.stop_reason;
  if (scope_.state.fatal.has_value()) return *scope_.state.fatal;
  if (stop == "max_tokens" && RecoverFromCut(message)) return std::nullopt;
  escalated_ = false;
  answer_ += TextOf(*message);
  if (settling_.has_value()) return *settling_;
  if (stop == "refusal" || stop == "content_filter") {
    return Ending{EndReason::kRefused, "the model refused to answer (" + stop + ")", {}};
  }
  if (stop == "model_context_window_exceeded") {
    return Ending{EndReason::kPromptTooLong, "the answer ran into the end of the context", {}};
  }
  if (stop == "pause_turn") {
    return Ending{EndReason::kModelError, "the model paused in the middle of its answer", {}};
  }
  if (!IsWholeAnswer(stop)) {
    // The reply came whole, only the word for why it ended is new: use it, and say so.
    scope_.Warn("unknown_stop_reason", "the model ended with the stop reason " + stop);
  }
  if (IsBlank(answer_)) {
    answer_.clear();
    if (asked_again_) {
      return Ending{EndReason::kEmptyAnswer, "the model ended without text, twice", {}};
    }
    asked_again_ = true;
    scope_.Warn("empty_answer", "the model ended without text; it is asked once more");
    AppendText(std::string(kEmptyNudge));
    return std::nullopt;
  }
  return Ending{EndReason::kCompleted, "", {}};
}

Loop::Step Loop::AfterTools(Scheduler& scheduler) {
  scope_.state.doing = "tools run";
  if (scope_.state.fatal.has_value() ||
      !scheduler.WaitAll(scope_.cancel, scope_.budget().HardDeadline())) {
    const bool timed_out = !scope_.state.fatal.has_value() && !scope_.cancel.tripped();
    EndCalls(scheduler, timed_out ? "Interrupted: the time of the run is used up."
                                  : "Interrupted: the run was stopped.");
    if (timed_out) return EndingOfLimit(EndReason::kTimeout, scope_.budget().HitOf(Limit::kWall));
    return EndingOfCancel(scope_, true);
  }
  std::vector<Block> results;
  for (ToolResult& result : scheduler.TakeResults()) results.emplace_back(std::move(result));
  Append(Role::kUser, std::move(results));

  if (scope_.state.fatal.has_value()) return *scope_.state.fatal;
  if (scope_.cancel.tripped()) return EndingOfCancel(scope_, true);
  if (scope_.spec.fail_on_denied && !settling_.has_value() && !scope_.state.first_denied.empty()) {
    return Ending{EndReason::kDenied, "a call was denied: " + scope_.state.first_denied, {}};
  }
  return CheckTurnBudgets();
}

Loop::Step Loop::CheckTurnBudgets() {
  if (settling_.has_value()) {
    if (++settle_turns_ >= scope_.spec.settlement->turns) return *settling_;
    scope_.state.limit_hit.reset();
    return std::nullopt;
  }
  if (scope_.state.limit_hit.has_value()) {
    return OnLimit(EndReason::kBudgetExceeded,
                   *std::exchange(scope_.state.limit_hit, std::nullopt));
  }
  if (scope_.turns_max.has_value() && turn_ + 1 > *scope_.turns_max) {
    return OnLimit(EndReason::kMaxTurns, LimitHit{scope_.is_main() ? "turns" : "agents.turns",
                                                  std::to_string(*scope_.turns_max)});
  }
  if (scope_.budget().WallReached(scope_.clock.Now())) {
    return OnLimit(EndReason::kTimeout, scope_.budget().HitOf(Limit::kWall));
  }
  ++turn_;
  Continue("next_turn");
  return std::nullopt;
}

Loop::Step Loop::OnLimit(EndReason reason, const LimitHit& hit) {
  if (settling_.has_value()) return *settling_;
  Ending ending = EndingOfLimit(reason, hit);
  const std::optional<spec::Settlement>& settlement = scope_.spec.settlement;
  if (!settlement.has_value() || settlement->prompt.empty()) return ending;
  scope_.Warn("settlement", ending.message + "; the model is asked to wrap up");
  settling_ = std::move(ending);
  settle_turns_ = 0;
  scope_.purse.BeginSettlement();
  gate_.Disable(settlement->disabled_tools, "while the run is wrapped up");
  AppendText(settlement->prompt);
  return std::nullopt;
}

void Loop::Append(Role role, std::vector<Block> blocks) {
  history_.push_back(std::make_shared<const Message>(Message{role, std::move(blocks)}));
}

void Loop::AppendText(std::string text) {
  std::vector<Block> blocks;
  blocks.emplace_back(Text{std::move(text)});
  Append(Role::kUser, std::move(blocks));
}

void Loop::Continue(std::string_view reason) {
  // A failure is kept in scope.state.fatal; BeforeRequest looks at it.
  [[maybe_unused]] const Status ignored = scope_.Record(ledger::LoopContinued{std::string(reason)});
}

}  // namespace norma::agent
