// The only file that knows libcurl. One multi handle per transport keeps the connections; one easy
// handle is reset for each exchange. Deliberately left to the callers: retries, proxy choice from
// the environment, redirects.
//
// curl's own time limits are used for connecting alone. Idle and total are kept here, because only
// the sink knows which bytes count, and because a test may own the clock.
#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <mutex>

#include "lib/base/result.h"
#include "lib/base/text.h"
#include "lib/io/http.h"
#include "lib/io/http_head.h"

namespace norma {
namespace {

// What a whole reply may still cost in time so that its connection can be used again.
constexpr Millis kCompleteGrace{500};
// A poll never sleeps longer at once; every limit is then looked at again.
constexpr Millis kPollMax{10'000};
constexpr long kBufferBytes = 64L << 10;

void InitLibraryOnce() {
  static std::once_flag once;
  std::call_once(once, [] { NORMA_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
}

// Everything one exchange knows; the callbacks of curl get its address.
struct Exchange {
  const HttpRequest& request;
  HttpSink& sink;
  Clock& clock;
  MonoTime started;
  MonoTime progressed;
  HttpOutcome outcome{};
  std::string target{};  // host:port, for messages
  std::string proxy{};   // as curl wants it
  long proxy_port = 0;   // of a proxy that names none; curl would take 1080 for every scheme
  size_t body_sent = 0;
  HeadReader head{};
  bool complete = false;
  MonoTime grace_end{};
  std::optional<HttpError> refused{};  // by us: a cap, or the sink
  std::exception_ptr thrown{};         // by the sink; must not pass through C frames
  std::array<char, CURL_ERROR_SIZE> words{};
};

struct FailureRow {
  CURLcode code;
  HttpFailure failure;
  bool permanent;
  bool curls_words;  // append curl's own explanation: it names hosts and reasons, never a URL
  std::string_view what;
};

// What is not listed is kBroken: the exchange ended, and nobody knows how far it got.
constexpr std::array kFailures = {
    FailureRow{CURLE_URL_MALFORMAT, HttpFailure::kBadUrl, true, false, "the URL does not parse"},
    FailureRow{CURLE_COULDNT_RESOLVE_HOST, HttpFailure::kDns, false, false,
               "the host name does not resolve"},
    FailureRow{CURLE_COULDNT_RESOLVE_PROXY, HttpFailure::kProxy, false, false,
               "the name of the proxy does not resolve"},
    FailureRow{CURLE_PROXY, HttpFailure::kProxy, false, true, "the proxy failed"},
    FailureRow{CURLE_COULDNT_CONNECT, HttpFailure::kConnect, false, false, "could not connect"},
    FailureRow{CURLE_INTERFACE_FAILED, HttpFailure::kConnect, false, false, "could not connect"},
    FailureRow{CURLE_OPERATION_TIMEDOUT, HttpFailure::kConnectTimeout, false, false,
               "no connection within the limit"},
    FailureRow{CURLE_PEER_FAILED_VERIFICATION, HttpFailure::kTls, true, true,
               "the server's certificate was refused"},
    FailureRow{CURLE_SSL_CACERT_BADFILE, HttpFailure::kTls, true, false,
               "the CA file cannot be read"},
    FailureRow{CURLE_SSL_ISSUER_ERROR, HttpFailure::kTls, true, true,
               "the server's certificate was refused"},
    FailureRow{CURLE_SSL_CERTPROBLEM, HttpFailure::kTls, true, true, "TLS failed"},
    FailureRow{CURLE_SSL_CIPHER, HttpFailure::kTls, true, true, "TLS failed"},
    FailureRow{CURLE_SSL_ENGINE_INITFAILED, HttpFailure::kTls, true, true, "TLS failed"},
    FailureRow{CURLE_SSL_PINNEDPUBKEYNOTMATCH, HttpFailure::kTls, true, true, "TLS failed"},
    FailureRow{CURLE_SSL_INVALIDCERTSTATUS, HttpFailure::kTls, true, true, "TLS failed"},
    FailureRow{CURLE_USE_SSL_FAILED, HttpFailure::kTls, true, true, "TLS failed"},
    // A server that is restarted breaks the handshake too, so this one may be tried again.
    FailureRow{CURLE_SSL_CONNECT_ERROR, HttpFailure::kTls, false, true, "the TLS handshake failed"},
    FailureRow{CURLE_SEND_ERROR, HttpFailure::kSend, false, false,
               "the connection broke while the request was sent"},
    FailureRow{CURLE_SEND_FAIL_REWIND, HttpFailure::kSend, false, false,
               "a kept connection was closed while the request was sent"},
    FailureRow{CURLE_UNSUPPORTED_PROTOCOL, HttpFailure::kBroken, false, false,
               "the answer is not HTTP"},
    FailureRow{CURLE_WEIRD_SERVER_REPLY, HttpFailure::kBroken, false, false,
               "the answer is not HTTP"},
    FailureRow{CURLE_GOT_NOTHING, HttpFailure::kBroken, false, false,
               "the server closed the connection without an answer"},
    FailureRow{CURLE_PARTIAL_FILE, HttpFailure::kBroken, false, false,
               "the connection closed before the end of the body"},
    FailureRow{CURLE_RECV_ERROR, HttpFailure::kBroken, false, false, "the connection was reset"},
    FailureRow{CURLE_BAD_CONTENT_ENCODING, HttpFailure::kBroken, false, false,
               "the compressed body is damaged"}};

using UrlPtr = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string Part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

// Fills `target`. Only http and https with a host, spelled out in full; nothing is guessed.
std::optional<HttpError> CheckUrl(Exchange& x) {
  const auto bad = [](std::string why) {
    return HttpError{HttpFailure::kBadUrl, std::move(why), true};
  };
  if (x.request.url.find('\0') != std::string::npos) return bad("the URL holds a NUL byte");
  const UrlPtr url(curl_url(), curl_url_cleanup);
  NORMA_CHECK(url != nullptr);
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, x.request.url.c_str(), 0);
  if (code == CURLUE_UNSUPPORTED_SCHEME) return bad("the URL is neither http nor https");
  if (code != CURLUE_OK) {
    return bad(fmt::format("the URL does not parse: {}", curl_url_strerror(code)));
  }
  const std::string scheme = Part(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return bad("the URL is neither http nor https");
  const std::string host = Part(url.get(), CURLUPART_HOST);
  if (host.empty()) return bad("the URL names no host");
  x.target = host + ":" + Part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  return std::nullopt;
}

// Fills `proxy`. With socks5 the proxy resolves names, as with http proxies: curl spells that
// socks5h.
std::optional<HttpError> CheckProxy(Exchange& x) {
  const std::string& proxy = x.request.proxy;
  if (proxy.empty()) return std::nullopt;
  constexpr std::string_view kSocks = "socks5://";
  x.proxy = proxy;
  if (proxy.compare(0, kSocks.size(), kSocks) == 0) {
    x.proxy = "socks5h://" + proxy.substr(kSocks.size());
  }
  const UrlPtr url(curl_url(), curl_url_cleanup);
  NORMA_CHECK(url != nullptr);
  const auto flags = static_cast<unsigned>(CURLU_NON_SUPPORT_SCHEME);
  const bool parses = proxy.find('\0') == std::string::npos &&
                      curl_url_set(url.get(), CURLUPART_URL, x.proxy.c_str(), flags) == CURLUE_OK;
  const std::string scheme = parses ? Part(url.get(), CURLUPART_SCHEME) : "";
  x.proxy_port = scheme == "http" ? 80 : scheme == "https" ? 443 : 1080;
  if (scheme == "http" || scheme == "https" || scheme == "socks5h") return std::nullopt;
  return HttpError{HttpFailure::kProxy, "the proxy must be an http, https or socks5 URL", true};
}

// ---- callbacks of curl; none lets an exception out --------------------------------------------

// Runs `act`; what it throws is kept for Send to throw again, and ends the exchange.
template <typename Act>
size_t Guarded(Exchange& x, size_t size, Act&& act) {
  try {
    return act() ? size : 0;
  } catch (...) {
    x.thrown = std::current_exception();
    return 0;
  }
}

bool TakeHeaderLine(Exchange& x, std::string_view line) {
  switch (x.head.Feed(line)) {
    case HeadReader::Step::kMore:
      return true;
    case HeadReader::Step::kHead:
      x.outcome.first_byte = std::chrono::duration_cast<Millis>(x.clock.Now() - x.started);
      x.sink.OnHead(x.head.head());
      return true;
    case HeadReader::Step::kTooLarge:
      break;
  }
  x.refused =
      HttpError{HttpFailure::kBroken, fmt::format("the answer of {} has headers beyond {}",
                                                  x.target, FormatBytes(HeadReader::kBytesMax))};
  return false;
}

bool TakeBody(Exchange& x, std::string_view bytes) {
  x.outcome.body_bytes += bytes.size();
  if (x.complete) return true;  // read only so that the connection stays usable
  switch (x.sink.OnBytes(bytes)) {
    case Progress::kNone:
      return true;
    case Progress::kEvent:
      x.progressed = x.clock.Now();
      return true;
    case Progress::kComplete:
      x.complete = true;
      x.grace_end = x.clock.Now() + kCompleteGrace;
      return true;
    case Progress::kStop:
      break;
  }
  x.refused = HttpError{HttpFailure::kStopped, "the rest of the answer was refused"};
  return false;
}

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto& x = *static_cast<Exchange*>(user);
  return Guarded(x, size * count, [&] { return TakeHeaderLine(x, {data, size * count}); });
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto& x = *static_cast<Exchange*>(user);
  return Guarded(x, size * count, [&] { return TakeBody(x, {data, size * count}); });
}

// The body goes out through a reader that cannot rewind: curl would otherwise send a request again
// by itself when a kept connection turns out dead, an attempt that nobody announced.
size_t OnRead(char* out, size_t size, size_t count, void* user) {
  auto& x = *static_cast<Exchange*>(user);
  const size_t left = x.request.body.size() - x.body_sent;
  const size_t part = std::min(left, size * count);
  std::memcpy(out, x.request.body.data() + x.body_sent, part);
  x.body_sent += part;
  return part;
}

class HeaderList {
 public:
  ~HeaderList() { curl_slist_free_all(list_); }
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;

  void Add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list_, line.c_str());
    NORMA_CHECK(longer != nullptr);
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

std::optional<HttpError> FillHeaders(const HttpRequest& request, HeaderList& list) {
  bool has_type = false;
  for (const auto& [name, value] : request.headers) {
    if (!IsHeaderName(name) || !IsHeaderValue(value)) {
      const std::string shown = IsHeaderName(name) ? name : "(unprintable)";
      return HttpError{HttpFailure::kBadUrl,
                       "the request header " + shown + " holds a character no header can carry",
                       true};
    }
    has_type = has_type || ToLower(name) == "content-type";
    list.Add(value.empty() ? name + ";" : name + ": " + value);
  }
  list.Add("Expect:");                       // no 100-continue round trip
  if (!has_type) list.Add("Content-Type:");  // curl would claim a form
  return std::nullopt;
}

// Takes the easy handle out of the multi handle on every path.
class Added {
 public:
  Added(CURLM* multi, CURL* easy) : multi_(multi), easy_(easy) {
    NORMA_CHECK(curl_multi_add_handle(multi_, easy_) == CURLM_OK);
  }
  ~Added() { curl_multi_remove_handle(multi_, easy_); }
  Added(const Added&) = delete;
  Added& operator=(const Added&) = delete;

 private:
  CURLM* multi_;
  CURL* easy_;
};

class CurlTransport : public Transport {
 public:
  explicit CurlTransport(Clock& clock) : clock_(clock) {}
  ~CurlTransport() override {
    if (easy_ != nullptr) curl_easy_cleanup(easy_);
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
  }

  HttpOutcome Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                   const Wake& wake) override;

 private:
  void Open();
  std::optional<HttpError> Exchanged(Exchange& x, const Cancel& cancel, const Wake& wake);
  std::optional<HttpError> Drive(Exchange& x, const Cancel& cancel, const Wake& wake);
  std::optional<HttpError> Limits(const Exchange& x, MonoTime now) const;
  void Wait(const Exchange& x, const Cancel& cancel, const Wake& wake);
  void SetUp(Exchange& x, curl_slist* headers);
  void SetMethod(const Exchange& x);
  std::optional<CURLcode> Finished();
  HttpError Explain(const Exchange& x, CURLcode code);
  template <typename T>
  void Set(CURLoption option, T value) {
    NORMA_CHECK(curl_easy_setopt(easy_, option, value) == CURLE_OK);
  }

  Clock& clock_;
  CURLM* multi_ = nullptr;
  CURL* easy_ = nullptr;
};

void CurlTransport::Open() {
  if (easy_ != nullptr) return;
  InitLibraryOnce();
  multi_ = curl_multi_init();
  easy_ = curl_easy_init();
  NORMA_CHECK(multi_ != nullptr && easy_ != nullptr);
}

HttpOutcome CurlTransport::Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                                const Wake& wake) {
  const MonoTime now = clock_.Now();
  Exchange x{request, sink, clock_, now, now};
  x.outcome.error = Exchanged(x, cancel, wake);
  if (x.thrown) std::rethrow_exception(x.thrown);
  if (x.head.done()) x.outcome.head = x.head.head();  // a head without its end is none
  x.outcome.duration = std::chrono::duration_cast<Millis>(clock_.Now() - x.started);
  return std::move(x.outcome);
}

std::optional<HttpError> CurlTransport::Exchanged(Exchange& x, const Cancel& cancel,
                                                  const Wake& wake) {
  if (cancel.tripped()) return HttpError{HttpFailure::kCancelled, "cancelled"};
  if (auto error = Limits(x, clock_.Now())) return error;
  if (auto error = CheckUrl(x)) return error;
  if (auto error = CheckProxy(x)) return error;
  HeaderList headers;
  if (auto error = FillHeaders(x.request, headers)) return error;
  Open();
  SetUp(x, headers.get());
  const Added added(multi_, easy_);
  return Drive(x, cancel, wake);
}

std::optional<HttpError> CurlTransport::Drive(Exchange& x, const Cancel& cancel, const Wake& wake) {
  for (;;) {  // bounded by the limits and by cancel
    int running = 0;
    const CURLMcode code = curl_multi_perform(multi_, &running);
    if (x.thrown) return std::nullopt;
    if (code != CURLM_OK) {
      return HttpError{HttpFailure::kBroken, std::string("libcurl: ") + curl_multi_strerror(code)};
    }
    const auto finished = Finished();
    // Once all that matters has come, no later fault can take it back.
    if (x.complete && (finished || cancel.tripped() || clock_.Now() >= x.grace_end)) {
      return std::nullopt;
    }
    if (finished) {
      if (*finished != CURLE_OK) return Explain(x, *finished);
      if (x.head.done()) return std::nullopt;
      return HttpError{HttpFailure::kBroken, x.target + ": the answer ended inside its headers"};
    }
    if (cancel.tripped()) return HttpError{HttpFailure::kCancelled, "cancelled"};
    // After perform, so that time which somebody else took (wake.serve, a sink that writes a
    // ledger) is not counted against bytes that lay ready in the socket.
    if (!x.complete) {
      if (auto error = Limits(x, clock_.Now())) return error;
    }
    Wait(x, cancel, wake);
  }
}

std::optional<HttpError> CurlTransport::Limits(const Exchange& x, MonoTime now) const {
  if (now >= x.request.deadline) {
    return HttpError{HttpFailure::kTotal, "the time limit of the request passed"};
  }
  const Millis idle = x.request.idle_max;
  if (idle.count() > 0 && now - x.progressed >= idle) {
    return HttpError{HttpFailure::kIdle, fmt::format("no data from {} for {} ms (the idle limit)",
                                                     x.target, idle.count())};
  }
  return std::nullopt;
}

void CurlTransport::Wait(const Exchange& x, const Cancel& cancel, const Wake& wake) {
  const MonoTime next = x.complete ? x.grace_end
                                   : std::min(x.request.deadline,
                                              EarlierOf(kNever, x.progressed, x.request.idle_max));
  std::array<curl_waitfd, 2> fds{};
  fds[0].fd = cancel.fd();
  fds[0].events = CURL_WAIT_POLLIN;
  fds[1].fd = wake.fd;
  fds[1].events = CURL_WAIT_POLLIN;
  const unsigned count = wake.fd >= 0 ? 2 : 1;
  int ready = 0;
  curl_multi_poll(multi_, fds.data(), count, PollTimeout(clock_.Now(), next, kPollMax), &ready);
  if (count == 2 && (fds[1].revents & CURL_WAIT_POLLIN) != 0 && wake.serve) wake.serve();
}

std::optional<CURLcode> CurlTransport::Finished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) return message->data.result;
  }
  return std::nullopt;
}

