// A real HTTP peer on 127.0.0.1 whose answers are written down byte by byte: for tests of the
// transport. One thread, one connection at a time, requests in order.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace norma::testing {

// What happens to one request.
struct LoopbackAnswer {
  std::vector<std::string> parts;    // sent one after the other …
  std::chrono::milliseconds gap{0};  // … with this much time in between
  enum class Then {
    kKeep,   // wait for the next request on the same connection
    kClose,  // end the connection
    kReset,  // end it with a TCP reset
    kHang,   // send nothing more until the client goes away
  } then = Then::kKeep;
  bool read_request = true;  // false: answer (or close) at once, before any request
};

// "HTTP/1.1 200 OK" with a content-length.
inline std::string HttpAnswer(const std::string& body, const std::string& status = "200 OK",
                              const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\n" + headers +
         "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class LoopbackServer {
 public:
  explicit LoopbackServer(std::vector<LoopbackAnswer> answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 16) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no loopback socket");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~LoopbackServer() {
    stop_ = true;
    thread_.join();
    close(listener_);
  }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  int port() const { return port_; }
  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  // Head and body of each request, as they came.
  std::vector<std::string> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  int connections() const { return connections_; }

 private:
  static constexpr int kPollMs = 10;

  void Serve() {
    while (!stop_ && next_ < answers_.size()) {
      if (!Readable(listener_)) continue;
      const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) continue;
      const int on = 1;
      setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++connections_;
      Talk(peer);
      close(peer);
    }
  }

  void Talk(int peer) {
    while (!stop_ && next_ < answers_.size()) {
      const LoopbackAnswer& answer = answers_[next_];
      if (answer.read_request && !ReadRequest(peer)) return;
      ++next_;
      for (size_t at = 0; at < answer.parts.size(); ++at) {
        if (at > 0 && answer.gap.count() > 0) std::this_thread::sleep_for(answer.gap);
        if (!SendAll(peer, answer.parts[at])) return;
      }
      switch (answer.then) {
        case LoopbackAnswer::Then::kKeep:
          break;
        case LoopbackAnswer::Then::kHang:
          while (!stop_ && !Gone(peer)) {
          }
          return;
        case LoopbackAnswer::Then::kReset: {
          // Time for the client to read what was sent: a reset throws away what is in flight.
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          const linger now{1, 0};
          setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
          return;
        }
        case LoopbackAnswer::Then::kClose:
          return;
      }
    }
  }

  bool ReadRequest(int peer) {
    std::string text;
    while (!stop_) {
      const size_t head_end = text.find("\r\n\r\n");
      if (head_end != std::string::npos && text.size() >= head_end + 4 + BodySize(text)) {
        std::lock_guard lock(mutex_);
        requests_.push_back(text);
        return true;
      }
      if (!Readable(peer)) continue;
      char buffer[16384];
      const ssize_t count = recv(peer, buffer, sizeof buffer, 0);
      if (count <= 0) return false;
      text.append(buffer, static_cast<size_t>(count));
    }
    return false;
  }

  static size_t BodySize(const std::string& head) {
    const std::string name = "Content-Length: ";
    const size_t at = head.find(name);
    return at == std::string::npos ? 0 : std::stoul(head.substr(at + name.size()));
  }

  static bool SendAll(int peer, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  static bool Readable(int fd) {
    pollfd wait{fd, POLLIN, 0};
    return poll(&wait, 1, kPollMs) > 0;
  }

  static bool Gone(int peer) {
    if (!Readable(peer)) return false;
    char byte = 0;
    return recv(peer, &byte, 1, MSG_PEEK) <= 0;
  }

  std::vector<LoopbackAnswer> answers_;
  int listener_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::atomic<int> connections_{0};
  std::atomic<bool> stop_{false};
  size_t next_ = 0;  // of the server thread
  std::thread thread_;
};

}  // namespace norma::testing
