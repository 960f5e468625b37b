// The Responses decoder: parts that come only at the end, ids that change, cut calls, whole bodies.
#include "lib/llm/openai_responses_decode.h"

#include <doctest/doctest.h>

#include "lib/testing/decoder_run.h"

using namespace norma;
using namespace norma::llm;
using norma::testing::DecoderRun;
using norma::testing::SseData;

namespace {

std::string Event(const std::string& type, const std::string& members) {
  return SseData(R"({"type":")" + type + "\"," + members + "}");
}
std::string Done(const std::string& output, const std::string& more = "") {
  return Event("response.completed",
               R"("response":{"status":"completed","output":)" + output + more + "}");
}
std::string Incomplete(const std::string& reason, const std::string& output = "[]") {
  return Event("response.incomplete", R"("response":{"status":"incomplete","output":)" + output +
                                          R"(,"incomplete_details":{"reason":")" + reason + "\"}}");
}

DecoderRun Decode(const std::string& stream) {
  return testing::DecodeStream(&NewOpenAiResponsesDecoder, {stream});
}
DecoderRun DecodeBody(const std::string& body) {
  return testing::DecodeWhole(&NewOpenAiResponsesDecoder, body);
}

const std::string kCallItem =
    R"({"id":"f","type":"function_call","call_id":"c","name":"LS","arguments":"{\"p\":1}"})";
const std::string kCallBare = R"({"id":"f","type":"function_call","call_id":"c","name":"LS"})";
const std::string kTextItem =
    R"({"id":"m","type":"message","content":[{"type":"output_text","text":"hello"}]})";
const ToolCall kCall{"c", "LS", "{\"p\":1}", "{\"p\":1}"};

}  // namespace

TEST_CASE("openai-responses decoder: arguments count wherever they come, and only once") {
  const std::string added =
      Event("response.output_item.added", R"("output_index":0,"item":)" + kCallBare);
  const auto delta = [](const std::string& text, const std::string& id = "f") {
    return Event("response.function_call_arguments.delta",
                 R"("output_index":0,"item_id":")" + id + R"(","delta":)" + json::Quote(text));
  };
  const std::string end = Event("response.function_call_arguments.done",
                                R"("output_index":0,"item_id":"f","arguments":"{\"p\":1}")");
  const std::string item =
      Event("response.output_item.done", R"("output_index":0,"item":)" + kCallItem);
  const std::string bare =
      Event("response.output_item.done", R"("output_index":0,"item":)" + kCallBare);
  const std::string all = "[" + kCallItem + "]";
  for (const std::string& stream :
       {added + delta("{\"p\"") + delta(":1}") + end + item + Done(all),
        added + delta("{\"p\"") + delta(":1}") + Done("[]"),
        added + delta("{\"p\"", "other") + delta(":1}", "another") + item + Done(all),
        added + delta("{\"p\":1}") + bare + Done("[" + kCallBare + "]"), added + end + Done("[]"),
        added + item + Done("[]"), added + Done(all), item + Done("[]"), Done(all),
        delta("{\"p\":1}") + item + Done(all), added + delta("{\"p\"") + end + Done("[]"),
        added + delta("{\"x\"") + item + Done(all), added + item + item + Done(all),
        Event("response.output_item.added", R"("output_index":0,"item":)" + kCallItem) + Done("[]"),
        // The final output renames the item.
        added + item +
            Done(R"([{"id":"other","type":"function_call","call_id":"c","name":"LS",)"
                 R"("arguments":"{\"p\":1}"}])")}) {
    CAPTURE(stream);
    const DecoderRun got = Decode(stream);
    CHECK(got.status.ok());
    CHECK(got.calls == std::vector<ToolCall>{kCall});
    CHECK(got.calls_in_reply() == got.calls);
    CHECK(got.reply.stop_reason == "end_turn");
  }
}

TEST_CASE("openai-responses decoder: a call that was cut never has valid input") {
  const std::string added =
      Event("response.output_item.added", R"("output_index":0,"item":)" + kCallBare);
  const std::string delta = Event("response.function_call_arguments.delta",
                                  R"("item_id":"f","output_index":0,"delta":"{}")");
  const std::string cut_item =
      Event("response.output_item.done",
            R"("output_index":0,"item":{"id":"f","type":"function_call","status":"incomplete",)"
            R"("call_id":"c","name":"LS","arguments":"{}"})");
  for (const std::string& stream :
       {added + delta + Incomplete("max_output_tokens"), added + Incomplete("max_output_tokens"),
        added + delta + cut_item + Incomplete("max_output_tokens")}) {
    const DecoderRun got = Decode(stream);
    CHECK(got.status.ok());
    REQUIRE(got.calls.size() == 1);
    CHECK(got.calls[0].valid_input.empty());
    CHECK(got.reply.stop_reason == "max_tokens");
  }
  // Whole before the cut: it may run.
  const DecoderRun whole =
      Decode(Event("response.output_item.done", R"("output_index":0,"item":)" + kCallItem) +
             Incomplete("max_output_tokens"));
  CHECK(whole.calls == std::vector<ToolCall>{kCall});
  CHECK(Decode(Incomplete("content_filter")).reply.stop_reason == "content_filter");
}

TEST_CASE("openai-responses decoder: text of deltas, of parts, of items, of the response") {
  const std::string delta =
      Event("response.output_text.delta", R"("item_id":"m","output_index":0,"delta":"hel")");
  const std::string end =
      Event("response.output_text.done", R"("item_id":"m","output_index":0,"text":"hello")");
  const std::string item =
      Event("response.output_item.done", R"("output_index":0,"item":)" + kTextItem);
  const std::string all = "[" + kTextItem + "]";
  for (const std::string& stream :
       {delta + end + item + Done(all), delta + item + Done(all), delta + Done(all),
        end + Done("[]"), item + Done(all), Done(all),
        "event: response.output_text.done\n" + end + "event: message\n" + Done(all)}) {
    const DecoderRun got = Decode(stream);
    CHECK(got.status.ok());
    CHECK(got.text == "hello");
    CHECK(got.reply.message == Message{Role::kAssistant, {Text{"hello"}}});
  }
  // What the deltas got wrong is put right in the reply.
  const std::string wrong =
      Event("response.output_text.delta", R"("item_id":"m","output_index":0,"delta":"hxl")");
  CHECK(TextOf(Decode(wrong + item + Done(all)).reply.message) == "hello");
  // A final output that renames what was streamed says nothing new.
  const std::string renamed =
      R"([{"type":"reasoning","summary":[]},{"id":"z","type":"message","content":[{"text":"hello"}]}])";
  CHECK(TextOf(Decode(delta + end + item + Done(renamed)).reply.message) == "hello");
}

TEST_CASE("openai-responses decoder: refusals and reasoning") {
  const DecoderRun refused =
      Decode(Event("response.refusal.delta", R"("item_id":"m","output_index":0,"delta":"No")") +
             Event("response.refusal.done", R"("item_id":"m","output_index":0,"refusal":"No.")") +
             Done("[]"));
  CHECK(refused.text == "No.");
  CHECK(refused.reply.stop_reason == "refusal");
  const DecoderRun body = DecodeBody(
      R"({"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]})");
  CHECK(TextOf(body.reply.message) == "No.");
  CHECK(body.reply.stop_reason == "refusal");
  const auto thinking = [](const std::string& item) {
    const Reply reply = Decode(Done("[" + item + "]")).reply;
    return reply.message.blocks.empty() ? std::string()
                                        : std::get<Thinking>(reply.message.blocks[0]).text;
  };
  CHECK(thinking(R"({"type":"reasoning","summary":[{"text":"a"},{"text":"b"}]})") == "ab");
  CHECK(thinking(R"({"type":"reasoning","summary":[{"text":"a"}],)"
                 R"("content":[{"type":"reasoning_text","text":"c"}]})") == "c");
  CHECK(thinking(R"({"type":"reasoning","summary":[],"encrypted_content":"x"})").empty());
}

