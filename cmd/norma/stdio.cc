#include "cmd/norma/stdio.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lib/base/text.h"

namespace norma::cmd {
namespace {

constexpr Millis kPollMax{60'000};
constexpr Millis kComplainMax{1'000};

// Waits until `fd` takes bytes; false when the time is over or, before that, the reader is gone.
bool WaitWritable(int fd, const Cancel& cancel, MonoTime deadline) {
  std::array<pollfd, 2> waits{pollfd{fd, POLLOUT, 0},
                              pollfd{cancel.tripped() ? -1 : cancel.fd(), POLLIN, 0}};
  const MonoTime now = SystemClock().Now();
  if (now >= deadline) return false;
  poll(waits.data(), waits.size(), PollTimeout(now, deadline, kPollMax));
  return true;
}

}  // namespace

WriteOutcome WriteAll(int fd, std::string_view bytes, const Cancel& cancel, Millis grace,
                      MonoTime deadline) {
  // A run whose time is over still has this long to say so.
  deadline = std::max(deadline, EarlierOf(kNever, SystemClock().Now(), grace));
  MonoTime stalled = EarlierOf(deadline, SystemClock().Now(), kStalledMax);
  bool hurried = false;
  while (!bytes.empty()) {
    if (cancel.tripped() && !hurried) {
      hurried = true;
      deadline = EarlierOf(deadline, SystemClock().Now(), grace);
    }
    // Polled first also for blocking descriptors: a write that blocks could not be cancelled. A
    // pipe that is writable takes PIPE_BUF bytes without blocking.
    if (!WaitWritable(fd, cancel, std::min(deadline, stalled))) return WriteOutcome::kInterrupted;
    pollfd ready{fd, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) continue;
    const bool may_block = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
    const size_t chunk = may_block ? std::min<size_t>(bytes.size(), 4096) : bytes.size();
    const ssize_t written = write(fd, bytes.data(), chunk);
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
      stalled = EarlierOf(deadline, SystemClock().Now(), kStalledMax);
      continue;
    }
    if (errno == EINTR || errno == EAGAIN) continue;
    return errno == EPIPE ? WriteOutcome::kReaderGone : WriteOutcome::kFailed;
  }
  return WriteOutcome::kDone;
}

void Complain(std::string_view text) {
  static bool deaf = false;  // nobody reads: said once is enough
  const MonoTime give_up = SystemClock().Now() + kComplainMax;
  while (!text.empty() && !deaf) {
    const MonoTime now = SystemClock().Now();
    deaf = now >= give_up;
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (deaf || poll(&ready, 1, PollTimeout(now, give_up, kComplainMax)) <= 0) continue;
    const ssize_t written = write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), 4096));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

Result<std::string> ReadAll(int fd, size_t bytes_max, MonoTime deadline, const Cancel& cancel) {
  std::string out;
  std::array<char, 65536> buffer;
  while (true) {
    if (cancel.tripped()) return Error{Code::kCancelled, "stopped while reading the prompt"};
    const MonoTime now = SystemClock().Now();
    if (now >= deadline) return Error{Code::kTimeout, "time ran out while waiting for the prompt"};
    std::array<pollfd, 2> waits{pollfd{fd, POLLIN, 0}, pollfd{cancel.fd(), POLLIN, 0}};
    if (poll(waits.data(), waits.size(), PollTimeout(now, deadline, kPollMax)) <= 0) continue;
    if (waits[0].revents == 0) continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0) return out;
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return Error{Code::kUsage, fmt::format("cannot read it: {}", std::strerror(errno))};
    }
    out.append(buffer.data(), static_cast<size_t>(got));
    if (out.size() > bytes_max) {
      return Error{Code::kUsage, fmt::format("it is larger than {} ({} bytes)",
                                             FormatBytes(bytes_max), bytes_max)};
    }
  }
}

bool ReaderIsGone(int fd) {
  pollfd state{fd, 0, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLERR | POLLNVAL)) != 0;
}

}  // namespace norma::cmd
