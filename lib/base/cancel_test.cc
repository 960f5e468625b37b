// What every waiting place relies on: one trip wakes each poll for ever, and says why.
#include "lib/base/cancel.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

namespace norma {
namespace {

bool Readable(const Cancel& cancel, int wait_ms) {
  pollfd wait{cancel.fd(), POLLIN, 0};
  return poll(&wait, 1, wait_ms) == 1 && (wait.revents & POLLIN) != 0;
}

TEST_CASE("cancel: untripped it has no cause and wakes nobody") {
  const Cancel cancel;
  CHECK_FALSE(cancel.tripped());
  CHECK(cancel.cause() == Cancel::kNone);
  CHECK_FALSE(Readable(cancel, 0));
}

TEST_CASE("cancel: the first cause wins, and the descriptor stays readable") {
  Cancel cancel;
  cancel.Trip(SIGTERM);
  cancel.Trip(Cancel::kDeadline);
  CHECK(cancel.tripped());
  CHECK(cancel.cause() == SIGTERM);
  for (int round = 0; round < 3; ++round) CHECK(Readable(cancel, 0));
}

TEST_CASE("cancel: each cause is kept as it is") {
  for (const int cause :
       {SIGINT, SIGTERM, SIGHUP, Cancel::kDeadline, Cancel::kOutput, Cancel::kInternal}) {
    Cancel cancel;
    cancel.Trip(cause);
    CHECK(cancel.cause() == cause);
  }
}

TEST_CASE("cancel: a trip wakes every thread that polls") {
  constexpr int kFarOffMs = 60'000;
  Cancel cancel;
  std::atomic<int> woken{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (Readable(cancel, kFarOffMs) && cancel.cause() == SIGINT) ++woken;
      });
    }
    cancel.Trip(SIGINT);
  }
  CHECK(woken == 4);
}

TEST_CASE("cancel: of many threads that trip exactly one names the cause") {
  for (int round = 0; round < 50; ++round) {
    Cancel cancel;
    std::array<std::jthread, 4> threads;
    for (int i = 0; i < 4; ++i) {
      threads[static_cast<size_t>(i)] = std::jthread([&cancel, i] { cancel.Trip(i + 1); });
    }
    for (auto& thread : threads) thread.join();
    const int cause = cancel.cause();
    CHECK((cause >= 1 && cause <= 4));
    cancel.Trip(99);
    CHECK(cancel.cause() == cause);
  }
}

TEST_CASE("cancel: children do not inherit the descriptor, and a full counter never blocks") {
  Cancel cancel;
  CHECK((fcntl(cancel.fd(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((fcntl(cancel.fd(), F_GETFL) & O_NONBLOCK) != 0);
  for (int i = 0; i < 100'000; ++i) cancel.Trip(SIGINT);
  CHECK(cancel.cause() == SIGINT);
}

// A handler has no argument of its own.
std::atomic<Cancel*> signalled{nullptr};

void OnSignal(int number) {
  signalled.load()->Trip(number);
}

TEST_CASE("cancel: a signal handler may trip, and leaves errno as it was") {
  Cancel cancel;
  signalled = &cancel;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = OnSignal;
  REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
  errno = EXDEV;
  raise(SIGUSR1);
  const int errno_after = errno;
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  signalled = nullptr;
  CHECK(errno_after == EXDEV);
  CHECK(cancel.cause() == SIGUSR1);
  CHECK(Readable(cancel, 0));
}

}  // namespace
}  // namespace norma
