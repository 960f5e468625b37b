// Time as a seam: everything that waits or stamps takes a Clock, so that tests own time.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lib/base/cancel.h"

namespace norma {

using Millis = std::chrono::milliseconds;
using MonoTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

// "No deadline". Compare with it, never compute with it.
inline constexpr MonoTime kNever = MonoTime::max();

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime Now() = 0;
  virtual WallTime Wall() = 0;
  // Waits until `when`; false when `cancel` tripped first. Any thread.
  virtual bool SleepUntil(MonoTime when, const Cancel& cancel) = 0;
};

// The machine's clock. Stateless; lives for the whole process.
Clock& SystemClock();

// "2026-12-01T09:30:00.123456Z", UTC, microseconds.
std::string FormatUtc(WallTime time);

// Milliseconds from now until `deadline`, for poll(2): at least 0, at most `cap` (also for kNever).
int PollTimeout(MonoTime now, MonoTime deadline, Millis cap);

// The earlier of a deadline and now + limit; a limit of zero or less means no limit.
MonoTime EarlierOf(MonoTime deadline, MonoTime now, Millis limit);

}  // namespace norma
