#include "lib/testing/model_transport.h"

#include <fmt/core.h>

#include <set>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::testing {
namespace {

std::string Frame(std::string_view kind, const std::string& fields) {
  return fmt::format("event: {}\ndata: {{\"type\":{}{}}}\n\n", kind, json::Quote(kind), fields);
}

// Splits `text` the way a stream does, so that no delta ever holds it whole when it is long.
std::vector<std::string> Pieces(const std::string& text) {
  constexpr size_t kPiece = 17;
  std::vector<std::string> pieces;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view piece = CutUtf8(rest, kPiece);
    if (piece.empty()) piece = rest;
    pieces.emplace_back(piece);
    rest.remove_prefix(piece.size());
  }
  return pieces;
}

void AddBlock(std::vector<std::string>& frames, int index, const std::string& start,
              std::string_view delta_type, std::string_view delta_key, const std::string& content) {
  frames.push_back(Frame("content_block_start",
                         fmt::format(",\"index\":{},\"content_block\":{}", index, start)));
  for (const std::string& piece : Pieces(content)) {
    frames.push_back(Frame("content_block_delta",
                           fmt::format(",\"index\":{},\"delta\":{{\"type\":\"{}\",\"{}\":{}}}",
                                       index, delta_type, delta_key, json::Quote(piece))));
  }
  frames.push_back(Frame("content_block_stop", fmt::format(",\"index\":{}", index)));
}

std::string FaultOfMessage(json::Value message, std::set<std::string>& open,
                           std::set<std::string>& seen) {
  const bool is_user = message["role"].Str() == "user";
  std::set<std::string> results;
  std::set<std::string> calls;
  std::string fault;
  if (!message["content"].is_array() || message["content"].size() == 0) return "empty content";
  message["content"].EachElement([&](json::Value block) {
    const std::string_view type = block["type"].Str();
    if (type == "text" && IsBlank(block["text"].Str())) fault = "blank text block";
    if (type == "tool_result") {
      if (!is_user) fault = "tool_result in an assistant message";
      if (!results.emplace(block["tool_use_id"].Str()).second) fault = "two results for one call";
    }
    if (type == "tool_use") {
      if (!block["input"].is_object()) fault = "tool_use input is no object";
      if (!seen.emplace(block["id"].Str()).second) fault = "a tool id is used twice";
      calls.emplace(block["id"].Str());
    }
  });
  if (is_user && results != open) fault = "the results do not match the calls before them";
  open = is_user ? std::set<std::string>{} : calls;
  return fault;
}

class Delivery {
 public:
  Delivery(HttpSink& sink, const Cancel& cancel, const Wake& wake)
      : sink_(sink), cancel_(cancel), wake_(wake) {}

  // False when the exchange is over before the body is.
  bool Bytes(const std::string& bytes, HttpOutcome& outcome) {
    if (wake_.serve) wake_.serve();
    if (cancel_.tripped()) {
      outcome.error = HttpError{HttpFailure::kCancelled, "cancelled"};
      return false;
    }
    const Progress progress = sink_.OnBytes(bytes);
    outcome.body_bytes += bytes.size();
    if (progress == Progress::kStop) {
      outcome.error = HttpError{HttpFailure::kStopped, "refused by the reader"};
    }
    return progress != Progress::kStop && progress != Progress::kComplete;
  }

 private:
  HttpSink& sink_;
  const Cancel& cancel_;
  const Wake& wake_;
};

}  // namespace

