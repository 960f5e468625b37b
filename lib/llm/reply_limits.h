// What one reply may hold. A reply with more is refused: it would only fill memory.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/text.h"

namespace norma::llm {

inline constexpr size_t kReplyBytesMax = 64u << 20;
inline constexpr size_t kReplyBlocksMax = 4096;

inline Error TooManyBlocks() {
  return Error{Code::kModel, fmt::format("the reply has more than {} blocks", kReplyBlocksMax)};
}

// Counts what a decoder keeps: text, thinking, signatures, arguments.
class ContentMeter {
 public:
  Status Append(std::string& to, std::string_view bytes) {
    if (bytes.size() > kReplyBytesMax - bytes_) {
      return Error{Code::kModel, "the reply is larger than " + FormatBytes(kReplyBytesMax)};
    }
    bytes_ += bytes.size();
    to += bytes;
    return {};
  }
  // `text` is going to be `final` instead. What was counted for it stays counted.
  Status Replace(std::string& text, std::string_view final_text) {
    std::string next;
    NORMA_TRY(Append(next, final_text));
    text = std::move(next);
    return {};
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace norma::llm
