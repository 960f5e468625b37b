#include "lib/llm/openai_responses_decode.h"

#include <algorithm>
#include <deque>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/llm/error_words.h"
#include "lib/llm/frame_parser.h"
#include "lib/llm/json_text.h"
#include "lib/llm/openai_usage.h"
#include "lib/llm/reply_limits.h"

namespace norma::llm {
namespace {

constexpr size_t kBodyExcerptChars = 500;
constexpr std::string_view kEventPrefix = "response.";
constexpr int64_t kNoIndex = -1;

// Everything else (searches, shells, images of the provider) ran there, or is newer than this code.
enum class Kind { kMessage, kReasoning, kCall, kSkipped };

struct Part {
  int64_t index = 0;
  std::string text;
  bool settled = false;  // the whole text came
};

struct Item {
  std::string id;
  int64_t index = kNoIndex;
  Kind kind = Kind::kSkipped;
  std::deque<Part> content;  // of a message, or the reasoning itself
  std::deque<Part> summary;  // of reasoning
  Part arguments;
  ToolCall call;
  bool done = false;
  bool cut = false;  // the provider calls it incomplete
  bool announced = false;
};

Kind KindOf(std::string_view type) {
  if (type == "message") return Kind::kMessage;
  if (type == "reasoning") return Kind::kReasoning;
  if (type == "function_call") return Kind::kCall;
  return Kind::kSkipped;
}

class OpenAiResponsesDecoder : public Decoder {
 public:
  explicit OpenAiResponsesDecoder(DecodeEvents events) : events_(std::move(events)) {}

  Status OnEvent(std::string_view name, std::string_view data) override;
  Status OnBody(std::string_view body) override;
  bool complete() const override { return complete_; }
  bool began() const override { return began_; }
  size_t content_bytes() const override { return meter_.bytes(); }
  Status Finish(Reply* out) override;

 private:
  Status Event(std::string_view type, json::Value event, std::string_view text);
  Status Delta(std::string_view type, json::Value event);
  Status Terminal(std::string_view type, json::Value response);
  Status TakeOutput(json::Value output);
  Status Fail(json::Value event);
  // The item that an event speaks of; nullptr when it is not known.
  Item* Find(std::string_view id, int64_t index, Kind kind);
  Item* FindWhole(json::Value value, int64_t position);
  Result<Item*> Open(std::string_view id, int64_t index, Kind kind);
  Result<Part*> PartOf(std::deque<Part>& parts, int64_t index);
  Status Grow(Part& part, std::string_view text, Kind kind);
  // The whole text of a part: what the deltas left out is told, what they got wrong replaced.
  Status Settle(Part& part, std::string_view text, Kind kind);
  Status Whole(Item& item, json::Value value);
  Status WholeParts(std::deque<Part>& parts, json::Value list, Kind kind);
  void Announce(Item& item);

