#include "lib/llm/frame_parser.h"

#include "lib/llm/json_text.h"

namespace norma::llm {

std::optional<json::Value> FrameParser::Parse(std::string_view* text) {
  json::ParseOptions options;
  options.refuse_duplicates = false;  // the arguments inside are checked on their own
  auto value = parser_.Parse(*text, options);
  if (value.ok()) return value.value();
  std::string repaired = RepairJsonText(*text);
  if (repaired == *text) return std::nullopt;
  repaired_ = std::move(repaired);
  *text = repaired_;
  value = parser_.Parse(*text, options);
  if (!value.ok()) return std::nullopt;
  return value.value();
}

}  // namespace norma::llm
