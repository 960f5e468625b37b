// A clock that only moves when the test says so, or, with auto-advance (the default), jumps to the
// end of every wait at once.
#pragma once

#include <mutex>

#include "lib/base/clock.h"

namespace norma::testing {

class HandClock : public Clock {
 public:
  MonoTime Now() override {
    std::lock_guard lock(mutex_);
    return now_;
  }
  WallTime Wall() override {
    std::lock_guard lock(mutex_);
    return WallTime(std::chrono::seconds(1'764'547'200)) +  // 2025-12-01T00:00:00Z
           std::chrono::duration_cast<WallTime::duration>(now_ - MonoTime{});
  }
  bool SleepUntil(MonoTime when, const Cancel& cancel) override {
    if (cancel.tripped()) return false;
    std::lock_guard lock(mutex_);
    if (when > now_) {
      slept_ += std::chrono::duration_cast<Millis>(when - now_);
      now_ = when;
    }
    return true;
  }

  void Advance(Millis by) {
    std::lock_guard lock(mutex_);
    now_ += by;
  }
  // Sum of all waits so far.
  Millis slept() {
    std::lock_guard lock(mutex_);
    return slept_;
  }

 private:
  std::mutex mutex_;  // tools read the clock on worker threads
  MonoTime now_{std::chrono::hours(1)};
  Millis slept_{0};
};

}  // namespace norma::testing
