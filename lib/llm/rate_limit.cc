#include "lib/llm/rate_limit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "lib/llm/retry.h"

namespace norma::llm {
namespace {

constexpr double kSecondsPerMinute = 60;
// Sums of binary fractions: a token that is there but for the last bit is there.
constexpr double kTokenRounding = 1e-9;

class RateLimited : public Provider {
 public:
  RateLimited(std::unique_ptr<Provider> inner, RateLimiter& limiter)
      : inner_(std::move(inner)), limiter_(limiter) {}

  Generated Generate(const ChatRequest& request, MonoTime deadline, const Cancel& cancel,
                     const Wake& wake, const Callbacks& callbacks) override {
    const Result<Millis> waited = limiter_.Acquire(deadline, cancel, wake, callbacks.on_rate_wait);
    if (waited.ok()) return inner_->Generate(request, deadline, cancel, wake, callbacks);
    Generated out;
    out.error = waited.error();
    return out;
  }
  std::string Endpoint() const override { return inner_->Endpoint(); }

 private:
  std::unique_ptr<Provider> inner_;
  RateLimiter& limiter_;
};

}  // namespace

double RateLimiter::Bucket::WaitAfterTaking() const {
  const double deficit = 1 - tokens;
  return rate <= 0 || deficit <= kTokenRounding ? 0 : deficit / rate;
}

RateLimiter::RateLimiter(const RateLimit& limit, Clock& clock)
    : clock_(clock), refilled_(clock.Now()) {
  second_.rate = limit.per_second;
  second_.capacity = limit.burst > 0 ? limit.burst : limit.per_second;
  minute_.rate = limit.per_minute / kSecondsPerMinute;
  minute_.capacity = limit.per_minute;
  for (Bucket* bucket : {&second_, &minute_}) bucket->tokens = bucket->capacity;
}

Result<Millis> RateLimiter::Reserve(MonoTime now, MonoTime deadline) {
  const std::lock_guard lock(mutex_);
  // Clocks are read before the lock is taken: an older reading must not turn time back.
  const double passed = std::max(0.0, std::chrono::duration<double>(now - refilled_).count());
  refilled_ = std::max(refilled_, now);
  for (Bucket* bucket : {&second_, &minute_}) {
    bucket->tokens = std::min(bucket->capacity, bucket->tokens + passed * bucket->rate);
  }
  const double seconds = std::max(second_.WaitAfterTaking(), minute_.WaitAfterTaking());
  if (seconds > std::chrono::duration<double>(kWaitMax).count()) {
    return Error{Code::kModel,
                 "model.rate_limit asks for a wait of more than 24 h before the next "
                 "request; raise it"};
  }
  const Millis wait(static_cast<Millis::rep>(std::ceil(seconds * 1000 - kTokenRounding)));
  if (deadline != kNever && wait.count() > 0 && now + wait >= deadline) {
    return Error{Code::kTimeout,
                 fmt::format("model.rate_limit asks for a wait of {:.1f} s, which would pass the "
                             "time limit of the run",
                             seconds)};
  }
  for (Bucket* bucket : {&second_, &minute_}) bucket->tokens -= 1;
  return wait;
}

Result<Millis> RateLimiter::Acquire(MonoTime deadline, const Cancel& cancel, const Wake& wake,
                                    const std::function<void(Millis)>& before_wait) {
  if (cancel.tripped()) return Error{Code::kCancelled, "cancelled"};
  const MonoTime now = clock_.Now();
  NORMA_ASSIGN(const Millis wait, Reserve(now, deadline));
  if (wait.count() == 0) return wait;
  if (before_wait) before_wait(wait);
  if (!Wait(clock_, now + wait, cancel, wake)) {
    return Error{Code::kCancelled, "cancelled while waiting for the rate limit"};
  }
  return wait;
}

std::unique_ptr<Provider> NewRateLimited(std::unique_ptr<Provider> inner, RateLimiter& limiter) {
  return std::make_unique<RateLimited>(std::move(inner), limiter);
}

}  // namespace norma::llm
