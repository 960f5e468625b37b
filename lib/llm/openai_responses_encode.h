// Encoder of Responses API requests. The whole history goes out every time as a flat list of items,
// nothing is stored at the provider. Each message is encoded once; a request is a join.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/chat/message.h"
#include "lib/llm/encode_parts.h"
#include "lib/llm/provider.h"

namespace norma::llm {

// kSpec when extra_body is no JSON object or would replace a key of ours.
Status CheckOpenAiResponsesBody(const ProviderConfig& config);

class OpenAiResponsesEncoder {
 public:
  explicit OpenAiResponsesEncoder(const ProviderConfig& config);
  std::string Encode(const ChatRequest& request);

 private:
  std::string Tools(const std::vector<ToolSchema>& tools);
  std::string Tail(int64_t max_tokens) const;

  ProviderConfig config_;
  std::string extra_;                // ,"key":value of extra_body
  MessageCache<std::string> cache_;  // the items of a message, joined with commas
  std::vector<ToolSchema> tools_;    // what tools_bytes_ was made of
  std::string tools_bytes_;
};

}  // namespace norma::llm
