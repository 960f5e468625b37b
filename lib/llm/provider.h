// Provider: what the loop sees of a model. One logical request in, one reply out, with callbacks at
// the points where the run must decide or record. Knows no tool, no policy, no ledger.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/base/result.h"
#include "lib/chat/message.h"
#include "lib/chat/script.h"
#include "lib/io/http.h"

namespace norma::llm {

struct RetryPolicy {
  int retries = 3;          // after the first attempt; ≤ 0 = none
  Millis delay_first{500};  // doubled each time …
  Millis delay_max{8'000};  // … up to this
};

struct Timeouts {
  Millis connect{10'000};
  Millis idle{120'000};   // between data events
  Millis total{600'000};  // one attempt
};

// How to reach a model; everything the spec says about it, environment already resolved.
struct ProviderConfig {
  std::string format;  // a row of kWires, or "script"
  std::string model;
  std::string base_url;  // no trailing slash
  std::string api_key;
  std::string proxy;  // empty: none
  std::string ca_file;
  HttpHeaders headers;
  std::string extra_body;  // JSON object text merged at top level, or empty
  std::optional<double> temperature;
  std::vector<std::string> stop;
  std::string thinking;  // as the provider names it; empty: not sent
  int64_t thinking_budget = 0;
  std::string effort;
  std::string cache = "auto";  // auto | system | off
  std::string max_token_key = "max_tokens";
  bool stream = true;
  RetryPolicy retry;
  int empty_retries = 2;
  Timeouts timeouts;
  Script script;  // format "script"
  // What a run should say about how it reaches the model (a proxy variable that was ignored).
  std::vector<std::string> warnings;
};

struct Attempt {
  int number = 1;        // from 1, counts every HTTP attempt of this logical request
  std::string endpoint;  // scheme, host, path; no query, no credentials
  size_t body_bytes = 0;
  int64_t max_tokens = 0;
};

// Why an attempt brought no reply.
struct AttemptFailure {
  Attempt attempt;
  int status = 0;
  std::string error_class;  // connect, dns, tls, proxy, bad_url, timeout, idle, total, cancelled,
                            // broken_stream, stream_error, bad_body, status, empty_response,
                            // replay_miss, record
  std::string message;      // what a person reads: status and the provider's words, at most 2 KiB
  std::optional<Millis> retry_in;          // set when it is going to be tried again
  std::optional<std::string> retry_after;  // the header as it came
  Millis duration{0};
  bool stream_began = false;  // some of the reply came: it is billed
  Usage usage;                // what came of it (reported = false: nothing)
  size_t content_bytes = 0;   // bytes of text, thinking and arguments that came
  std::string request_id;
};

struct Callbacks {
  // The rate limiter makes this logical request wait so long; not called when it does not.
  std::function<void(Millis)> on_rate_wait;
  // Once per logical request, when the size of the body is known and before the first attempt:
  // answers the max_tokens to send (a budget may lower it), or an error that ends the request.
  std::function<Result<int64_t>(size_t body_bytes)> on_size;
  // Before each attempt: reserve, write the line, sync. An error stops here; nothing was sent.
  std::function<Status(const Attempt&)> on_attempt;
  // After each attempt that failed, before any wait. An error stops.
  std::function<Status(const AttemptFailure&)> on_failure;
  std::function<void(std::string_view)> on_text;
  std::function<void(std::string_view)> on_thinking;
  // A tool call is whole in the stream; the rest still comes.
  std::function<void(const ToolCall&)> on_call;
};

struct Generated {
  bool ok = false;
  Reply reply;  // with !ok: what had come before it broke (calls that were announced)
  Error error{Code::kModel, ""};  // with !ok. Codes: kModel, kNetwork, kContextFull, kCancelled,
                                  // kTimeout, kBudget / kLedger (from a callback), kInternal,
                                  // kReplayMiss, kIo (a recording that cannot be written)
  int status = 0;
  int attempt = 1;  // the last one
  Millis first_byte{0};
  Millis duration{0};
  std::string proxy;  // without credentials
};

class Provider {
 public:
  virtual ~Provider() = default;
  // Blocks the run thread. `deadline` bounds everything, waits between attempts included; a
  // Retry-After that reaches beyond it ends the request at once.
  virtual Generated Generate(const ChatRequest& request, MonoTime deadline, const Cancel& cancel,
                             const Wake& wake, const Callbacks& callbacks) = 0;
  // Scheme, host and path for run.started.
  virtual std::string Endpoint() const = 0;
};

// kSpec for an unknown format or a configuration the wire cannot use.
Result<std::unique_ptr<Provider>> NewProvider(const ProviderConfig& config, Transport& transport,
                                              Clock& clock);

// One row per wire format: what the spec's defaults need to know.
struct WireRow {
  std::string_view name;
  std::string_view default_base_url;
  std::string_view base_url_variable;
  std::string_view key_variable;
};
// nullptr for an unknown name ("script" has no row).
const WireRow* FindWire(std::string_view name);
std::vector<std::string> WireNames();

}  // namespace norma::llm
