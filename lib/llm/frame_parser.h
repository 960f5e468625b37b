// Frames of a model's stream as JSON: parsed with one set of buffers, repaired where a server cut a
// character in two.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/json.h"

namespace norma::llm {

class FrameParser {
 public:
  // nullopt when `*text` is no JSON. `*text` becomes what was really parsed; it and the value live
  // until the next call.
  std::optional<json::Value> Parse(std::string_view* text);

 private:
  json::Parser parser_;
  std::string repaired_;
};

}  // namespace norma::llm
