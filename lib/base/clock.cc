#include "lib/base/clock.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <ctime>

namespace norma {
namespace {

// A poll never sleeps longer than this at once, so that an overflow of poll's int cannot happen.
constexpr Millis kPollMax{60'000};

class MachineClock : public Clock {
 public:
  MonoTime Now() override { return std::chrono::steady_clock::now(); }
  WallTime Wall() override { return std::chrono::system_clock::now(); }

  bool SleepUntil(MonoTime when, const Cancel& cancel) override {
    while (!cancel.tripped()) {
      const MonoTime now = Now();
      if (now >= when) return true;
      pollfd wait{cancel.fd(), POLLIN, 0};
      poll(&wait, 1, PollTimeout(now, when, kPollMax));
    }
    return false;
  }
};

}  // namespace

Clock& SystemClock() {
  static MachineClock clock;
  return clock;
}

std::string FormatUtc(WallTime time) {
  using std::chrono::floor;
  using std::chrono::microseconds;
  using std::chrono::seconds;
  const auto whole = floor<seconds>(time);
  const auto micros = floor<microseconds>(time - whole).count();
  const std::time_t unix_seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm parts{};
  gmtime_r(&unix_seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     micros);
}

int PollTimeout(MonoTime now, MonoTime deadline, Millis cap) {
  if (deadline <= now) return 0;
  if (deadline == kNever) return static_cast<int>(cap.count());
  // Rounded up: a wait that ends a fraction early would spin.
  const auto left = std::chrono::ceil<Millis>(deadline - now);
  return static_cast<int>(std::min(left, cap).count());
}

MonoTime EarlierOf(MonoTime deadline, MonoTime now, Millis limit) {
  if (limit.count() <= 0 || deadline <= now) return deadline;
  // Compared before adding, in the coarser unit: now + limit may lie beyond what the clock counts.
  const auto left = std::chrono::floor<Millis>(deadline - now);
  return limit > left ? deadline : now + limit;
}

}  // namespace norma
