#include "lib/agent/inbox.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "lib/base/result.h"

namespace norma::agent {
namespace {

void Watch(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  // Regular files cannot be watched (EPERM): their reader cannot go away either.
  [[maybe_unused]] const int added = epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

void Drain(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof count);
}

}  // namespace

Inbox::Inbox()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), letters_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  NORMA_CHECK(epoll_ >= 0 && letters_event_ >= 0);
  Watch(epoll_, letters_event_, EPOLLIN);
}

Inbox::~Inbox() {
  close(letters_event_);
  if (timer_ >= 0) close(timer_);
  close(epoll_);
}

bool Inbox::Post(Letter letter) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  letters_.push_back(std::move(letter));
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(letters_event_, &one, sizeof one);
  return true;
}

void Inbox::EveryTick(Millis interval, std::function<void()> on_tick) {
  NORMA_CHECK(timer_ < 0 && interval.count() > 0);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  NORMA_CHECK(timer_ >= 0);
  itimerspec spec{};
  spec.it_interval.tv_sec = interval.count() / 1000;
  spec.it_interval.tv_nsec = (interval.count() % 1000) * 1'000'000;
  spec.it_value = spec.it_interval;
  timerfd_settime(timer_, 0, &spec, nullptr);
  on_tick_ = std::move(on_tick);
  Watch(epoll_, timer_, EPOLLIN);
}

void Inbox::WatchReader(int fd, std::function<void()> on_gone) {
  watched_ = fd;
  on_gone_ = std::move(on_gone);
  Watch(epoll_, fd, 0);  // EPOLLERR and EPOLLHUP are always reported
}

void Inbox::Serve() {
  std::array<epoll_event, 4> events{};
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (fd == timer_) {
      Drain(timer_);
      on_tick_();
    } else if (fd == watched_) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, watched_, nullptr);
      watched_ = -1;
      on_gone_();
    }
  }
  std::vector<Letter> letters;
  {
    std::lock_guard lock(mutex_);
    Drain(letters_event_);
    letters.swap(letters_);
  }
  for (const Letter& letter : letters) letter();
}

void Inbox::Close() {
  std::vector<Letter> dropped;  // destroyed outside the lock: a letter may own anything
  std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(letters_);
}

}  // namespace norma::agent
