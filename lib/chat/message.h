// The words of the domain: message, block, tool call, tool result, usage, reply. Pure data; knows
// no wire format, no file, no policy. Leaves that must survive byte for byte are strings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace norma {

enum class Role { kUser, kAssistant };

struct Text {
  std::string text;
  friend bool operator==(const Text&, const Text&) = default;
};

// `signature` goes back to the provider unchanged.
struct Thinking {
  std::string text;
  std::string signature;
  friend bool operator==(const Thinking&, const Thinking&) = default;
};

// `input` is the raw argument text as the model wrote it: it may be empty, cut or no JSON at all.
// `valid_input` is the checked, minified object; empty when `input` is not one JSON object without
// duplicate keys. Only valid_input may ever be executed or sent back (spec/40 W4).
struct ToolCall {
  std::string id;
  std::string name;
  std::string input;
  std::string valid_input;
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct ToolResult {
  std::string call_id;
  std::string text;
  bool is_error = false;
  friend bool operator==(const ToolResult&, const ToolResult&) = default;
};

// A block that only its own wire format understands (redacted thinking, encrypted reasoning): kept
// and sent back byte for byte, dropped by every other format.
struct Opaque {
  std::string wire;
  std::string json;
  friend bool operator==(const Opaque&, const Opaque&) = default;
};

using Block = std::variant<Text, Thinking, ToolCall, ToolResult, Opaque>;

struct Message {
  Role role = Role::kUser;
  std::vector<Block> blocks;
  friend bool operator==(const Message&, const Message&) = default;
};

// History is append-only and shared: a message never changes once it is in it, so that encoders may
// keep its bytes.
using MessagePtr = std::shared_ptr<const Message>;

// Tokens of one reply. `input` INCLUDES the cached classes for every provider (spec/10 §1.1);
// cache_write = 5m + 1h, an unsplit write counts as 5m.
struct Usage {
  int64_t input = 0;
  int64_t output = 0;
  int64_t cache_read = 0;
  int64_t cache_write_5m = 0;
  int64_t cache_write_1h = 0;
  int64_t reasoning = 0;   // part of output
  bool reported = false;   // the provider sent numbers at all
  bool estimated = false;  // some of it is ours, not the provider's
  std::string raw;         // the provider's own usage object(s) as JSON, empty when none came

  int64_t cache_write() const { return cache_write_5m + cache_write_1h; }
  friend bool operator==(const Usage&, const Usage&) = default;
};

struct ToolSchema {
  std::string name;
  std::string description;
  std::string input_schema;  // JSON text of an object schema
  friend bool operator==(const ToolSchema&, const ToolSchema&) = default;
};

// What the loop asks of a model, provider-neutral.
struct ChatRequest {
  std::vector<std::string> system;
  size_t system_static = 0;  // segments of `system` that never change in this run (cacheable)
  std::vector<MessagePtr> messages;
  std::vector<ToolSchema> tools;
  int64_t max_tokens = 8192;
};

// Stop reasons: end_turn, tool_use, max_tokens, refusal, stop_sequence, content_filter, …;
// unknown ones pass through verbatim.
struct Reply {
  Message message{Role::kAssistant, {}};
  std::string stop_reason;
  Usage usage;
  std::string request_id;  // the provider's, for its support
};

// All text blocks joined with nothing in between.
std::string TextOf(const Message& message);

}  // namespace norma
