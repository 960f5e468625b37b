// Raw pieces of JSON, and what is made of damaged text.
#include "lib/llm/json_text.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/base/json.h"

using namespace norma;
using namespace norma::llm;

TEST_CASE("json text: members come out as they were written") {
  const std::string_view text = R"( { "a" : { "x":"}\"" , "y":[1,{"b":2}] } , "b\"":1 ,)"
                                R"("b":-1.50e3,"s":"q\\", "t":true,"n" : null , "b":9 } )";
  CHECK(RawMember(text, "a") == R"({ "x":"}\"" , "y":[1,{"b":2}] })");
  CHECK(RawMember(text, "b") == "-1.50e3");
  CHECK(RawMember(text, "s") == R"("q\\")");
  CHECK(RawMember(text, "t") == "true");
  CHECK(RawMember(text, "n") == "null");
  CHECK(RawMember(text, "x").empty());
  CHECK(RawMember("[1]", "x").empty());
  CHECK(RawMember("", "x").empty());
  CHECK(RawMember("{}", "x").empty());
}

TEST_CASE("json text: elements come out as they were written") {
  const auto elements = [](std::string_view text) {
    std::vector<std::string> out;
    EachRawElement(text, [&](std::string_view raw) { out.emplace_back(raw); });
    return out;
  };
  using Strings = std::vector<std::string>;
  CHECK(elements(R"([ 1 , "a,]" ,[2,3], {"k":[ ]} ,null])") ==
        Strings{"1", "\"a,]\"", "[2,3]", R"({"k":[ ]})", "null"});
  CHECK(elements("[]").empty());
  CHECK(elements(" [ ] ").empty());
  CHECK(elements("{}").empty());
}

TEST_CASE("json text: the scanner survives every cut of a document") {
  const std::string text = R"({"a":[1,{"b":"c\"d"}],"e":{"f":[[]]},"g":"\\"})";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EachRawMember(text.substr(0, cut), [](std::string_view, std::string_view raw) {
      EachRawElement(raw, [](std::string_view) {});
      EachRawMember(raw, [](std::string_view, std::string_view) {});
    });
  }
}

TEST_CASE("json text: lone surrogates and bad bytes become U+FFFD") {
  struct Row {
    std::string text, want;
  };
  const std::vector<Row> rows = {
      {R"("\ud83d\ude00")", R"("\ud83d\ude00")"},
      {R"("\ud83d")", R"("\ufffd")"},
      {R"("\ude00")", R"("\ufffd")"},
      {R"("\uD83D\n")", R"("\ufffd\n")"},
      {R"("\ud83d\ud83d\ude00")", R"("\ufffd\ud83d\ude00")"},
      {R"("\\ud83d")", R"("\\ud83d")"},
      {R"("\\\ud83d")", R"("\\\ufffd")"},
      {R"("\ud83)", R"("\ud83)"},
      {"\"a\xff\"", "\"a\xEF\xBF\xBD\""},
      {"\"\\", "\"\\"},
      {"", ""},
  };
  for (const Row& row : rows) CHECK(RepairJsonText(row.text) == row.want);
}
