#include "lib/llm/openai_chat_decode.h"

#include <array>
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
constexpr std::string_view kDone = "[DONE]";
constexpr int64_t kNoIndex = -1;

// Where reasoning is found, by server. The first that is not empty counts: some send it twice.
constexpr std::array<std::string_view, 3> kReasoningKeys = {"reasoning_content", "reasoning",
                                                            "reasoning_text"};

enum class Kind { kText, kThinking, kCall };

struct Part {
  Kind kind = Kind::kText;
  std::string text;  // or the argument text
  int64_t index = kNoIndex;
  ToolCall call;
  bool announced = false;
};

// The arguments end like an object. Whether they are one is then worth a look.
bool LooksWhole(std::string_view arguments) {
  const std::string_view trimmed = Trim(arguments);
  return !trimmed.empty() && trimmed.back() == '}';
}

bool IsWhole(std::string_view arguments) {
  return LooksWhole(arguments) && !ValidArguments(arguments).empty();
}

class OpenAiChatDecoder : public Decoder {
 public:
  explicit OpenAiChatDecoder(DecodeEvents events) : events_(std::move(events)) {}

  Status OnEvent(std::string_view name, std::string_view data) override;
  Status OnBody(std::string_view body) override;
  // Not yet at the finish reason: the usage comes behind it.
  bool complete() const override { return done_; }
  bool began() const override { return began_; }
  bool empty_body_is_reply() const override { return true; }
  size_t content_bytes() const override { return meter_.bytes(); }
  Status Finish(Reply* out) override;

 private:
  Status Frame(json::Value frame, std::string_view name);
  Status Content(json::Value message);
  Status ContentParts(json::Value parts);
  Status AddText(Kind kind, std::string_view text);
  Status Reasoning(json::Value message);
  Status Fragments(json::Value calls, std::string_view holder);
  Status Fragment(json::Value fragment, std::string_view arguments, bool whole);
  Part* Find(int64_t index, std::string_view id, std::string_view name, std::string_view arguments);
  std::string_view RawArguments(std::string_view holder, size_t position) const;
  Status FinishReason(std::string_view reason);
  void AnnounceAll();
  void Announce(Part& part);
  void UsageOf(json::Value frame, json::Value choice);

  DecodeEvents events_;
  FrameParser parser_;
  std::string_view frame_text_;  // of the frame at hand
  std::deque<Part> parts_;       // in order of arrival; a deque so that a Part stays where it is
  OpenAiUsage usage_;
  std::string finish_reason_;
  ContentMeter meter_;
  size_t choice_position_ = 0;  // of choice 0 in the list at hand
  bool refused_ = false;        // refusal text came
  bool began_ = false;          // a chunk came
  bool finished_ = false;       // a finish reason came, and no content behind it
  bool done_ = false;           // [DONE], or a whole body
};

json::Value ChoiceZero(json::Value choices, size_t* position) {
  json::Value found;
  size_t at = 0;
  choices.EachElement([&](json::Value choice) {
    if (!found.present() && choice["index"].Int(0) == 0) {
      found = choice;
      *position = at;
    }
    ++at;
  });
  return found;
}

Status OpenAiChatDecoder::OnEvent(std::string_view name, std::string_view data) {
  if (done_) return {};
  std::string_view text = Trim(data);
  if (text.empty()) return {};
  if (text == kDone) {
    done_ = true;
    AnnounceAll();
    return {};
  }
  const bool object = text.front() == '{';
  const auto frame = parser_.Parse(&text);
  if (frame && frame->is_object()) {
    frame_text_ = text;
    return Frame(*frame, name);
  }
  if (name == "error") return Error{Code::kModel, "error: " + Excerpt(data, kBodyExcerptChars)};
  // Keep-alives of gateways need be no JSON. But half an object is a reply with a hole, which must
  // not pass for a whole one.
  if (object) return Error{Code::kModel, "a damaged chunk in the stream"};
  return {};
}

Status OpenAiChatDecoder::Frame(json::Value frame, std::string_view name) {
  const json::Value choice = ChoiceZero(frame["choices"], &choice_position_);
  UsageOf(frame, choice);
  // Behind the usage: an error may say what was billed.
  if (IsErrorFrame(frame) || name == "error") return ReportedError(frame);
  if (IsErrorFrame(choice)) return ReportedError(choice);
  if (frame["choices"].is_array()) began_ = true;
  if (!choice.present()) return {};
  NORMA_TRY(Content(choice["delta"]));
  NORMA_TRY(Fragments(choice["delta"]["tool_calls"], "delta"));
  return FinishReason(choice["finish_reason"].Str());
}

void OpenAiChatDecoder::UsageOf(json::Value frame, json::Value choice) {
  if (frame["usage"].is_object()) {
    usage_.Set(frame["usage"], RawMember(frame_text_, "usage"));
  } else if (choice["usage"].is_object()) {  // Moonshot
    std::string_view raw;
    size_t at = 0;
    EachRawElement(RawMember(frame_text_, "choices"), [&](std::string_view element) {
      if (at++ == choice_position_) raw = RawMember(element, "usage");
    });
    usage_.Set(choice["usage"], raw);
  } else if (frame["x_groq"]["usage"].is_object() && !usage_.reported()) {
    usage_.Set(frame["x_groq"]["usage"], RawMember(RawMember(frame_text_, "x_groq"), "usage"));
  }
}

