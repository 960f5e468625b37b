// Everything that may interrupt a waiting run thread: letters of tool workers, the progress tick, a
// stdout whose reader went away. One pollable descriptor, so that every wait of the run thread is
// poll({its own fd, cancel, inbox}). Letters run on the run thread, in the order they were posted.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "lib/base/clock.h"

namespace norma::agent {

class Inbox {
 public:
  Inbox();
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  using Letter = std::function<void()>;

  // Any thread. False after Close: the letter was dropped and nobody will ever run it.
  bool Post(Letter letter);

  // Run thread: calls `on_tick` every `interval` while somebody waits on fd().
  void EveryTick(Millis interval, std::function<void()> on_tick);
  // Run thread: calls `on_gone` once when the reader of this descriptor has closed it.
  void WatchReader(int fd, std::function<void()> on_gone);

  // Readable when Serve has something to do.
  int fd() const { return epoll_; }
  // Run thread: runs what is there and returns; never blocks.
  void Serve();
  // Run thread: no letter is taken from now on; those that wait are dropped.
  void Close();

 private:
  int epoll_ = -1;
  int letters_event_ = -1;
  int timer_ = -1;
  int watched_ = -1;
  std::function<void()> on_tick_;
  std::function<void()> on_gone_;

  std::mutex mutex_;  // guards the two below: workers post, the run thread takes
  std::vector<Letter> letters_;
  bool closed_ = false;
};

}  // namespace norma::agent
