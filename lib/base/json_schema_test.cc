// Tables of (schema, document, message); an empty message means that the document fits.
#include "lib/base/json_schema.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace norma {
namespace {

JsonSchema Must(std::string_view schema) {
  auto compiled = JsonSchema::Compile(schema);
  REQUIRE_MESSAGE(compiled.ok(), compiled.error().message);
  return std::move(compiled).value();
}

std::string Fault(const JsonSchema& schema, std::string_view document) {
  const Status status = schema.Validate(document);
  if (status.ok()) return "";
  CHECK(status.error().code == Code::kInvalid);
  return status.error().message;
}

struct Row {
  std::string_view document;
  std::string_view fault;
};

void CheckRows(std::string_view schema_text, const std::vector<Row>& rows) {
  const JsonSchema schema = Must(schema_text);
  for (const Row& row : rows) {
    CAPTURE(schema_text);
    CAPTURE(row.document);
    CHECK(Fault(schema, row.document) == row.fault);
  }
}

TEST_CASE("json schema: a fault of a tool's input names its path and what must be there") {
  constexpr std::string_view kMultiEdit = R"({
    "$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://x.example/multi-edit",
    "title": "MultiEdit", "description": null, "type": "object",
    "properties": {
      "file_path": {"type": "string", "minLength": 1, "description": "where"},
      "edits": {"type": "array", "minItems": 1, "items": {
        "type": "object",
        "properties": {"old_string": {"type": "string"}, "new_string": {"type": "string"},
                       "replace_all": {"type": "boolean", "default": false}},
        "required": ["old_string", "new_string"], "additionalProperties": false}}},
    "required": ["file_path", "edits"]})";
  CheckRows(
      kMultiEdit,
      {
          {R"({"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]})", ""},
          {R"({"file_path":"a","edits":[{"old_string":"x","new_string":"y"}],"unknown":1})", ""},
          {R"({"file_path":"a","edits":[{"old_string":7,"new_string":"y"}]})",
           "input.edits[0].old_string: must be a string"},
          {R"({"edits":[]})", "input: missing required property 'file_path'"},
          {R"({})", "input: missing required property 'file_path'"},
          {R"({"file_path":1})", "input: missing required property 'edits'"},
          {R"({"file_path":"a","edits":[]})", "input.edits: must have at least 1 elements"},
          {R"({"file_path":null,"edits":[1]})", "input.file_path: must be a string"},
          {R"({"file_path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"x"}]})",
           "input.edits[1]: missing required property 'new_string'"},
          {R"({"file_path":"a","edits":[{"old_string":"","new_string":"","replaceall":true}]})",
           "input.edits[0]: unknown property 'replaceall' (did you mean 'replace_all'?)"},
          {R"({"file_path":"a","edits":"x"})", "input.edits: must be an array"},
          {"[]", "input: must be an object"},
          {"null", "input: must be an object"},
      });
}

TEST_CASE("json schema: what is no strict JSON is a fault too") {
  const JsonSchema schema = Must("{}");
  for (const std::string_view text :
       {"", " ", "{", "[1,,2]", R"({"a":1,"a":2})", R"([{"x":{"a":1,"a":1}}])", "{} {}",
        R"("\ud83d")", "\xFF", "123456789012345678901", "1e400"}) {
    CAPTURE(text);
    CHECK(Fault(schema, text).starts_with("input: not valid JSON: "));
  }
  CHECK(schema.Validate("{", "answer").error().message.starts_with("answer: "));
}

TEST_CASE("json schema: types, with integral floats as integers") {
  CheckRows(R"({"type":"integer"})", {{"1", ""},
                                      {"1.0", ""},
                                      {"1e3", ""},
                                      {"-0.0", ""},
                                      {"18446744073709551615", ""},
                                      {"1.5", "input: must be an integer"},
                                      {"\"1\"", "input: must be an integer"},
                                      {"1e300", "input: must be an integer"},
                                      {"true", "input: must be an integer"}});
  CheckRows(R"({"type":"number"})", {{"1", ""}, {"1.5", ""}, {"\"1\"", "input: must be a number"}});
  CheckRows(R"({"type":"boolean"})", {{"true", ""},
                                      {"0", "input: must be true or false"},
                                      {"\"true\"", "input: must be true or false"}});
  CheckRows(R"({"type":"null"})",
            {{"null", ""}, {"\"\"", "input: must be null"}, {"0", "input: must be null"}});
  CheckRows(
      R"({"type":["null","string","array"]})",
      {{"null", ""}, {"\"\"", ""}, {"[]", ""}, {"1", "input: must be an array, a string or null"}});
  CheckRows("true", {{"1", ""}, {"{}", ""}});
  CheckRows("false", {{"1", "input: is not allowed"}});
  CheckRows("{}", {{"null", ""}, {"[[]]", ""}});
}

