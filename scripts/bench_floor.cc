// The floors that scripts/bench.py compares norma with, in as little code as they can be had: a
// loopback model server that costs nothing, a launcher that times whole processes in turn, and one
// tool turn done by hand (keep-alive request, posix_spawn of `bash -c true`, two synced lines).
// Knows nothing of norma.
//
//   bench_floor serve PORT_FILE                    serves until killed; the path picks the answer:
//       /text/v1/messages                          one short text
//       /turns/N/v1/messages                       Bash `true` for N requests of a connection, then
//       text /big/N/v1/messages                         the same with a command that prints 1 KB
//   bench_floor launch COUNT FILE -- A... -- B...  median ms, user ms and peak KiB of each,
//   alternating bench_floor turn URL COUNT BODY_BYTES FILE     microseconds of one floor turn
#include <arpa/inet.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "bench_floor: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

double MillisSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// ----------------------------------------------------------------------------------------------
// serve

std::string Event(const std::string& kind, const std::string& fields) {
  return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + fields + "}\n\n";
}

std::string Reply(const std::string& block, const std::string& delta, const char* stop) {
  return Event(
             "message_start",
             R"(,"message":{"id":"msg_1","type":"message","role":"assistant","model":"floor",)"
             R"("content":[],"stop_reason":null,"usage":{"input_tokens":100,"output_tokens":1}})") +
         Event("content_block_start", R"(,"index":0,"content_block":)" + block) +
         Event("content_block_delta", R"(,"index":0,"delta":)" + delta) +
         Event("content_block_stop", R"(,"index":0)") +
         Event("message_delta", R"(,"delta":{"stop_reason":")" + std::string(stop) +
                                    R"(","stop_sequence":null},"usage":{"output_tokens":20})") +
         Event("message_stop", "");
}

std::string TextReply() {
  return Reply(R"({"type":"text","text":""})",
               R"({"type":"text_delta","text":"The answer is forty-two."})", "end_turn");
}

std::string CallReply(size_t number, std::string_view command) {
  const std::string id = "toolu_" + std::to_string(number);
  return Reply(R"({"type":"tool_use","id":")" + id + R"(","name":"Bash","input":{}})",
               R"({"type":"input_json_delta","partial_json":"{\"command\":\")" +
                   std::string(command) + R"(\"}"})",
               "tool_use");
}

// Turns are counted on the connection, not in the body: scanning a megabyte a turn would be the
// server's cost in norma's column. A new run opens a new connection.
std::string AnswerTo(std::string_view path, size_t turn) {
  for (const auto& [prefix, command] :
       {std::pair<std::string_view, std::string_view>{"/turns/", "true"},
        std::pair<std::string_view, std::string_view>{"/big/", "printf %01000d 7"}}) {
    if (path.substr(0, prefix.size()) != prefix) continue;
    const size_t turns = std::strtoul(std::string(path.substr(prefix.size())).c_str(), nullptr, 10);
    if (turn < turns) return CallReply(turn, command);
  }
  return TextReply();
}

void SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// One connection: requests until the peer goes away.
void Serve(int fd) {
  std::string buffer;
  std::vector<char> chunk(1 << 18);
  size_t turn = 0;
  while (true) {
    size_t head = buffer.find("\r\n\r\n");
    size_t need = std::string::npos;
    if (head != std::string::npos) {
      std::string lower = buffer.substr(0, head);
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      const size_t at = lower.find("content-length:");
      const size_t length =
          at == lower.npos ? 0 : std::strtoul(lower.c_str() + at + 15, nullptr, 10);
      need = head + 4 + length;
      if (buffer.size() == head + 4 && lower.find("100-continue") != lower.npos) {
        SendAll(fd, "HTTP/1.1 100 Continue\r\n\r\n");
      }
    }
    if (need != std::string::npos && buffer.size() >= need) {
      const size_t begin = buffer.find(' ') + 1;
      const std::string path = buffer.substr(begin, buffer.find(' ', begin) - begin);
      const std::string body = AnswerTo(path, turn++);
      SendAll(fd, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: " +
                      std::to_string(body.size()) + "\r\n\r\n" + body);
      buffer.erase(0, need);
      continue;
    }
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), 0);
    if (got <= 0) break;
    buffer.append(chunk.data(), static_cast<size_t>(got));
  }
  close(fd);
}

