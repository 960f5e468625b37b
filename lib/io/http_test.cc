// The transport against a real peer on the loopback: framing, limits, failures, reuse.
#include "lib/io/http.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "lib/testing/loopback_server.h"

using namespace norma;
using namespace std::chrono_literals;
using norma::testing::HttpAnswer;
using norma::testing::LoopbackAnswer;
using norma::testing::LoopbackServer;
using Then = LoopbackAnswer::Then;

namespace {

struct Sink : HttpSink {
  void OnHead(const HttpHead& got) override {
    ++heads;
    head = got;
  }
  Progress OnBytes(std::string_view bytes) override {
    body += bytes;
    if (throw_on_bytes) throw std::runtime_error("from the sink");
    if (!complete_at.empty() && body.find(complete_at) != std::string::npos) {
      return Progress::kComplete;
    }
    if (body.size() > stop_at) return Progress::kStop;
    return answer;
  }
  int heads = 0;
  HttpHead head;
  std::string body;
  Progress answer = Progress::kEvent;
  std::string complete_at;
  size_t stop_at = std::string::npos;
  bool throw_on_bytes = false;
};

HttpRequest Post(const std::string& url, std::string_view body = "{}") {
  HttpRequest request;
  request.url = url;
  request.headers = {{"content-type", "application/json"}};
  request.body = body;
  request.idle_max = 5s;
  request.deadline = SystemClock().Now() + 10s;
  return request;
}

HttpOutcome SendOnce(const HttpRequest& request, Sink& sink) {
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  return transport->Send(request, sink, cancel, {});
}

// The failure of one exchange with a server that answers like this; nullopt for success.
std::optional<HttpFailure> FailureOf(const LoopbackAnswer& answer) {
  LoopbackServer server({answer});
  Sink sink;
  const HttpOutcome outcome = SendOnce(Post(server.url()), sink);
  if (!outcome.error) return std::nullopt;
  return outcome.error->failure;
}

}  // namespace

TEST_CASE("http: a request goes out as given and its answer comes back") {
  LoopbackServer server({{{HttpAnswer("hello", "200 OK", "X-One: 1 \r\nx-one: 2\r\n")}}});
  Sink sink;
  HttpRequest request = Post(server.url("/v1/messages?q=1"), R"({"a":1})");
  request.headers.emplace_back("x-api-key", "k");
  request.headers.emplace_back("x-empty", "");
  const HttpOutcome outcome = SendOnce(request, sink);
  CHECK(!outcome.error);
  CHECK(outcome.head.status == 200);
  CHECK(outcome.head.Find("x-one") == "1");
  CHECK(outcome.head.Find("absent").empty());
  CHECK(outcome.body_bytes == 5);
  CHECK(sink.heads == 1);
  CHECK(sink.head.status == 200);
  CHECK(sink.body == "hello");
  REQUIRE(server.requests().size() == 1);
  const std::string sent = server.requests()[0];
  CHECK(sent.find("POST /v1/messages?q=1 HTTP/1.1\r\n") == 0);
  CHECK(sent.find("x-api-key: k\r\n") != std::string::npos);
  CHECK(sent.find("x-empty:") != std::string::npos);
  CHECK(sent.find("Expect") == std::string::npos);
  CHECK(sent.find("form-urlencoded") == std::string::npos);
  CHECK(sent.find("gzip") != std::string::npos);
  CHECK(sent.substr(sent.size() - 11) == "\r\n\r\n{\"a\":1}");
}

TEST_CASE("http: statuses and bodies of every kind are the caller's business") {
  for (const char* status : {"204 No Content", "302 Found", "404 Not Found", "529 Overloaded"}) {
    CAPTURE(status);
    const bool empty = std::string(status).starts_with("204");
    LoopbackServer server({{{empty ? "HTTP/1.1 204 No Content\r\n\r\n"
                                   : HttpAnswer("<html>", status, "location: /x\r\n")}}});
    Sink sink;
    const HttpOutcome outcome = SendOnce(Post(server.url()), sink);
    CHECK(!outcome.error);
    CHECK(outcome.head.status == std::stoi(status));
    CHECK(sink.body == (empty ? "" : "<html>"));
    CHECK(server.requests().size() == 1);
  }
}

