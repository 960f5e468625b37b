#include "lib/io/process_output.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "lib/testing/temp_dir.h"

using namespace norma;
using testing::TempDir;

TEST_CASE("process: output buffers keep head and tail for every way to cut the input") {
  const std::string text = "0123456789abcdefghij";
  const TempDir folder;
  int next = 0;
  for (const size_t head : {0u, 1u, 7u, 20u, 40u}) {
    for (const size_t tail : {0u, 1u, 6u, 20u}) {
      for (size_t block = 1; block <= text.size(); ++block) {
        CAPTURE(head);
        CAPTURE(tail);
        CAPTURE(block);
        const std::string name = std::to_string(++next);
        OutputBuffer buffer(head, tail, folder / name);
        for (size_t at = 0; at < text.size(); at += block) buffer.Add(text.substr(at, block));
        const bool fits = head + tail >= text.size();
        CHECK(buffer.spilled() == !fits);
        CHECK(folder.Has(name) == !fits);
        if (!fits) CHECK(folder.Read(name) == text);
        CHECK(buffer.omitted() == (fits ? 0 : text.size() - head - tail));
        const std::string kept_tail = buffer.Tail();
        CHECK(buffer.TakeHead() == text.substr(0, head));
        CHECK(kept_tail ==
              (fits ? text.substr(std::min(head, text.size())) : text.substr(text.size() - tail)));
      }
    }
  }
}

TEST_CASE("process_output: the file is not made where a symlink in its path leads") {
  const TempDir folder;
  REQUIRE(mkdir((folder / "victim").c_str(), 0700) == 0);
  REQUIRE(symlink("victim", (folder / "private").c_str()) == 0);
  OutputBuffer output(2, 2, folder / "private/out.txt");
  output.Add("more than fits");
  CHECK_FALSE(output.spilled());
  CHECK(output.omitted() == 10);
  CHECK(access((folder / "victim/out.txt").c_str(), F_OK) != 0);
}
