// The Chat Completions decoder: what the many servers of this format do differently.
#include "lib/llm/openai_chat_decode.h"

#include <doctest/doctest.h>

#include "lib/testing/decoder_run.h"

using namespace norma;
using namespace norma::llm;
using norma::testing::DecoderRun;
using norma::testing::SseData;

namespace {

std::string Chunk(const std::string& delta, const std::string& more = "") {
  return SseData(R"({"choices":[{"index":0,"delta":)" + delta + more + "}]}");
}
std::string Calls(const std::string& fragments) {
  return Chunk(R"({"tool_calls":[)" + fragments + "]}");
}
const std::string kDone = SseData("[DONE]");

DecoderRun Decode(const std::string& stream) {
  return testing::DecodeStream(&NewOpenAiChatDecoder, {stream});
}
DecoderRun DecodeBody(const std::string& body) {
  return testing::DecodeWhole(&NewOpenAiChatDecoder, body);
}

}  // namespace

TEST_CASE("openai-chat decoder: fragments find their call by index, id or order") {
  const ToolCall ls{"a", "LS", "{\"p\":1}", "{\"p\":1}"};
  struct Row {
    std::string what, stream;
    std::vector<ToolCall> want;
  };
  const std::vector<Row> rows = {
      {"index reused with a new id",
       Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"{\"p\":1}"}})") +
           Calls(R"({"index":0,"id":"b","function":{"name":"N","arguments":"{"}})") +
           Calls(R"({"index":0,"function":{"arguments":"}"}})"),
       {ls, {"b", "N", "{}", "{}"}}},
      {"no index, matched by id",
       Calls(R"({"id":"a","function":{"name":"LS","arguments":"{\"p\""}})") +
           Calls(R"({"id":"b","function":{"name":"N","arguments":""}})") +
           Calls(R"({"id":"a","function":{"arguments":":1}"}})"),
       {ls, {"b", "N", "", "{}"}}},
      {"neither index nor id behind the start",
       Calls(R"({"id":"a","function":{"name":"LS","arguments":"{\"p\""}})") +
           Calls(R"({"function":{"arguments":":1}"}})"),
       {ls}},
      {"empty id and repeated name never overwrite",
       Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":""}})") +
           Calls(R"({"index":0,"id":"","function":{"name":"LS","arguments":"{\"p\":"}})") +
           Calls(R"({"index":0,"id":null,"function":{"name":"","arguments":"1}"}})"),
       {ls}},
      {"same id again and again",
       Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"{\"p\":"}})") +
           Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"1}"}})"),
       {ls}},
      {"the id comes late",
       Calls(R"({"index":0,"function":{"name":"LS","arguments":"{\"p\":"}})") +
           Calls(R"({"index":0,"id":"a","function":{"arguments":"1}"}})"),
       {ls}},
      {"whole calls on one index without ids",
       Calls(R"({"index":0,"id":"","function":{"name":"LS","arguments":"{\"p\":1}"}})") +
           Calls(R"({"index":0,"id":"","function":{"name":"LS","arguments":"{\"p\":2}"}})"),
       {{"", "LS", "{\"p\":1}", "{\"p\":1}"}, {"", "LS", "{\"p\":2}", "{\"p\":2}"}}},
      {"whole arguments said twice",
       Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"{\"p\":1}"}})") +
           Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"{\"p\":1}"}})"),
       {ls}},
      {"arguments as an object",
       Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":{"p":1}}})"),
       {ls}},
      {"first index is not 0",
       Calls(R"({"index":3,"id":"a","function":{"name":"LS","arguments":"{\"p\":1}"}})"),
       {ls}},
      {"two in one chunk",
       Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"{\"p\":1}"}},)"
             R"({"index":1,"id":"b","function":{"name":"N"}})"),
       {ls, {"b", "N", "", "{}"}}},
      {"half an object stays raw",
       Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"{\"p\":"}})"),
       {{"a", "LS", "{\"p\":", ""}}},
      {"a fragment of nothing", Calls(R"({"index":0,"function":{"arguments":""}})"), {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    for (const std::string& end : {kDone, Chunk("{}", R"(,"finish_reason":"tool_calls")"),
                                   Chunk("{}", R"(,"finish_reason":"tool_calls")") + kDone}) {
      const DecoderRun got = Decode(row.stream + end);
      CHECK(got.status.ok());
      CHECK(got.calls == row.want);
      CHECK(got.calls_in_reply() == row.want);
    }
  }
}

