// The Anthropic decoder over whole streams: at every cut, truncated everywhere, damaged.
#include "lib/llm/anthropic_decode.h"

#include <doctest/doctest.h>

#include "lib/base/text.h"
#include "lib/llm/reply_limits.h"
#include "lib/llm/sse.h"
#include "lib/testing/reply_text.h"

using namespace norma;
using namespace norma::llm;
using norma::testing::LlmTestData;
using norma::testing::ReplyText;

namespace {

struct Decoded {
  Status status;
  Reply reply;
  std::string text, thinking;
  std::vector<ToolCall> calls;
  bool began = false;
  size_t content_bytes = 0;
};

// Feeds the stream in the given pieces; the status is the first error, or that of Finish.
Decoded Decode(const std::vector<std::string_view>& pieces) {
  Decoded out;
  const auto decoder =
      NewAnthropicDecoder({[&](std::string_view text) { out.text += text; },
                           [&](std::string_view text) { out.thinking += text; },
                           [&](const ToolCall& call) { out.calls.push_back(call); }});
  SseReader reader(
      [&](std::string_view name, std::string_view data) { return decoder->OnEvent(name, data); });
  for (const std::string_view piece : pieces) {
    if (out.status.ok()) out.status = reader.Feed(piece);
  }
  if (out.status.ok()) out.status = reader.End();
  const Status finish = decoder->Finish(&out.reply);
  if (out.status.ok()) out.status = finish;
  out.began = decoder->began();
  out.content_bytes = decoder->content_bytes();
  return out;
}

Decoded DecodeBody(std::string_view body) {
  Decoded out;
  const auto decoder =
      NewAnthropicDecoder({[&](std::string_view text) { out.text += text; }, nullptr,
                           [&](const ToolCall& call) { out.calls.push_back(call); }});
  out.status = decoder->OnBody(body);
  const Status finish = decoder->Finish(&out.reply);
  if (out.status.ok()) out.status = finish;
  return out;
}

std::vector<ToolCall> CallsOf(const Reply& reply) {
  std::vector<ToolCall> calls;
  for (const Block& block : reply.message.blocks) {
    if (const auto* call = std::get_if<ToolCall>(&block)) calls.push_back(*call);
  }
  return calls;
}

std::string Frame(const std::string& data) {
  return "data: " + data + "\n\n";
}

std::string CallStream(const std::string& raw, bool stopped = true) {
  std::string out = Frame(R"({"type":"content_block_start","index":0,"content_block":)"
                          R"({"type":"tool_use","id":"t","name":"Bash","input":{}}})");
  out += Frame(R"({"type":"content_block_delta","index":0,"delta":)"
               R"({"type":"input_json_delta","partial_json":)" +
               json::Quote(raw) + "}}");
  if (stopped) out += Frame(R"({"type":"content_block_stop","index":0})");
  return out + Frame(R"({"type":"message_stop"})");
}

constexpr std::string_view kStop = "\"message_stop\"}";
const std::vector<std::string> kStreams = {"text", "tools", "cut_call", "redacted"};

}  // namespace

TEST_CASE("anthropic decoder: recorded shapes give the written replies") {
  for (const std::string& name : kStreams) {
    CAPTURE(name);
    const std::string stream = LlmTestData("anthropic/" + name + ".sse");
    REQUIRE(!stream.empty());
    const Decoded got = Decode({stream});
    CHECK(got.status.ok());
    CHECK(ReplyText(got.reply) == LlmTestData("anthropic/" + name + ".want.json", true));
    CHECK(got.text == TextOf(got.reply.message));
    CHECK(got.calls.size() == CallsOf(got.reply).size());
    for (const ToolCall& call : CallsOf(got.reply)) {
      CHECK(std::find(got.calls.begin(), got.calls.end(), call) != got.calls.end());
    }
  }
}