Status OpenAiChatDecoder::Content(json::Value message) {
  NORMA_TRY(Reasoning(message));
  const json::Value content = message["content"];
  if (content.is_array()) {
    NORMA_TRY(ContentParts(content));
  } else {
    NORMA_TRY(AddText(Kind::kText, content.Str()));
  }
  const std::string_view refusal = message["refusal"].Str();
  if (refusal.empty()) return {};
  refused_ = true;
  return AddText(Kind::kText, refusal);
}

// Mistral sends content as a list of texts and thoughts; a thought is a list of texts again.
Status OpenAiChatDecoder::ContentParts(json::Value parts) {
  Status status;
  parts.EachElement([&](json::Value part) {
    if (!status.ok()) return;
    if (part.is_string()) {
      status = AddText(Kind::kText, part.Str());
    } else if (part["type"].Str() == "thinking") {
      const json::Value thinking = part["thinking"];
      status = AddText(Kind::kThinking, thinking.Str());
      thinking.EachElement([&](json::Value thought) {
        if (status.ok()) status = AddText(Kind::kThinking, thought["text"].Str());
      });
    } else if (part["type"].Str() == "refusal") {
      refused_ = refused_ || !part["refusal"].Str().empty();
      status = AddText(Kind::kText, part["refusal"].Str());
    } else {
      status = AddText(Kind::kText, part["text"].Str());
    }
  });
  return status;
}

Status OpenAiChatDecoder::Reasoning(json::Value message) {
  for (const std::string_view key : kReasoningKeys) {
    const std::string_view text = message[key].Str();
    if (!text.empty()) return AddText(Kind::kThinking, text);
  }
  Status status;
  message["reasoning_details"].EachElement([&](json::Value detail) {
    if (!status.ok()) return;
    const std::string_view text = detail["text"].Str();
    status = AddText(Kind::kThinking, text.empty() ? detail["summary"].Str() : text);
  });
  return status;
}

Status OpenAiChatDecoder::AddText(Kind kind, std::string_view text) {
  if (text.empty()) return {};
  finished_ = false;
  if (parts_.empty() || parts_.back().kind != kind) {
    if (parts_.size() >= kReplyBlocksMax) return TooManyBlocks();
    parts_.emplace_back().kind = kind;
  }
  NORMA_TRY(meter_.Append(parts_.back().text, text));
  const auto& tell = kind == Kind::kText ? events_.on_text : events_.on_thinking;
  if (tell) tell(text);
  return {};
}

// The text of arguments that came as a value instead of a string of JSON.
std::string_view OpenAiChatDecoder::RawArguments(std::string_view holder, size_t position) const {
  const auto element = [](std::string_view list, size_t wanted) {
    std::string_view found;
    size_t at = 0;
    EachRawElement(list, [&](std::string_view raw) {
      if (at++ == wanted) found = raw;
    });
    return found;
  };
  const std::string_view choice = element(RawMember(frame_text_, "choices"), choice_position_);
  const std::string_view calls = RawMember(RawMember(choice, holder), "tool_calls");
  return RawMember(RawMember(element(calls, position), "function"), "arguments");
}

Status OpenAiChatDecoder::Fragments(json::Value calls, std::string_view holder) {
  Status status;
  size_t position = 0;
  calls.EachElement([&](json::Value fragment) {
    const size_t at = position++;
    if (!status.ok() || !fragment.is_object()) return;
    const json::Value value = fragment["function"]["arguments"];
    std::string_view arguments = value.Str();
    if (value.present() && !value.is_null() && !value.is_string()) {
      arguments = RawArguments(holder, at);
    }
    status = Fragment(fragment, arguments, holder == "message");
  });
  return status;
}

// The call that a fragment continues; nullptr when it starts one. Calls are told apart by index; a
// new id or, where there are no ids, a new name behind whole arguments starts the next one on the
// same index, and without an index the id alone counts.
Part* OpenAiChatDecoder::Find(int64_t index, std::string_view id, std::string_view name,
                              std::string_view arguments) {
  Part* last = nullptr;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (part->kind != Kind::kCall) continue;
    if (index != kNoIndex && part->index != index) continue;
    const bool other_id = !id.empty() && !part->call.id.empty() && part->call.id != id;
    if (other_id) continue;
    // Without an index a name of its own is a call of its own, unless the ids say otherwise.
    if (index == kNoIndex && !name.empty() && (id.empty() || part->call.id.empty())) return nullptr;
    if (index == kNoIndex && id.empty() && last == nullptr) return &*part;
    if (id.empty() && last == nullptr) last = &*part;
    if (!id.empty()) return &*part;
    if (last != nullptr) break;
  }
  if (last == nullptr) return nullptr;
  const bool next =
      !name.empty() && !IsBlank(arguments) && arguments != last->text && IsWhole(last->text);
  return next ? nullptr : last;
}

