#include "lib/llm/anthropic_usage.h"

#include <algorithm>

#include "lib/llm/json_text.h"

namespace norma::llm {
namespace {

// More than any model can do in one reply; keeps sums far from overflow.
constexpr int64_t kTokensMax = 1'000'000'000'000;

}  // namespace

void AnthropicUsage::Count::Raise(json::Value value, From from) {
  if (!value.present() || value.is_null()) return;
  std::optional<int64_t>& field = from == From::kMessageStart ? start : later;
  const int64_t count = std::clamp<int64_t>(value.Int(0), 0, kTokensMax);
  field = std::max(field.value_or(0), count);
}

void AnthropicUsage::Add(json::Value usage, std::string_view raw, From from) {
  if (!usage.is_object()) return;
  reported_ = true;
  input_.Raise(usage["input_tokens"], from);
  output_.Raise(usage["output_tokens"], from);
  cache_read_.Raise(usage["cache_read_input_tokens"], from);
  cache_write_.Raise(usage["cache_creation_input_tokens"], from);
  const json::Value split = usage["cache_creation"];
  write_5m_.Raise(split["ephemeral_5m_input_tokens"], from);
  write_1h_.Raise(split["ephemeral_1h_input_tokens"], from);
  reasoning_.Raise(usage["output_tokens_details"]["thinking_tokens"], from);
  MergeRaw(raw);
}

void AnthropicUsage::MergeRaw(std::string_view raw) {
  EachRawMember(raw, [&](std::string_view key, std::string_view value) {
    const auto known =
        std::ranges::find(raw_, key, [](const auto& member) { return member.first; });
    if (known == raw_.end()) {
      raw_.emplace_back(key, value);
    } else if (value != "null") {
      known->second = value;
    }
  });
}

Usage AnthropicUsage::Take() const {
  Usage out;
  if (!reported_) return out;
  out.reported = true;
  out.cache_read = cache_read_.Best();
  out.cache_write_1h = write_1h_.Best();
  // What the split does not explain counts as the five-minute class.
  out.cache_write_5m = std::max(write_5m_.Best(), cache_write_.Best() - out.cache_write_1h);
  out.input = input_.Best() + out.cache_read + out.cache_write();
  // Zero is a real output count; only without any other the placeholder is better than nothing.
  out.output = output_.later.value_or(output_.start.value_or(0));
  out.reasoning = reasoning_.Best();
  out.raw = "{";
  for (const auto& [key, value] : raw_) {
    if (out.raw.size() > 1) out.raw += ',';
    out.raw += '"' + key + "\":" + value;
  }
  out.raw += '}';
  return out;
}

}  // namespace norma::llm
