// The Anthropic Messages API as a Wire: where requests go and what errors mean. The bodies are made
// by anthropic_encode and read by anthropic_decode.
#include "lib/llm/anthropic_decode.h"
#include "lib/llm/anthropic_encode.h"
#include "lib/llm/encode_parts.h"
#include "lib/llm/error_words.h"
#include "lib/llm/wire.h"

namespace norma::llm {
namespace {

constexpr std::string_view kSuffix = "/v1/messages";
constexpr std::string_view kVersion = "2023-06-01";

class AnthropicWire : public Wire {
 public:
  explicit AnthropicWire(const ProviderConfig& config) : config_(config), encoder_(config) {}

  std::string Url() const override { return EndpointUrl(config_.base_url, kSuffix); }

  HttpHeaders Headers() const override {
    HttpHeaders headers =
        MergedHeaders({{"content-type", "application/json"},
                       {"accept", config_.stream ? "text/event-stream" : "application/json"},
                       {"anthropic-version", std::string(kVersion)}},
                      config_);
    if (!config_.api_key.empty()) headers.emplace_back("x-api-key", config_.api_key);
    return headers;
  }

  std::string Encode(const ChatRequest& request) override { return encoder_.Encode(request); }

  std::unique_ptr<Decoder> NewDecoder(DecodeEvents events) override {
    return NewAnthropicDecoder(std::move(events));
  }

  ErrorClass Classify(int status, std::string_view body) const override {
    return ClassifyWords(status, body);
  }

 private:
  ProviderConfig config_;
  AnthropicEncoder encoder_;
};

}  // namespace

std::unique_ptr<Wire> NewAnthropicWire(const ProviderConfig& config) {
  return std::make_unique<AnthropicWire>(config);
}

}  // namespace norma::llm