Status OpenAiChatDecoder::Fragment(json::Value fragment, std::string_view arguments, bool whole) {
  const int64_t index = fragment["index"].Int(kNoIndex);
  const std::string_view id = fragment["id"].Str();
  const std::string_view name = fragment["function"]["name"].Str();
  Part* part = whole ? nullptr : Find(index, id, name, arguments);
  if (part == nullptr) {
    // Neither an id nor a name, and nothing that it could belong to.
    if (id.empty() && name.empty() && (whole || IsBlank(arguments))) return {};
    if (parts_.size() >= kReplyBlocksMax) return TooManyBlocks();
    // Another call begins. What is a whole object by now cannot grow any more; what is not may
    // still be written to, since some servers interleave their calls.
    for (Part& open : parts_) {
      if (open.kind == Kind::kCall && !open.announced && IsWhole(open.text)) Announce(open);
    }
    part = &parts_.emplace_back();
    part->kind = Kind::kCall;
    part->index = index;
    finished_ = false;
  }
  // An empty id or name never overwrites, and neither does a repeated one.
  if (part->call.id.empty() && !part->announced) part->call.id = id;
  if (part->call.name.empty() && !part->announced) part->call.name = name;
  if (arguments.empty()) return {};
  const bool repeated = arguments.front() == '{' && arguments == part->text && IsWhole(arguments);
  if (repeated) return {};
  if (part->announced) {
    if (IsBlank(arguments)) return {};
    return Error{Code::kModel, "arguments of the call " + part->call.id +
                                   " went on after it was reported complete"};
  }
  finished_ = false;
  return meter_.Append(part->text, arguments);
}

Status OpenAiChatDecoder::FinishReason(std::string_view reason) {
  if (reason.empty()) return {};
  if (reason == "error") {
    return Error{Code::kModel, "the provider ended the reply with an error and does not say which"};
  }
  finish_reason_ = reason;
  finished_ = true;
  AnnounceAll();
  return {};
}

void OpenAiChatDecoder::AnnounceAll() {
  for (Part& part : parts_) {
    if (part.kind == Kind::kCall && !part.announced) Announce(part);
  }
}

void OpenAiChatDecoder::Announce(Part& part) {
  part.announced = true;
  part.call.input = part.text;
  // Cut by a limit, a call without arguments may have lost all of them.
  const bool cut = finish_reason_ == "length" || finish_reason_ == "content_filter";
  if (!cut || !IsBlank(part.text)) part.call.valid_input = ValidArguments(part.text);
  if (events_.on_call) events_.on_call(part.call);
}

Status OpenAiChatDecoder::OnBody(std::string_view body) {
  std::string_view text = body;
  const auto root = parser_.Parse(&text);
  if (!root || !root->is_object()) {
    return Error{Code::kModel, "the body is no JSON object: " + Excerpt(body, kBodyExcerptChars)};
  }
  frame_text_ = text;
  const json::Value choice = ChoiceZero((*root)["choices"], &choice_position_);
  UsageOf(*root, choice);
  if (IsErrorFrame(*root)) return ReportedError(*root);
  if (IsErrorFrame(choice)) return ReportedError(choice);
  const json::Value message = choice["message"];
  // A filtered choice has no message at all.
  if (!choice.is_object()) {
    return Error{Code::kModel, "an empty response, the body holds no choice: " +
                                   Excerpt(body, kBodyExcerptChars)};
  }
  began_ = true;
  NORMA_TRY(Content(message));
  NORMA_TRY(Fragments(message["tool_calls"], "message"));
  NORMA_TRY(FinishReason(choice["finish_reason"].Str()));
  AnnounceAll();
  done_ = true;
  return {};
}

Status OpenAiChatDecoder::Finish(Reply* out) {
  bool calls = false;
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Kind::kText:
        out->message.blocks.emplace_back(Text{part.text});
        break;
      case Kind::kThinking:
        out->message.blocks.emplace_back(Thinking{part.text, ""});
        break;
      case Kind::kCall:
        if (part.announced) out->message.blocks.emplace_back(part.call);
        calls = true;
        break;
    }
  }
  out->usage = usage_.Take();
  out->stop_reason = finish_reason_;
  if (finish_reason_ == "stop") out->stop_reason = "end_turn";
  if (finish_reason_ == "tool_calls") out->stop_reason = "tool_use";
  if (finish_reason_ == "length") out->stop_reason = "max_tokens";
  // The format has no finish reason for it, but says in a field of its own that the model refused.
  if (refused_ && !calls && (finish_reason_ == "stop" || finish_reason_.empty())) {
    out->stop_reason = "refusal";
  }
  if (done_ || finished_) return {};
  return Error{Code::kModel, "the stream ended early: neither a finish reason nor [DONE] came"};
}

}  // namespace

std::unique_ptr<Decoder> NewOpenAiChatDecoder(DecodeEvents events) {
  return std::make_unique<OpenAiChatDecoder>(std::move(events));
}

}  // namespace norma::llm