std::vector<std::string> AnthropicFrames(const ModelReply& reply, int number) {
  std::vector<std::string> frames;
  frames.push_back(Frame(
      "message_start",
      fmt::format(",\"message\":{{\"id\":\"msg_{}\",\"type\":\"message\",\"role\":\"assistant\","
                  "\"content\":[],\"usage\":{{\"input_tokens\":{},\"output_tokens\":1,"
                  "\"cache_read_input_tokens\":{},\"cache_creation_input_tokens\":{}}}}}",
                  number, reply.input, reply.cache_read, reply.cache_write)));
  int index = 0;
  if (!reply.thinking.empty()) {
    AddBlock(frames, index++, R"({"type":"thinking","thinking":"","signature":""})",
             "thinking_delta", "thinking", reply.thinking);
  }
  if (!reply.text.empty()) {
    AddBlock(frames, index++, R"({"type":"text","text":""})", "text_delta", "text", reply.text);
  }
  for (const ModelCall& call : reply.calls) {
    AddBlock(frames, index++,
             fmt::format(R"({{"type":"tool_use","id":{},"name":{},"input":{{}}}})",
                         json::Quote(call.id), json::Quote(call.name)),
             "input_json_delta", "partial_json", call.input);
  }
  const std::string stop = !reply.stop.empty()   ? reply.stop
                           : reply.calls.empty() ? "end_turn"
                                                 : "tool_use";
  frames.push_back(
      Frame("message_delta", fmt::format(",\"delta\":{{\"stop_reason\":\"{}\"}},\"usage\":"
                                         "{{\"output_tokens\":{}}}",
                                         stop, reply.output)));
  frames.push_back(Frame("message_stop", ""));
  return frames;
}

std::string ProtocolFault(std::string_view body) {
  const Result<json::Document> document = json::Document::Parse(body);
  if (!document.ok()) return "the body is no JSON: " + document.error().message;
  const json::Value root = document.value().root();
  if (root["max_tokens"].Int() < 1) return "max_tokens is not positive";
  std::string fault;
  std::string role;
  std::set<std::string> open;
  std::set<std::string> seen;
  root["messages"].EachElement([&](json::Value message) {
    if (!fault.empty()) return;
    const std::string_view now = message["role"].Str();
    if (role.empty() && now != "user") fault = "the first message is not the user's";
    if (role == now) fault = fmt::format("two {} messages in a row", now);
    role = now;
    if (fault.empty()) fault = FaultOfMessage(message, open, seen);
  });
  if (!fault.empty()) return fault;
  if (role != "user") return "the conversation does not end with the user";
  std::set<std::string> names;
  root["tools"].EachElement([&](json::Value tool) {
    if (!names.emplace(tool["name"].Str()).second) fault = "a tool is offered twice";
  });
  return fault;
}

HttpOutcome ModelTransport::Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                                 const Wake& wake) {
  const int number = static_cast<int>(bodies_.size());
  bodies_.emplace_back(request.body);
  if (const std::string fault = ProtocolFault(request.body); !fault.empty() && fault_.empty()) {
    fault_ = fmt::format("request {}: {}", number, fault);
  }
  const ModelReply reply = answer_(bodies_.back(), number);
  HttpOutcome outcome;
  if (cancel.tripped()) {
    outcome.error = HttpError{HttpFailure::kCancelled, "cancelled"};
    return outcome;
  }
  if (reply.failure.has_value() && reply.cut_after_frames < 0) {
    outcome.error = HttpError{*reply.failure, "no answer"};
    return outcome;
  }
  outcome.head.status = reply.status;
  outcome.head.headers = {
      {"content-type", reply.status == 200 ? "text/event-stream" : "application/json"}};
  sink.OnHead(outcome.head);
  Delivery delivery(sink, cancel, wake);
  if (reply.status != 200) {
    delivery.Bytes(fmt::format(R"({{"type":"error","error":{{"type":"api_error","message":)"
                               R"("status {}"}}}})",
                               reply.status),
                   outcome);
    return outcome;
  }
  int sent = 0;
  for (const std::string& frame : AnthropicFrames(reply, number)) {
    if (reply.cut_after_frames >= 0 && sent == reply.cut_after_frames) {
      if (reply.failure.has_value()) outcome.error = HttpError{*reply.failure, "it broke"};
      return outcome;
    }
    ++sent;
    if (!delivery.Bytes(frame, outcome)) return outcome;
  }
  return outcome;
}

}  // namespace norma::testing
