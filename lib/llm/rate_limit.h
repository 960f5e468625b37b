// RateLimiter: two token buckets used together, requests a second and requests a minute. Shared by
// all runs of one process; order of arrival fixes the slots, and nobody holds a lock while waiting.
// Knows no provider and no retry: one acquisition covers a logical request, whatever its attempts.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/base/result.h"
#include "lib/io/http.h"
#include "lib/llm/provider.h"

namespace norma::llm {

struct RateLimit {
  double per_second = 0;
  double per_minute = 0;
  double burst = 0;  // capacity of the first bucket; 0: per_second. Below 1 every request waits
};

class RateLimiter {
 public:
  // A wait that is longer is refused, also where no deadline says so.
  static constexpr Millis kWaitMax = std::chrono::hours(24);

  // A rate of 0 or less is no limit; with both so, nobody ever waits. Both buckets start full.
  RateLimiter(const RateLimit& limit, Clock& clock);

  // Takes a token of each bucket and waits until both are covered; gives the time waited. A wait
  // that cannot end before `deadline` takes nothing and fails at once (kTimeout; kModel beyond
  // kWaitMax); a cancelled one (kCancelled) does not give its tokens back. `before_wait` is told
  // the wait, when there is one. Any thread.
  Result<Millis> Acquire(MonoTime deadline, const Cancel& cancel, const Wake& wake,
                         const std::function<void(Millis)>& before_wait = {});

 private:
  struct Bucket {
    double rate = 0;  // tokens a second; ≤ 0: no bucket
    double capacity = 0;
    double tokens = 0;
    double WaitAfterTaking() const;  // seconds
  };

  Result<Millis> Reserve(MonoTime now, MonoTime deadline);

  Clock& clock_;
  std::mutex mutex_;
  Bucket second_, minute_;
  MonoTime refilled_;
};

// `inner` behind the limiter, whatever format it speaks. `limiter` must outlive it.
std::unique_ptr<Provider> NewRateLimited(std::unique_ptr<Provider> inner, RateLimiter& limiter);

}  // namespace norma::llm
