#include "lib/spec/values.h"

#include <doctest/doctest.h>

#include "lib/spec/load.h"

namespace norma::spec {
namespace {

Node Plain(const std::string& text) {
  Node node;
  node.kind = NodeKind::kScalar;
  node.text = text;
  return node;
}

Node InQuotes(const std::string& text) {
  Node node = Plain(text);
  node.quoted = true;
  return node;
}

TEST_CASE("spec values: a plain scalar is classified like YAML 1.2, traps of 1.1 apart") {
  struct Case {
    const char* text;
    PlainKind kind;
  };
  for (const Case& c : {
           Case{"true", PlainKind::kBool},       Case{"false", PlainKind::kBool},
           Case{"True", PlainKind::kTrap},       Case{"yes", PlainKind::kTrap},
           Case{"No", PlainKind::kTrap},         Case{"on", PlainKind::kTrap},
           Case{"OFF", PlainKind::kTrap},        Case{"0", PlainKind::kInt},
           Case{"-7", PlainKind::kInt},          Case{"40", PlainKind::kInt},
           Case{"010", PlainKind::kTrap},        Case{"0x10", PlainKind::kTrap},
           Case{"0o7", PlainKind::kTrap},        Case{"0b1", PlainKind::kTrap},
           Case{"1_000", PlainKind::kTrap},      Case{"+5", PlainKind::kTrap},
           Case{".5", PlainKind::kTrap},         Case{"5.", PlainKind::kTrap},
           Case{".inf", PlainKind::kTrap},       Case{"-.INF", PlainKind::kTrap},
           Case{".nan", PlainKind::kTrap},       Case{"1:30", PlainKind::kTrap},
           Case{"1.5", PlainKind::kNumber},      Case{"1e400", PlainKind::kNumber},
           Case{"-0.5e-3", PlainKind::kNumber},  Case{"1.e5", PlainKind::kTrap},
           Case{"1.2.3", PlainKind::kText},      Case{"10s", PlainKind::kText},
           Case{"64KiB", PlainKind::kText},      Case{"0xyz", PlainKind::kText},
           Case{"", PlainKind::kText},           Case{".", PlainKind::kText},
           Case{"..", PlainKind::kText},         Case{"localhost:80", PlainKind::kText},
           Case{"1:99", PlainKind::kText},       Case{"-", PlainKind::kText},
           Case{"2025-01-01", PlainKind::kText}, Case{"1e", PlainKind::kText},
           Case{"infinity", PlainKind::kText},   Case{"nan", PlainKind::kText},
       }) {
    CAPTURE(std::string(c.text));
    CHECK(ClassifyPlain(c.text) == c.kind);
  }
}

TEST_CASE("spec values: whole numbers are plain decimal digits that fit into 64 bits") {
  CHECK(IntOf(Plain("0")).value() == 0);
  CHECK(IntOf(Plain("-1")).value() == -1);
  CHECK(IntOf(Plain("9223372036854775807")).value() == INT64_MAX);
  for (const char* text : {"010", "0x10", "1_000", "+5", "1.0", "1e3", "", "yes", ".nan", "1:30",
                           "99999999999999999999", "5 "}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(IntOf(Plain(text)).ok());
  }
  CHECK(IntOf(InQuotes("5")).error().message ==
        "expected a whole number, got the text \"5\"; write it without quotes");
  CHECK(IntOf(Plain("0x10")).error().message ==
        "expected a whole number, got \"0x10\"; write plain decimal digits");
  CHECK(IntOf(Plain("true")).error().message == "expected a whole number, got the boolean true");
  CHECK(IntOf(Node{}).error().message == "expected a whole number, got nothing (null)");
}

TEST_CASE("spec values: numbers are finite JSON numbers") {
  CHECK(NumberOf(Plain("0.25")).value() == 0.25);
  CHECK(NumberOf(Plain("1e-3")).value() == 0.001);
  for (const char* text : {"1e400", "-1e999", ".inf", ".nan", "nan", "0x1p3", "1_0", ".5", "+1"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(NumberOf(Plain(text)).ok());
  }
}

TEST_CASE("spec values: only true and false are booleans, and the message says so") {
  CHECK(BoolOf(Plain("true")).value());
  CHECK_FALSE(BoolOf(Plain("false")).value());
  for (const char* text : {"yes", "no", "on", "off", "True", "FALSE", "1", "0", "y"}) {
    CAPTURE(std::string(text));
    const auto value = BoolOf(Plain(text));
    REQUIRE_FALSE(value.ok());
    CHECK(value.error().message.find("true or false") != std::string::npos);
  }
  CHECK_FALSE(BoolOf(InQuotes("true")).ok());
}

TEST_CASE("spec values: text that could be a number or a switch must be quoted") {
  CHECK(TextOf(Plain("claude-sonnet-4-5")).value() == "claude-sonnet-4-5");
  CHECK(TextOf(InQuotes("no")).value() == "no");
  CHECK(TextOf(InQuotes("")).value().empty());
  for (const char* text : {"no", "4", "1.5", "true", "0x10", "1_000"}) {
    CAPTURE(std::string(text));
    const auto value = TextOf(Plain(text));
    REQUIRE_FALSE(value.ok());
    CHECK(value.error().message.find("in quotes") != std::string::npos);
  }
}

TEST_CASE("spec values: money is exact text, quoted or not") {
  CHECK(UsdOf(Plain("0.50")).value() == 500'000'000);
  CHECK(UsdOf(InQuotes("0.000000001")).value() == 1);
  for (const char* text :
       {"-0.5", "abc", "1e-3", ".50.1", ".inf", "99999999999999", "0x1", "1_0", "+1", "", " 1"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(UsdOf(Plain(text)).ok());
    CHECK_FALSE(UsdOf(InQuotes(text)).ok());
  }
}

TEST_CASE("spec values: a duration is a whole number with a unit") {
  struct Case {
    const char* text;
    int64_t ms;
  };
  for (const Case& c : {Case{"250ms", 250}, Case{"10s", 10'000}, Case{"5m", 300'000},
                        Case{"2h", 7'200'000}, Case{"0s", 0}}) {
    CAPTURE(std::string(c.text));
    const auto value = ParseDuration(c.text);
    REQUIRE(value.ok());
    CHECK(value.value() == Millis(c.ms));
  }
  for (const char* text : {"", "10", "s", "-3s", "+3s", "1.5s", "010s", "1m30s", "10 s", "10S",
                           "1d", "5 parsecs", "99999999999999999999h", "9999999h", "1_0s"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(ParseDuration(text).ok());
  }
  CHECK_FALSE(DurationOf(Plain("10")).ok());
}

TEST_CASE("spec values: a size is bytes, or a whole number with a binary unit") {
  CHECK(SizeOf(Plain("30000")).value() == 30'000);
  CHECK(SizeOf(Plain("64KiB")).value() == 65'536);
  CHECK(SizeOf(InQuotes("2MiB")).value() == 2'097'152);
  for (const char* text : {"64KB", "64k", "1.5KiB", "-1KiB", "010KiB", "9999999999999GiB", "KiB"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(SizeOf(Plain(text)).ok());
  }
  CHECK_FALSE(SizeOf(InQuotes("30000")).ok());
}

TEST_CASE(
    "spec values: JSON keeps the spelling of numbers and refuses what readers disagree about") {
  Node list;
  list.kind = NodeKind::kList;
  list.items = {Plain("1.10"), Plain("true"), Plain("word"), InQuotes("5"), Node{}};
  CHECK(JsonOf(list).value() == R"([1.10,true,"word","5",null])");
  list.items.push_back(Plain("yes"));
  CHECK_FALSE(JsonOf(list).ok());
}

}  // namespace
}  // namespace norma::spec
