// Wire: one provider format, pure. Encodes requests, decodes stream events and whole bodies,
// classifies errors. One file per format; nothing else knows a provider's field names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/chat/message.h"
#include "lib/llm/provider.h"

namespace norma::llm {

// Sees the reply grow. Text and thinking as they come, a call when its block is complete.
struct DecodeEvents {
  std::function<void(std::string_view)> on_text;
  std::function<void(std::string_view)> on_thinking;
  std::function<void(const ToolCall&)> on_call;
};

// One SSE event or one whole JSON body after the other; then Finish. One object per attempt.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // An SSE event (`name` may be empty). kModel: the stream carries an error, or more content than
  // the caps allow. Unknown events and non-JSON data are skipped.
  virtual Status OnEvent(std::string_view name, std::string_view data) = 0;
  // A non-streaming 200 body.
  virtual Status OnBody(std::string_view body) = 0;
  // The terminal marker came: nothing that matters follows.
  virtual bool complete() const = 0;
  // Some content or usage came (what is there is billed).
  virtual bool began() const = 0;
  // Bytes of text, thinking and arguments so far.
  virtual size_t content_bytes() const = 0;
  // A 200 without a single byte of body is an empty reply (which Finish then need not confirm), not
  // a broken one.
  virtual bool empty_body_is_reply() const { return false; }
  // Ends the reply. Without the terminal marker: kModel "stream ended early". The reply in `out` is
  // filled in both cases with what came; calls whose block was not complete are left out.
  virtual Status Finish(Reply* out) = 0;
};

struct ErrorClass {
  bool context_full = false;  // the prompt is too long, in this provider's own words
  std::string message;        // the provider's words, trimmed
};

class Wire {
 public:
  virtual ~Wire() = default;
  virtual std::string Url() const = 0;
  virtual HttpHeaders Headers() const = 0;
  // Body for max_tokens = request.max_tokens. Keeps encoded bytes of messages between calls
  // (history is append-only): turn n costs one join. Same input, same bytes.
  virtual std::string Encode(const ChatRequest& request) = 0;
  virtual std::unique_ptr<Decoder> NewDecoder(DecodeEvents events) = 0;
  // A body that came with a status other than 200, at most 64 KiB of it.
  virtual ErrorClass Classify(int status, std::string_view body) const = 0;
  // Servers of this format are known to end a turn without any content for no reason; the same
  // request is then sent again (ProviderConfig::empty_retries).
  virtual bool asks_again_when_empty() const { return false; }
};

std::unique_ptr<Wire> NewAnthropicWire(const ProviderConfig& config);
std::unique_ptr<Wire> NewOpenAiChatWire(const ProviderConfig& config);
std::unique_ptr<Wire> NewOpenAiResponsesWire(const ProviderConfig& config);

}  // namespace norma::llm
