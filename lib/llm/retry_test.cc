// The retry ladder and what providers say about waiting.
#include "lib/llm/retry.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <vector>

#include "lib/testing/hand_clock.h"

using namespace norma;
using namespace norma::llm;
using namespace std::chrono_literals;

TEST_CASE("retry: the ladder doubles up to its cap, without jitter") {
  const RetryPolicy policy;
  const std::vector<Millis> want = {500ms, 1000ms, 2000ms, 4000ms, 8000ms, 8000ms, 8000ms};
  for (size_t n = 0; n < want.size(); ++n) {
    CHECK(RetryDelay(policy, static_cast<int>(n) + 1) == want[n]);
  }
  CHECK(RetryDelay(policy, 1'000'000) == 8000ms);
  CHECK(RetryDelay({3, 10s, 1s}, 1) == 1s);
  CHECK(RetryDelay({3, 0ms, 8s}, 5) == 0ms);
}

TEST_CASE("retry: which statuses") {
  for (const int status : {408, 429, 500, 502, 503, 504, 529}) CHECK(IsRetryableStatus(status));
  for (const int status :
       {0, 200, 204, 302, 400, 401, 403, 404, 407, 409, 413, 422, 501, 505, 520}) {
    CHECK(!IsRetryableStatus(status));
  }
}

TEST_CASE("retry: Retry-After in all its spellings") {
  const WallTime now(std::chrono::seconds(1'764'547'200));  // Mon, 01 Dec 2025 00:00:00 GMT
  struct Row {
    std::string value;
    std::optional<Millis> want;
  };
  const std::vector<Row> rows = {
      {"0", 0ms},
      {"1", 1s},
      {" 7 ", 7s},
      {"1.5", 1500ms},
      {"9e9", 1'000'000s},
      {"1e999", 1'000'000s},
      {"99999999999999999999", 1'000'000s},
      {"-1", std::nullopt},
      {"-1e999", std::nullopt},
      {"nan", std::nullopt},
      {"inf", std::nullopt},
      {"soon", std::nullopt},
      {"1s", std::nullopt},
      {"", std::nullopt},
      {"Mon, 01 Dec 2025 00:00:20 GMT", 20s},
      {"Monday, 01-Dec-25 00:00:20 GMT", 20s},
      {"Mon Dec  1 00:00:20 2025", 20s},
      {"Sun, 30 Nov 2025 00:00:00 GMT", 0ms},
      {"Fri, 01 Jan 2100 00:00:00 GMT", 1'000'000s},
      {"Mon, 01 Dec 2025 00:00:20 GMT!", std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CHECK((RetryAfter({429, {{"retry-after", row.value}}}, now) == row.want));
  }
  CHECK((RetryAfter({429, {}}, now) == std::nullopt));
  CHECK((RetryAfter({429, {{"retry-after-ms", "250.5"}, {"retry-after", "9"}}}, now) == 251ms));
  CHECK((RetryAfter({429, {{"retry-after-ms", "x"}, {"retry-after", "9"}}}, now) == 9s));
}

TEST_CASE("retry: the provider may forbid it") {
  CHECK(ForbidsRetry({503, {{"x-should-retry", "False"}}}));
  CHECK(!ForbidsRetry({503, {{"x-should-retry", "true"}}}));
  CHECK(!ForbidsRetry({503, {}}));
}

TEST_CASE("retry: a wait serves who waits for the thread, and a cancel ends it") {
  testing::HandClock clock;
  Cancel cancel;
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const uint64_t one = 1;
  REQUIRE(write(fd, &one, sizeof one) == sizeof one);
  int served = 0;
  const Wake wake{fd, [&] {
                    uint64_t value = 0;
                    CHECK(read(fd, &value, sizeof value) == sizeof value);
                    if (++served == 3) cancel.Trip(15);
                    CHECK(write(fd, &one, sizeof one) == sizeof one);
                  }};
  const MonoTime start = clock.Now();
  CHECK(!Wait(clock, start + 10s, cancel, wake));
  CHECK(served == 3);
  CHECK(clock.Now() < start + 1s);
  close(fd);
  const Cancel calm;
  CHECK(Wait(clock, start + 10s, calm, {}));
  CHECK(clock.Now() == start + 10s);
  CHECK(Wait(clock, start, calm, {}));
}