TEST_CASE("openai-responses decoder: failures say it in one of three places") {
  struct Row {
    std::string stream, want;
  };
  const std::vector<Row> rows = {
      {Event("response.failed", R"("response":{"status":"failed","error":{"message":"boom"}})"),
       "boom"},
      {Event("error", R"("error":{"message":"boom"})"), "boom"},
      {Event("error", R"("message":"boom","code":"x")"), "boom"},
      {"event: error\n" + SseData(R"({"message":"boom"})"), "boom"},
      {Event("response.failed", R"("response":{"status":"failed","error":null})"),
       "the provider ended the response as failed"},
      {Event("response.completed", R"("response":{"status":"failed","error":{"message":"boom"}})"),
       "boom"},
      {Event("response.completed", R"("response":{"status":"cancelled","output":[]})"),
       "the response was cancelled"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.stream);
    const DecoderRun got = Decode(row.stream);
    REQUIRE(!got.status.ok());
    CHECK(got.status.error() == Error{Code::kModel, row.want});
  }
  const DecoderRun full = Decode(Event(
      "response.failed",
      R"("response":{"error":{"code":"context_length_exceeded","message":"Your input is large"}})"));
  CHECK(full.status.error().code == Code::kContextFull);
  const DecoderRun billed = Decode(Event(
      "response.failed", R"("response":{"error":{"message":"x"},"usage":{"input_tokens":3}})"));
  CHECK(billed.reply.usage.input == 3);
}

TEST_CASE("openai-responses decoder: whole bodies") {
  const DecoderRun got = DecodeBody(
      R"({"status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"text":"t"}]},)" +
      kTextItem + "," + kCallItem +
      R"(,{"type":"web_search_call","id":"w"},{"type":"function_call","call_id":"d","name":"N"}],)"
      R"("usage":{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":5},)"
      R"("output_tokens_details":{"reasoning_tokens":2}}})");
  CHECK(got.status.ok());
  const Message want{Role::kAssistant,
                     {Thinking{"t", ""}, Text{"hello"}, kCall, ToolCall{"d", "N", "", "{}"}}};
  CHECK(got.reply.message == want);
  CHECK(got.reply.stop_reason == "tool_use");
  CHECK(got.reply.usage.input == 9);
  CHECK(got.reply.usage.cache_read == 5);
  CHECK(got.reply.usage.reasoning == 2);
  CHECK(DecodeBody(R"({"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},)"
                   R"("output":[)" +
                   kCallItem + "]}")
            .reply.stop_reason == "max_tokens");
  for (const char* status : {"queued", "in_progress", "failed", "cancelled"}) {
    CHECK(!DecodeBody(R"({"output":[],"status":")" + std::string(status) + "\"}").status.ok());
  }
}
