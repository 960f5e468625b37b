#include "lib/context/token_estimate.h"

#include <algorithm>

namespace norma::context {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr int64_t kMarginPercent = 10;  // a body that grew may be denser than those before it

}  // namespace

int64_t TokenEstimator::Upper(int64_t body_bytes) const {
  if (body_bytes <= 0) return 0;
  const int64_t floor = (body_bytes + 5) / 6;
  if (!learned_) return (body_bytes + 2) / 3;
  const auto product = static_cast<__int128>(body_bytes) * worst_ppm_;
  const auto tokens = static_cast<int64_t>((product + kMillion - 1) / kMillion);
  const int64_t with_margin = tokens + tokens * kMarginPercent / 100 + 1;
  return std::clamp(with_margin, floor, body_bytes);
}

int64_t TokenEstimator::Likely(int64_t body_bytes) const {
  if (body_bytes <= 0) return 0;
  if (!learned_) return body_bytes / 4;
  return static_cast<int64_t>(static_cast<__int128>(body_bytes) * last_ppm_ / kMillion);
}

void TokenEstimator::Learn(int64_t body_bytes, int64_t input_tokens) {
  if (body_bytes <= 0 || input_tokens <= 0) return;
  const auto scaled = static_cast<__int128>(input_tokens) * kMillion;
  const auto ppm = static_cast<int64_t>((scaled + body_bytes - 1) / body_bytes);
  last_ppm_ = std::min(ppm, kMillion);
  worst_ppm_ = std::max(worst_ppm_, last_ppm_);
  learned_ = true;
}

int64_t TokenEstimator::OfContent(int64_t content_bytes) {
  return content_bytes <= 0 ? 0 : (content_bytes + 2) / 3;
}

}  // namespace norma::context