TEST_CASE("http: interim answers are skipped") {
  LoopbackServer server(
      {{{"HTTP/1.1 100 Continue\r\nx: no\r\n\r\nHTTP/1.1 103 Early\r\n\r\n", HttpAnswer("ok")}}});
  Sink sink;
  const HttpOutcome outcome = SendOnce(Post(server.url()), sink);
  CHECK(!outcome.error);
  CHECK(outcome.head.status == 200);
  CHECK(outcome.head.Find("x").empty());
  CHECK(sink.heads == 1);
}

TEST_CASE("http: what breaks is named") {
  const std::string chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  const std::string open = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall";
  using F = HttpFailure;
  struct Row {
    std::string what;
    LoopbackAnswer answer;
    std::optional<F> want;
  };
  const std::vector<Row> rows = {
      {"no length, closed", {{open}, 0ms, Then::kClose}, std::nullopt},
      {"chunked, whole", {{chunked + "3\r\nall\r\n0\r\n\r\n"}}, std::nullopt},
      {"short body",
       {{"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"}, 0ms, Then::kClose},
       F::kBroken},
      {"chunked without its end", {{chunked + "3\r\nall\r\n"}, 0ms, Then::kClose}, F::kBroken},
      {"chunked inside a chunk", {{chunked + "9\r\nall"}, 0ms, Then::kClose}, F::kBroken},
      {"reset in the body", {{open}, 0ms, Then::kReset}, F::kBroken},
      {"closed at once", {{}, 0ms, Then::kClose}, F::kBroken},
      {"closed inside the head", {{"HTTP/1.1 200 OK\r\ncont"}, 0ms, Then::kClose}, F::kBroken},
      {"no HTTP", {{"SSH-2.0-OpenSSH_9\r\n"}, 0ms, Then::kClose}, F::kBroken},
      {"damaged gzip",
       {{HttpAnswer("no gzip at all, really", "200 OK", "content-encoding: gzip\r\n")}},
       F::kBroken},
      {"huge head",
       {{"HTTP/1.1 200 OK\r\n", std::string("x: ") + std::string(60'000, 'a') + "\r\n",
         std::string("x: ") + std::string(60'000, 'a') + "\r\n",
         std::string("x: ") + std::string(60'000, 'a') + "\r\n",
         std::string("x: ") + std::string(60'000, 'a') + "\r\n",
         std::string("x: ") + std::string(60'000, 'a') + "\r\n\r\n"},
        0ms,
        Then::kClose},
       F::kBroken},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(FailureOf(row.answer) == row.want);
  }
}

TEST_CASE("http: a URL that is not plain http is refused before anything is sent") {
  const std::vector<std::string> bad = {"",
                                        "example.com",
                                        "/path",
                                        "ftp://127.0.0.1/",
                                        "file:///etc/passwd",
                                        "http://",
                                        "http://a b/",
                                        "http://h:99999/",
                                        "http://h:x/",
                                        "http://h/\n",
                                        "http://[::1/",
                                        std::string("http://h/\0x", 11)};
  for (const std::string& url : bad) {
    CAPTURE(url);
    Sink sink;
    const HttpOutcome outcome = SendOnce(Post(url), sink);
    REQUIRE(outcome.error);
    CHECK(outcome.error->failure == HttpFailure::kBadUrl);
    CHECK(outcome.error->permanent);
    CHECK(sink.heads == 0);
  }
}

TEST_CASE("http: a header that would smuggle another one is refused") {
  LoopbackServer server({});
  for (const auto& [name, value] : HttpHeaders{
           {"x", "a\r\ny: b"}, {"x", "a\n"}, {"a b", "v"}, {"", "v"}, {"x:", "v"}, {"x", "\x7f"}}) {
    Sink sink;
    HttpRequest request = Post(server.url());
    request.headers.emplace_back(name, value);
    const HttpOutcome outcome = SendOnce(request, sink);
    REQUIRE(outcome.error);
    CHECK(outcome.error->failure == HttpFailure::kBadUrl);
    CHECK(outcome.error->message.find("y: b") == std::string::npos);
  }
  CHECK(server.connections() == 0);
}

TEST_CASE("http: nobody listens, and nobody has that name") {
  int port = 0;
  {
    const LoopbackServer server({});
    port = server.port();
  }
  Sink sink;
  HttpOutcome outcome =
      SendOnce(Post("http://127.0.0.1:" + std::to_string(port) + "/p?key=1"), sink);
  REQUIRE(outcome.error);
  CHECK(outcome.error->failure == HttpFailure::kConnect);
  CHECK(!outcome.error->permanent);
  CHECK(outcome.error->message ==
        "127.0.0.1:" + std::to_string(port) + ": could not connect (Connection refused)");
  CHECK(outcome.head.status == 0);
}

TEST_CASE("http: TLS against a plain server fails by that name") {
  LoopbackServer server({{{"HTTP/1.1 400 Bad\r\n\r\n"}, 0ms, Then::kClose, false}});
  Sink sink;
  const std::string url = "https://127.0.0.1:" + std::to_string(server.port()) + "/";
  HttpRequest request = Post(url);
  const HttpOutcome outcome = SendOnce(request, sink);
  REQUIRE(outcome.error);
  CHECK(outcome.error->failure == HttpFailure::kTls);
  request.ca_file = "/nonexistent/ca.pem";
  const HttpOutcome no_file = SendOnce(request, sink);
  REQUIRE(no_file.error);
  CHECK(no_file.error->permanent == (no_file.error->failure == HttpFailure::kTls));
}

TEST_CASE("http: the idle limit starts anew with events, not with bytes") {
  std::vector<std::string> parts = {"HTTP/1.1 200 OK\r\n\r\n"};
  for (int i = 0; i < 12; ++i) parts.push_back(": ping\n\n");
  const std::vector<Progress> answers = {Progress::kNone, Progress::kEvent};
  for (const Progress answer : answers) {
    LoopbackServer server({{parts, 50ms, Then::kClose}});
    Sink sink;
    sink.answer = answer;
    HttpRequest request = Post(server.url());
    request.idle_max = 300ms;
    const HttpOutcome outcome = SendOnce(request, sink);
    if (answer == Progress::kEvent) {
      CHECK(!outcome.error);
    } else {
      REQUIRE(outcome.error);
      CHECK(outcome.error->failure == HttpFailure::kIdle);
      CHECK(outcome.duration < 550ms);
      CHECK(outcome.head.status == 200);
    }
  }
}

TEST_CASE("http: limits end a server that never answers") {
  const auto failure = [](Millis idle, Millis total) {
    LoopbackServer server({{{}, 0ms, Then::kHang}});
    Sink sink;
    HttpRequest request = Post(server.url());
    request.idle_max = idle;
    request.deadline = SystemClock().Now() + total;
    const HttpOutcome outcome = SendOnce(request, sink);
    REQUIRE(outcome.error);
    CHECK(outcome.duration < 2s);
    return outcome.error->failure;
  };
  CHECK(failure(50ms, 5s) == HttpFailure::kIdle);
  CHECK(failure(5s, 50ms) == HttpFailure::kTotal);
  CHECK(failure(0ms, 50ms) == HttpFailure::kTotal);
}

TEST_CASE("http: cancel ends an exchange at once, from any thread") {
  LoopbackServer server({{{"HTTP/1.1 200 OK\r\n\r\nabc"}, 0ms, Then::kHang}});
  const auto transport = NewCurlTransport(SystemClock());
  Cancel cancel;
  Sink sink;
  std::thread other([&] {
    while (server.requests().empty()) std::this_thread::yield();
    cancel.Trip(15);
  });
  const HttpOutcome outcome = transport->Send(Post(server.url()), sink, cancel, {});
  other.join();
  REQUIRE(outcome.error);
  CHECK(outcome.error->failure == HttpFailure::kCancelled);
  CHECK(outcome.duration < 2s);
  Sink unused;
  CHECK(transport->Send(Post(server.url()), unused, cancel, {}).error->failure ==
        HttpFailure::kCancelled);
  CHECK(server.connections() == 1);
}

TEST_CASE("http: who waits for the thread is served while an exchange waits") {
  LoopbackServer server(
      {{{"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", "a", "b"}, 60ms, Then::kClose}});
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  const int fd = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);
  int served = 0;
  const auto serve = [&] {
    uint64_t one = 0;
    if (read(fd, &one, sizeof one) == sizeof one) ++served;
  };
  Sink sink;
  const HttpOutcome outcome = transport->Send(Post(server.url()), sink, cancel, {fd, serve});
  CHECK(!outcome.error);
  CHECK(served == 3);
  close(fd);
}

TEST_CASE("http: a kept connection serves the next request") {
  LoopbackServer server({{{HttpAnswer("1")}}, {{HttpAnswer("2")}}, {{HttpAnswer("3")}}});
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  for (const char* want : {"1", "2", "3"}) {
    Sink sink;
    CHECK(!transport->Send(Post(server.url()), sink, cancel, {}).error);
    CHECK(sink.body == want);
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("http: a complete reply keeps the connection when its end comes soon") {
  const std::string head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  LoopbackServer server({{{head + "4\r\nDONE\r\n", "0\r\n\r\n"}, 60ms}, {{HttpAnswer("2")}}});
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  Sink sink;
  sink.complete_at = "DONE";
  CHECK(!transport->Send(Post(server.url()), sink, cancel, {}).error);
  Sink second;
  CHECK(!transport->Send(Post(server.url()), second, cancel, {}).error);
  CHECK(server.connections() == 1);
}

TEST_CASE("http: a complete reply is a success whatever the peer does next") {
  const std::string part = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nDONE";
  for (const Then then : {Then::kHang, Then::kClose, Then::kReset}) {
    LoopbackServer server({{{part, " and more"}, 20ms, then}});
    Sink sink;
    sink.complete_at = "DONE";
    const HttpOutcome outcome = SendOnce(Post(server.url()), sink);
    CHECK(!outcome.error);
    CHECK(outcome.duration < 2s);
    CHECK(sink.body == "DONE");
  }
}

TEST_CASE("http: the sink can refuse the rest") {
  LoopbackServer server({{{HttpAnswer(std::string(100'000, 'x'))}}});
  Sink sink;
  sink.stop_at = 10;
  const HttpOutcome outcome = SendOnce(Post(server.url()), sink);
  REQUIRE(outcome.error);
  CHECK(outcome.error->failure == HttpFailure::kStopped);
  CHECK(outcome.head.status == 200);
}

TEST_CASE("http: an exception of the sink passes through, and the transport lives on") {
  LoopbackServer server({{{HttpAnswer("1")}, 0ms, Then::kClose}, {{HttpAnswer("2")}}});
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  Sink sink;
  sink.throw_on_bytes = true;
  CHECK_THROWS_AS(transport->Send(Post(server.url()), sink, cancel, {}), std::runtime_error);
  Sink second;
  CHECK(!transport->Send(Post(server.url()), second, cancel, {}).error);
  CHECK(second.body == "2");
}

TEST_CASE("http: a request is never sent twice by the library itself") {
  // The kept connection is closed when the second request comes; the server would take a third.
  LoopbackServer server({{{HttpAnswer("1")}}, {{}, 0ms, Then::kClose}, {{HttpAnswer("3")}}});
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  Sink sink;
  CHECK(!transport->Send(Post(server.url()), sink, cancel, {}).error);
  Sink second;
  const HttpOutcome outcome = transport->Send(Post(server.url()), second, cancel, {});
  REQUIRE(outcome.error);
  CHECK(!outcome.error->permanent);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("http: a proxy gets the request, and its refusal is named without its password") {
  LoopbackServer proxy(
      {{{HttpAnswer("via")}},
       {{"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"},
        0ms,
        Then::kClose},
       {{"HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n"}, 0ms, Then::kClose}});
  const std::string at = "127.0.0.1:" + std::to_string(proxy.port());
  Sink sink;
  HttpRequest request = Post("http://model.invalid/v1?q=1");
  request.headers.emplace_back("x-api-key", "the-key");
  request.proxy = "http://user:pw@" + at;
  const HttpOutcome plain = SendOnce(request, sink);
  CHECK(!plain.error);
  CHECK(sink.body == "via");
  request.url = "https://model.invalid/v1?q=1";
  for (const bool permanent : {true, false}) {
    const HttpOutcome tunnel = SendOnce(request, sink);
    REQUIRE(tunnel.error);
    CHECK(tunnel.error->failure == HttpFailure::kProxy);
    CHECK(tunnel.error->permanent == permanent);
    CHECK(tunnel.error->message == "the proxy http://" + at +
                                       " refused to connect to model.invalid:443: status " +
                                       (permanent ? "407" : "502"));
    CHECK(tunnel.head.status == 0);
  }
  const auto sent = proxy.requests();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].find("POST http://model.invalid/v1?q=1 HTTP/1.1\r\n") == 0);
  CHECK(sent[0].find("Proxy-Authorization: Basic dXNlcjpwdw==\r\n") != std::string::npos);
  CHECK(sent[1].find("CONNECT model.invalid:443 HTTP/1.1\r\n") == 0);
  CHECK(sent[1].find("the-key") == std::string::npos);
}

TEST_CASE("http: an unusable proxy is an error, never a direct connection") {
  LoopbackServer server({});
  for (const char* proxy : {"ftp://p", "p:8080", "http://", "socks4://p:1", "::"}) {
    CAPTURE(proxy);
    Sink sink;
    HttpRequest request = Post(server.url());
    request.proxy = proxy;
    const HttpOutcome outcome = SendOnce(request, sink);
    REQUIRE(outcome.error);
    CHECK(outcome.error->failure == HttpFailure::kProxy);
    CHECK(outcome.error->permanent);
  }
  int port = 0;
  {
    const LoopbackServer gone({});
    port = gone.port();
  }
  for (const char* scheme : {"http", "socks5"}) {
    Sink sink;
    HttpRequest request = Post(server.url());
    request.proxy = scheme + std::string("://u:secret@127.0.0.1:") + std::to_string(port);
    const HttpOutcome outcome = SendOnce(request, sink);
    REQUIRE(outcome.error);
    CHECK(outcome.error->failure == HttpFailure::kProxy);
    CHECK(outcome.error->message.find("secret") == std::string::npos);
  }
  CHECK(server.connections() == 0);
}

TEST_CASE("http: other methods") {
  LoopbackServer server({{{HttpAnswer("get")}},
                         {{"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"}},
                         {{HttpAnswer("delete")}}});
  const auto transport = NewCurlTransport(SystemClock());
  const Cancel cancel;
  for (const char* method : {"GET", "HEAD", "DELETE"}) {
    CAPTURE(method);
    Sink sink;
    HttpRequest request = Post(server.url("/m"), "");
    request.method = method;
    CHECK(!transport->Send(request, sink, cancel, {}).error);
  }
  const auto sent = server.requests();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].find("GET /m HTTP/1.1") == 0);
  CHECK(sent[1].find("HEAD /m HTTP/1.1") == 0);
  CHECK(sent[2].find("DELETE /m HTTP/1.1") == 0);
}

TEST_CASE("http: endpoints for people hold no credentials and no query") {
  CHECK(EndpointOf("https://u:p@h:1/a/b?k=v#f") == "https://h:1/a/b");
  CHECK(EndpointOf("http://h/a@b") == "http://h/a@b");
  CHECK(EndpointOf("http://a@b@c") == "http://c");
  CHECK(EndpointOf("http://h?x@y") == "http://h");
  CHECK(EndpointOf("") == "");
}
