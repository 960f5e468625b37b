#include "lib/llm/http_provider.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"
#include "lib/io/http_head.h"
#include "lib/llm/reply_sink.h"
#include "lib/llm/retry.h"

namespace norma::llm {
namespace {

constexpr int kOk = 200;
constexpr int kProxyAuthRequired = 407;
constexpr size_t kMessageBytesMax = 2048;
// Shorter keys are test values; replacing them would garble words.
constexpr size_t kKeyBytesMin = 8;

struct FailureRow {
  HttpFailure failure;
  std::string_view error_class;
  Code code;
  bool retryable;  // when no answer has begun
};

// `connect` means: the request was not taken, so that nothing can have been billed.
constexpr std::array kFailureRows = {
    FailureRow{HttpFailure::kBadUrl, "bad_url", Code::kNetwork, false},
    FailureRow{HttpFailure::kDns, "dns", Code::kNetwork, true},
    FailureRow{HttpFailure::kConnect, "connect", Code::kNetwork, true},
    FailureRow{HttpFailure::kConnectTimeout, "connect", Code::kNetwork, true},
    FailureRow{HttpFailure::kTls, "tls", Code::kNetwork, true},
    FailureRow{HttpFailure::kProxy, "proxy", Code::kNetwork, true},
    FailureRow{HttpFailure::kSend, "connect", Code::kNetwork, true},
    FailureRow{HttpFailure::kBroken, "broken_stream", Code::kNetwork, true},
    FailureRow{HttpFailure::kIdle, "idle", Code::kModel, true},
    FailureRow{HttpFailure::kTotal, "total", Code::kModel, false},
    FailureRow{HttpFailure::kCancelled, "cancelled", Code::kCancelled, false},
    FailureRow{HttpFailure::kStopped, "bad_body", Code::kModel, false},
    FailureRow{HttpFailure::kReplayMiss, "replay_miss", Code::kReplayMiss, false},
    FailureRow{HttpFailure::kRecord, "record", Code::kIo, false}};

// Credentials come from api_key alone; framing is the transport's.
constexpr std::array<std::string_view, 9> kRefusedHeaders = {
    "x-api-key",         "api-key",    "authorization", "proxy-authorization", "cookie",
    "transfer-encoding", "connection", "expect",        "content-length"};

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool IsPlainText(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

Status CheckUrl(std::string_view what, std::string_view url,
                std::initializer_list<std::string_view> schemes, bool may_have_user) {
  const auto refuse = [&](std::string_view why) {
    return Error{Code::kSpec, fmt::format("{} {}", what, why)};
  };
  const size_t end = url.find("://");
  const std::string scheme = ToLower(url.substr(0, end));
  if (end == std::string_view::npos || std::ranges::find(schemes, scheme) == schemes.end()) {
    std::string names;
    for (const std::string_view name : schemes)
      names += (names.empty() ? "" : ", ") + std::string(name);
    return refuse("must be a URL that starts with one of: " + names);
  }
  if (!IsPlainText(url)) return refuse("holds a blank, a control character or non-ASCII text");
  std::string_view host = url.substr(end + 3);
  host = host.substr(0, host.find_first_of("/?#"));
  const size_t at = host.rfind('@');
  if (at != std::string_view::npos && !may_have_user) {
    return refuse("holds credentials; they belong in api_key_env or api_key_file");
  }
  if (at != std::string_view::npos) host = host.substr(at + 1);
  if (host.empty() || host.front() == ':') return refuse("names no host");
  if (url.find('#') != std::string_view::npos) return refuse("holds a fragment (#)");
  return {};
}

Status CheckConfig(const ProviderConfig& config) {
  NORMA_TRY(CheckUrl("model.base_url", config.base_url, {"http", "https"}, false));
  if (!config.proxy.empty()) {
    NORMA_TRY(CheckUrl("the proxy of the model", config.proxy,
                       {"http", "https", "socks5", "socks5h"}, true));
  }
  if (!IsHeaderValue(config.api_key) || !IsAscii(config.api_key)) {
    return Error{
        Code::kSpec,
        "the API key holds a line end, a control character or a non-ASCII character, which "
        "no header can carry; check for a stray newline"};
  }
  for (const auto& [name, value] : config.headers) {
    const bool refused = std::ranges::find(kRefusedHeaders, ToLower(name)) != kRefusedHeaders.end();
    if (refused) {
      return Error{Code::kSpec, "model.headers may not set " + name +
                                    ": credentials come from api_key_env or api_key_file"};
    }
    if (!IsHeaderName(name) || !IsHeaderValue(value)) {
      return Error{Code::kSpec, "model.headers: \"" + RepairUtf8(name) +
                                    "\" or its value cannot be sent as a header"};
    }
  }
  return {};
}

class HttpProvider : public Provider {
 public:
  HttpProvider(const ProviderConfig& config, std::unique_ptr<Wire> wire, Transport& transport,
               Clock& clock)
      : config_(config), wire_(std::move(wire)), transport_(transport), clock_(clock) {}

  Generated Generate(const ChatRequest& request, MonoTime deadline, const Cancel& cancel,
                     const Wake& wake, const Callbacks& callbacks) override;
  std::string Endpoint() const override { return EndpointOf(wire_->Url()); }

 private:
  // One logical request: what stays the same over its attempts.
  struct Logical {
    std::string body;
    int64_t max_tokens = 0;
    MonoTime deadline;
    const Cancel& cancel;
    const Wake& wake;
    const Callbacks& callbacks;
    int empties = 0;      // attempts that ended in an empty turn and were asked again
    int ladder_from = 0;  // the attempt behind which the retry ladder starts (anew)
  };
  // What became of one attempt.
  struct Tried {
    bool ok = false;
    Reply reply;
    AttemptFailure failure;
    Error error{Code::kModel, ""};
    bool may_retry = false;
    HttpHead head;
    Millis first_byte{0};
  };

  Status Prepare(const ChatRequest& request, Logical& logical);
  Tried Try(const Logical& logical, const Attempt& attempt);
  HttpRequest HttpRequestFor(const Logical& logical) const;
  void JudgeStatus(Tried& tried, std::string_view body) const;
  void JudgeTransport(Tried& tried, const HttpError& error, const Logical& logical) const;
  void Fail(Tried& tried, Code code, std::string_view error_class, std::string words) const;
  void PlanRetry(Tried& tried, const Logical& logical) const;
  void AskAgainWhenEmpty(Tried& tried, Logical& logical) const;

  ProviderConfig config_;
  std::unique_ptr<Wire> wire_;
  Transport& transport_;
  Clock& clock_;
};

Generated HttpProvider::Generate(const ChatRequest& request, MonoTime deadline,
                                 const Cancel& cancel, const Wake& wake,
                                 const Callbacks& callbacks) {
  const MonoTime started = clock_.Now();
  Generated out;
  out.proxy = EndpointOf(config_.proxy);
  Logical logical{"", 0, deadline, cancel, wake, callbacks};
  const auto failed = [&](Error error) {
    out.ok = false;
    out.error = std::move(error);
    out.duration = std::chrono::duration_cast<Millis>(clock_.Now() - started);
    return std::move(out);
  };
  if (Status status = Prepare(request, logical); !status.ok()) return failed(status.error());
  for (int number = 1;; ++number) {  // ends with the retries of the policy
    if (cancel.tripped()) return failed({Code::kCancelled, "cancelled"});
    if (clock_.Now() >= deadline) return failed({Code::kTimeout, "the time limit passed"});
    const Attempt attempt{number, Endpoint(), logical.body.size(), logical.max_tokens};
    out.attempt = number;
    if (callbacks.on_attempt) {
      if (Status status = callbacks.on_attempt(attempt); !status.ok()) {
        return failed(status.error());
      }
    }
    Tried tried = Try(logical, attempt);
    if (tried.ok) AskAgainWhenEmpty(tried, logical);
    out.reply = std::move(tried.reply);
    out.status = tried.head.status;
    out.first_byte = tried.first_byte;
    if (tried.ok) {
      out.ok = true;
      out.duration = std::chrono::duration_cast<Millis>(clock_.Now() - started);
      return out;
    }
    if (!tried.failure.retry_in) PlanRetry(tried, logical);
    if (callbacks.on_failure) {
      if (Status status = callbacks.on_failure(tried.failure); !status.ok()) {
        return failed(status.error());
      }
    }
    if (!tried.failure.retry_in) return failed(std::move(tried.error));
    if (!Wait(clock_, clock_.Now() + *tried.failure.retry_in, cancel, wake)) {
      return failed({Code::kCancelled, "cancelled while waiting for the next attempt"});
    }
  }
}

// Encodes once; a second time only when a budget lowers max_tokens.
Status HttpProvider::Prepare(const ChatRequest& request, Logical& logical) {
  logical.body = wire_->Encode(request);
  logical.max_tokens = request.max_tokens;
  if (!logical.callbacks.on_size) return {};
  NORMA_ASSIGN(const int64_t allowed, logical.callbacks.on_size(logical.body.size()));
  if (allowed == request.max_tokens) return {};
  ChatRequest lowered = request;
  lowered.max_tokens = allowed;
  logical.max_tokens = allowed;
  logical.body = wire_->Encode(lowered);
  return {};
}

HttpRequest HttpProvider::HttpRequestFor(const Logical& logical) const {
  HttpRequest http;
  http.url = wire_->Url();
  http.headers = wire_->Headers();
  const bool named = std::ranges::any_of(
      http.headers, [](const auto& header) { return header.first == "user-agent"; });
  if (!named) http.headers.emplace_back("user-agent", "norma");
  http.body = logical.body;
  http.proxy = config_.proxy;
  http.ca_file = config_.ca_file;
  http.connect_max = config_.timeouts.connect;
  // A reply that does not stream is silent until it is whole; only the total limit fits it.
  http.idle_max = config_.stream ? config_.timeouts.idle : Millis(0);
  http.deadline = EarlierOf(logical.deadline, clock_.Now(), config_.timeouts.total);
  return http;
}

HttpProvider::Tried HttpProvider::Try(const Logical& logical, const Attempt& attempt) {
  const Callbacks& callbacks = logical.callbacks;
  const auto decoder =
      wire_->NewDecoder({callbacks.on_text, callbacks.on_thinking, callbacks.on_call});
  ReplySink sink(*decoder);
  const HttpRequest http = HttpRequestFor(logical);
  const HttpOutcome outcome = transport_.Send(http, sink, logical.cancel, logical.wake);

  Tried tried;
  tried.head = outcome.head;
  tried.first_byte = outcome.first_byte;
  tried.failure.attempt = attempt;
  tried.failure.status = outcome.head.status;
  tried.failure.duration = outcome.duration;
  const auto& error = outcome.error;
  const bool cut = error && error->failure != HttpFailure::kStopped;
  const bool answered = outcome.head.status != 0 && outcome.head.status != kOk;
  // The end of a stream may complete the reply, so it comes before the reply is taken.
  const Status end = cut || answered ? Status() : sink.End(!error);
  const Status finish = decoder->Finish(&tried.reply);
  if (cut && (!answered || error->failure == HttpFailure::kCancelled)) {
    JudgeTransport(tried, *error, logical);
  } else if (answered) {
    JudgeStatus(tried, sink.error_body());
  } else if (!end.ok()) {
    const bool stream = sink.refused() && !sink.unusable();
    Fail(tried, end.error().code, stream ? "stream_error" : "bad_body", end.error().message);
  } else if (!finish.ok() && !sink.empty_reply()) {
    Fail(tried, finish.error().code, "broken_stream", finish.error().message);
  } else {
    tried.ok = true;
  }
  const std::string_view id = outcome.head.Find("request-id");
  tried.reply.request_id = id.empty() ? outcome.head.Find("x-request-id") : id;
  tried.failure.request_id = tried.reply.request_id;
  tried.failure.stream_began = decoder->began();
  tried.failure.usage = tried.reply.usage;
  tried.failure.content_bytes = decoder->content_bytes();
  return tried;
}

void HttpProvider::JudgeStatus(Tried& tried, std::string_view body) const {
  const int status = tried.head.status;
  const ErrorClass said = wire_->Classify(status, body);
  std::string words = said.message.empty() ? "(empty body)" : said.message;
  if (status / 100 == 3) {
    words = fmt::format("redirects are not followed (to {}); set model.base_url",
                        EndpointOf(tried.head.Find("location")));
  }
  if (status == kProxyAuthRequired) {
    // Only a proxy says so; the model's server never saw the request.
    Fail(tried, Code::kNetwork, "proxy",
         fmt::format("the proxy {} wants other credentials: {}", EndpointOf(config_.proxy), words));
    return;
  }
  Fail(tried, said.context_full ? Code::kContextFull : Code::kModel, "status", std::move(words));
  tried.may_retry = IsRetryableStatus(status) && !ForbidsRetry(tried.head);
}

void HttpProvider::JudgeTransport(Tried& tried, const HttpError& error,
                                  const Logical& logical) const {
  const auto* row = std::ranges::find(kFailureRows, error.failure, &FailureRow::failure);
  NORMA_CHECK(row != kFailureRows.end());
  Code code = row->code;
  std::string_view error_class = row->error_class;
  if (error.failure == HttpFailure::kTotal && clock_.Now() >= logical.deadline) {
    code = Code::kTimeout;
    error_class = "timeout";
  }
  // A stream that broke is the provider's failure; before it began, the network's.
  if (error.failure == HttpFailure::kBroken && tried.head.status == kOk) code = Code::kModel;
  Fail(tried, code, error_class, error.message);
  // With a 200 the body has begun: calls may have run, and it is never sent again.
  tried.may_retry = row->retryable && !error.permanent && tried.head.status == 0;
}

void HttpProvider::Fail(Tried& tried, Code code, std::string_view error_class,
                        std::string words) const {
  if (config_.api_key.size() >= kKeyBytesMin) {
    words = ReplaceAll(words, config_.api_key, "[redacted]");  // some servers echo it
  }
  const int status = tried.head.status;
  std::string message = status == 0
                            ? fmt::format("{}: {}", config_.format, words)
                            : fmt::format("{}: status {}: {}", config_.format, status, words);
  tried.error = {code, std::string(CutUtf8(message, kMessageBytesMax))};
  tried.failure.error_class = error_class;
  tried.failure.message = tried.error.message;
}

// A turn that the model ended without any content is asked for again while there are tries and time
// (spec/10 §4.1): then this attempt becomes a failure that is billed. Nothing of it was delivered.
void HttpProvider::AskAgainWhenEmpty(Tried& tried, Logical& logical) const {
  const std::string& stop = tried.reply.stop_reason;
  const bool empty = tried.reply.message.blocks.empty() && (stop.empty() || stop == "end_turn");
  if (!empty || !wire_->asks_again_when_empty()) return;
  if (logical.empties >= config_.empty_retries) return;
  const Millis wait = RetryDelay(config_.retry, logical.empties + 1);
  if (logical.deadline != kNever && clock_.Now() + wait >= logical.deadline) return;
  ++logical.empties;
  logical.ladder_from = tried.failure.attempt.number;
  tried.ok = false;
  Fail(tried, Code::kModel, "empty_response", "the reply holds no content");
  tried.failure.stream_began = true;  // it is billed
  tried.failure.retry_in = wait;
}

void HttpProvider::PlanRetry(Tried& tried, const Logical& logical) const {
  const std::string_view header = tried.head.Find("retry-after");
  if (!header.empty()) tried.failure.retry_after = std::string(header.substr(0, 128));
  const int failed = tried.failure.attempt.number - logical.ladder_from;
  if (!tried.may_retry || failed > config_.retry.retries) return;
  const Millis asked = RetryAfter(tried.head, clock_.Wall()).value_or(Millis(0));
  const Millis wait = std::max(RetryDelay(config_.retry, failed), asked);
  const bool too_long = wait > kRetryAfterMax;
  if (!too_long && (logical.deadline == kNever || clock_.Now() + wait < logical.deadline)) {
    tried.failure.retry_in = wait;
    return;
  }
  tried.error.message += fmt::format(
      "; not tried again: the wait of {} s {}",
      std::chrono::ceil<std::chrono::seconds>(wait).count(),
      too_long ? "that the provider asks for is too long" : "would pass the time limit of the run");
  tried.failure.message = tried.error.message;
}

}  // namespace

Result<std::unique_ptr<Provider>> NewHttpProvider(const ProviderConfig& config,
                                                  std::unique_ptr<Wire> wire, Transport& transport,
                                                  Clock& clock) {
  NORMA_TRY(CheckConfig(config));
  return std::unique_ptr<Provider>(
      std::make_unique<HttpProvider>(config, std::move(wire), transport, clock));
}

}  // namespace norma::llm