  DecodeEvents events_;
  FrameParser parser_;
  std::deque<Item> items_;  // in order of arrival; a deque so that an Item stays where it is
  OpenAiUsage usage_;
  std::string stop_reason_;
  ContentMeter meter_;
  size_t parts_ = 0;
  bool streaming_ = true;
  bool refused_ = false;
  bool began_ = false;
  bool complete_ = false;
};

Status OpenAiResponsesDecoder::OnEvent(std::string_view name, std::string_view data) {
  if (complete_) return {};
  std::string_view text = Trim(data);
  const bool ours = name.substr(0, kEventPrefix.size()) == kEventPrefix;
  const bool object = text.substr(0, 1) == "{";
  const auto event = parser_.Parse(&text);
  if (event && event->is_object()) {
    // Relays drop the event's name or make it "message"; then the JSON says what it is.
    const std::string_view type = ours || name == "error" ? name : (*event)["type"].Str();
    return Event(type, *event, text);
  }
  if (name == "error") return Error{Code::kModel, "error: " + Excerpt(data, kBodyExcerptChars)};
  // A damaged event may be a part of the reply, which then has a hole.
  if (object && (ours || name.empty())) {
    return Error{Code::kModel,
                 "a damaged " + std::string(name.empty() ? "event" : name) + " in the stream"};
  }
  return {};
}

Status OpenAiResponsesDecoder::Event(std::string_view type, json::Value event,
                                     std::string_view text) {
  const json::Value response = event["response"];
  if (response["usage"].is_object()) {
    usage_.Set(response["usage"], RawMember(RawMember(text, "response"), "usage"));
  }
  if (type == "error" || type == "response.failed") return Fail(event);
  if (type.substr(0, kEventPrefix.size()) != kEventPrefix) {
    return IsErrorFrame(event) ? Fail(event) : Status();
  }
  began_ = true;
  if (type == "response.completed" || type == "response.incomplete") {
    return Terminal(type, response);
  }
  if (type == "response.output_item.added") {
    const json::Value item = event["item"];
    const Kind kind = KindOf(item["type"].Str());
    const int64_t index = event["output_index"].Int(kNoIndex);
    Item* known = item["id"].Str().empty() ? nullptr : Find(item["id"].Str(), kNoIndex, kind);
    if (known == nullptr) {
      NORMA_ASSIGN(known, Open(item["id"].Str(), index, kind));
    }
    known->call.id = item["call_id"].Str();
    known->call.name = item["name"].Str();
    // Most servers send none here. Where the arguments come whole, no delta follows.
    return meter_.Replace(known->arguments.text, item["arguments"].Str());
  }
  if (type == "response.output_item.done") {
    const json::Value value = event["item"];
    const int64_t index = event["output_index"].Int(kNoIndex);
    const Kind kind = KindOf(value["type"].Str());
    Item* item = Find(value["id"].Str(), index, kind);
    if (item == nullptr) {
      NORMA_ASSIGN(item, Open(value["id"].Str(), index, kind));
    }
    NORMA_TRY(Whole(*item, value));
    if (item->kind == Kind::kCall) Announce(*item);
    return {};
  }
  return Delta(type, event);
}

// Deltas and the events that end one part.
Status OpenAiResponsesDecoder::Delta(std::string_view type, json::Value event) {
  struct Row {
    std::string_view stem;
    Kind kind;
    std::string_view index;  // of the part inside the item
    std::string_view whole;  // where `….done` has the text
  };
  static constexpr Row kRows[] = {
      {"response.output_text", Kind::kMessage, "content_index", "text"},
      {"response.refusal", Kind::kMessage, "content_index", "refusal"},
      {"response.reasoning_summary_text", Kind::kReasoning, "summary_index", "text"},
      {"response.reasoning_text", Kind::kReasoning, "content_index", "text"},
      {"response.function_call_arguments", Kind::kCall, "", "arguments"},
  };
  const size_t dot = type.rfind('.');
  const std::string_view verb = type.substr(dot + 1);
  const auto* row = std::ranges::find(kRows, type.substr(0, dot), &Row::stem);
  if (row == std::end(kRows) || (verb != "delta" && verb != "done")) return {};
  const std::string_view text = verb == "delta" ? event["delta"].Str() : event[row->whole].Str();
  if (text.empty()) return {};
  const std::string_view id = event["item_id"].Str();
  const int64_t index = event["output_index"].Int(kNoIndex);
  Item* item = Find(id, index, row->kind);
  if (item == nullptr) {
    NORMA_ASSIGN(item, Open(id, index, row->kind));
  }
  Part* part = &item->arguments;
  if (row->kind != Kind::kCall) {
    const bool summary = row->index == "summary_index";
    NORMA_ASSIGN(part, PartOf(summary ? item->summary : item->content, event[row->index].Int(0)));
  } else if (item->announced) {
    return {};  // its end came; what an end said counts
  }
  if (row->whole == "refusal") refused_ = true;
  return verb == "delta" ? Grow(*part, text, row->kind) : Settle(*part, text, row->kind);
}

Item* OpenAiResponsesDecoder::Find(std::string_view id, int64_t index, Kind kind) {
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (!id.empty() && item->id == id && item->kind == kind) return &*item;
  }
  // Some relays give each event of an item an id of its own.
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    const bool same = index != kNoIndex ? item->index == index : id.empty();
    if (same && item->kind == kind && !item->done) return &*item;
  }
  return nullptr;
}

Result<Item*> OpenAiResponsesDecoder::Open(std::string_view id, int64_t index, Kind kind) {
  if (items_.size() >= kReplyBlocksMax) return TooManyBlocks();
  Item& item = items_.emplace_back();
  item.id = id;
  item.index = index;
  item.kind = kind;
  return &item;
}

