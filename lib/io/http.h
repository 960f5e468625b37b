// Transport: one HTTP exchange, streamed. The seam that tests replace; libcurl lives behind
// http_curl.cc alone. Knows no retry, no provider and no environment: the caller chose the proxy.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"

namespace norma {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "POST";
  std::string url;
  HttpHeaders headers;
  std::string_view body;  // must outlive Send
  std::string proxy;      // empty: none, whatever the environment says
  std::string ca_file;    // empty: the system's roots
  bool verify_tls = true;
  Millis connect_max{10'000};
  Millis idle_max{120'000};  // since the last progress (see HttpSink); runs from the start
  MonoTime deadline = kNever;
};

struct HttpHead {
  int status = 0;
  HttpHeaders headers;  // names in lower case, in order
  // Value of the first header of this (lower-case) name, empty when there is none.
  std::string_view Find(std::string_view name) const;
};

// What a sink thinks of the bytes it got.
enum class Progress {
  kNone,      // nothing that counts (comments, keep-alives, half an event): the idle limit runs on
  kEvent,     // data: the idle limit starts anew
  kComplete,  // all that is needed has come: the rest gets a short grace, so that the connection
              // stays usable, and then the exchange ends as a success
  kStop,      // refuse the rest (a cap): the exchange ends with HttpFailure::kStopped
};

class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Once, before the first byte of the body; never for 1xx.
  virtual void OnHead(const HttpHead& head) = 0;
  virtual Progress OnBytes(std::string_view bytes) = 0;
};

enum class HttpFailure {
  kBadUrl,
  kDns,
  kConnect,  // refused, unreachable
  kConnectTimeout,
  kTls,     // handshake or verification
  kProxy,   // the proxy could not be reached or refused
  kSend,    // broke while the request was sent
  kBroken,  // broke before the end of the body, or the server spoke no HTTP
  kIdle,    // the idle limit passed
  kTotal,   // HttpRequest::deadline passed
  kCancelled,
  kStopped,     // the sink refused the rest
  kReplayMiss,  // a replay has no recording of this request; nothing was sent
  kRecord,      // the recording of this exchange cannot be written
};

struct HttpError {
  HttpFailure failure;
  std::string message;  // without headers, query or credentials
  // The same request would fail the same way (a bad URL, a certificate that does not verify, a
  // proxy that refuses): trying again cannot help.
  bool permanent = false;
};

// Every exchange ends as one of these. With an error, `head.status` is 0 when no head came.
struct HttpOutcome {
  HttpHead head;
  std::optional<HttpError> error;
  Millis first_byte{0};  // from the start to the head
  Millis duration{0};
  uint64_t body_bytes = 0;
};

// Somebody else who must be served while an exchange waits (the tool mailbox of the run thread).
struct Wake {
  int fd = -1;                  // readable = call serve
  std::function<void()> serve;  // on the thread that called Send
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Blocks the calling thread until the exchange ended. Redirects are not followed. One call at a
  // time per object; connections are kept for the next call.
  virtual HttpOutcome Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                           const Wake& wake) = 0;
};

// libcurl behind the seam. One per run thread.
std::unique_ptr<Transport> NewCurlTransport(Clock& clock);
// "libcurl 7.88.1 OpenSSL/3.0.19 …"
std::string HttpLibraryVersion();

// Scheme, host, port and path of a URL, for messages and records: no userinfo, query or fragment.
// Works on any text; what has no "://" comes back without its query only.
std::string EndpointOf(std::string_view url);

}  // namespace norma
