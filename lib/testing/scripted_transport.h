// A Transport whose exchanges are written down: for tests of whatever stands on HTTP, with a clock
// in the hand. Keeps what was sent. Answers like the real one where a sink completes or stops.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/io/http.h"
#include "lib/testing/hand_clock.h"

namespace norma::testing {

struct ScriptedExchange {
  int status = 200;
  HttpHeaders headers{{"content-type", "text/event-stream"}};
  std::vector<std::string> chunks;
  std::optional<HttpError> error;  // after the chunks; status 0 means that no head came
  Millis takes{0};                 // how far the clock moves, before the error
  std::function<void()> during;    // runs after the chunks
};

class ScriptedTransport : public Transport {
 public:
  struct Sent {
    HttpRequest request;  // its body is gone; see `body`
    std::string body;
  };

  ScriptedTransport(HandClock& clock, std::vector<ScriptedExchange> script)
      : clock_(clock), script_(std::move(script)) {}

  HttpOutcome Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                   const Wake& wake) override {
    sent.push_back({request, std::string(request.body)});
    sent.back().request.body = {};
    HttpOutcome outcome;
    if (cancel.tripped()) return Cancelled(outcome);
    if (sent.size() > script_.size()) {
      outcome.error = HttpError{HttpFailure::kConnect, "the test has no more answers"};
      return outcome;
    }
    const ScriptedExchange& exchange = script_[sent.size() - 1];
    outcome.head = {exchange.status, exchange.headers};
    if (exchange.status != 0) sink.OnHead(outcome.head);
    const bool open = exchange.status == 0 || Feed(exchange, sink, outcome);
    clock_.Advance(exchange.takes);
    outcome.duration = exchange.takes;
    if (exchange.during) exchange.during();
    if (wake.fd >= 0 && wake.serve) wake.serve();
    if (!open) return outcome;
    if (cancel.tripped()) return Cancelled(outcome);
    outcome.error = exchange.error;
    return outcome;
  }

  std::vector<Sent> sent;

 private:
  // False when the sink ended the exchange.
  static bool Feed(const ScriptedExchange& exchange, HttpSink& sink, HttpOutcome& outcome) {
    for (const std::string& chunk : exchange.chunks) {
      outcome.body_bytes += chunk.size();
      const Progress progress = sink.OnBytes(chunk);
      if (progress == Progress::kComplete) return false;
      if (progress == Progress::kStop) {
        outcome.error = HttpError{HttpFailure::kStopped, "the rest of the answer was refused"};
        return false;
      }
    }
    return true;
  }

  static HttpOutcome Cancelled(HttpOutcome& outcome) {
    outcome.error = HttpError{HttpFailure::kCancelled, "cancelled"};
    return std::move(outcome);
  }

  HandClock& clock_;
  std::vector<ScriptedExchange> script_;
};

}  // namespace norma::testing