TEST_CASE("openai-chat decoder: a call is announced when it cannot grow any more") {
  const std::string first =
      Calls(R"({"index":0,"id":"a","function":{"name":"LS","arguments":"{\"p\":1}"}})");
  const std::string second = Calls(R"({"index":1,"id":"b","function":{"name":"N"}})");
  CHECK(Decode(first).calls.empty());
  CHECK(Decode(first + second).calls.size() == 1);
  CHECK(!Decode(first + second).status.ok());
  const DecoderRun blank =
      Decode(first + second + Calls(R"({"index":0,"function":{"arguments":"\n"}})") + kDone);
  CHECK(blank.status.ok());
  const DecoderRun more =
      Decode(first + second + Calls(R"({"index":0,"function":{"arguments":"x"}})") + kDone);
  REQUIRE(!more.status.ok());
  CHECK(more.status.error().message ==
        "arguments of the call a went on after it was reported complete");
  // Cut by the token limit before its first argument: it may have had some.
  const DecoderRun cut = Decode(second + Chunk("{}", R"(,"finish_reason":"length")") + kDone);
  CHECK(cut.calls == std::vector<ToolCall>{{"b", "N", "", ""}});
  CHECK(cut.reply.stop_reason == "max_tokens");
}

TEST_CASE("openai-chat decoder: reasoning under every name, once, and content as a list") {
  struct Row {
    std::string delta, thinking, text;
  };
  const std::vector<Row> rows = {
      {R"({"reasoning":"r","reasoning_content":"c"})", "c", ""},
      {R"({"reasoning_content":"","reasoning":"r","content":"t"})", "r", "t"},
      {R"({"reasoning_text":"x"})", "x", ""},
      {R"({"reasoning":"r","reasoning_details":[{"text":"r"}]})", "r", ""},
      {R"({"reasoning":null,"reasoning_details":[{"text":"a"},{"summary":"b"},{"data":"z"}]})",
       "ab", ""},
      {R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},)"
       R"({"type":"text","text":"b"},"c",{"type":"reference","reference_ids":[1]}]})",
       "a", "bc"},
      {R"({"content":[{"type":"thinking","thinking":"a"}]})", "a", ""},
      {R"({"content":"a","refusal":"b"})", "", "ab"},
      {R"({"content":null,"refusal":null,"tool_calls":null})", "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.delta);
    const DecoderRun got = Decode(Chunk(row.delta) + kDone);
    CHECK(got.status.ok());
    CHECK(got.thinking == row.thinking);
    CHECK(got.text == row.text);
    const DecoderRun body =
        DecodeBody(R"({"choices":[{"message":)" + row.delta + R"(,"finish_reason":"stop"}]})");
    CHECK(body.status.ok());
    CHECK(body.thinking == row.thinking);
    CHECK(body.text == row.text);
  }
}

TEST_CASE("openai-chat decoder: finish reasons and the end of a stream") {
  struct Row {
    std::string finish, want;
  };
  for (const Row& row : std::vector<Row>{{"stop", "end_turn"},
                                         {"tool_calls", "tool_use"},
                                         {"length", "max_tokens"},
                                         {"content_filter", "content_filter"},
                                         {"eos", "eos"}}) {
    const DecoderRun got = Decode(Chunk("{}", R"(,"finish_reason":")" + row.finish + "\""));
    CHECK(got.status.ok());
    CHECK(got.reply.stop_reason == row.want);
  }
  CHECK(Decode(kDone).reply.stop_reason.empty());
  CHECK(Decode(kDone).status.ok());
  CHECK(Decode(Chunk(R"({"refusal":"no"})", R"(,"finish_reason":"stop")")).reply.stop_reason ==
        "refusal");
  CHECK(!Decode(Chunk(R"({"content":"a"})")).status.ok());
  CHECK(!Decode(Chunk("{}", R"(,"finish_reason":"")")).status.ok());
  CHECK(!Decode(Chunk("{}", R"(,"finish_reason":"error")") + kDone).status.ok());
  // Content behind the finish reason: the end is open again.
  const std::string finish = Chunk("{}", R"(,"finish_reason":"stop")");
  CHECK(!Decode(finish + Chunk(R"({"content":"b"})")).status.ok());
  CHECK(Decode(finish + Chunk(R"({"content":"b"})") + kDone).text == "b");
  // Nothing counts behind [DONE].
  CHECK(Decode(finish + kDone + Chunk(R"({"content":"b"})")).text.empty());
}

