// Cancel is one eventfd: trip it from a signal handler or a deadline, put fd() into every poll.
// Deliberately knows no reasons beyond a number: what a trip means is decided by who reads cause().
#pragma once

#include <atomic>

namespace norma {

class Cancel {
 public:
  // Why the run stops. A positive value is a signal number.
  static constexpr int kNone = 0;
  static constexpr int kDeadline = -1;  // the hard wall limit passed
  static constexpr int kOutput = -2;    // the reader of stdout went away
  static constexpr int kInternal = -3;  // an error of the run itself (ledger, sibling call)

  Cancel();
  ~Cancel();
  Cancel(const Cancel&) = delete;
  Cancel& operator=(const Cancel&) = delete;

  // The first cause wins. Async-signal-safe; any thread.
  void Trip(int cause) noexcept;

  bool tripped() const noexcept { return cause_.load(std::memory_order_acquire) != kNone; }
  int cause() const noexcept { return cause_.load(std::memory_order_acquire); }

  // Readable from the first Trip on, for ever.
  int fd() const noexcept { return fd_; }

 private:
  std::atomic<int> cause_{kNone};
  static_assert(std::atomic<int>::is_always_lock_free);
  int fd_;
};

}  // namespace norma
