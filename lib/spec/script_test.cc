#include "lib/chat/script.h"

#include <doctest/doctest.h>

#include "lib/testing/spec_input.h"

namespace norma::spec {
namespace {

using testing::FaultOf;
using testing::SpecFolder;

constexpr const char* kHead = "norma: 1\nmodel: {format: script, script: r.yaml}\n";

Result<Loaded> LoadScript(const std::string& script) {
  SpecFolder folder(kHead);
  folder.dir().Write("r.yaml", script);
  return folder.Load();
}

TEST_CASE("spec script: replies are read in order, with the defaults of the page") {
  const auto loaded = LoadScript(
      "replies:\n"
      "  - text: \"I will look.\"\n"
      "    thinking: hm\n"
      "    calls: [{name: Bash, input: {command: \"ls\", n: 1.50, deep: {a: [true, null]}}}]\n"
      "    usage: {input: 100, output: 20, cache_read: 10, cache_write: 5}\n"
      "    stop: tool_use\n"
      "    delay: 50ms\n"
      "  - expect: \"total 0\"\n"
      "    text: Done.\n"
      "  - error: {status: 529, message: overloaded}\n"
      "repeat: true\n");
  REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
  const Model& model = loaded.value().spec.model;
  CHECK(model.name == "script");
  CHECK(model.script.repeat);
  REQUIRE(model.script.replies.size() == 3);
  const ScriptReply& first = model.script.replies[0];
  CHECK(first.text == "I will look.");
  CHECK(first.thinking == "hm");
  REQUIRE(first.calls.size() == 1);
  CHECK(first.calls[0].id.empty());
  CHECK(first.calls[0].name == "Bash");
  CHECK(first.calls[0].input == R"({"command":"ls","n":1.50,"deep":{"a":[true,null]}})");
  CHECK(first.usage_input == 100);
  CHECK(first.usage_cache_write == 5);
  CHECK(first.stop == "tool_use");
  CHECK(first.delay == std::chrono::milliseconds(50));
  CHECK(model.script.replies[1].expect == "total 0");
  CHECK(model.script.replies[1].stop.empty());
  REQUIRE(model.script.replies[2].error.has_value());
  CHECK(model.script.replies[2].error->status == 529);
}

TEST_CASE("spec script: a script may be JSON with surrogate pairs") {
  const auto loaded = LoadScript("{\"replies\": [{\"text\": \"\\ud83d\\ude00\"}]}");
  REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
  CHECK(loaded.value().spec.model.script.replies[0].text == "😀");
}

TEST_CASE("spec script: it is as strict as the spec, with its own file and line") {
  struct Case {
    const char* script;
    const char* fault;
  };
  for (const Case& c : {
           Case{"replies:\n  - txt: hi\n",
                "r.yaml:2:5: replies[0].txt: unknown key; did you mean \"text\"?"},
           Case{"replies: []\n", "r.yaml:1:10: replies: a script needs at least one reply"},
           Case{"", "r.yaml:1:1: a script is a map with replies:, got nothing (null)"},
           Case{"repeat: true\n", "r.yaml:1:1: replies: this key is required and missing"},
           Case{"replies: [{calls: [{input: {}}]}]\n",
                "r.yaml:1:20: replies[0].calls[0].name: this key is required and missing"},
           Case{"replies: [{calls: [{name: Bash, input: ls}]}]\n",
                "r.yaml:1:40: replies[0].calls[0].input: expected a map of keys to values, got "
                "\"ls\""},
           Case{"replies: [{usage: {input: \"5\"}}]\n",
                "r.yaml:1:27: replies[0].usage.input: expected a whole number, got the text \"5\"; "
                "write it without quotes"},
           Case{"replies: [{usage: {input: 1, cache_read: 2}}]\n",
                "r.yaml:1:19: replies[0].usage: input includes the cached tokens, so it cannot be "
                "less"},
           Case{"replies: [{text: a, error: {status: 529}}]\n",
                "r.yaml:1:18: replies[0].text: a reply is an error or has content, not both"},
           Case{"replies: [{error: {status: 200}}]\n",
                "r.yaml:1:19: replies[0].error.status: an HTTP error is 400 or above; 0 or none is "
                "a "
                "network error"},
           Case{"replies: [{text: a}]\nrepeat: yes\n",
                "r.yaml:2:9: repeat: expected true or false, got \"yes\"; YAML readers disagree "
                "about "
                "this word"},
       }) {
    CAPTURE(std::string(c.script));
    CHECK(FaultOf(LoadScript(c.script)) == c.fault);
  }
}

TEST_CASE("spec script: the format and the file go together") {
  CHECK(FaultOf(SpecFolder("norma: 1\nmodel: {format: script}\n").Load()) ==
        "spec.yaml:2:8: model.script: format: script needs the file of its replies here");
  CHECK(FaultOf(SpecFolder(kHead).Load()) ==
        "spec.yaml:2:33: model.script: cannot read r.yaml: there is no such file");
  CHECK(FaultOf(
            SpecFolder("norma: 1\nmodel: {format: anthropic, name: m, script: r.yaml}\n").Load()) ==
        "spec.yaml:2:45: model.script: only format: script reads a script");
}

}  // namespace
}  // namespace norma::spec