Result<Part*> OpenAiResponsesDecoder::PartOf(std::deque<Part>& parts, int64_t index) {
  const auto found = std::find_if(parts.rbegin(), parts.rend(),
                                  [&](const Part& part) { return part.index <= index; });
  if (found != parts.rend() && found->index == index) return &*found;
  if (++parts_ > kReplyBlocksMax) return TooManyBlocks();
  return &*parts.insert(found.base(), Part{index, "", false});
}

Status OpenAiResponsesDecoder::Grow(Part& part, std::string_view text, Kind kind) {
  if (text.empty() || part.settled) return {};
  NORMA_TRY(meter_.Append(part.text, text));
  if (kind == Kind::kMessage && events_.on_text) events_.on_text(text);
  if (kind == Kind::kReasoning && events_.on_thinking) events_.on_thinking(text);
  return {};
}

Status OpenAiResponsesDecoder::Settle(Part& part, std::string_view text, Kind kind) {
  if (text.empty()) return {};
  if (text.substr(0, part.text.size()) == part.text) {
    // Nothing is left to tell in the usual case.
    NORMA_TRY(Grow(part, text.substr(part.text.size()), kind));
  } else {
    NORMA_TRY(meter_.Replace(part.text, text));
  }
  part.settled = true;
  return {};
}

Status OpenAiResponsesDecoder::WholeParts(std::deque<Part>& parts, json::Value list, Kind kind) {
  Status status;
  int64_t index = 0;
  list.EachElement([&](json::Value value) {
    if (!status.ok()) return;
    const std::string_view refusal = value["refusal"].Str();
    if (!refusal.empty()) refused_ = true;
    const std::string_view text = refusal.empty() ? value["text"].Str() : refusal;
    auto part = PartOf(parts, index++);
    status = part.ok() ? Settle(*part.value(), text, kind) : Status(part.error());
  });
  return status;
}

// An item as it is at its end.
Status OpenAiResponsesDecoder::Whole(Item& item, json::Value value) {
  if (item.done) return {};
  item.done = true;
  item.cut = value["status"].Str() == "incomplete";
  switch (item.kind) {
    case Kind::kMessage:
      if (value["content"].is_string()) {
        NORMA_ASSIGN(Part* const part, PartOf(item.content, 0));
        return Settle(*part, value["content"].Str(), item.kind);
      }
      return WholeParts(item.content, value["content"], item.kind);
    case Kind::kReasoning:
      NORMA_TRY(WholeParts(item.summary, value["summary"], item.kind));
      return WholeParts(item.content, value["content"], item.kind);
    case Kind::kCall:
      if (!value["call_id"].Str().empty()) item.call.id = value["call_id"].Str();
      if (!value["name"].Str().empty()) item.call.name = value["name"].Str();
      return Settle(item.arguments, value["arguments"].Str(), item.kind);
    case Kind::kSkipped:
      break;
  }
  return {};
}

void OpenAiResponsesDecoder::Announce(Item& item) {
  if (item.announced) return;
  item.announced = true;
  item.call.input = item.arguments.text;
  // Cut arguments may look whole all the same.
  if (!item.cut) item.call.valid_input = ValidArguments(item.call.input);
  if (events_.on_call) events_.on_call(item.call);
}

// The streamed item that an item of the final output repeats. Relays change ids and leave items
// out, so that position, and then the mere kind, decide where ids do not: what was streamed must
// not be said, and above all not be run, twice.
Item* OpenAiResponsesDecoder::FindWhole(json::Value value, int64_t position) {
  const Kind kind = KindOf(value["type"].Str());
  Item* by_kind = nullptr;
  Item* by_position = nullptr;
  for (Item& item : items_) {
    if (item.kind != kind) continue;
    if (!item.id.empty() && item.id == value["id"].Str()) return &item;
    const std::string_view call = value["call_id"].Str();
    if (kind == Kind::kCall && !call.empty() && item.call.id == call) return &item;
    if (item.index == position) by_position = &item;
    if (item.done) by_kind = &item;
  }
  return by_position != nullptr ? by_position : by_kind;
}

