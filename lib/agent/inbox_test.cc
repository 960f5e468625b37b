#include "lib/agent/inbox.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

using namespace norma;
using namespace norma::agent;

namespace {

bool Readable(int fd, int wait_ms) {
  pollfd wait{fd, POLLIN, 0};
  return poll(&wait, 1, wait_ms) == 1;
}

}  // namespace

TEST_CASE("inbox: letters of another thread wake a poll and run here, in order") {
  Inbox inbox;
  std::string ran;
  const auto owner = std::this_thread::get_id();
  std::thread worker([&] {
    inbox.Post([&] { ran += std::this_thread::get_id() == owner ? "a" : "?"; });
    inbox.Post([&] { ran += "b"; });
  });
  worker.join();
  REQUIRE(Readable(inbox.fd(), 1000));
  inbox.Serve();
  CHECK(ran == "ab");
  CHECK_FALSE(Readable(inbox.fd(), 0));
}

TEST_CASE("inbox: a letter may post another, which runs at the next Serve") {
  Inbox inbox;
  int ran = 0;
  inbox.Post([&] { inbox.Post([&] { ++ran; }); });
  inbox.Serve();
  CHECK(ran == 0);
  REQUIRE(Readable(inbox.fd(), 0));
  inbox.Serve();
  CHECK(ran == 1);
}

TEST_CASE("inbox: after Close letters are refused and waiting ones are destroyed unrun") {
  Inbox inbox;
  bool ran = false;
  auto owned = std::make_shared<int>(1);
  CHECK(inbox.Post([&ran, owned] { ran = true; }));
  inbox.Close();
  CHECK(owned.use_count() == 1);
  CHECK_FALSE(inbox.Post([&ran] { ran = true; }));
  inbox.Serve();
  CHECK_FALSE(ran);
}

TEST_CASE("inbox: the tick wakes a waiting poll") {
  Inbox inbox;
  int ticks = 0;
  inbox.EveryTick(Millis{1}, [&] { ++ticks; });
  REQUIRE(Readable(inbox.fd(), 5000));
  inbox.Serve();
  CHECK(ticks == 1);
}

TEST_CASE("inbox: a reader that goes away is told once; a regular file never goes") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  Inbox inbox;
  int gone = 0;
  inbox.WatchReader(ends[1], [&] { ++gone; });
  inbox.Serve();
  CHECK(gone == 0);
  close(ends[0]);
  REQUIRE(Readable(inbox.fd(), 1000));
  inbox.Serve();
  inbox.Serve();
  CHECK(gone == 1);
  CHECK_FALSE(Readable(inbox.fd(), 0));
  close(ends[1]);

  Inbox other;
  FILE* file = tmpfile();
  other.WatchReader(fileno(file), [&] { ++gone; });
  other.Serve();
  CHECK(gone == 1);
  fclose(file);
}