TEST_CASE("json schema: numbers") {
  CheckRows(R"({"minimum":1,"maximum":5})", {{"1", ""},
                                             {"5.0", ""},
                                             {"0", "input: must be at least 1"},
                                             {"5.1", "input: must be at most 5"},
                                             {"\"9\"", ""}});
  CheckRows(
      R"({"exclusiveMinimum":0,"exclusiveMaximum":1.5})",
      {{"1", ""}, {"0", "input: must be more than 0"}, {"1.5", "input: must be less than 1.5"}});
  CheckRows(R"({"multipleOf":3})", {{"9", ""},
                                    {"9.0", ""},
                                    {"10", "input: must be a multiple of 3"},
                                    {"9.5", "input: must be a multiple of 3"},
                                    {"\"x\"", ""}});
  CheckRows(
      R"({"multipleOf":0.01})",
      {{"4.35", ""}, {"19.99", ""}, {"0", ""}, {"4.355", "input: must be a multiple of 0.01"}});
  CheckRows(R"({"minimum":9007199254740993})",
            {{"9007199254740991", "input: must be at least 9007199254740992"}});
}

TEST_CASE("json schema: strings are measured in code points") {
  CheckRows(R"({"minLength":2,"maxLength":3.0})",
            {{"\"ab\"", ""},
             {"\"\xF0\x9F\x98\x80\xC3\xA9z\"", ""},
             {R"("\ud83d\ude00\u0000")", ""},
             {"\"\xF0\x9F\x98\x80\"", "input: must have at least 2 characters"},
             {"\"abcd\"", "input: must have at most 3 characters"},
             {"12345", ""}});
}

TEST_CASE("json schema: patterns run on RE2, anywhere in the string") {
  CheckRows(
      R"({"pattern":"^[a-z]+[0-9]$"})",
      {{"\"ab1\"", ""}, {"\"AB1\"", "input: must match the pattern ^[a-z]+[0-9]$"}, {"7", ""}});
  CheckRows(R"({"pattern":"b"})", {{"\"abc\"", ""}, {"\"ac\"", "input: must match the pattern b"}});
  CheckRows(R"({"pattern":"^(?<year>\\d{4})-\\u00e9\\u{1F600}\\ud83d\\ude00\\/$"})",
            {{"\"2026-\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80/\"", ""}});
  CheckRows(R"({"pattern":"^\\\\u0041$"})", {{R"("\\u0041")", ""}});
  // The line length at which std::regex overflows the stack, and the pattern that never ends there.
  const JsonSchema hostile = Must(R"({"pattern":"^(a+)+$"})");
  CHECK(Fault(hostile, "\"" + std::string(2'000'000, 'a') + "\"").empty());
  CHECK_FALSE(Fault(hostile, "\"" + std::string(2'000'000, 'a') + "!\"").empty());
}

TEST_CASE("json schema: formats with a standard are asserted, all others are notes") {
  CheckRows(R"({"format":"date"})", {{"\"2024-02-29\"", ""},
                                     {"\"2023-02-29\"", "input: must be a date as in RFC 3339"},
                                     {"\"2024-2-9\"", "input: must be a date as in RFC 3339"},
                                     {"5", ""}});
  CheckRows(R"({"format":"time"})", {{"\"23:59:60Z\"", ""},
                                     {"\"10:00:00.123+05:30\"", ""},
                                     {"\"24:00:00Z\"", "input: must be a time as in RFC 3339"},
                                     {"\"10:00:00\"", "input: must be a time as in RFC 3339"},
                                     {"\"10:00:00.Z\"", "input: must be a time as in RFC 3339"}});
  CheckRows(R"({"format":"date-time"})",
            {{"\"2026-12-01T03:28:29Z\"", ""},
             {"\"2026-12-01\"", "input: must be a date-time as in RFC 3339"}});
  CheckRows(R"({"format":"uri"})", {{"\"no uri\"", ""}});
  CheckRows(R"({"format":"made-up"})", {{"\"x\"", ""}});
}

