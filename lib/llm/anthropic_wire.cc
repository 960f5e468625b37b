// The Anthropic Messages API as a Wire: where requests go and what errors mean. The bodies are made
// by anthropic_encode and read by anthropic_decode.
#include <algorithm>

#include "lib/base/text.h"
#include "lib/llm/anthropic_decode.h"
#include "lib/llm/anthropic_encode.h"
#include "lib/llm/error_words.h"
#include "lib/llm/wire.h"

namespace norma::llm {
namespace {

constexpr std::string_view kSuffix = "/v1/messages";
constexpr std::string_view kVersion = "2023-06-01";

class AnthropicWire : public Wire {
 public:
  explicit AnthropicWire(const ProviderConfig& config) : config_(config), encoder_(config) {}

  // Base plus suffix, literally: a base that already ends in /v1 gets a second one (spec/10 §2).
  // Only trailing slashes go, and a query stays behind the path.
  std::string Url() const override {
    std::string base = config_.base_url;
    std::string query;
    if (const size_t at = base.find('?'); at != std::string::npos) {
      query = base.substr(at);
      base.resize(at);
    }
    while (!base.empty() && base.back() == '/') base.pop_back();
    return base + std::string(kSuffix) + query;
  }

  HttpHeaders Headers() const override {
    HttpHeaders headers = {{"content-type", "application/json"},
                           {"accept", config_.stream ? "text/event-stream" : "application/json"},
                           {"anthropic-version", std::string(kVersion)}};
    // A header of the spec takes the place of ours; credentials were refused when it was read.
    for (const auto& [name, value] : config_.headers) {
      const std::string lower = ToLower(name);
      std::erase_if(headers, [&](const auto& header) { return header.first == lower; });
      headers.emplace_back(lower, value);
    }
    if (!config_.api_key.empty()) headers.emplace_back("x-api-key", config_.api_key);
    return headers;
  }

  std::string Encode(const ChatRequest& request) override { return encoder_.Encode(request); }

  std::unique_ptr<Decoder> NewDecoder(DecodeEvents events) override {
    return NewAnthropicDecoder(std::move(events));
  }

  ErrorClass Classify(int status, std::string_view body) const override {
    ErrorClass out;
    out.message = ErrorWords(body);
    out.context_full = SaysContextFull(status, body.substr(0, kPhraseBytesMax));
    return out;
  }

 private:
  // Long bodies are pages of a proxy, not a provider's words.
  static constexpr size_t kPhraseBytesMax = 16u << 10;

  ProviderConfig config_;
  AnthropicEncoder encoder_;
};

}  // namespace

std::unique_ptr<Wire> NewAnthropicWire(const ProviderConfig& config) {
  return std::make_unique<AnthropicWire>(config);
}

}  // namespace norma::llm
