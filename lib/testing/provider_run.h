// One Generate of a real HttpProvider over a scripted transport, with everything it told.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/llm/provider.h"
#include "lib/testing/reply_text.h"
#include "lib/testing/scripted_transport.h"

namespace norma::testing {

inline llm::ProviderConfig ModelConfig() {
  llm::ProviderConfig config;
  config.format = "anthropic";
  config.model = "m";
  config.base_url = "http://model.test/base/";
  config.api_key = "sk-test-canary-0123456789";
  return config;
}

inline ScriptedExchange GoodReply(const std::string& name = "text") {
  ScriptedExchange exchange;
  exchange.headers.emplace_back("request-id", "req_7");
  exchange.chunks = {LlmTestData("anthropic/" + name + ".sse")};
  return exchange;
}

inline ScriptedExchange StatusAnswer(int status, HttpHeaders headers = {},
                                     const std::string& message = "no") {
  ScriptedExchange exchange;
  exchange.status = status;
  exchange.headers = std::move(headers);
  exchange.chunks = {R"({"type":"error","error":{"type":"api_error","message":")" + message +
                     "\"}}"};
  return exchange;
}

inline ScriptedExchange BrokenExchange(HttpFailure failure, bool permanent = false) {
  ScriptedExchange exchange;
  exchange.status = 0;
  exchange.headers.clear();
  exchange.error = HttpError{failure, "h:1: it broke", permanent};
  return exchange;
}

// One Generate with everything it told.
struct ProviderRun {
  HandClock clock;
  Cancel cancel;
  std::unique_ptr<ScriptedTransport> transport;
  std::vector<llm::Attempt> attempts;
  std::vector<llm::AttemptFailure> failures;
  std::string text;
  std::vector<ToolCall> calls;
  size_t sized = 0;
  llm::Generated got;
  llm::Callbacks callbacks;

  llm::Generated& Go(std::vector<ScriptedExchange> script,
                     llm::ProviderConfig config = ModelConfig(), MonoTime deadline = kNever) {
    transport = std::make_unique<ScriptedTransport>(clock, std::move(script));
    if (!callbacks.on_size) {
      callbacks.on_size = [this](size_t bytes) -> Result<int64_t> {
        sized = bytes;
        return int64_t{1024};
      };
    }
    const auto before = callbacks.on_attempt;
    callbacks.on_attempt = [this, before](const llm::Attempt& attempt) -> Status {
      attempts.push_back(attempt);
      return before ? before(attempt) : Status();
    };
    if (!callbacks.on_failure) {
      callbacks.on_failure = [this](const llm::AttemptFailure& failure) -> Status {
        failures.push_back(failure);
        return {};
      };
    }
    callbacks.on_text = [this](std::string_view piece) { text += piece; };
    callbacks.on_call = [this](const ToolCall& call) { calls.push_back(call); };
    auto provider = llm::NewProvider(config, *transport, clock);
    REQUIRE(provider.ok());
    ChatRequest request;
    request.messages = {std::make_shared<const Message>(Message{Role::kUser, {Text{"go"}}})};
    request.max_tokens = 1024;
    got = provider.value()->Generate(request, deadline, cancel, {}, callbacks);
    // Every attempt has exactly one failure, or the reply.
    CHECK(attempts.size() == failures.size() + (got.ok ? 1u : 0u));
    return got;
  }
};

}  // namespace norma::testing
