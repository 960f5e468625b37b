// What both OpenAI decoders do with streams of our own: at every cut, truncated everywhere, with
// errors in every place.
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/llm/openai_chat_decode.h"
#include "lib/llm/openai_responses_decode.h"
#include "lib/llm/reply_limits.h"
#include "lib/testing/decoder_run.h"
#include "lib/testing/reply_text.h"

using namespace norma;
using namespace norma::llm;
using norma::testing::DecoderRun;
using norma::testing::DecodeStream;
using norma::testing::LlmTestData;
using norma::testing::ReplyText;
using norma::testing::SseData;

namespace {

struct Format {
  std::string name;
  testing::MakeDecoder make;
  std::string terminal;  // the text that begins the frame which makes a reply whole
};

const std::vector<Format> kFormats = {
    {"openai-chat", &NewOpenAiChatDecoder, "\"finish_reason\":\""},
    {"openai-responses", &NewOpenAiResponsesDecoder, "\"status\":\"completed\",\"error\""}};
const std::vector<std::string> kStreams = {"text", "tools", "interleaved", "cut_call"};

std::string Stream(const Format& format, const std::string& name) {
  std::string stream = LlmTestData(format.name + "/" + name + ".sse");
  REQUIRE(!stream.empty());
  return stream;
}

}  // namespace

