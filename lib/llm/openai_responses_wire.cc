// The OpenAI Responses API as a Wire: where requests go and what errors mean. The bodies are
// made by openai_responses_encode and read by openai_responses_decode.
#include "lib/llm/encode_parts.h"
#include "lib/llm/error_words.h"
#include "lib/llm/openai_responses_decode.h"
#include "lib/llm/openai_responses_encode.h"
#include "lib/llm/wire.h"

namespace norma::llm {
namespace {

class OpenAiResponsesWire : public Wire {
 public:
  explicit OpenAiResponsesWire(const ProviderConfig& config) : config_(config), encoder_(config) {}

  std::string Url() const override { return EndpointUrl(config_.base_url, "/responses"); }
  HttpHeaders Headers() const override { return OpenAiHeaders(config_); }
  std::string Encode(const ChatRequest& request) override { return encoder_.Encode(request); }
  std::unique_ptr<Decoder> NewDecoder(DecodeEvents events) override {
    return NewOpenAiResponsesDecoder(std::move(events));
  }
  ErrorClass Classify(int status, std::string_view body) const override {
    return ClassifyWords(status, body);
  }

 private:
  ProviderConfig config_;
  OpenAiResponsesEncoder encoder_;
};

}  // namespace

std::unique_ptr<Wire> NewOpenAiResponsesWire(const ProviderConfig& config) {
  return std::make_unique<OpenAiResponsesWire>(config);
}

}  // namespace norma::llm
