// Tokens of one Anthropic reply. The provider repeats and accumulates its counts over the frames of
// a stream, so that a sum would bill twice. Of each field the highest count of the later frames is
// the truth; what message_start said stands where they say nothing, or zero (some gateways do).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/chat/message.h"

namespace norma::llm {

class AnthropicUsage {
 public:
  enum class From {
    kMessageStart,  // counts before the reply was made; the output count is a placeholder
    kLater,         // message_delta, or a whole body
  };
  // `raw` is the text of `usage`; anything but an object is ignored.
  void Add(json::Value usage, std::string_view raw, From from);
  bool reported() const { return reported_; }
  Usage Take() const;

 private:
  struct Count {
    std::optional<int64_t> start, later;
    void Raise(json::Value value, From from);
    int64_t Best() const { return later.value_or(0) > 0 ? *later : start.value_or(0); }
  };
  void MergeRaw(std::string_view raw);

  bool reported_ = false;
  Count input_, output_, cache_read_, cache_write_, write_5m_, write_1h_, reasoning_;
  std::vector<std::pair<std::string, std::string>> raw_;  // members, the latest value of each
};

}  // namespace norma::llm