TEST_CASE("json schema: enum and const compare values, not spellings") {
  CheckRows(R"({"enum":["a",1,null,{"x":[1],"y":2}]})",
            {{"\"a\"", ""},
             {"1.0", ""},
             {"null", ""},
             {R"({"y":2.0,"x":[1]})", ""},
             {"\"b\"", R"(input: must be one of "a", 1, null, {"x":[1],"y":2})"},
             {"\"1\"", R"(input: must be one of "a", 1, null, {"x":[1],"y":2})"}});
  CheckRows(R"({"const":[1,{"a":true}]})",
            {{R"([1.0,{"a":true}])", ""}, {"[1]", R"(input: must be [1,{"a":true}])"}});
  CheckRows(R"({"const":false})", {{"false", ""}, {"0", "input: must be false"}});
  CheckRows(R"({"const":9007199254740993})",
            {{"9007199254740993", ""}, {"9007199254740992", "input: must be 9007199254740993"}});
  CheckRows(R"({"const":1,"enum":[1,2]})", {{"1", ""}, {"2", "input: must be 1"}});
  CheckRows(R"({"enum":["a\u0000b"]})",
            {{R"("a\u0000b")", ""}, {R"("a")", R"(input: must be "a\u0000b")"}});
}

TEST_CASE("json schema: arrays") {
  CheckRows(R"({"items":[{"type":"string"},{"type":"integer"}],"additionalItems":false})",
            {{R"(["a",1])", ""},
             {R"(["a"])", ""},
             {R"([1])", "input[0]: must be a string"},
             {R"(["a",1,2])", "input: must have at most 2 elements"},
             {"{}", ""}});
  CheckRows(R"({"items":[{}],"additionalItems":{"type":"null"}})",
            {{"[1,null]", ""}, {"[1,2]", "input[1]: must be null"}});
  CheckRows(R"({"items":[{}]})", {{"[1,2,3]", ""}});
  CheckRows(R"({"items":false})", {{"[]", ""}, {"[1]", "input[0]: is not allowed"}});
  CheckRows(R"({"minItems":1,"maxItems":2})", {{"[1]", ""},
                                               {"[]", "input: must have at least 1 elements"},
                                               {"[1,2,3]", "input: must have at most 2 elements"}});
  CheckRows(R"({"uniqueItems":true})",
            {{"[1,2,\"1\",[1],{\"a\":1}]", ""},
             {"[1,2,1.0]", "input: has equal elements at 0 and 2"},
             {R"([{"a":1,"b":2},{"b":2,"a":1}])", "input: has equal elements at 0 and 1"}});
  CheckRows(R"({"uniqueItems":false})", {{"[1,1]", ""}});
  CheckRows(R"({"contains":{"type":"string"}})",
            {{"[1,\"a\"]", ""},
             {"[1]", "input: must contain an element that fits 'contains'"},
             {"[]", "input: must contain an element that fits 'contains'"}});
}

TEST_CASE("json schema: objects") {
  CheckRows(R"({"properties":{"a":{"type":"string"}},)"
            R"("patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false})",
            {{R"({"a":"1","x-b":1})", ""},
             {R"({"x-b":"1"})", "input.x-b: must be an integer"},
             {R"({"b":1})", "input: unknown property 'b'"}});
  CheckRows(R"({"additionalProperties":{"type":"integer"}})",
            {{R"({"a":1})", ""},
             {R"({"a b":"x"})", R"(input["a b"]: must be an integer)"},
             {R"({"":"x"})", R"(input[""]: must be an integer)"}});
  CheckRows(R"({"properties":{"a":false}})",
            {{"{}", ""}, {R"({"a":1})", "input.a: is not allowed"}});
  CheckRows(R"({"minProperties":1,"maxProperties":1})",
            {{R"({"a":1})", ""}, {"{}", "input: must have at least 1 properties"}});
  CheckRows(R"({"propertyNames":{"pattern":"^[a-z]+$"}})",
            {{R"({"abc":1})", ""},
             {R"({"A":1})", "input: the name 'A' must match the pattern ^[a-z]+$"}});
  CheckRows(R"({"dependencies":{"a":["b"],"c":{"required":["d"]}}})",
            {{R"({"a":1,"b":2})", ""},
             {R"({"a":1})", "input: missing property 'b', which 'a' needs"},
             {R"({"c":1})", "input: missing required property 'd'"},
             {R"({"b":1})", ""}});
  CheckRows(R"({"properties":{"$ref":{"type":"string"},"type":{"type":"string"},)"
            R"("pattern":{}},"required":["type"]})",
            {{R"({"type":"x","$ref":"y","pattern":"("})", ""},
             {R"({"type":1})", "input.type: must be a string"}});
}

