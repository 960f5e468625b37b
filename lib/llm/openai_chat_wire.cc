// The OpenAI Chat Completions API as a Wire: where requests go and what errors mean. The bodies are
// made by openai_chat_encode and read by openai_chat_decode.
#include "lib/llm/encode_parts.h"
#include "lib/llm/error_words.h"
#include "lib/llm/openai_chat_decode.h"
#include "lib/llm/openai_chat_encode.h"
#include "lib/llm/wire.h"

namespace norma::llm {
namespace {

class OpenAiChatWire : public Wire {
 public:
  explicit OpenAiChatWire(const ProviderConfig& config) : config_(config), encoder_(config) {}

  std::string Url() const override { return EndpointUrl(config_.base_url, "/chat/completions"); }
  HttpHeaders Headers() const override { return OpenAiHeaders(config_); }
  std::string Encode(const ChatRequest& request) override { return encoder_.Encode(request); }
  std::unique_ptr<Decoder> NewDecoder(DecodeEvents events) override {
    return NewOpenAiChatDecoder(std::move(events));
  }
  ErrorClass Classify(int status, std::string_view body) const override {
    return ClassifyWords(status, body);
  }
  bool asks_again_when_empty() const override { return true; }

 private:
  ProviderConfig config_;
  OpenAiChatEncoder encoder_;
};

}  // namespace

std::unique_ptr<Wire> NewOpenAiChatWire(const ProviderConfig& config) {
  return std::make_unique<OpenAiChatWire>(config);
}

}  // namespace norma::llm