TEST_CASE("anthropic decoder: every cut into two pieces and every line end give the same reply") {
  for (const std::string& name : kStreams) {
    const std::string lf = LlmTestData("anthropic/" + name + ".sse");
    const std::string want = LlmTestData("anthropic/" + name + ".want.json", true);
    for (const std::string& stream :
         {lf, ReplaceAll(lf, "\n", "\r\n"), ReplaceAll(lf, "\n", "\r")}) {
      size_t wrong = 0;
      for (size_t cut = 0; cut <= stream.size(); ++cut) {
        const std::string_view view = stream;
        const Decoded got = Decode({view.substr(0, cut), view.substr(cut)});
        if (!got.status.ok() || ReplyText(got.reply) != want) ++wrong;
      }
      CAPTURE(name);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE(
    "anthropic decoder: every truncation is an error, and announces no call that is not whole") {
  for (const std::string& name : kStreams) {
    const std::string stream = LlmTestData("anthropic/" + name + ".sse");
    const Decoded whole = Decode({stream});
    // From here on the terminal frame is complete, whatever is missing behind it.
    const size_t end = stream.rfind(kStop) + kStop.size();
    for (size_t cut = 0; cut < end; ++cut) {
      const Decoded got = Decode({std::string_view(stream).substr(0, cut)});
      CAPTURE(name);
      CAPTURE(cut);
      REQUIRE(!got.status.ok());
      CHECK(got.status.error().code == Code::kModel);
      CHECK(got.calls.size() <= whole.calls.size());
      CHECK(std::equal(got.calls.begin(), got.calls.end(), whole.calls.begin()));
      CHECK(CallsOf(got.reply).size() == got.calls.size());
      CHECK(got.reply.usage.input <= whole.reply.usage.input);
    }
    CHECK(Decode({std::string_view(stream).substr(0, end)}).status.ok());
  }
}

TEST_CASE("anthropic decoder: an error event ends the reply with the provider's words") {
  const std::string stream = LlmTestData("anthropic/tools.sse");
  const std::string error =
      R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})";
  for (size_t at = 0; at != std::string::npos; at = stream.find("\n\n", at + 1)) {
    const std::string head = stream.substr(0, at == 0 ? 0 : at + 2);
    if (head.find(kStop) != std::string::npos) break;
    for (const std::string& named : {Frame(error), "event: error\n" + Frame(error)}) {
      const Decoded got = Decode({head + named + stream.substr(head.size())});
      REQUIRE(!got.status.ok());
      CHECK(got.status.error() == Error{Code::kModel, "Overloaded"});
      CHECK(got.calls.size() == CallsOf(got.reply).size());
    }
  }
  const Decoded full = Decode({Frame(R"({"error":{"message":"prompt is too long: 9 > 8"}})")});
  REQUIRE(!full.status.ok());
  CHECK(full.status.error().code == Code::kContextFull);
  CHECK(!Decode({Frame(R"({"type":"error"})")}).status.error().message.empty());
}

TEST_CASE("anthropic decoder: only one whole JSON object may run") {
  const std::string whole = R"({"command": "touch pwned"})";
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    const Decoded got = Decode({CallStream(whole.substr(0, cut))});
    REQUIRE(got.calls.size() == 1);
    CHECK(got.calls[0].input == whole.substr(0, cut));
    CHECK(got.calls[0].valid_input.empty());
  }
  struct Row {
    std::string raw, want;
  };
  const std::vector<Row> rows = {
      {whole, R"({"command":"touch pwned"})"},
      {"{}", "{}"},
      {" { } \n", "{}"},
      {"", "{}"},
      {"[]", ""},
      {"null", ""},
      {"\"touch pwned\"", ""},
      {"1", ""},
      {whole + "}", ""},
      {whole + whole, ""},
      {R"({"command":"touch pwned","command":"ls"})", ""},
      {R"({"a":{"b":1,"b":2}})", ""},
      {"{'command':'x'}", ""},
      {R"({"a":"\ud83d"})", ""},
      {R"({"a":NaN})", ""},
      {R"({"a":1,})", ""},
      {"```json\n{}\n```", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.raw);
    const Decoded got = Decode({CallStream(row.raw)});
    CHECK(got.status.ok());
    REQUIRE(got.calls.size() == 1);
    CHECK(got.calls[0] == ToolCall{"t", "Bash", row.raw, row.want});
    CHECK(CallsOf(got.reply) == got.calls);
    // Without the end of its block the same text may be a part of something longer.
    const Decoded open = Decode({CallStream(row.raw, false)});
    REQUIRE(open.calls.size() == 1);
    CHECK(open.calls[0].valid_input.empty());
    CHECK(CallsOf(open.reply) == open.calls);
  }
}