TEST_CASE("json schema: alternatives report what was most likely meant") {
  CheckRows(R"({"anyOf":[{"type":"string"},{"type":"null"}]})",
            {{"null", ""}, {"\"x\"", ""}, {"1", "input: must be a string or null"}});
  CheckRows(
      R"({"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{"type":"integer"}}}]})",
      {{R"({"a":"x"})",
        "input: fits none of 2 alternatives; the nearest fails with input.a: must be an integer"}});
  CheckRows(R"({"oneOf":[{"minimum":1},{"maximum":5}]})",
            {{"0", ""}, {"9", ""}, {"3", "input: fits more than one alternative of 'oneOf'"}});
  CheckRows(R"({"oneOf":[{"required":["a"]}]})", {{"{}", "input: missing required property 'a'"}});
  CheckRows(R"({"allOf":[{"minimum":1},{"maximum":5}]})",
            {{"3", ""}, {"9", "input: must be at most 5"}});
  CheckRows(R"({"not":{"type":"string"}})",
            {{"1", ""}, {"\"x\"", "input: has the form that 'not' excludes"}});
  CheckRows(R"({"if":{"properties":{"k":{"const":"a"}},"required":["k"]},)"
            R"("then":{"required":["x"]},"else":{"required":["y"]}})",
            {{R"({"k":"a","x":1})", ""},
             {R"({"k":"b","y":1})", ""},
             {R"({"k":"a","y":1})", "input: missing required property 'x'"},
             {R"({"x":1})", "input: missing required property 'y'"}});
  CheckRows(R"({"then":{"required":["x"]}})", {{"{}", ""}});
  CheckRows(R"({"not":{"not":{"anyOf":[{"type":"string"},{"not":{"type":"null"}}]}}})",
            {{"1", ""}, {"null", "input: has the form that 'not' excludes"}});
}

TEST_CASE("json schema: references inside the schema, recursive ones too") {
  CheckRows(
      R"({"definitions":{"node":{"type":"object",)"
      R"("properties":{"next":{"$ref":"#/definitions/node"},"v":{"type":"integer"}},)"
      R"("required":["v"]}},"$ref":"#/definitions/node"})",
      {{R"({"v":1,"next":{"v":2,"next":{"v":3}}})", ""},
       {R"({"v":1,"next":{"v":2,"next":{"v":"x"}}})", "input.next.next.v: must be an integer"},
       {R"({"v":1,"next":{}})", "input.next: missing required property 'v'"}});
  CheckRows(R"({"properties":{"a":{"$ref":"#"}},"additionalProperties":false})",
            {{R"({"a":{"a":{}}})", ""}, {R"({"a":{"b":1}})", "input.a: unknown property 'b'"}});
  CheckRows(R"({"$defs":{"a/b":{"type":"string"},"c~d":{"type":"null"},)"
            R"("e f":{"type":"array"}},"items":[{"$ref":"#/$defs/a~1b"},)"
            R"({"$ref":"#/$defs/c~0d"},{"$ref":"#/$defs/e%20f"}]})",
            {{R"(["x",null,[]])", ""},
             {"[1]", "input[0]: must be a string"},
             {R"(["x",1])", "input[1]: must be null"},
             {R"(["x",null,1])", "input[2]: must be an array"}});
  CheckRows(
      R"({"allOf":[{"type":"string"},{"minLength":2}],"properties":{"x":{"$ref":"#/allOf/1"}}})",
      {{"\"ab\"", ""}});
  // Draft-07 ignores what stands beside a $ref.
  CheckRows(R"({"definitions":{"s":{"type":"string"}},)"
            R"("properties":{"a":{"$ref":"#/definitions/s","maxLength":1,"description":"d"}}})",
            {{R"({"a":"long"})", ""}, {R"({"a":1})", "input.a: must be a string"}});
  // A sub-schema reached by $ref with propertyNames: valijson alone mixes the two up.
  CheckRows(R"({"definitions":{"m":{"type":"object","propertyNames":{"maxLength":2}}},)"
            R"("items":{"$ref":"#/definitions/m"}})",
            {{R"([{"ab":1}])", ""},
             {R"([{"abc":1}])", "input[0]: the name 'abc' must have at most 2 characters"}});
}

