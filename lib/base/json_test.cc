// The reader: what it refuses, what it answers. The writer's tests are in json_writer_test.cc.
#include "lib/base/json.h"

#include <doctest/doctest.h>

#include <limits>
#include <utility>

namespace norma::json {
namespace {

Document Must(std::string_view text, const ParseOptions& options = {}) {
  auto document = Document::Parse(text, options);
  REQUIRE_MESSAGE(document.ok(), document.error().message);
  return std::move(document).value();
}

std::string Nested(size_t levels, std::string_view inside, char open = '[') {
  const std::string opening = open == '[' ? "[" : "{\"a\":";
  std::string text;
  for (size_t i = 0; i < levels; ++i) text += opening;
  text += inside;
  text.append(levels, open == '[' ? ']' : '}');
  return text;
}

constexpr std::string_view kNoJson[] = {
    "",
    " ",
    "\n",
    "nul",
    "nulll",
    "tru",
    "True",
    "NaN",
    "Infinity",
    "-",
    "+1",
    ".5",
    "1.",
    "01",
    "0x10",
    "1e",
    "1e400",
    "-1e400",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "\"",
    "\"secret",
    "'a'",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\ud83d\"",
    "\"\\ude00\"",
    "\"\\ud83d\\u0041\"",
    "\"\\ud83d\\ud83d\"",
    "\"\\ud83dx\"",
    "\"\t\"",
    "\"\n\"",
    "\"\xFF\"",
    "\"\xC0\xAF\"",
    "\"\xED\xA0\x80\"",
    "\"\xF4\x90\x80\x80\"",
    "\xEF\xBB\xBF{}",
    "[",
    "]",
    "{",
    "}",
    "[1,,2]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "{a:1}",
    "{1:1}",
    "[1]]",
    "[1] 2",
    "{} {}",
    "{}x",
    "1 2",
    "[1,2,nope]",
    "{\"a\":1 \"b\":2}",
    "// x\n1",
    "[1] // x",
    "\"a\" \"b\"",
    "[\"secret]",
};

TEST_CASE("json: what is no JSON is refused, with a reason and none of the text") {
  for (const std::string_view text : kNoJson) {
    CAPTURE(text);
    const auto value = Document::Parse(text);
    REQUIRE_FALSE(value.ok());
    CHECK(value.error().code == Code::kInvalid);
    CHECK(value.error().message.starts_with("not valid JSON: "));
    CHECK(value.error().message.find("secret") == std::string::npos);
  }
  CHECK_FALSE(Document::Parse(std::string_view("{}\0", 3)).ok());
  CHECK_FALSE(Document::Parse(std::string_view("\"a\0b\"", 5)).ok());
  CHECK_FALSE(Document::Parse(std::string_view("\0", 1)).ok());
}

TEST_CASE("json: each kind is read as what it is") {
  const Document document = Must(
      R"( {"n":null,"t":true,"i":-7,"u":18446744073709551615,"d":1.5,"s":"x","a":[1,2],"o":{}} )");
  const Value root = document.root();
  const std::pair<std::string_view, Kind> rows[] = {
      {"n", Kind::kNull},   {"t", Kind::kBool},   {"i", Kind::kInt},   {"u", Kind::kUint},
      {"d", Kind::kDouble}, {"s", Kind::kString}, {"a", Kind::kArray}, {"o", Kind::kObject}};
  for (const auto& [key, kind] : rows) CHECK(root[key].kind() == kind);
  CHECK(root.size() == 8);
  CHECK(root["t"].Bool());
  CHECK(root["i"].Int() == -7);
  CHECK(root["u"].Uint() == UINT64_MAX);
  CHECK(root["d"].Double() == 1.5);
  CHECK(root["s"].Str() == "x");
  CHECK(root["a"].At(1).Int() == 2);
  CHECK(root["a"].size() == 2);
  CHECK(root["o"].size() == 0);
  CHECK(root["n"].is_null());
  CHECK_FALSE(root["missing"].is_null());
}

TEST_CASE("json: an absent value answers empty everywhere, a wrong type the fallback") {
  const Document document = Must(R"({"s":"x","i":1,"a":[]})");
  const Value root = document.root();
  const Value absent = root["nope"]["deeper"].At(3);
  CHECK_FALSE(absent.present());
  CHECK(absent.kind() == Kind::kNull);
  CHECK(absent.Str("f") == "f");
  CHECK(absent.Int(4) == 4);
  CHECK(absent.Uint(4) == 4);
  CHECK(absent.Double(4.5) == 4.5);
  CHECK(absent.Bool(true));
  CHECK(absent.size() == 0);
  absent.EachMember([](std::string_view, Value) { FAIL("no member"); });
  absent.EachElement([](Value) { FAIL("no element"); });
  CHECK(root["s"].Int(9) == 9);
  CHECK(root["s"].Bool(true));
  CHECK(root["i"].Str("f") == "f");
  CHECK_FALSE(root["i"]["x"].present());
  CHECK_FALSE(root["a"].At(0).present());
  CHECK_FALSE(root["s"].At(0).present());
}

TEST_CASE("json: numbers convert only without loss") {
  const std::pair<std::string_view, int64_t> rows[] = {
      {"5", 5},
      {"5.0", 5},
      {"1e3", 1000},
      {"-0.0", 0},
      {"-0", 0},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775808", INT64_MIN},
      {"-9223372036854775808.0", INT64_MIN},
      {"5.5", -1},
      {"9223372036854775808", -1},
      {"9223372036854775808.0", -1},
      {"1e300", -1},
      {"true", -1},
  };
  for (const auto& row : rows) {
    const auto& text = row.first;
    const auto& want = row.second;
    CAPTURE(text);
    CHECK(Must(text).root().Int(-1) == want);
  }
  CHECK(Must("-1").root().Uint(7) == 7);
  CHECK(Must("18446744073709551616.0").root().Uint(7) == 7);
  CHECK(Must("3").root().Double() == 3.0);
  CHECK(Must("1e308").root().Double() == 1e308);
}

TEST_CASE("json: escapes and pairs of surrogates come out as UTF-8") {
  CHECK(Must(R"("\ud83d\ude00\u00e9\n\/\"\\\u0000x")").root().Str() ==
        std::string_view("\xF0\x9F\x98\x80\xC3\xA9\n/\"\\\0x", 12));
  CHECK(Must(R"({"\u0061":1})").root()["a"].Int() == 1);
}

TEST_CASE("json: duplicate keys are refused at any depth, in small objects and in large ones") {
  const std::string_view rows[] = {
      R"({"a":1,"a":2})",
      R"({"a":1,"\u0061":2})",
      R"({"":1,"":1})",
      R"([[[{"x":{"k":1,"l":2,"k":3}}]]])",
      R"({"a":{"b":1},"c":{"b":1,"b":1}})",
      R"({"a":{"a":1},"a":1})",
  };
  for (const std::string_view text : rows) {
    CAPTURE(text);
    CHECK(Document::Parse(text).error() ==
          Error{Code::kInvalid, "not valid JSON: an object has the same key twice"});
    CHECK(Document::Parse(text, {.refuse_duplicates = false}).ok());
  }
  for (const size_t keys : {1U, 11U, 12U, 13U, 14U, 500U}) {
    std::string text = "{\"nested\":{\"k0\":1}";
    for (size_t i = 0; i < keys; ++i) text += ",\"k" + std::to_string(i) + "\":{\"nested\":[]}";
    CAPTURE(keys);
    CHECK(Must(text + "}").root().size() == keys + 1);
    CHECK_FALSE(Document::Parse(text + ",\"k0\":2}").ok());
    CHECK_FALSE(Document::Parse(text + ",\"k" + std::to_string(keys - 1) + "\":2}").ok());
  }
  CHECK(Document::Parse(R"([{"a":1},{"a":1},{"A":1,"a":1}])").ok());
}

TEST_CASE("json: depth is counted in containers, empty ones too") {
  for (const char open : {'[', '{'}) {
    const std::string empty = open == '[' ? "[]" : "{}";
    CHECK(Document::Parse(Nested(3, "1", open), {.depth_max = 3}).ok());
    CHECK(Document::Parse(Nested(2, empty, open), {.depth_max = 3}).ok());
    CHECK_FALSE(Document::Parse(Nested(4, "1", open), {.depth_max = 3}).ok());
    CHECK_FALSE(Document::Parse(Nested(3, empty, open), {.depth_max = 3}).ok());
    CHECK(Document::Parse(Nested(256, "1", open)).ok());
    CHECK(Document::Parse(Nested(257, "1", open)).error() ==
          Error{Code::kInvalid, "not valid JSON: nested deeper than 256 levels"});
  }
  CHECK(Document::Parse("1", {.depth_max = 1}).ok());
}

TEST_CASE("json: ten thousand levels are refused, closed or not") {
  for (const size_t levels : {10'000U, 1'000'000U}) {
    CHECK_FALSE(Document::Parse(Nested(levels, "")).ok());
    CHECK_FALSE(Document::Parse(Nested(levels, "1", '{')).ok());
    CHECK_FALSE(Document::Parse(std::string(levels, '[')).ok());
    CHECK_FALSE(Document::Parse(Nested(levels, ""), {.refuse_duplicates = false}).ok());
  }
}

TEST_CASE("json: walks keep the document's order") {
  std::string seen;
  const Document document = Must(R"({"z":[3,1,2],"a":{"y":1,"x":2}})");
  document.root().EachMember([&](std::string_view key, Value value) {
    seen += std::string(key) + "(";
    value.EachElement([&](Value element) { seen += std::to_string(element.Int()); });
    value.EachMember([&](std::string_view inner, Value) { seen += inner; });
    seen += ")";
  });
  CHECK(seen == "z(312)a(yx)");
}

TEST_CASE("json: a parser is used again after good, bad, large, small and deep documents") {
  Parser parser;
  const std::string large =
      "[" + std::string(200'000, ' ') + "\"" + std::string(70'000, 'x') + "\"]";
  for (int round = 0; round < 3; ++round) {
    CHECK(parser.Parse("{\"a\":1}").value()["a"].Int() == 1);
    CHECK(parser.Parse(large).value().At(0).Str().size() == 70'000);
    CHECK_FALSE(parser.Parse("[1,").ok());
    CHECK_FALSE(parser.Parse("").ok());
    CHECK_FALSE(parser.Parse(R"([{"a":1,"a":1}])").ok());
    CHECK(parser.Parse(Nested(200, "7")).ok());
    CHECK_FALSE(parser.Parse("[[1]]", {.depth_max = 1}).ok());
    CHECK(parser.Parse("[[1]]").value().At(0).At(0).Int() == 1);
  }
  Parser moved = std::move(parser);
  CHECK(moved.Parse("true").value().Bool());
}

TEST_CASE("json: every prefix of a document is refused, whatever the size of the buffer") {
  const std::string text = R"({"k":[1,-2.5e3,"\ud83d\ude00é",{"t":true,"n":null}],"z":""})";
  Parser parser;
  for (size_t cut = 0; cut < text.size(); ++cut) {
    CAPTURE(cut);
    CHECK_FALSE(parser.Parse(std::string(text, 0, cut)).ok());
  }
  CHECK(parser.Parse(text).ok());
}

TEST_CASE("json: documents of any size around the growth of the buffer are read") {
  Parser parser;
  for (size_t size = 4000; size < 4200; ++size) {
    const std::string text = "\"" + std::string(size, 'y') + "\"";
    CHECK(parser.Parse(text).value().Str().size() == size);
  }
}

TEST_CASE("json: a document lives as long as its copies") {
  Document kept;
  {
    const Document document = Must(R"({"a":"text"})");
    kept = document;
  }
  CHECK(kept.root()["a"].Str() == "text");
}

}  // namespace
}  // namespace norma::json
