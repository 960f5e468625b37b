// Quoting, the writer, Minify.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::json {
namespace {

TEST_CASE("json: quoting escapes what JSON demands and nothing else") {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"", R"("")"},
      {"plain text", R"("plain text")"},
      {"a\"b\\c/d", R"("a\"b\\c/d")"},
      {"\b\f\n\r\t", R"("\b\f\n\r\t")"},
      {std::string_view("\0\x01\x1F\x7F", 4), "\"\\u0000\\u0001\\u001f\x7F\""},
      {"\xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8", "\"\xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8\""},
      {"\xFF\xFE\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
      {"cut \xF0\x9F\x98", "\"cut \xEF\xBF\xBD\""},
      {"\xE2\x82\"", "\"\xEF\xBF\xBD\\\"\""},
  };
  for (const auto& [text, want] : rows) CHECK(Quote(text) == want);
}

TEST_CASE("json: every byte at every offset of a word is quoted so that it reads back") {
  Parser parser;
  for (size_t at = 0; at < 17; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text(17, 'x');
      text[at] = static_cast<char>(byte);
      const auto read = parser.Parse(Quote(text));
      REQUIRE(read.ok());
      CHECK(read.value().Str() == RepairUtf8(text));
    }
  }
}

TEST_CASE("json: pairs of special bytes side by side are all found") {
  Parser parser;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      std::string text = "abc__def";
      text[3] = static_cast<char>(first);
      text[4] = static_cast<char>(second);
      const auto read = parser.Parse(Quote(text));
      REQUIRE(read.ok());
      REQUIRE(read.value().Str() == RepairUtf8(text));
    }
  }
}

TEST_CASE("json: the writer places commas and colons") {
  Writer writer;
  writer.BeginObject()
      .Field("s", "text")
      .Field("i", -1)
      .Field("u", size_t{18446744073709551615U})
      .Field("b", false)
      .Key("list")
      .BeginArray()
      .Int(1)
      .Null()
      .BeginObject()
      .EndObject()
      .BeginArray()
      .EndArray()
      .Raw("{\"raw\": 1.10}")
      .Double(0.1)
      .EndArray()
      .Key("a\"b")
      .Bool(true)
      .EndObject();
  CHECK(writer.text() == R"({"s":"text","i":-1,"u":18446744073709551615,"b":false,"list":)"
                         R"([1,null,{},[],{"raw": 1.10},0.1],"a\"b":true})");
  CHECK(Document::Parse(writer.text()).ok());
}

TEST_CASE("json: doubles are written shortest and read back the same") {
  const std::pair<double, std::string_view> rows[] = {
      {0.1, "0.1"},    {1.0, "1"},      {-2.5, "-2.5"},
      {1e21, "1e+21"}, {1e-7, "1e-07"}, {1.0 / 3, "0.3333333333333333"},
      {100.0, "100"},
  };
  for (const auto& [number, want] : rows) CHECK(Writer().Double(number).text() == want);
  for (const double number : {5e-324, 1.7976931348623157e308, -0.1 - 0.2, 123456789.123456789}) {
    const Document document = Document::Parse(Writer().Double(number).text()).value();
    CHECK(document.root().Double() == number);
  }
}

TEST_CASE("json: the limits of integers are written exactly") {
  CHECK(Writer().Int(std::numeric_limits<int64_t>::min()).text() == "-9223372036854775808");
  CHECK(Writer().Uint(std::numeric_limits<uint64_t>::max()).text() == "18446744073709551615");
}

TEST_CASE("json: a writer starts afresh after Take") {
  Writer writer;
  CHECK(writer.BeginArray().Int(1).EndArray().Take() == "[1]");
  CHECK(writer.BeginArray().Int(2).EndArray().Take() == "[2]");
}

TEST_CASE("json: misuse of the writer is a bug that shows, never bad JSON") {
  CHECK_THROWS_AS(Writer().Int(1).Int(2), InternalError);
  CHECK_THROWS_AS(Writer().EndObject(), InternalError);
  CHECK_THROWS_AS(Writer().Key("k"), InternalError);
  CHECK_THROWS_AS(Writer().BeginObject().Key("k").EndObject(), InternalError);
  CHECK_THROWS_AS(Writer().BeginObject().Key("k").Key("l"), InternalError);
  CHECK_THROWS_AS(Writer().Raw(""), InternalError);
  CHECK_THROWS_AS(Writer().Double(NAN), InternalError);
  CHECK_THROWS_AS(Writer().Double(INFINITY), InternalError);
}

TEST_CASE("json: minify takes blanks out and leaves every spelling") {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {" { \"a\" : [ 1.10 , 1e3 , -0 ] ,\r\n\t\"b c\" : \"x  y\" } ",
       R"({"a":[1.10,1e3,-0],"b c":"x  y"})"},
      {R"(["\u00e9","\/","\\", "\\\" ", " \" : , "])",
       R"(["\u00e9","\/","\\","\\\" "," \" : , "])"},
      {" 1 ", "1"},
      {"\"\"", "\"\""},
      {"{}", "{}"},
      {"\n[\n]\n", "[]"},
  };
  for (const auto& row : rows) {
    const auto& text = row.first;
    const auto& want = row.second;
    CAPTURE(text);
    const auto small = Minify(text);
    REQUIRE(small.ok());
    CHECK(small.value() == want);
    CHECK(Minify(small.value()).value() == want);
  }
}

TEST_CASE("json: minify refuses what is no JSON") {
  for (const std::string_view text :
       {"", "[1,,}", "{\"a\":1,\"a\":2}", "\"open", "1 2", "\"\\ud83d\""}) {
    CHECK(Minify(text).error().code == Code::kInvalid);
  }
}

}  // namespace
}  // namespace norma::json
