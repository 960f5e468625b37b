// Encoder of Chat Completions requests: a constant head (model, tools), the history with the system
// prompt in front, and a tail of what may vary. Each message is encoded once; a request is a join.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lib/base/result.h"
#include "lib/chat/message.h"
#include "lib/llm/encode_parts.h"
#include "lib/llm/provider.h"

namespace norma::llm {

// kSpec when extra_body is no JSON object or would replace a key of ours, or max_token_key is none.
Status CheckOpenAiChatBody(const ProviderConfig& config);

class OpenAiChatEncoder {
 public:
  explicit OpenAiChatEncoder(const ProviderConfig& config);
  std::string Encode(const ChatRequest& request);

 private:
  // A call or a result, with the id that pairs them.
  struct Paired {
    std::string id;
    std::string bytes;
  };
  struct Encoded {
    Role role = Role::kUser;
    bool dropped = false;         // holds nothing that the format can say
    std::string content;          // quoted text of all text blocks; empty: none
    std::string reasoning;        // quoted
    std::vector<Paired> calls;    // of an assistant
    std::vector<Paired> results;  // of a user: whole messages
    std::string whole;            // the message when every call has its result
  };
  using Ids = std::unordered_set<std::string_view>;

  Encoded EncodeMessage(const Message& message) const;
  std::string Assistant(const Encoded& message, const Ids* answered) const;
  std::string Tools(const std::vector<ToolSchema>& tools);
  void AppendHistory(std::string& out, const std::vector<const Encoded*>& history) const;
  std::string Tail(int64_t max_tokens) const;

  ProviderConfig config_;
  std::string extra_;       // ,"key":value of extra_body
  bool reasoning_ = false;  // calls go back with reasoning, or with a placeholder for it
  MessageCache<Encoded> cache_;
  std::vector<ToolSchema> tools_;  // what tools_bytes_ was made of
  std::string tools_bytes_;
};

}  // namespace norma::llm
