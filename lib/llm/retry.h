// When a failed attempt may be tried again, and after which wait. Pure but for Wait.
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/io/http.h"
#include "lib/llm/provider.h"

namespace norma::llm {

// A provider that asks for more is not waited for, whatever the deadline says.
inline constexpr Millis kRetryAfterMax = std::chrono::hours(1);

// 408, 429, 500, 502, 503, 504, 529.
bool IsRetryableStatus(int status);

// First, doubled each time, up to the last; `failed` attempts came before, at least 1. No jitter:
// runs are to be repeatable.
Millis RetryDelay(const RetryPolicy& policy, int failed);

// What the answer asks for: retry-after-ms, else retry-after as seconds or as an HTTP date.
// nullopt when there is none, or nonsense. Never negative; at most 1,000,000 s.
std::optional<Millis> RetryAfter(const HttpHead& head, WallTime now);

// "x-should-retry: false": the provider knows better than the table.
bool ForbidsRetry(const HttpHead& head);

// Waits until `until`, serving `wake` in between; false when `cancel` tripped first.
bool Wait(Clock& clock, MonoTime until, const Cancel& cancel, const Wake& wake);

}  // namespace norma::llm
