#include "lib/llm/anthropic_decode.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/llm/anthropic_usage.h"
#include "lib/llm/error_words.h"
#include "lib/llm/frame_parser.h"
#include "lib/llm/json_text.h"
#include "lib/llm/reply_limits.h"

namespace norma::llm {
namespace {

constexpr size_t kBodyExcerptChars = 500;

// Frames that carry the reply. One of these that is damaged means that a part is missing.
constexpr std::array<std::string_view, 7> kReplyFrames = {"message_start",
                                                          "content_block_start",
                                                          "content_block_delta",
                                                          "content_block_stop",
                                                          "message_delta",
                                                          "message_stop",
                                                          "error"};

enum class Kind { kText, kThinking, kCall, kOpaque, kSkipped };

struct OpenBlock {
  int64_t index = 0;
  Kind kind = Kind::kSkipped;
  std::string text;         // text, thinking, argument text, or the opaque block's JSON
  std::string signature;    // of thinking
  std::string start_input;  // arguments that came whole with the start
  ToolCall call;
  bool closed = false;
};

Kind KindOf(std::string_view type) {
  if (type == "text") return Kind::kText;
  if (type == "thinking") return Kind::kThinking;
  if (type == "tool_use") return Kind::kCall;
  if (type == "redacted_thinking") return Kind::kOpaque;
  // server_tool_use and its results ran at the provider; anything else is newer than this code.
  return Kind::kSkipped;
}

class AnthropicDecoder : public Decoder {
 public:
  explicit AnthropicDecoder(DecodeEvents events) : events_(std::move(events)) {}

  Status OnEvent(std::string_view name, std::string_view data) override;
  Status OnBody(std::string_view body) override;
  bool complete() const override { return complete_; }
  bool began() const override { return !blocks_.empty() || usage_.reported(); }
  size_t content_bytes() const override { return meter_.bytes(); }
  Status Finish(Reply* out) override;

 private:
  Status Frame(json::Value frame, std::string_view text);
  Status StartBlock(int64_t index, json::Value block, std::string_view raw);
  Status Delta(int64_t index, json::Value delta);
  void StopBlock(OpenBlock& block);
  Status WholeBlock(json::Value block, std::string_view raw);
  OpenBlock* Find(int64_t index);
  Status AddText(OpenBlock& block, std::string_view text);
  void StopReason(json::Value reason);

