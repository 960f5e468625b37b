// sleep: waits, and stops waiting when the run is cancelled or the call's time is over.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "lib/tool/builtins.h"

namespace norma::tool {
namespace {

constexpr int64_t kSecondsMin = 1;
constexpr int64_t kSecondsMax = 3600;

ToolOutput Run(int64_t seconds, ToolContext& context) {
  const ToolEnv& env = context.env();
  Clock& clock = env.clock == nullptr ? SystemClock() : *env.clock;
  const MonoTime begin = clock.Now();
  const MonoTime wanted = begin + std::chrono::seconds(seconds);
  const MonoTime until = std::min(wanted, context.deadline());
  if (!clock.SleepUntil(until, context.cancel())) return {"sleep interrupted", false, false};
  if (until == wanted) return {fmt::format("slept {}s", seconds), false, false};
  const auto slept = std::chrono::duration_cast<std::chrono::seconds>(clock.Now() - begin);
  return {fmt::format("slept {}s of {}s: no time is left for this call", slept.count(), seconds),
          false, false};
}

Result<Prepared> Prepare(json::Value arguments, const ToolEnv&) {
  const int64_t seconds = std::clamp(arguments["seconds"].Int(), kSecondsMin, kSecondsMax);
  Prepared prepared;
  prepared.read_only = true;
  prepared.own = OwnVerdict::kAllow;
  prepared.run = [seconds](ToolContext& context) { return Run(seconds, context); };
  return prepared;
}

}  // namespace

Tool SleepTool() {
  return Tool{.name = "sleep",
              .description =
                  "Waits for a number of seconds, for example until something that was "
                  "started earlier is ready. Changes nothing.",
              .input_schema = R"({"type":"object","properties":{"seconds":{"type":"integer",)"
                              R"("description":"How long, from 1 to 3600; )"
                              R"(other values count as the nearer of these."}},)"
                              R"("required":["seconds"]})",
              .read_only = true,
              .parallel = true,
              .own = OwnVerdict::kAllow,
              .prepare = Prepare};
}

}  // namespace norma::tool
