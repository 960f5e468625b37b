// Tokens of a body before it is sent: an upper estimate for reserving money, calibrated by what the
// provider reported for earlier bodies. Pure arithmetic, one owner.
#pragma once

#include <cstdint>

namespace norma::context {

class TokenEstimator {
 public:
  // Upper estimate for a request body: bytes × the highest tokens-per-byte seen in this run plus a
  // margin; before the first report bytes / 3. Never below bytes / 6, never above one token a byte.
  int64_t Upper(int64_t body_bytes) const;
  // What it will most likely be, for comparing with a context window: bytes × the last report's
  // tokens per byte; before the first report bytes / 4.
  int64_t Likely(int64_t body_bytes) const;
  // A provider reported `input_tokens` for a body of `body_bytes`.
  void Learn(int64_t body_bytes, int64_t input_tokens);
  // Output tokens of text that came without a usage report: bytes / 3, rounded up.
  static int64_t OfContent(int64_t content_bytes);

 private:
  bool learned_ = false;
  int64_t worst_ppm_ = 0;  // tokens per million bytes, the highest seen
  int64_t last_ppm_ = 0;   // of the last report
};

}  // namespace norma::context
