// The replies of the embedded `script` model (PRODUCT: "The script model"), as plain data: lib/spec
// reads them from YAML, lib/llm plays them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace norma {

struct ScriptCall {
  std::string id;  // empty: made by the provider
  std::string name;
  std::string input;  // JSON text
};

struct ScriptError {
  int status = 0;  // HTTP status to act out; 0 = a network error
  std::string message;
};

struct ScriptReply {
  std::string text;
  std::string thinking;
  std::vector<ScriptCall> calls;
  int64_t usage_input = 0;
  int64_t usage_output = 0;
  int64_t usage_cache_read = 0;
  int64_t usage_cache_write = 0;
  std::string stop;  // empty: tool_use with calls, else end_turn
  std::chrono::milliseconds delay{0};
  std::optional<std::string> expect;  // must be in the newest user message
  std::optional<ScriptError> error;
};

struct Script {
  std::vector<ScriptReply> replies;
  bool repeat = false;  // the last reply goes on for ever
};

}  // namespace norma
