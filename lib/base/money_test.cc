// Money must be exact: every row is compared to the nano-dollar.
#include "lib/base/money.h"

#include <doctest/doctest.h>

#include <limits>
#include <utility>

namespace norma {
namespace {

TEST_CASE("money: plain decimals are read exactly") {
  const std::pair<std::string_view, Nano> rows[] = {
      {"0", 0},
      {"0.50", 500'000'000},
      {"0.5", 500'000'000},
      {"10", 10'000'000'000},
      {"0.000000001", 1},
      {"0.006048", 6'048'000},
      {"3.000000000", 3'000'000'000},
      {"0.1", 100'000'000},
      {"18.75", 18'750'000'000},
      {"9000000000", 9'000'000'000'000'000'000},
      {"9000000000.000000000", 9'000'000'000'000'000'000},
      {"8999999999.999999999", 8'999'999'999'999'999'999},
  };
  for (const auto& row : rows) {
    const auto& text = row.first;
    const auto& want = row.second;
    CAPTURE(text);
    const auto amount = ParseUsd(text);
    REQUIRE(amount.ok());
    CHECK(amount.value() == want);
  }
}

TEST_CASE("money: everything else is refused") {
  const std::string_view rows[] = {
      "",
      " ",
      ".",
      "1.",
      ".5",
      ".50.1",
      "1.2.3",
      "1e-3",
      "1E3",
      "-0.5",
      "+1",
      "$1",
      " 1",
      "1 ",
      "1\n",
      "1,5",
      "1,000",
      "1_000",
      "0x10",
      "inf",
      "nan",
      "0.0000000001",
      "1.0000000000",
      "9000000000.000000001",
      "9000000001",
      "99999999999",
      "999999999999999999999999999999",
      "00.5",
      "007",
      "\xD9\xA1",
      "0.5\xC2\xA0",
      "--1",
      "1.-5",
  };
  for (const std::string_view text : rows) {
    CAPTURE(text);
    const auto amount = ParseUsd(text);
    REQUIRE_FALSE(amount.ok());
    CHECK(amount.error().code == Code::kInvalid);
  }
  CHECK_FALSE(ParseUsd(std::string_view("1\0", 2)).ok());
  CHECK_FALSE(ParseUsd(std::string(100'000, '1')).ok());
}

TEST_CASE("money: a refusal says what is wrong, in printable text of bounded length") {
  CHECK(ParseUsd("0.0000000001").error() ==
        Error{Code::kInvalid,
              "\"0.0000000001\" is no amount in USD: at most nine decimals are kept"});
  CHECK(ParseUsd("1\x1b[31m").error().message.starts_with("\"1?[31m\" is no amount"));
  CHECK(ParseUsd(std::string(100'000, '1')).error().message.size() < 200);
}

TEST_CASE("money: amounts are written exactly and shortest") {
  const std::pair<Nano, std::string_view> rows[] = {
      {0, "0"},
      {500'000'000, "0.5"},
      {6'048'000, "0.006048"},
      {1, "0.000000001"},
      {1'000'000'000, "1"},
      {10'000'000'000, "10"},
      {100'000'000'001, "100.000000001"},
      {-1, "-0.000000001"},
      {-2'500'000'000, "-2.5"},
      {std::numeric_limits<Nano>::max(), "9223372036.854775807"},
      {std::numeric_limits<Nano>::min(), "-9223372036.854775808"},
  };
  for (const auto& [amount, want] : rows) CHECK(FormatUsd(amount) == want);
}

TEST_CASE("money: what was written reads back") {
  for (Nano amount = 1; amount > 0 && amount < 9'000'000'000'000'000'000 / 7; amount *= 7) {
    const auto again = ParseUsd(FormatUsd(amount));
    REQUIRE(again.ok());
    CHECK(again.value() == amount);
  }
}

TEST_CASE("money: a sum stops at the limits") {
  constexpr Nano kMax = std::numeric_limits<Nano>::max();
  constexpr Nano kMin = std::numeric_limits<Nano>::min();
  CHECK(SaturatingAdd(1, 2) == 3);
  CHECK(SaturatingAdd(kMax, 1) == kMax);
  CHECK(SaturatingAdd(kMin, -1) == kMin);
  CHECK(SaturatingAdd(kMax, kMin) == -1);
}

}  // namespace
}  // namespace norma
