#include "lib/llm/openai_usage.h"

#include <algorithm>
#include <initializer_list>

namespace norma::llm {
namespace {

// More than any model can do in one reply; keeps sums far from overflow.
constexpr int64_t kTokensMax = 1'000'000'000'000;

// The first of these that is a number.
int64_t Count(std::initializer_list<json::Value> values) {
  for (const json::Value& value : values) {
    if (!value.present() || value.is_null()) continue;
    return std::clamp<int64_t>(value.Int(0), 0, kTokensMax);
  }
  return 0;
}

}  // namespace

void OpenAiUsage::Set(json::Value usage, std::string_view raw) {
  if (!usage.is_object()) return;
  // Chat says prompt/completion, Responses input/output; gateways mix them.
  json::Value input_details = usage["prompt_tokens_details"];
  if (!input_details.is_object()) input_details = usage["input_tokens_details"];
  json::Value output_details = usage["completion_tokens_details"];
  if (!output_details.is_object()) output_details = usage["output_tokens_details"];

  Usage next;
  next.reported = true;
  next.output = Count({usage["completion_tokens"], usage["output_tokens"]});
  next.cache_read = Count({input_details["cached_tokens"], usage["cached_tokens"],
                           usage["prompt_cache_hit_tokens"], usage["cache_read_input_tokens"]});
  next.cache_write_5m =
      Count({input_details["cache_write_tokens"], usage["cache_creation_input_tokens"]});
  // Cached tokens are part of the input (spec/10 §1.1); a server that counts them beside it would
  // otherwise make the uncached rest negative.
  next.input = std::max(Count({usage["prompt_tokens"], usage["input_tokens"]}),
                        next.cache_read + next.cache_write_5m);
  next.reasoning = Count({output_details["reasoning_tokens"], usage["reasoning_tokens"]});
  if (usage_.reported && next.input == 0 && next.output == 0) return;
  next.raw = raw;
  usage_ = std::move(next);
}

}  // namespace norma::llm
