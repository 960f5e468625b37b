// The vectors of FIPS 180-4, and the ways to call it.
#include "lib/base/sha256.h"

#include <doctest/doctest.h>

#include <utility>

#include "lib/base/result.h"

namespace norma {
namespace {

TEST_CASE("sha256: the standard's vectors") {
  const std::pair<std::string, std::string_view> rows[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [bytes, want] : rows) CHECK(Sha256Hex(bytes) == want);
}

TEST_CASE("sha256: pieces give the digest of the whole, however cut") {
  const std::string text = "line one\nline two\0 with a NUL";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 sha;
    sha.Update(std::string_view(text).substr(0, cut));
    sha.Update("");
    Sha256 moved = std::move(sha);
    moved.Update(std::string_view(text).substr(cut));
    CHECK(moved.FinishHex() == Sha256Hex(text));
  }
}

TEST_CASE("sha256: a second finish is a bug of the caller and says so") {
  Sha256 sha;
  CHECK(sha.FinishHex() == Sha256Hex(""));
  CHECK_THROWS_AS(sha.FinishHex(), InternalError);
  CHECK_THROWS_AS(sha.Update("x"), InternalError);
}

}  // namespace
}  // namespace norma