Status OpenAiResponsesDecoder::TakeOutput(json::Value output) {
  Status status;
  int64_t position = 0;
  output.EachElement([&](json::Value value) {
    const int64_t at = position++;
    if (!status.ok() || !value.is_object()) return;
    Item* item = streaming_ ? FindWhole(value, at) : nullptr;
    if (item == nullptr) {
      auto opened = Open(value["id"].Str(), at, KindOf(value["type"].Str()));
      if (!opened.ok()) {
        status = opened.error();
        return;
      }
      item = opened.value();
    }
    status = Whole(*item, value);
  });
  return status;
}

Status OpenAiResponsesDecoder::Terminal(std::string_view type, json::Value response) {
  const std::string_view said = response["status"].Str();
  if (said == "failed" || said == "cancelled") return Fail(response);
  NORMA_TRY(TakeOutput(response["output"]));
  const bool incomplete = type == "response.incomplete" || said == "incomplete";
  stop_reason_ = "end_turn";
  if (incomplete) {
    const std::string_view reason = response["incomplete_details"]["reason"].Str("incomplete");
    stop_reason_ = reason == "max_output_tokens" ? "max_tokens" : std::string(reason);
  }
  for (Item& item : items_) {
    if (item.kind != Kind::kCall) continue;
    if (incomplete && !item.done) item.cut = true;
    Announce(item);
  }
  complete_ = true;
  return {};
}

// The words are in one of three places: `response.error`, `error`, or the event itself.
Status OpenAiResponsesDecoder::Fail(json::Value event) {
  const json::Value response = event["response"];
  if (IsErrorFrame(response)) return ReportedError(response);
  if (ErrorWords(event).empty() && !response["status"].Str().empty()) {
    return Error{Code::kModel,
                 "the provider ended the response as " + std::string(response["status"].Str())};
  }
  if (event["status"].Str() == "cancelled")
    return Error{Code::kModel, "the response was cancelled"};
  return ReportedError(event);
}

Status OpenAiResponsesDecoder::OnBody(std::string_view body) {
  std::string_view text = body;
  const auto root = parser_.Parse(&text);
  if (!root || !root->is_object()) {
    return Error{Code::kModel, "the body is no JSON object: " + Excerpt(body, kBodyExcerptChars)};
  }
  const json::Value response = *root;
  usage_.Set(response["usage"], RawMember(text, "usage"));
  if (IsErrorFrame(response)) return Fail(response);
  const std::string_view said = response["status"].Str();
  if (said == "queued" || said == "in_progress") {
    return Error{Code::kModel, "the response is not there yet (status " + std::string(said) +
                                   "); norma does not use background responses"};
  }
  if (!response["output"].is_array()) {
    return Error{Code::kModel, "the body is no response: " + Excerpt(body, kBodyExcerptChars)};
  }
  began_ = true;
  streaming_ = false;
  NORMA_TRY(Terminal("", response));
  const bool calls =
      std::ranges::any_of(items_, [](const Item& item) { return item.kind == Kind::kCall; });
  if (calls && stop_reason_ == "end_turn") stop_reason_ = "tool_use";
  return {};
}

Status OpenAiResponsesDecoder::Finish(Reply* out) {
  bool calls = false;
  for (const Item& item : items_) {
    if (item.kind == Kind::kMessage) {
      for (const Part& part : item.content) {
        if (!part.text.empty()) out->message.blocks.emplace_back(Text{part.text});
      }
    } else if (item.kind == Kind::kReasoning) {
      // The reasoning itself where there is any, else its summary.
      std::string content, summary;
      for (const Part& part : item.content) content += part.text;
      for (const Part& part : item.summary) summary += part.text;
      if (content.empty()) content = std::move(summary);
      if (!content.empty()) out->message.blocks.emplace_back(Thinking{std::move(content), ""});
    } else if (item.kind == Kind::kCall) {
      calls = true;
      if (item.announced) out->message.blocks.emplace_back(item.call);
    }
  }
  out->usage = usage_.Take();
  out->stop_reason = stop_reason_;
  // The format has no status for it, but a part type of its own that says that the model refused.
  if (refused_ && !calls && stop_reason_ == "end_turn") out->stop_reason = "refusal";
  if (complete_) return {};
  return Error{Code::kModel, "the stream ended early: no response.completed came"};
}

}  // namespace

std::unique_ptr<Decoder> NewOpenAiResponsesDecoder(DecodeEvents events) {
  return std::make_unique<OpenAiResponsesDecoder>(std::move(events));
}

}  // namespace norma::llm