  DecodeEvents events_;
  FrameParser parser_;
  std::vector<OpenBlock> blocks_;  // in order of arrival
  AnthropicUsage usage_;
  std::string stop_reason_;
  ContentMeter meter_;
  bool complete_ = false;
};

Status AnthropicDecoder::OnEvent(std::string_view name, std::string_view data) {
  if (complete_) return {};
  std::string_view text = data;
  const auto frame = parser_.Parse(&text);
  if (frame && frame->is_object()) return Frame(*frame, text);
  // Keep-alives of gateways need be no JSON. But half an object under the name of a frame that
  // carries the reply is a reply with a hole, which must not pass for a whole one.
  const bool damaged =
      Trim(data).substr(0, 1) == "{" && std::ranges::find(kReplyFrames, name) != kReplyFrames.end();
  if (damaged) return Error{Code::kModel, fmt::format("a damaged {} event in the stream", name)};
  return {};
}

Status AnthropicDecoder::Frame(json::Value frame, std::string_view text) {
  // The JSON type decides, not the event's name: relays drop the name.
  const std::string_view type = frame["type"].Str();
  const int64_t index = frame["index"].Int(-1);
  if (type == "content_block_delta") return Delta(index, frame["delta"]);
  if (type == "content_block_start") {
    return StartBlock(index, frame["content_block"], RawMember(text, "content_block"));
  }
  if (type == "content_block_stop") {
    if (OpenBlock* block = Find(index)) StopBlock(*block);
  } else if (type == "message_start") {
    usage_.Add(frame["message"]["usage"], RawMember(RawMember(text, "message"), "usage"),
               AnthropicUsage::From::kMessageStart);
  } else if (type == "message_delta") {
    StopReason(frame["delta"]["stop_reason"]);
    usage_.Add(frame["usage"], RawMember(text, "usage"), AnthropicUsage::From::kLater);
  } else if (type == "message_stop") {
    complete_ = true;
    // A call without its own end was cut (max_tokens). It is announced, so that it gets an answer,
    // but with no valid input: what it says may be half of what was meant.
    for (OpenBlock& block : blocks_) {
      if (block.kind == Kind::kCall && !block.closed) {
        block.closed = true;
        block.call.input = block.text;
        if (events_.on_call) events_.on_call(block.call);
      }
    }
  } else if (type == "error" || (type.empty() && frame["error"].present())) {
    return ReportedError(frame);
  }
  return {};
}

OpenBlock* AnthropicDecoder::Find(int64_t index) {
  if (blocks_.empty()) return nullptr;
  if (index < 0) return &blocks_.back();
  // From the back: the block that grows is nearly always the last.
  const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                  [&](const OpenBlock& block) { return block.index == index; });
  return found == blocks_.rend() ? nullptr : &*found;
}

Status AnthropicDecoder::AddText(OpenBlock& block, std::string_view text) {
  if (text.empty()) return {};
  NORMA_TRY(meter_.Append(block.text, text));
  const auto& tell = block.kind == Kind::kText ? events_.on_text : events_.on_thinking;
  if (tell) tell(text);
  return {};
}

Status AnthropicDecoder::StartBlock(int64_t index, json::Value block, std::string_view raw) {
  if (blocks_.size() >= kReplyBlocksMax) {
    return TooManyBlocks();
  }
  OpenBlock& open = blocks_.emplace_back();
  open.index = index;
  open.kind = KindOf(block["type"].Str());
  switch (open.kind) {
    case Kind::kText:
      return AddText(open, block["text"].Str());
    case Kind::kThinking:
      NORMA_TRY(meter_.Append(open.signature, block["signature"].Str()));
      return AddText(open, block["thinking"].Str());
    case Kind::kCall:
      open.call.id = block["id"].Str();
      open.call.name = block["name"].Str();
      if (block["input"].size() > 0)
        return meter_.Append(open.start_input, RawMember(raw, "input"));
      return {};
    case Kind::kOpaque:
      return meter_.Append(open.text, raw);
    case Kind::kSkipped:
      break;
  }
  return {};
}

Status AnthropicDecoder::Delta(int64_t index, json::Value delta) {
  const std::string_view type = delta["type"].Str();
  OpenBlock* block = Find(index);
  if (block == nullptr) {
    // Some gateways leave the start of a text block out; the text counts all the same.
    if (type != "text_delta" && type != "thinking_delta") return {};
    NORMA_TRY(StartBlock(index, {}, {}));
    block = &blocks_.back();
    block->kind = type == "text_delta" ? Kind::kText : Kind::kThinking;
  }
  if (type == "text_delta" && block->kind == Kind::kText) {
    return AddText(*block, delta["text"].Str());
  }
  if (type == "thinking_delta" && block->kind == Kind::kThinking) {
    return AddText(*block, delta["thinking"].Str());
  }
  if (type == "signature_delta" && block->kind == Kind::kThinking) {
    return meter_.Append(block->signature, delta["signature"].Str());
  }
  if (type == "input_json_delta" && block->kind == Kind::kCall && !block->closed) {
    return meter_.Append(block->text, delta["partial_json"].Str());
  }
  return {};
}

void AnthropicDecoder::StopBlock(OpenBlock& block) {
  if (block.closed) return;
  block.closed = true;
  if (block.kind != Kind::kCall) return;
  block.call.input = block.text.empty() ? block.start_input : block.text;
  block.call.valid_input = ValidArguments(block.call.input);
  if (events_.on_call) events_.on_call(block.call);
}

Status AnthropicDecoder::WholeBlock(json::Value block, std::string_view raw) {
  NORMA_TRY(StartBlock(static_cast<int64_t>(blocks_.size()), block, raw));
  OpenBlock& open = blocks_.back();
  const json::Value input = block["input"];
  // Not an object (a string, a number): kept as the raw text, which then is no valid input.
  if (open.kind == Kind::kCall && input.present() && !input.is_null() && !input.is_object() &&
      open.start_input.empty()) {
    NORMA_TRY(meter_.Append(open.start_input, RawMember(raw, "input")));
  }
  StopBlock(open);
  return {};
}

Status AnthropicDecoder::OnBody(std::string_view body) {
  std::string_view text = body;
  const auto root = parser_.Parse(&text);
  if (!root || !root->is_object()) {
    return Error{Code::kModel, "the body is no JSON object: " + Excerpt(body, kBodyExcerptChars)};
  }
  const json::Value error = (*root)["error"];
  if ((*root)["type"].Str() == "error" || (error.present() && !error.is_null())) {
    return ReportedError(*root);
  }
  const json::Value content = (*root)["content"];
  if (!content.is_array()) {
    return Error{Code::kModel, "the body is no message: " + Excerpt(body, kBodyExcerptChars)};
  }
  std::vector<std::string_view> raws;
  EachRawElement(RawMember(text, "content"), [&](std::string_view raw) { raws.push_back(raw); });
  StopReason((*root)["stop_reason"]);
  usage_.Add((*root)["usage"], RawMember(text, "usage"), AnthropicUsage::From::kLater);
  Status status;
  size_t at = 0;
  content.EachElement([&](json::Value block) {
    if (status.ok()) status = WholeBlock(block, at < raws.size() ? raws[at] : std::string_view());
    ++at;
  });
  complete_ = status.ok();
  return status;
}

void AnthropicDecoder::StopReason(json::Value reason) {
  if (!reason.Str().empty()) stop_reason_ = reason.Str();
}

Status AnthropicDecoder::Finish(Reply* out) {
  for (const OpenBlock& block : blocks_) {
    switch (block.kind) {
      case Kind::kText:
        if (!block.text.empty()) out->message.blocks.emplace_back(Text{block.text});
        break;
      case Kind::kThinking:
        if (!block.text.empty() || !block.signature.empty()) {
          out->message.blocks.emplace_back(Thinking{block.text, block.signature});
        }
        break;
      case Kind::kCall:
        if (block.closed) out->message.blocks.emplace_back(block.call);
        break;
      case Kind::kOpaque:
        out->message.blocks.emplace_back(Opaque{"anthropic", block.text});
        break;
      case Kind::kSkipped:
        break;
    }
  }
  out->stop_reason = stop_reason_;
  out->usage = usage_.Take();
  if (complete_) return {};
  return Error{Code::kModel, "the stream ended early: no message_stop came"};
}

}  // namespace

std::unique_ptr<Decoder> NewAnthropicDecoder(DecodeEvents events) {
  return std::make_unique<AnthropicDecoder>(std::move(events));
}

}  // namespace norma::llm