TEST_CASE("json schema: what is no draft-07 schema is refused when compiled, with the place") {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {R"({"type":"objekt"})",
       "bad JSON schema at #/type: unknown type \"objekt\" (array, boolean, integer, null, number, "
       "object or string)"},
      {R"({"properties":{"a":{"type":"any"}}})",
       "bad JSON schema at #/properties/a/type: unknown type \"any\" (array, boolean, integer, "
       "null, number, object or string)"},
      {R"({"properties":{"a/b":{"minLength":-1}}})",
       "bad JSON schema at #/properties/a~1b/minLength: must be a whole number, 0 or more"},
      {R"({"items":7})", "bad JSON schema at #/items: a schema must be an object, true or false"},
      {R"({"$ref":"https://example.com/s.json"})",
       "bad JSON schema at #: $ref to another document; only references inside the schema are "
       "followed (\"#/definitions/…\")"},
      {R"({"items":{"$ref":"#/definitions/none"}})",
       "bad JSON schema at #/items: $ref to nothing: \"#/definitions/none\""},
      {R"({"$ref":"#"})", "bad JSON schema at #: a chain of $ref that only leads to other $ref"},
      {"[]", "bad JSON schema at #: a schema must be an object, true or false"},
      {"{", "bad JSON schema at #: not valid JSON: commas, colons, brackets or text after the end"},
      {R"({"a":1,"a":2})",
       "bad JSON schema at #: not valid JSON: an object has the same key twice"},
  };
  for (const auto& row : rows) {
    const auto& schema = row.first;
    const auto& want = row.second;
    CAPTURE(schema);
    const auto compiled = JsonSchema::Compile(schema);
    REQUIRE_FALSE(compiled.ok());
    CHECK(compiled.error() == Error{Code::kInvalid, std::string(want)});
  }
}

TEST_CASE("json schema: a keyword with a value of the wrong shape is refused when compiled") {
  const std::string_view refused[] = {
      R"_({"type":[]})_",
      R"_({"type":[{"type":"string"}]})_",
      R"_({"type":null})_",
      R"_({"pattern":"("})_",
      R"_({"pattern":"(?=x)"})_",
      R"_({"pattern":1})_",
      R"_({"patternProperties":{"(":{}}})_",
      R"_({"pattern":"a\u0000b"})_",
      R"_({"properties":[]})_",
      R"_({"properties":{"a\u0000":{}}})_",
      R"_({"required":"a"})_",
      R"_({"required":[1]})_",
      R"_({"enum":1})_",
      R"_({"enum":[]})_",
      R"_({"minimum":"5"})_",
      R"_({"exclusiveMinimum":true})_",
      R"_({"multipleOf":0})_",
      R"_({"multipleOf":-1})_",
      R"_({"maxItems":1.5})_",
      R"_({"maxItems":1e30})_",
      R"_({"uniqueItems":1})_",
      R"_({"allOf":[]})_",
      R"_({"anyOf":{}})_",
      R"_({"oneOf":[1]})_",
      R"_({"not":1})_",
      R"_({"if":1})_",
      R"_({"format":1})_",
      R"_({"dependencies":{"a":1}})_",
      R"_({"dependencies":{"a":[1]}})_",
      R"_({"definitions":{"unused":{"type":"objekt"}}})_",
      R"_({"$ref":1})_",
      R"_({"$ref":"other.json#/a"})_",
      R"_({"$ref":"#name"})_",
      R"_({"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}})_",
      R"_()_",
      R"_(1)_",
      R"_(null)_",
      R"_("x")_",
      R"_({"minLength":"1"})_",
      R"_({"additionalProperties":1})_",
      R"_({"items":[1]})_",
      R"_({"propertyNames":1})_",
  };
  for (const std::string_view schema : refused) {
    CAPTURE(schema);
    CHECK(JsonSchema::Compile(schema).error().code == Code::kInvalid);
  }
}

