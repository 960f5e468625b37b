// Tokens of one reply of the two OpenAI formats and of the many servers that speak them. Counts
// come once, at the end, or again and again with growing numbers: the last object is the truth.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/chat/message.h"

namespace norma::llm {

class OpenAiUsage {
 public:
  // `raw` is the text of `usage`. Anything but an object is ignored, and so is one without a single
  // count behind one that had some.
  void Set(json::Value usage, std::string_view raw);
  bool reported() const { return usage_.reported; }
  const Usage& Take() const { return usage_; }

 private:
  Usage usage_;
};

}  // namespace norma::llm