TEST_CASE("anthropic decoder: arguments in the block's start count when no fragment came") {
  const std::string start = R"({"type":"content_block_start","index":0,"content_block":)"
                            R"({"type":"tool_use","id":"t","name":"n","input":{"a": 1.0}}})";
  const std::string stop = Frame(R"({"type":"content_block_stop"})");
  const Decoded got = Decode({Frame(start) + stop + Frame(R"({"type":"message_stop"})")});
  REQUIRE(got.calls.size() == 1);
  CHECK(got.calls[0] == ToolCall{"t", "n", R"({"a": 1.0})", R"({"a":1.0})"});
}

TEST_CASE("anthropic decoder: what is odd but harmless is skipped") {
  const std::string text = LlmTestData("anthropic/text.sse");
  const std::string want = LlmTestData("anthropic/text.want.json", true);
  for (const std::string& odd :
       {Frame("[DONE]"), Frame("null"), Frame("[]"), Frame("{}"), Frame("{broken"),
        Frame(R"({"type":"content_block_delta","index":7,"delta":)"
              R"({"type":"input_json_delta","partial_json":"x"}})"),
        Frame(R"({"type":"content_block_delta","index":0,"delta":)"
              R"({"type":"citations_delta","citation":{}}})"),
        Frame(R"({"type":"content_block_stop","index":99})"), Frame(R"({"type":"message_delta"})"),
        Frame(R"({"type":7,"index":"x"})"), Frame(R"({"type":"message_start","message":null})"),
        std::string("event: x\n\n")}) {
    CAPTURE(odd);
    for (const size_t after : {size_t{0}, text.find("event: content_block_stop")}) {
      const Decoded got = Decode({text.substr(0, after) + odd + text.substr(after)});
      CHECK(got.status.ok());
      CHECK(ReplyText(got.reply) == want);
    }
  }
}

TEST_CASE("anthropic decoder: a damaged frame of the reply is an error, not a hole") {
  const std::string text = LlmTestData("anthropic/text.sse");
  const Decoded got = Decode({ReplaceAll(text, "\"text\":\"Gr", "\"text\":Gr")});
  REQUIRE(!got.status.ok());
  CHECK(got.status.error().message == "a damaged content_block_delta event in the stream");
}

TEST_CASE("anthropic decoder: text without a block start is not lost") {
  const Decoded got = Decode(
      {Frame(
           R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}})") +
       Frame(
           R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}})") +
       Frame(R"({"type":"message_stop"})")});
  CHECK(got.status.ok());
  CHECK(got.reply.message == Message{Role::kAssistant, {Text{"ab"}}});
}

TEST_CASE("anthropic decoder: usage is the highest of what was said, once") {
  const auto usage_of = [](const std::vector<std::string>& frames) {
    std::string stream;
    for (const std::string& frame : frames) stream += Frame(frame);
    return Decode({stream}).reply.usage;
  };
  const std::string start =
      R"({"type":"message_start","message":{"usage":{"input_tokens":700,"output_tokens":1}}})";
  const auto delta = [](const std::string& usage) {
    return R"({"type":"message_delta","delta":{},"usage":)" + usage + "}";
  };
  Usage usage = usage_of({start, delta(R"({"output_tokens":10})"), delta(R"({"output_tokens":50})"),
                          delta(R"({"output_tokens":20})")});
  CHECK(usage.input == 700);
  CHECK(usage.output == 50);
  usage = usage_of({start, delta(R"({"input_tokens":0,"output_tokens":5})")});
  CHECK(usage.input == 700);  // a gateway that knows nothing
  usage = usage_of({start, delta(R"({"input_tokens":28,"output_tokens":5})")});
  CHECK(usage.input == 28);  // the final count is the provider's own correction
  usage = usage_of({start});
  CHECK(usage.output == 1);  // the placeholder, when nothing else came
  usage = usage_of({start, delta(R"({"output_tokens":0})")});
  CHECK(usage.output == 0);
  usage = usage_of({delta(R"({"input_tokens":3,"cache_read_input_tokens":null,)"
                          R"("output_tokens":4})")});
  CHECK(usage.input == 3);
  CHECK(usage.output == 4);
  usage = usage_of({delta(R"({"cache_creation_input_tokens":7,)"
                          R"("cache_creation":{"ephemeral_1h_input_tokens":5}})")});
  CHECK(usage.cache_write_5m == 2);
  CHECK(usage.cache_write_1h == 5);
  CHECK(usage.input == 7);
  usage = usage_of({delta(R"({"input_tokens":-5,"output_tokens":"x"})")});
  CHECK(usage.input == 0);
  usage = usage_of({delta(R"({"input_tokens":18446744073709551615,)"
                          R"("cache_read_input_tokens":9223372036854775807})")});
  CHECK(usage.input >= 0);
  CHECK(!usage_of({delta("null"), delta("[]"), delta("7")}).reported);
  CHECK(usage_of({}).raw.empty());
}

