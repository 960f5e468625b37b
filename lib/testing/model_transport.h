// A Transport that answers like an Anthropic-format model, inside the process: replies are made by
// the test, every request is held against the protocol's invariants, faults are part of a reply.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/io/http.h"

namespace norma::testing {

struct ModelCall {
  std::string id;
  std::string name;
  std::string input;  // raw argument text, valid or not
};

struct ModelReply {
  std::string thinking;
  std::string text;
  std::vector<ModelCall> calls;
  std::string stop;  // empty: tool_use with calls, else end_turn
  int64_t input = 100, output = 20, cache_read = 0, cache_write = 0;
  // Faults.
  int status = 200;                    // other than 200: an error body of that status
  int cut_after_frames = -1;           // ≥ 0: the stream breaks after that many frames
  std::optional<HttpFailure> failure;  // no answer at all; with a cut: how it breaks
};

// SSE frames of one reply.
std::vector<std::string> AnthropicFrames(const ModelReply& reply, int number);

// What a strict server would answer 400 to; empty when the body is good.
std::string ProtocolFault(std::string_view body);

class ModelTransport : public Transport {
 public:
  // Called with the request's body and its number from 0.
  using Answer = std::function<ModelReply(const std::string& body, int number)>;
  explicit ModelTransport(Answer answer) : answer_(std::move(answer)) {}

  HttpOutcome Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                   const Wake& wake) override;

  const std::vector<std::string>& bodies() const { return bodies_; }
  // The first broken invariant of any request.
  const std::string& fault() const { return fault_; }

 private:
  Answer answer_;
  std::vector<std::string> bodies_;
  std::string fault_;
};

}  // namespace norma::testing