int RunServer(const std::string& port_file) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0) Die("bind");
  if (listen(listener, 256) != 0) Die("listen");
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) Die("getsockname");
  std::ofstream(port_file + ".new") << ntohs(address.sin_port);
  if (std::rename((port_file + ".new").c_str(), port_file.c_str()) != 0) Die(port_file);
  while (true) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) Die("accept");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::thread(Serve, fd).detach();
  }
}

// ---------------------------------------------------------------------------------------------
// launch

struct Launched {
  std::vector<double> wall_ms, user_ms;
  long peak_kib = 0;
};

void LaunchOnce(std::vector<char*> arguments, const std::string& output, Launched& sum) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  arguments.push_back(nullptr);
  const auto begin = Clock::now();
  pid_t pid = 0;
  errno = posix_spawnp(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
  if (errno != 0) Die(arguments[0]);
  int status = 0;
  rusage usage{};
  if (wait4(pid, &status, 0, &usage) != pid) Die("wait4");
  sum.wall_ms.push_back(MillisSince(begin));
  sum.user_ms.push_back(static_cast<double>(usage.ru_utime.tv_sec) * 1e3 +
                        static_cast<double>(usage.ru_utime.tv_usec) / 1e3);
  sum.peak_kib = std::max(sum.peak_kib, usage.ru_maxrss);
  posix_spawn_file_actions_destroy(&files);
  if (status != 0) {
    std::fprintf(stderr, "bench_floor: %s ended with status %d\n", arguments[0], status);
    std::exit(1);
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Alternates between the commands, so that a slow moment of the machine meets all of them.
int Launch(int count, const std::string& output, const std::vector<std::vector<char*>>& commands) {
  std::vector<Launched> sums(commands.size());
  for (int i = -1; i < count; ++i) {  // the first round warms the caches and is dropped
    for (size_t k = 0; k < commands.size(); ++k) LaunchOnce(commands[k], output, sums[k]);
    if (i < 0) sums.assign(commands.size(), {});
  }
  for (const Launched& sum : sums) {
    std::printf("%.3f %.3f %ld\n", Median(sum.wall_ms), Median(sum.user_ms), sum.peak_kib);
  }
  return 0;
}

// -----------------------------------------------------------------------------------------------
// turn

size_t Swallow(char*, size_t size, size_t count, void*) {
  return size * count;
}

void AppendSynced(int fd, const std::string& line) {
  if (write(fd, line.data(), line.size()) < 0 || fdatasync(fd) != 0) Die("ledger line");
}

int Turn(const std::string& url, int count, size_t body_bytes, const std::string& file) {
  CURL* curl = curl_easy_init();
  const std::string body(body_bytes, 'x');
  const std::string line(400, 'l');
  const std::string text = line + "\n";
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (curl == nullptr || fd < 0) Die(file);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Swallow);
  std::vector<double> turns;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    if (const CURLcode code = curl_easy_perform(curl); code != CURLE_OK) {
      std::fprintf(stderr, "bench_floor: %s\n", curl_easy_strerror(code));
      return 1;
    }
    AppendSynced(fd, text);
    std::string words[] = {"bash", "-c", "true"};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t pid = 0;
    if (posix_spawnp(&pid, "bash", nullptr, nullptr, arguments, environ) != 0) Die("bash");
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) Die("waitpid");
    AppendSynced(fd, text);
    turns.push_back(MillisSince(begin));
  }
  double sum = 0;
  for (const double turn : turns) sum += turn;
  std::printf("%.3f %.3f\n", sum / count, Median(turns));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() == 3 && words[1] == "serve") return RunServer(words[2]);
  if (words.size() == 6 && words[1] == "turn") {
    return Turn(words[2], std::atoi(argv[3]), std::strtoul(argv[4], nullptr, 10), words[5]);
  }
  if (words.size() > 5 && words[1] == "launch") {
    std::vector<std::vector<char*>> commands;
    for (int i = 4; i < argc; ++i) {
      if (words[static_cast<size_t>(i)] == "--") {
        commands.emplace_back();
      } else if (!commands.empty()) {
        commands.back().push_back(argv[i]);
      }
    }
    return Launch(std::atoi(argv[2]), words[3], commands);
  }
  std::fprintf(stderr,
               "usage: bench_floor serve|launch|turn ... (see the head of bench_floor.cc)\n");
  return 2;
}