TEST_CASE("anthropic decoder: more than the caps is refused") {
  const std::string start = Frame(
      R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}})");
  std::string many;
  for (size_t n = 0; n <= kReplyBlocksMax; ++n) many += start;
  CHECK(Decode({many}).status.error().message == "the reply has more than 4096 blocks");
  const std::string delta =
      Frame(R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":")" +
            std::string(4u << 20, 'x') + "\"}}");
  const Decoded got = Decode(std::vector<std::string_view>(17, delta));
  CHECK(!got.status.ok());
  CHECK(got.content_bytes <= kReplyBytesMax);
}

TEST_CASE("anthropic decoder: whole bodies") {
  const Decoded got = DecodeBody(
      R"({"type":"message","role":"assistant","content":[
      {"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":""},
      {"type":"text","text":"hi"},{"type":"redacted_thinking","data":"d\u002b"},
      {"type":"server_tool_use","id":"s","name":"x","input":{}},7,
      {"type":"tool_use","id":"a","name":"A","input":{"k": [1.0, 2] }},
      {"type":"tool_use","id":"b","name":"B"},
      {"type":"tool_use","id":"c","name":"C","input":"text"}],
      "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}})");
  CHECK(got.status.ok());
  const Message want{Role::kAssistant,
                     {Thinking{"t", "s"}, Text{"hi"},
                      Opaque{"anthropic", R"({"type":"redacted_thinking","data":"d\u002b"})"},
                      ToolCall{"a", "A", R"({"k": [1.0, 2] })", R"({"k":[1.0,2]})"},
                      ToolCall{"b", "B", "", "{}"}, ToolCall{"c", "C", "\"text\"", ""}}};
  CHECK(got.reply.message == want);
  CHECK(got.reply.stop_reason == "tool_use");
  CHECK(got.reply.usage.output == 2);
  CHECK(got.calls.size() == 3);
  CHECK(got.text == "hi");
}

TEST_CASE("anthropic decoder: bodies that are no reply are errors that show them") {
  struct Row {
    std::string body, want;
  };
  const std::vector<Row> rows = {
      {R"({"error":{"message":"boom"}})", "boom"},
      {R"({"type":"error","error":{"type":"api_error","message":"boom"}})", "boom"},
      {R"({"type":"error"})", "the provider reports an error without a message"},
      {R"({"error":"boom"})", "boom"},
      {"", "the body is no JSON object: "},
      {"[1]", "the body is no JSON object: [1]"},
      {"<html>", "the body is no JSON object: <html>"},
      {R"({"content":[{"type":"text","text":"cut)",
       "the body is no JSON object: {\"content\":[{\"type\":\"text\",\"text\":\"cut"},
      {R"({"content":"x"})", "the body is no message: {\"content\":\"x\"}"},
      {"{}", "the body is no message: {}"},
  };
  for (const Row& row : rows) {
    const Decoded got = DecodeBody(row.body);
    REQUIRE(!got.status.ok());
    CHECK(got.status.error() == Error{Code::kModel, row.want});
  }
  CHECK(DecodeBody(R"({"error":null,"content":[]})").status.ok());
}