void CurlTransport::SetMethod(const Exchange& x) {
  const HttpRequest& request = x.request;
  if (request.method == "HEAD") {
    Set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "GET" && request.body.empty()) {
    Set(CURLOPT_HTTPGET, 1L);
  } else {
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    Set(CURLOPT_READFUNCTION, &OnRead);
    if (request.method != "POST") Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void CurlTransport::SetUp(Exchange& x, curl_slist* headers) {
  const HttpRequest& request = x.request;
  curl_easy_reset(easy_);  // keeps connections, DNS cache and TLS sessions
  Set(CURLOPT_URL, request.url.c_str());
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_FOLLOWLOCATION, 0L);
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  SetMethod(x);
  Set(CURLOPT_READDATA, static_cast<void*>(&x));
  Set(CURLOPT_HTTPHEADER, headers);
  // The request's own headers (the key among them) are for the server, not for a CONNECT proxy.
  Set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  Set(CURLOPT_ACCEPT_ENCODING, "");
  Set(CURLOPT_HEADERFUNCTION, &OnHeader);
  Set(CURLOPT_HEADERDATA, static_cast<void*>(&x));
  Set(CURLOPT_WRITEFUNCTION, &OnBody);
  Set(CURLOPT_WRITEDATA, static_cast<void*>(&x));
  Set(CURLOPT_ERRORBUFFER, x.words.data());
  // Both always set: left alone, curl would read http_proxy and no_proxy from the environment.
  Set(CURLOPT_PROXY, x.proxy.c_str());
  Set(CURLOPT_PROXYPORT, x.proxy_port);
  Set(CURLOPT_NOPROXY, "");
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_TCP_NODELAY, 1L);
  Set(CURLOPT_TCP_KEEPALIVE, 1L);
  Set(CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
  Set(CURLOPT_SSL_VERIFYPEER, request.verify_tls ? 1L : 0L);
  Set(CURLOPT_SSL_VERIFYHOST, request.verify_tls ? 2L : 0L);
  if (!request.ca_file.empty()) {
    Set(CURLOPT_CAINFO, request.ca_file.c_str());
    Set(CURLOPT_PROXY_CAINFO, request.ca_file.c_str());
  }
  const auto connect_ms = std::max<Millis::rep>(request.connect_max.count(), 0);
  Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_ms));