TEST_CASE(
    "json schema: words that are no keywords, and our own inside a stranger's schema, say "
    "nothing") {
  CheckRows(R"({"$norma-ref":99,"$norma-enum":7,"$norma-required":3,"$norma-pattern":1,)"
            R"("$norma-format":5})",
            {{"1", ""}});
  CheckRows(R"({"nullable":true,"x-foo":{"type":"objekt"},"extends":1,"disallow":"x",)"
            R"("divisibleBy":0,"id":7,"title":9,"examples":[{"$ref":"x"}],)"
            R"("default":{"type":"q"}})",
            {{"1", ""}});
}

TEST_CASE("json schema: a schema that leads nowhere ends with an error, not with the stack") {
  CHECK(Fault(Must(R"({"allOf":[{"$ref":"#"}]})"), "1") ==
        "input: nests too deep for its schema (or the schema refers to itself)");
  CHECK(Fault(Must(R"({"not":{"$ref":"#"}})"), "1") ==
        "input: nests too deep for its schema (or the schema refers to itself)");
  CHECK(Fault(Must(R"({"anyOf":[{"$ref":"#"},{"$ref":"#"}]})"), "1") ==
        "input: nests too deep for its schema (or the schema refers to itself)");
  // Two to the thirtieth ways to fail.
  std::string doubling = R"({"definitions":{"d0":{"type":"string"})";
  for (int i = 1; i <= 30; ++i) {
    const std::string below = R"({"$ref":"#/definitions/d)" + std::to_string(i - 1) + "\"}";
    doubling += ",\"d" + std::to_string(i) + R"(":{"anyOf":[)" + below + "," + below + "]}";
  }
  CHECK(Fault(Must(doubling + R"(},"$ref":"#/definitions/d30"})"), "1") ==
        "input: takes too many steps to check");
}

TEST_CASE("json schema: long chains of references and deep documents are bounded") {
  std::string chain = R"({"definitions":{"d0":{"type":"string"})";
  for (int i = 1; i < 1500; ++i) {
    chain += ",\"d" + std::to_string(i) + R"(":{"items":{"$ref":"#/definitions/d)" +
             std::to_string(i - 1) + "\"}}";
  }
  const JsonSchema schema = Must(chain + R"(},"$ref":"#/definitions/d1499"})");
  CHECK(Fault(schema, "[[[[]]]]").empty());

  const JsonSchema tree = Must(R"({"type":"array","items":{"$ref":"#"}})");
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(Fault(tree, nested(256)).empty());
  CHECK(Fault(tree, nested(257)) == "input: not valid JSON: nested deeper than 256 levels");
  CHECK(Fault(tree, nested(1'000'000)).starts_with("input: not valid JSON: "));

  const auto deep_schema = [](size_t levels) {
    std::string text;
    for (size_t i = 0; i < levels; ++i) text += R"({"items":)";
    return text + "{}" + std::string(levels, '}');
  };
  CHECK(JsonSchema::Compile(deep_schema(100)).ok());
  CHECK_FALSE(JsonSchema::Compile(deep_schema(200)).ok());
  CHECK_FALSE(JsonSchema::Compile(deep_schema(100'000)).ok());
  CHECK_FALSE(JsonSchema::Compile("{\"title\":\"" + std::string(600 * 1024, 'x') + "\"}").ok());
}

TEST_CASE("json schema: messages stay short and whole UTF-8 whatever the document holds") {
  const JsonSchema schema =
      Must(R"({"additionalProperties":{"type":"integer"},"propertyNames":{"not":{"const":"q"}}})");
  std::string key;
  for (int i = 0; i < 100'000; ++i) key += "\xF0\x9F\x98\x80";
  const std::string fault = Fault(schema, "{\"" + key + "\":\"x\"}");
  CHECK(fault.size() < 600);
  CHECK(fault.ends_with("…\"]: must be an integer"));
}

TEST_CASE("json schema: a copy is the same schema, and threads share it") {
  const JsonSchema schema = Must(R"({"type":"object","properties":{"a":{"pattern":"^x+$"}}})");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([copy = schema] {
      for (int round = 0; round < 200; ++round) {
        if (!copy.Validate(R"({"a":"xxx"})").ok() || copy.Validate(R"({"a":"y"})").ok())
          std::abort();
      }
    });
  }
}

}  // namespace
}  // namespace norma
