// The transport against special peers: TLS with a private authority, a SOCKS proxy, compressed
// bodies, proxies that refuse.
#include <doctest/doctest.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "lib/io/http.h"
#include "lib/testing/loopback_server.h"
#include "lib/testing/temp_dir.h"

using namespace norma;
using namespace std::chrono_literals;
using norma::testing::LoopbackAnswer;
using norma::testing::LoopbackServer;
using norma::testing::TempDir;
using Then = LoopbackAnswer::Then;

namespace {

struct Sink : HttpSink {
  void OnHead(const HttpHead&) override {}
  Progress OnBytes(std::string_view bytes) override {
    body += bytes;
    return Progress::kEvent;
  }
  std::string body;
};

struct Got {
  HttpOutcome outcome;
  std::string body;
};

Got SendOnce(HttpRequest request) {
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  Sink sink;
  request.idle_max = 10s;
  request.deadline = SystemClock().Now() + 20s;
  Got got{transport->Send(request, sink, cancel, {}), {}};
  got.body = std::move(sink.body);
  return got;
}

// The same text in gzip.
const std::string kPlain = [] {
  std::string text;
  for (int n = 0; n < 20; ++n) text += "data: hello\n\n";
  return text;
}();
const std::string kGzip = std::string(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\x49\x2c\x49\xb4\x52\xc8\x48\xcd\xc9\xc9\xe7"
    "\xe2\x4a\x19\x99\x1c\x00\x36\x80\x29\x23\x04\x01\x00\x00",
    36);

std::string GzipAnswer(std::string_view body) {
  return "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

int Shell(const std::string& command) {
  return std::system(("{ " + command + "; } >/dev/null 2>&1 </dev/null").c_str());
}

// `openssl s_server` with a certificate of an authority of its own; port 0 when there is none.
class TlsServer {
 public:
  explicit TlsServer(const TempDir& temp) {
    const std::string in = "cd '" + temp.path() + "' && ";
    const std::string key =
        "openssl req -x509 -nodes -newkey ec -pkeyopt "
        "ec_paramgen_curve:P-256 -days 2 ";
    const bool made =
        Shell("command -v openssl") == 0 &&
        Shell(in + key + "-keyout ca.key -out ca.pem -subj '/CN=norma test authority'") == 0 &&
        Shell(in + key + "-keyout other.key -out other.pem -subj '/CN=another authority'") == 0 &&
        Shell(in + key + "-keyout s.key -out s.pem -subj /CN=server -CA ca.pem -CAkey ca.key " +
              "-addext subjectAltName=IP:127.0.0.1") == 0;
    if (!made) return;
    const std::string serve =
        in +
        "echo $$; exec openssl s_server -accept 127.0.0.1:0 -cert s.pem -key s.key -www "
        "</dev/null 2>&1";
    out_ = popen(serve.c_str(), "r");
    std::array<char, 512> line{};
    while (out_ != nullptr && port == 0 && fgets(line.data(), line.size(), out_) != nullptr) {
      const std::string text = line.data();
      if (pid_ == 0) pid_ = std::atoi(text.c_str());
      if (text.starts_with("ACCEPT")) port = std::atoi(text.c_str() + text.rfind(':') + 1);
    }
  }
  ~TlsServer() {
    if (pid_ > 1) kill(pid_, SIGKILL);
    if (out_ != nullptr) pclose(out_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  int port = 0;

 private:
  FILE* out_ = nullptr;
  pid_t pid_ = 0;
};

}  // namespace

TEST_CASE("http: a private authority is trusted where ca_file names it, and only there") {
  const TempDir temp;
  const TlsServer server(temp);
  if (server.port == 0) {
    MESSAGE("skipped: no openssl command that can serve");
    return;
  }
  HttpRequest request;
  request.method = "GET";
  request.url = "https://127.0.0.1:" + std::to_string(server.port) + "/";
  request.ca_file = temp / "ca.pem";
  const Got trusted = SendOnce(request);
  CHECK(!trusted.outcome.error);
  CHECK(trusted.outcome.head.status == 200);
  for (const std::string& other : {std::string(), temp / "other.pem"}) {
    request.ca_file = other;
    const Got refused = SendOnce(request);
    REQUIRE(refused.outcome.error);
    CHECK(refused.outcome.error->failure == HttpFailure::kTls);
    CHECK(refused.outcome.error->permanent);
  }
  request.ca_file = temp / "absent.pem";
  const Got absent = SendOnce(request);
  REQUIRE(absent.outcome.error);
  CHECK(absent.outcome.error->failure == HttpFailure::kTls);
  CHECK(absent.outcome.error->permanent);
  // The right authority, another name.
  request.ca_file = temp / "ca.pem";
  request.url = "https://localhost:" + std::to_string(server.port) + "/";
  const Got named = SendOnce(request);
  REQUIRE(named.outcome.error);
  CHECK(named.outcome.error->failure == HttpFailure::kTls);
}

TEST_CASE("http: TLS through a CONNECT proxy sees the proxy first") {
  LoopbackServer proxy(
      {{{"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"}, 0ms, Then::kClose},
       {{"HTTP/1.1 407 Auth\r\ncontent-length: 0\r\n\r\n"}, 0ms, Then::kClose}});
  HttpRequest request;
  request.url = "https://model.invalid/v1";
  request.proxy = "http://user:secret-word@127.0.0.1:" + std::to_string(proxy.port());
  for (const char* status : {"403", "407"}) {
    const Got got = SendOnce(request);
    REQUIRE(got.outcome.error);
    CHECK(got.outcome.error->failure == HttpFailure::kProxy);
    CHECK(got.outcome.error->permanent);
    CHECK(got.outcome.error->message.find(status) != std::string::npos);
    CHECK(got.outcome.error->message.find("secret-word") == std::string::npos);
  }
  REQUIRE(proxy.requests().size() == 2);
  CHECK(proxy.requests()[0].starts_with("CONNECT model.invalid:443 HTTP/1.1\r\n"));
}

TEST_CASE("http: a SOCKS5 proxy carries an exchange, and its refusal is named") {
  const std::string method("\x05\x00", 2);
  const std::string granted("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", 10);
  const std::string refused("\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00", 10);
  LoopbackAnswer yes{{method, granted, norma::testing::HttpAnswer("via")}, 20ms, Then::kHang};
  LoopbackAnswer no{{method, refused}, 20ms, Then::kHang};
  yes.read_request = no.read_request = false;
  for (const bool is_granted : {true, false}) {
    LoopbackServer proxy({is_granted ? yes : no});
    HttpRequest request;
    request.url = "http://model.invalid/v1";
    request.body = "{}";
    request.proxy = "socks5://127.0.0.1:" + std::to_string(proxy.port());
    const Got got = SendOnce(request);
    CHECK(got.outcome.error.has_value() != is_granted);
    CHECK(got.body == (is_granted ? "via" : ""));
    if (got.outcome.error) CHECK(got.outcome.error->failure == HttpFailure::kProxy);
  }
}

// A compressed stream that ends early inside a whole body is nothing libcurl reports: the readers
// above see a reply without its end there, or JSON that does not parse.
TEST_CASE("http: gzip bodies come out plain; a cut or damaged one is a broken exchange") {
  HttpRequest request;
  request.body = "{}";
  const auto answer = [&](const std::string& bytes, Then then) {
    LoopbackServer server({{{bytes}, 0ms, then}});
    request.url = server.url();
    return SendOnce(request);
  };
  const Got whole = answer(GzipAnswer(kGzip), Then::kKeep);
  CHECK(!whole.outcome.error);
  CHECK(whole.body == kPlain);
  std::string damaged = kGzip;
  damaged[kGzip.size() - 6] = static_cast<char>(damaged[kGzip.size() - 6] ^ 0x55);  // its checksum
  std::string half = GzipAnswer(kGzip);
  half.resize(half.size() - kGzip.size() / 2);
  const std::vector<std::string> broken = {half,  // the connection ends inside the body
                                           GzipAnswer(damaged), GzipAnswer("no gzip at all")};
  for (size_t n = 0; n < broken.size(); ++n) {
    CAPTURE(n);
    const Got got = answer(broken[n], Then::kClose);
    REQUIRE(got.outcome.error);
    CHECK(got.outcome.error->failure == HttpFailure::kBroken);
    CHECK(!got.outcome.error->permanent);
    CHECK(got.body.size() < kPlain.size() + 1);
  }
}