#if LIBCURL_VERSION_NUM >= 0x075700
  Set(CURLOPT_QUICK_EXIT, 1L);  // a cancel does not wait for a resolver thread
#endif
}

HttpError CurlTransport::Explain(const Exchange& x, CURLcode code) {
  if (x.refused) return *x.refused;
  const std::string proxy = EndpointOf(x.request.proxy);
  long connect_status = 0;
  curl_easy_getinfo(easy_, CURLINFO_HTTP_CONNECTCODE, &connect_status);
  if (!proxy.empty() && connect_status != 0 && connect_status / 100 != 2) {
    return {HttpFailure::kProxy,
            fmt::format("the proxy {} refused to connect to {}: status {}", proxy, x.target,
                        connect_status),
            connect_status < 500};
  }
  const auto* row = std::ranges::find(kFailures, code, &FailureRow::code);
  if (row == kFailures.end()) {
    return {HttpFailure::kBroken, fmt::format("{}: {}", x.target, curl_easy_strerror(code))};
  }
  std::string message = fmt::format("{}: {}", x.target, row->what);
  if (row->curls_words && x.words[0] != '\0') message += fmt::format(": {}", x.words.data());
  HttpFailure failure = row->failure;
  if (code == CURLE_COULDNT_CONNECT) {
    long number = 0;
    curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &number);
    if (number != 0) message += fmt::format(" ({})", std::strerror(static_cast<int>(number)));
    if (!proxy.empty()) {
      failure = HttpFailure::kProxy;
      message += fmt::format("; the proxy {} was to be used", proxy);
    }
  }
  return {failure, std::move(message), row->permanent};
}

}  // namespace

std::unique_ptr<Transport> NewCurlTransport(Clock& clock) {
  return std::make_unique<CurlTransport>(clock);
}

std::string HttpLibraryVersion() {
  const curl_version_info_data* info = curl_version_info(CURLVERSION_NOW);
  return fmt::format("libcurl {} {}", info->version, info->ssl_version ? info->ssl_version : "");
}

}  // namespace norma
