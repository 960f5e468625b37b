#include "lib/llm/retry.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <string>

#include "lib/base/text.h"

namespace norma::llm {
namespace {

constexpr std::array kRetryableStatuses = {408, 429, 500, 502, 503, 504, 529};
constexpr double kSecondsMax = 1'000'000;
// Who waits for this thread is served at least this often.
constexpr Millis kWaitSlice{100};

std::optional<Millis> FromNumber(std::string_view text, double millis_per_unit) {
  text = Trim(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
    number = text.front() == '-' ? -1 : kSecondsMax * 1000;
  } else if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  const double millis = std::min(number * millis_per_unit, kSecondsMax * 1000);
  return Millis(static_cast<Millis::rep>(std::ceil(millis)));
}

// The three date forms of HTTP; all are in GMT.
std::optional<Millis> FromDate(const std::string& text, WallTime now) {
  for (const char* form :
       {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"}) {
    std::tm parts{};
    const char* end = strptime(text.c_str(), form, &parts);
    if (end == nullptr || *end != '\0') continue;
    const auto when = std::chrono::system_clock::from_time_t(timegm(&parts));
    if (when <= now) return Millis(0);
    const auto wait = std::chrono::ceil<Millis>(when - now);
    return std::min(wait, Millis(static_cast<Millis::rep>(kSecondsMax * 1000)));
  }
  return std::nullopt;
}

}  // namespace

bool IsRetryableStatus(int status) {
  return std::ranges::find(kRetryableStatuses, status) != kRetryableStatuses.end();
}

Millis RetryDelay(const RetryPolicy& policy, int failed) {
  Millis delay = std::min(policy.delay_first, policy.delay_max);
  for (int n = 1; n < failed && delay < policy.delay_max; ++n) {
    if (delay.count() <= 0) break;
    delay = std::min(delay * 2, policy.delay_max);
  }
  return std::max(delay, Millis(0));
}

std::optional<Millis> RetryAfter(const HttpHead& head, WallTime now) {
  if (const auto wait = FromNumber(head.Find("retry-after-ms"), 1)) return wait;
  const std::string text(Trim(head.Find("retry-after")));
  if (text.empty()) return std::nullopt;
  if (const auto wait = FromNumber(text, 1000)) return wait;
  return FromDate(text, now);
}

bool ForbidsRetry(const HttpHead& head) {
  return ToLower(head.Find("x-should-retry")) == "false";
}

bool Wait(Clock& clock, MonoTime until, const Cancel& cancel, const Wake& wake) {
  for (;;) {
    if (cancel.tripped()) return false;
    if (wake.fd >= 0 && wake.serve) {
      pollfd ready{wake.fd, POLLIN, 0};
      if (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) wake.serve();
    }
    const MonoTime now = clock.Now();
    if (now >= until) return true;
    const MonoTime next = wake.fd >= 0 ? std::min(until, now + kWaitSlice) : until;
    if (!clock.SleepUntil(next, cancel)) return false;
  }
}

}  // namespace norma::llm
