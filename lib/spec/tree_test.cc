#include "lib/spec/tree.h"

#include <doctest/doctest.h>

#include "lib/spec/values.h"

namespace norma::spec {
namespace {

struct Parsed {
  std::optional<Node> root;
  std::string faults;
};

Parsed Parse(const std::string& text) {
  Faults faults;
  Parsed parsed;
  parsed.root = ParseTree(text, faults.AddSource("f"), faults);
  parsed.faults = faults.Text();
  return parsed;
}

std::string JsonOfText(const std::string& text) {
  const Parsed parsed = Parse(text);
  if (!parsed.root || !parsed.faults.empty()) return "fault " + parsed.faults;
  const auto json = JsonOf(*parsed.root);
  return json.ok() ? json.value() : "no JSON";
}

TEST_CASE("spec tree: YAML becomes nodes with their places") {
  const Parsed parsed = Parse("a: 1\nb:\n  c: [x, 'y']\n");
  REQUIRE(parsed.root);
  CHECK(parsed.faults.empty());
  const Node* list = parsed.root->Find("b")->Find("c");
  CHECK(list->place == Place{0, 3, 6});
  CHECK(list->items[1].place == Place{0, 3, 10});
  CHECK(list->items[1].quoted);
  CHECK(parsed.root->Find("b")->place == Place{0, 2, 1});  // at its key, not at its first child
}

TEST_CASE("spec tree: a missing value is found at its key, not at the next token") {
  const Parsed parsed = Parse("deny:\n\n\nallow: [a]\n");
  REQUIRE(parsed.root);
  CHECK(parsed.root->Find("deny")->kind == NodeKind::kNull);
  CHECK(parsed.root->Find("deny")->place == Place{0, 1, 1});
}

TEST_CASE("spec tree: JSON is read by its own rules") {
  CHECK(JsonOfText("{\"a\": \"\\ud83d\\ude00 \\/ \\u00e9\"}") == "{\"a\":\"😀 / é\"}");
  CHECK(JsonOfText("{\n \"a\": [1, 2.50, true, null],\n \"b\": {}\n}\n") ==
        R"({"a":[1,2.50,true,null],"b":{}})");
  CHECK(JsonOfText("{\t\"a\":\t1}") == R"({"a":1})");
  CHECK(JsonOfText("\xEF\xBB\xBF{\"a\": 1}") == R"({"a":1})");
  const std::string key(5000, 'k');
  CHECK(JsonOfText("{\"" + key + "\": 1, \"b\": 2}") == "{\"" + key + "\":1,\"b\":2}");
  const Parsed parsed = Parse("{\n \"a\": 1,\n \"b\": {\n  \"c\": -1\n }\n}");
  REQUIRE(parsed.root);
  CHECK(parsed.root->Find("b")->Find("c")->place == Place{0, 4, 8});
}

TEST_CASE("spec tree: YAML in braces is YAML") {
  CHECK(JsonOfText("{a: b, c: [1, 2,]}") == R"({"a":"b","c":[1,2]})");
  CHECK(JsonOfText("{\"a\": 1} # comment\n") == R"({"a":1})");
}

TEST_CASE("spec tree: broken JSON is reported where it breaks") {
  CHECK(Parse("{\n \"a\": 1\n \"b\": 2\n}").faults ==
        "f:3:2: this is no valid JSON or YAML: expected ',' or '}'");
  CHECK(Parse("{\"a\": \"\\ud83d\"}").faults ==
        "f:1:14: this is no valid JSON or YAML: half of a surrogate pair");
}

TEST_CASE("spec tree: an empty text is a null node") {
  for (const char* text : {"", "\n\n", "# only\n", "---\n"}) {
    CAPTURE(std::string(text));
    const Parsed parsed = Parse(text);
    REQUIRE(parsed.root);
    CHECK(parsed.root->kind == NodeKind::kNull);
    CHECK(parsed.faults.empty());
  }
}

TEST_CASE("spec tree: what YAML allows and a policy must not hold is refused") {
  struct Case {
    const char* text;
    const char* fault;
  };
  for (
      const Case& c : {
          Case{"a: 1\na: 2\n", "f:2:1: duplicate key \"a\", first at line 1"},
          Case{"{\"a\": 1, \"a\": 2}", "f:1:10: duplicate key \"a\", first at line 1"},
          Case{"a: {b: 1, 'b': 2}\n", "f:1:11: duplicate key \"b\", first at line 1"},
          Case{"a: &x 1\n", "f:1:4: an anchor (&name); write the value out where it is used"},
          Case{"a: !!str 5\n",
               "f:1:4: a tag (tag:yaml.org,2002:str); a policy has no use for tags"},
          Case{"a:\n  <<: {b: 1}\n",
               "f:2:3: a merge key (<<); write the keys out where they belong"},
          Case{"1: a\n", "f:1:1: a key must be text, got the number 1; put it in quotes"},
          Case{"no: a\n", "f:1:1: a key must be text, got \"no\"; put it in quotes"},
          Case{"? [a]\n: b\n", "f:1:3: a key must be text, got a list; put it in quotes"},
          Case{"a: \"x\\0y\"\n", "f:1:4: text must not hold a NUL character"},
          Case{"a: 1\n---\nb: 2\n",
               "f:2:1: a second document starts here; one file is one document (is the indentation "
               "right?)"},
          Case{"a: \"open\nb: 1\n",
               "f:3:1: this is no valid YAML: illegal document indicator in scalar; is a closing "
               "quote missing?"},
          Case{
              "a: 1\n\tb: 2\n",
              "f:2:1: this is no valid YAML: illegal tab when looking for indentation; indent with "
              "blanks, not with tabs"},
          Case{"a: [\n", "f:2:1: this is no valid YAML: end of sequence flow not found"},
          Case{
              "a: \"\\ud83d\\ude00\"\n",
              "f:1:11: this is no valid YAML: invalid unicode: 55357; surrogate pairs work in JSON "
              "only, write the character itself"},
          Case{"a: x\x01\n", "f:1:5: a control character; write it as an escape in double quotes"},
          Case{"a: x\xC2\x85y\n",
               "f:1:5: a control character; write it as an escape in double quotes"},
          Case{"a: 1\nb: \xFF\n", "f:2:1: bytes that are not valid UTF-8; save the file as UTF-8"},
      }) {
    CAPTURE(std::string(c.text));
    CHECK(Parse(c.text).faults == c.fault);
  }
  CHECK(Parse(std::string("a: \0b\n", 6)).faults ==
        "f:1:4: a NUL byte: this is no UTF-8 text file");
  // An anchor and its alias: both are named.
  CHECK(Parse("a: &x [1]\nb: *x\n").faults ==
        "f:1:4: an anchor (&name); write the value out where it is used\n"
        "f:2:4: an alias (*name); write the value out where it is used");
}

TEST_CASE("spec tree: nesting has a bound in YAML and in JSON") {
  const auto nested = [](int depth) {
    return "a: " + std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']') + "\n";
  };
  CHECK(Parse(nested(kDepthMax - 1)).faults.empty());
  CHECK(Parse(nested(kDepthMax)).faults.find("nested deeper than 64 levels") != std::string::npos);
  CHECK_FALSE(Parse(nested(100'000)).faults.empty());
  CHECK_FALSE(Parse(std::string(100'000, '[')).faults.empty());
  std::string deep = "{\"a\": ";
  for (int i = 0; i < 70; ++i) deep += "{\"a\": ";
  CHECK(Parse(deep + "1" + std::string(71, '}')).faults.find("nested deeper") != std::string::npos);
}

TEST_CASE("spec tree: block scalars at the end of the file keep their text") {
  CHECK(JsonOfText("a: |\n  x\n  \ty\n") == "{\"a\":\"x\\n\\ty\\n\"}");
  CHECK(JsonOfText("a: |-\n  x") == "{\"a\":\"x\"}");
  CHECK(JsonOfText("a: |+\n  x\n\n") == "{\"a\":\"x\\n\\n\"}");
  CHECK(JsonOfText("a: 1\n...\n") == "{\"a\":1}");
  CHECK(JsonOfText("a:\r\n  b: 1\r\nc: 2\r\n") == R"({"a":{"b":1},"c":2})");
}

}  // namespace
}  // namespace norma::spec