TEST_CASE("openai-chat decoder: usage wherever it comes, the last that says something") {
  const std::string finish = Chunk("{}", R"(,"finish_reason":"stop")");
  const auto usage_of = [&](const std::string& frames) {
    return Decode(finish + frames + kDone).reply.usage;
  };
  const auto frame = [](const std::string& usage) {
    return SseData(R"({"choices":[],"usage":)" + usage + "}");
  };
  Usage usage = usage_of(frame(R"({"prompt_tokens":1,"completion_tokens":1})") +
                         frame(R"({"prompt_tokens":9,"completion_tokens":5})") + frame("null") +
                         frame(R"({"prompt_tokens":0,"completion_tokens":0})"));
  CHECK(usage.input == 9);
  CHECK(usage.output == 5);
  CHECK(usage.raw == R"({"prompt_tokens":9,"completion_tokens":5})");
  usage = usage_of(SseData(
      R"({"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":3,"completion_tokens":4}}})"));
  CHECK(usage.input == 3);
  usage = usage_of(SseData(
      R"({"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":5,"cached_tokens":2}}]})"));
  CHECK(usage.input == 5);
  CHECK(usage.cache_read == 2);
  CHECK(usage.raw == R"({"prompt_tokens":5,"cached_tokens":2})");
  usage = usage_of(frame(R"({"prompt_tokens":10,"prompt_cache_hit_tokens":4})"));
  CHECK(usage.cache_read == 4);
  usage = usage_of(frame(
      R"({"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":3}})"));
  CHECK(usage.cache_write_5m == 3);
  usage = usage_of(frame(R"({"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":6}})"));
  CHECK(usage.input == 6);
  usage = usage_of(frame(R"({"prompt_tokens":-1,"completion_tokens":18446744073709551615})"));
  CHECK(usage.input == 0);
  CHECK(usage.output >= 0);
  CHECK(!usage_of(frame("[]")).reported);
  CHECK(!usage_of("").reported);
}

TEST_CASE("openai-chat decoder: whole bodies") {
  const DecoderRun got = DecodeBody(
      R"({"choices":[{"index":1,"message":{"content":"no"}},{"index":0,"finish_reason":"tool_calls",
      "message":{"role":"assistant","content":"hi","reasoning":"r","tool_calls":[
      {"id":"a","type":"function","function":{"name":"A","arguments":"{\"k\": 1}"}},
      {"id":"b","function":{"name":"B","arguments":""}},7,
      {"id":"","function":{"name":"C","arguments":{"x": [1.0]}}}]}}],
      "usage":{"prompt_tokens":1,"completion_tokens":2}})");
  CHECK(got.status.ok());
  const Message want{
      Role::kAssistant,
      {Thinking{"r", ""}, Text{"hi"}, ToolCall{"a", "A", "{\"k\": 1}", "{\"k\":1}"},
       ToolCall{"b", "B", "", "{}"}, ToolCall{"", "C", "{\"x\": [1.0]}", "{\"x\":[1.0]}"}}};
  CHECK(got.reply.message == want);
  CHECK(got.calls.size() == 3);
  CHECK(got.reply.stop_reason == "tool_use");
  CHECK(got.reply.usage.output == 2);
  CHECK(DecodeBody(R"({"choices":[{"finish_reason":"content_filter"}]})").status.ok());
}
