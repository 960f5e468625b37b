#include "lib/agent/requester.h"

#include <fmt/core.h>

#include <algorithm>

namespace norma::agent {
namespace {

// Below this a reply is hardly worth its input: rather stop and say so (PRODUCT §5).
constexpr int64_t kOutputTokensMin = 256;
constexpr int64_t kThinkingTokensMin = 1024;

TokenCounts CountsOf(const Usage& usage) {
  return {usage.input, usage.output, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h};
}

// A wait for the rate limit that a person is told of at once.
constexpr Millis kWaitToldMin{1'000};

// Did the provider perhaps work on this attempt although no answer was seen?
bool MayBeBilled(const llm::AttemptFailure& failure) {
  if (failure.stream_began) return true;
  const std::string& kind = failure.error_class;
  // An error status is an answer, and errors are free. So is a 200 that is no reply of a model at
  // all (a sign-in page); one whose stream broke or could not be taken is not.
  if (failure.status >= 200 && failure.status <= 299) return kind != "bad_body";
  if (failure.status != 0) return false;
  return kind == "idle" || kind == "total" || kind == "timeout" || kind == "broken_stream" ||
         kind == "cancelled" || kind == "internal";
}

int64_t ContentBytes(const Message& message) {
  int64_t bytes = 0;
  for (const Block& block : message.blocks) {
    if (const auto* text = std::get_if<Text>(&block)) {
      bytes += static_cast<int64_t>(text->text.size());
    } else if (const auto* thinking = std::get_if<Thinking>(&block)) {
      bytes += static_cast<int64_t>(thinking->text.size());
    } else if (const auto* call = std::get_if<ToolCall>(&block)) {
      bytes += static_cast<int64_t>(call->input.size());
    }
  }
  return bytes;
}

}  // namespace

struct Requester::Open {
  std::string id;
  int64_t estimated = 0;  // input tokens, upper estimate
  int64_t max_tokens = 0;
  size_t body_bytes = 0;
  Nano reserved = 0;
  std::optional<llm::Attempt> in_flight;  // sent, its end not yet recorded
};

Requester::Requester(RunScope& scope, llm::Provider& provider, bool may_cache)
    : scope_(scope), provider_(provider), may_cache_(may_cache) {}

llm::Generated Requester::Ask(const ChatRequest& request,
                              const std::function<void(const ToolCall&)>& on_call) {
  Open open;
  open.id = fmt::format("r{}", ++scope_.state.requests);
  llm::Callbacks callbacks;
  callbacks.on_size = [&](size_t bytes) { return Fit(request, bytes, open); };
  callbacks.on_attempt = [&](const llm::Attempt& attempt) { return OnAttempt(attempt, open); };
  callbacks.on_failure = [&](const llm::AttemptFailure& fault) { return OnFailure(fault, open); };
  callbacks.on_call = on_call;
  callbacks.on_rate_wait = [&](Millis wait) {
    scope_.state.doing = fmt::format("waiting for the rate limit, {} ms", wait.count());
    if (wait >= kWaitToldMin) scope_.observer.OnTick(scope_.state.doing);
  };
  llm::Generated generated = Generate(request, callbacks, open);
  if (generated.ok) OnReply(generated, open);
  // Whatever path it took, nothing may stay reserved for a request that is over.
  if (open.reserved > 0) scope_.purse.Settle(std::exchange(open.reserved, 0), 0);
  return generated;
}

// Whatever is thrown on the way, the attempt in flight gets its line.
llm::Generated Requester::Generate(const ChatRequest& request, const llm::Callbacks& callbacks,
                                   Open& open) {
  const Wake wake{scope_.inbox->fd(), [this] { scope_.inbox->Serve(); }};
  try {
    return provider_.Generate(request, scope_.budget().HardDeadline(), scope_.cancel, wake,
                              callbacks);
  } catch (const std::exception& error) {
    llm::Generated generated;
    generated.error = {Code::kInternal, fmt::format("{}; please report this", error.what())};
    if (open.in_flight.has_value()) {
      llm::AttemptFailure failure;
      failure.attempt = *open.in_flight;
      failure.error_class = "internal";
      failure.message = error.what();
      [[maybe_unused]] const Status ignored =
          OnFailure(failure, open);  // kept in scope.state.fatal
    }
    return generated;
  }
}

Error Requester::Refuse(LimitHit hit) {
  Error error{Code::kBudget,
              fmt::format("budgets.{} ({}) does not allow another request", hit.name, hit.value)};
  if (!scope_.state.limit_hit.has_value()) scope_.state.limit_hit = std::move(hit);
  return error;
}

Result<int64_t> Requester::Fit(const ChatRequest& request, size_t body_bytes, Open& open) {
  Budget& budget = scope_.budget();
  open.body_bytes = body_bytes;
  open.estimated = scope_.state.estimator.Upper(static_cast<int64_t>(body_bytes));
  const int64_t likely = scope_.state.estimator.Likely(static_cast<int64_t>(body_bytes));
  if (likely > scope_.spec.context_window) {
    return Error{Code::kContextFull,
                 fmt::format("prompt is too long: about {} tokens, context.window is {}", likely,
                             scope_.spec.context_window)};
  }
  if (!budget.Fits(Limit::kInputTokens, open.estimated)) {
    return Refuse(budget.HitOf(Limit::kInputTokens));
  }
  // Thinking takes its budget out of max_tokens, and providers refuse a budget below their minimum.
  const int64_t thinking = scope_.spec.model.thinking_budget > 0 ? kThinkingTokensMin : 0;
  const int64_t least = std::min(kOutputTokensMin + thinking, request.max_tokens);
  int64_t output = std::min(request.max_tokens, budget.Left(Limit::kOutputTokens));
  if (output < least) return Refuse(budget.HitOf(Limit::kOutputTokens));
  if (scope_.price != nullptr) {
    const Nano free = scope_.purse.Available();
    if (WorstCaseCost(*scope_.price, open.estimated, output, may_cache_) > free) {
      output =
          std::min(output, OutputTokensThatFit(*scope_.price, open.estimated, free, may_cache_));
      if (output < least) return Refuse(budget.HitOf(Limit::kCostUsd));
    }
  }
  open.max_tokens = output;
  return output;
}

Status Requester::OnAttempt(const llm::Attempt& attempt, Open& open) {
  Budget& budget = scope_.budget();
  if (scope_.state.fatal.has_value()) return Error{Code::kLedger, scope_.state.fatal->message};
  if (!budget.Fits(Limit::kRequests, 1)) return Refuse(budget.HitOf(Limit::kRequests));
  // Again for each attempt: one that failed may have been billed.
  if (!budget.Fits(Limit::kInputTokens, open.estimated)) {
    return Refuse(budget.HitOf(Limit::kInputTokens));
  }
  if (!budget.Fits(Limit::kOutputTokens, open.max_tokens)) {
    return Refuse(budget.HitOf(Limit::kOutputTokens));
  }
  std::optional<Nano> reserved;
  if (scope_.price != nullptr) {
    const Nano worst = WorstCaseCost(*scope_.price, open.estimated, open.max_tokens, may_cache_);
    if (!scope_.purse.Reserve(worst)) return Refuse(budget.HitOf(Limit::kCostUsd));
    open.reserved = worst;
    reserved = worst;
  }
  budget.Charge(Limit::kRequests, 1);
  open.in_flight = attempt;
  return scope_.Announce(ledger::RequestSent{.id = open.id,
                                             .attempt = attempt.number,
                                             .endpoint = attempt.endpoint,
                                             .bytes = static_cast<int64_t>(attempt.body_bytes),
                                             .estimated_tokens = open.estimated,
                                             .max_tokens = open.max_tokens,
                                             .reserved = reserved});
}

std::optional<Nano> Requester::Book(const Usage& usage, Open& open) {
  scope_.budget().Charge(Limit::kInputTokens, usage.input);
  scope_.budget().Charge(Limit::kOutputTokens, usage.output);
  if (scope_.price == nullptr) return std::nullopt;
  const Nano cost = CostOf(*scope_.price, CountsOf(usage));
  scope_.purse.Settle(std::exchange(open.reserved, 0), cost);
  scope_.budget().Charge(Limit::kCostUsd, cost);
  return cost;
}

Status Requester::OnFailure(const llm::AttemptFailure& failure, Open& open) {
  open.in_flight.reset();
  ledger::RequestFailed record;
  record.id = open.id;
  record.attempt = failure.attempt.number;
  record.status = failure.status;
  record.error_class = failure.error_class;
  record.message = failure.message;
  if (failure.retry_in.has_value()) record.retry_in_ms = failure.retry_in->count();
  record.retry_after = failure.retry_after;
  record.duration_ms = failure.duration.count();
  record.request_id = failure.request_id;
  if (MayBeBilled(failure)) {
    Usage usage = failure.usage;
    if (usage.input == 0) usage.input = open.estimated;
    usage.output =
        std::max(usage.output, EstimateOutput(static_cast<int64_t>(failure.content_bytes), open));
    usage.estimated = true;
    record.cost = Book(usage, open);
    record.usage = std::move(usage);
    record.estimated = true;
  } else if (open.reserved > 0) {
    scope_.purse.Settle(std::exchange(open.reserved, 0), 0);
  }
  return scope_.Record(record);
}

// No provider bills more than it was allowed to write, whatever it then sends.
int64_t Requester::EstimateOutput(int64_t content_bytes, const Open& open) {
  return std::min(context::TokenEstimator::OfContent(content_bytes), open.max_tokens);
}

// A count that is missing or cannot be meant (a prompt or an answer of no tokens, which is what is
// left of a negative or absurd one) is estimated: else every request would be free.
void Requester::FillUsage(const Message& message, const Open& open, Usage* usage) const {
  if (usage->reported && scope_.spec.model.format == "script") return;  // a dry run costs nothing
  const int64_t content_bytes = ContentBytes(message);
  const bool input_good = usage->reported && usage->input > 0;
  const bool output_good = usage->reported && (usage->output > 0 || content_bytes == 0);
  if (!input_good) usage->input = open.estimated;
  if (!output_good) usage->output = EstimateOutput(content_bytes, open);
  usage->estimated = usage->estimated || !input_good || !output_good;
}

void Requester::OnReply(const llm::Generated& generated, Open& open) {
  Usage usage = generated.reply.usage;
  FillUsage(generated.reply.message, open, &usage);
  if (!usage.estimated)
    scope_.state.estimator.Learn(static_cast<int64_t>(open.body_bytes), usage.input);
  ledger::ReplyReceived record;
  record.id = open.id;
  record.attempt = generated.attempt;
  record.status = generated.status;
  record.first_byte_ms = generated.first_byte.count();
  record.duration_ms = generated.duration.count();
  record.stop_reason = generated.reply.stop_reason;
  record.content = generated.reply.message.blocks;
  record.cost = Book(usage, open);
  record.estimated = usage.estimated;
  record.usage = std::move(usage);
  record.request_id = generated.reply.request_id;
  record.proxy = generated.proxy;
  // A failure is kept in scope.state.fatal, which the loop looks at next.
  [[maybe_unused]] const Status ignored = scope_.Record(record);
}

}  // namespace norma::agent