TEST_CASE("openai decoders: streams give the written replies, however they are cut into pieces") {
  for (const Format& format : kFormats) {
    for (const std::string& name : kStreams) {
      CAPTURE(format.name);
      CAPTURE(name);
      const std::string lf = Stream(format, name);
      const std::string want = LlmTestData(format.name + "/" + name + ".want.json", true);
      const DecoderRun whole = DecodeStream(format.make, {lf});
      CHECK(whole.status.ok());
      CHECK(whole.complete);
      CHECK(ReplyText(whole.reply) == want);
      CHECK(whole.text == TextOf(whole.reply.message));
      CHECK(whole.calls == whole.calls_in_reply());
      for (const std::string& stream :
           {lf, ReplaceAll(lf, "\n", "\r\n"), ReplaceAll(lf, "\n", "\r")}) {
        size_t wrong = 0;
        for (size_t cut = 0; cut <= stream.size(); ++cut) {
          const std::string_view view = stream;
          const DecoderRun got = DecodeStream(format.make, {view.substr(0, cut), view.substr(cut)});
          if (!got.status.ok() || ReplyText(got.reply) != want) ++wrong;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("openai decoders: a truncated stream is an error, or nothing of the reply is missing") {
  for (const Format& format : kFormats) {
    for (const std::string& name : kStreams) {
      CAPTURE(format.name);
      CAPTURE(name);
      const std::string stream = Stream(format, name);
      const DecoderRun whole = DecodeStream(format.make, {stream});
      size_t wrong = 0;
      for (size_t cut = 0; cut < stream.size(); ++cut) {
        const DecoderRun got = DecodeStream(format.make, {std::string_view(stream).substr(0, cut)});
        const bool same = got.reply.message == whole.reply.message &&
                          got.reply.stop_reason == whole.reply.stop_reason;
        if (got.status.ok() && !same) ++wrong;
        if (!got.status.ok() && got.status.error().code != Code::kModel) ++wrong;
        if (got.calls != got.calls_in_reply()) ++wrong;
        // What was announced before the cut is what the whole stream announces.
        if (!std::equal(got.calls.begin(), got.calls.end(), whole.calls.begin())) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("openai decoders: an error anywhere in the stream ends the reply with its words") {
  const std::string error = R"({"error":{"message":"boom","type":"server_error"}})";
  for (const Format& format : kFormats) {
    const std::string stream = Stream(format, "tools");
    for (size_t at = 0; at != std::string::npos; at = stream.find("\n\n", at + 1)) {
      const std::string head = stream.substr(0, at == 0 ? 0 : at + 2);
      if (head.find("[DONE]") != std::string::npos) break;
      if (head.find("\"status\":\"completed\",\"error\"") != std::string::npos) break;
      for (const std::string& form : {SseData(error), "event: error\n" + SseData(error)}) {
        const DecoderRun got =
            DecodeStream(format.make, {head + form + stream.substr(head.size())});
        REQUIRE(!got.status.ok());
        CHECK(got.status.error() == Error{Code::kModel, "boom"});
        CHECK(got.calls == got.calls_in_reply());
      }
    }
  }
}

TEST_CASE("openai decoders: errors in every shape that servers have for them") {
  struct Row {
    std::string data;
    Error want;
  };
  const std::vector<Row> rows = {
      {R"({"error":{"message":"boom"}})", {Code::kModel, "boom"}},
      {R"({"error":"boom"})", {Code::kModel, "boom"}},
      {R"({"object":"error","message":"boom","code":400})", {Code::kModel, "boom"}},
      {R"({"type":"error","code":"x","message":"boom"})", {Code::kModel, "boom"}},
      {R"({"error":{"code":500}})",
       {Code::kModel, "the provider reports an error without a message"}},
      {R"({"error":{"message":"Too much.","code":"context_length_exceeded"}})",
       {Code::kContextFull, "Too much."}},
      {R"({"error":{"message":"This model's maximum context length is 8 tokens."}})",
       {Code::kContextFull, "This model's maximum context length is 8 tokens."}},
      {R"({"error":{"message":"Provider returned error","metadata":{"raw":"prompt is too long"}}})",
       {Code::kContextFull, "Provider returned error"}},
      {R"({"type":"error","code":"context_length_exceeded","message":"Your input is large"})",
       {Code::kContextFull, "Your input is large"}},
  };
  for (const Format& format : kFormats) {
    for (const Row& row : rows) {
      CAPTURE(row.data);
      const Status stream = DecodeStream(format.make, {SseData(row.data)}).status;
      REQUIRE(!stream.ok());
      CHECK(stream.error() == row.want);
      const Status body = testing::DecodeWhole(format.make, row.data).status;
      REQUIRE(!body.ok());
      CHECK(body.error() == row.want);
    }
    for (const char* body : {"", "[1]", "<html>", "{}", R"({"choices":[]})", R"({"output":7})"}) {
      CHECK(!testing::DecodeWhole(format.make, body).status.ok());
    }
  }
}

TEST_CASE("openai decoders: what is odd but harmless is skipped, a damaged event is not") {
  for (const Format& format : kFormats) {
    const std::string text = Stream(format, "text");
    const std::string want = LlmTestData(format.name + "/text.want.json", true);
    const size_t middle = text.find("\n\n", text.size() / 3) + 2;
    for (const std::string& odd :
         {SseData("null"), SseData("[]"), SseData("{}"), SseData("keep-alive"),
          std::string(": comment\n\n"), std::string("event: x\n\n"), SseData(R"({"choices":[]})"),
          SseData(R"({"choices":[{"index":0,"delta":null}],"error":null})"),
          SseData(R"({"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"x"}]})"),
          SseData(R"({"type":"response.shiny.delta","delta":"zzz","output_index":0})"),
          SseData(R"({"type":"response.output_text.delta","delta":""})"),
          SseData(R"({"type":7,"choices":7,"usage":7})"),
          "event: keepalive\n" + SseData(R"({"type":"keepalive"})")}) {
      CAPTURE(odd);
      for (const size_t at : {size_t{0}, middle}) {
        const DecoderRun got =
            DecodeStream(format.make, {text.substr(0, at) + odd + text.substr(at)});
        CHECK(got.status.ok());
        CHECK(ReplyText(got.reply) == want);
      }
    }
    const DecoderRun damaged = DecodeStream(
        format.make, {text.substr(0, middle) + SseData("{\"choices\":[{") + text.substr(middle)});
    REQUIRE(!damaged.status.ok());
    CHECK(damaged.status.error().code == Code::kModel);
    CHECK(!DecodeStream(format.make, {}).status.ok());
  }
}

TEST_CASE("openai decoders: more than the caps is refused") {
  const std::string big(4u << 20, 'x');
  const std::string chat =
      SseData(R"({"choices":[{"index":0,"delta":{"content":")" + big + "\"}}]}");
  const std::string responses =
      SseData(R"({"type":"response.output_text.delta","delta":")" + big + "\"}");
  CHECK(!DecodeStream(&NewOpenAiChatDecoder, std::vector<std::string_view>(17, chat)).status.ok());
  CHECK(!DecodeStream(&NewOpenAiResponsesDecoder, std::vector<std::string_view>(17, responses))
             .status.ok());
  std::string calls, items;
  for (size_t n = 0; n <= kReplyBlocksMax; ++n) {
    const std::string id = std::to_string(n);
    calls += SseData(R"({"choices":[{"delta":{"tool_calls":[{"index":)" + id + R"(,"id":"c)" + id +
                     R"(","function":{"name":"n","arguments":""}}]}}]})");
    items += SseData(R"({"type":"response.output_item.added","output_index":)" + id +
                     R"(,"item":{"type":"message","id":"m)" + id + R"("}})");
  }
  CHECK(DecodeStream(&NewOpenAiChatDecoder, {calls}).status.error() == TooManyBlocks());
  CHECK(DecodeStream(&NewOpenAiResponsesDecoder, {items}).status.error() == TooManyBlocks());
}
