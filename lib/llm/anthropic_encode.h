// Encoder of Anthropic requests. A request is a constant head (model, system, tools), the history,
// and a tail of what may vary, in this order: the bytes of request n up to the end of its history
// are the beginning of request n+1. Each message is encoded once; a request is one join.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.h"
#include "lib/chat/message.h"
#include "lib/llm/provider.h"

namespace norma::llm {

// kSpec when extra_body is no JSON object or would replace a key of ours.
Status CheckAnthropicBody(const ProviderConfig& config);

class AnthropicEncoder {
 public:
  explicit AnthropicEncoder(const ProviderConfig& config);
  std::string Encode(const ChatRequest& request);

 private:
  static constexpr size_t kNoMark = std::string::npos;

  // Blocks joined with commas, and where in the bytes the last block that may carry a cache marker
  // has its closing brace.
  struct Blocks {
    std::string bytes;
    size_t mark = kNoMark;
    void Add(std::string_view block, bool may_mark);
  };
  struct Encoded {
    MessagePtr message;  // keeps the address from being reused while it is a key
    Blocks results;      // the API wants tool results in front of everything else
    Blocks rest;
    bool dropped = false;
    uint64_t used = 0;  // the last request it went out with
  };
  struct Group {
    Role role = Role::kUser;
    std::vector<const Encoded*> messages;
  };

  const Encoded& Lookup(const MessagePtr& message);
  Encoded EncodeMessage(const MessagePtr& message) const;
  std::vector<Group> Grouped(const ChatRequest& request);
  std::string System(const ChatRequest& request) const;
  void AppendTools(std::string& out, const std::vector<ToolSchema>& tools);
  void AppendMessages(std::string& out, const std::vector<Group>& groups) const;
  std::string Tail(int64_t max_tokens) const;
  // The blocks of the group that get its marker; nullptr when none can carry one.
  static const Blocks* MarkOf(const Group& group);

  ProviderConfig config_;
  std::string extra_;  // ,"key":value of extra_body
  bool replay_thinking_ = false;
  std::unordered_map<const Message*, Encoded> encoded_;
  uint64_t requests_ = 0;
  std::vector<ToolSchema> tools_;  // what tools_bytes_ was made of
  std::string tools_bytes_;
};

}  // namespace norma::llm
