#include "lib/llm/reply_sink.h"

#include <fmt/core.h>

#include "lib/base/text.h"
#include "lib/llm/error_words.h"

namespace norma::llm {
namespace {

constexpr int kOk = 200;
constexpr size_t kForeignBytesMax = 4096;
constexpr size_t kForeignCharsShown = 200;
// {"type": "ping"} with any spacing fits.
constexpr size_t kPingBytesMax = 64;

// Keep-alives that are events all the same: they must not hold the idle limit open.
bool IsPing(std::string_view name, std::string_view data) {
  return data.empty() || name == "ping" ||
         (data.size() <= kPingBytesMax && data.find("\"ping\"") != std::string_view::npos);
}

}  // namespace

ReplySink::ReplySink(Decoder& decoder)
    : decoder_(decoder), reader_([this](std::string_view name, std::string_view data) {
        if (!IsPing(name, data)) data_came_ = true;
        return decoder_.OnEvent(name, data);
      }) {}

void ReplySink::OnHead(const HttpHead& head) {
  head_ = head;
  if (head.status != kOk) form_ = Form::kError;
}

ReplySink::Form ReplySink::FormOf(std::string_view first_bytes) const {
  const std::string type = ToLower(head_.Find("content-type"));
  if (type.find("text/event-stream") != std::string::npos) return Form::kStream;
  if (type.find("json") != std::string::npos) return Form::kJson;
  if (!type.empty()) return Form::kForeign;
  // No type at all: the first bytes tell.
  const std::string_view start = Trim(first_bytes);
  if (start.substr(0, 1) == "{") return Form::kJson;
  for (const std::string_view field : {"event:", "data:", ":"}) {
    if (start.substr(0, field.size()) == field) return Form::kStream;
  }
  return Form::kForeign;
}

Progress ReplySink::OnBytes(std::string_view bytes) {
  if (form_ == Form::kUnknown) form_ = FormOf(bytes);
  switch (form_) {
    case Form::kStream:
      return FeedStream(bytes);
    case Form::kJson:
      return Keep(bytes, kJsonBodyMax);
    case Form::kForeign:
      return Keep(bytes, kForeignBytesMax);
    case Form::kError:
    case Form::kUnknown:
      break;
  }
  return Keep(bytes, kErrorBodyMax);
}

Progress ReplySink::Keep(std::string_view bytes, size_t bytes_max) {
  const size_t room = bytes_max - body_.size();
  body_ += bytes.substr(0, room);
  return bytes.size() > room ? Progress::kStop : Progress::kEvent;
}

Progress ReplySink::FeedStream(std::string_view bytes) {
  data_came_ = false;
  // Kept until a reply begins, to show what came instead of one.
  if (!decoder_.began()) body_ += bytes.substr(0, kForeignBytesMax - body_.size());
  stream_ = reader_.Feed(bytes);
  if (!stream_.ok()) {
    refused_ = true;
    return Progress::kStop;
  }
  if (decoder_.complete()) return Progress::kComplete;
  return data_came_ ? Progress::kEvent : Progress::kNone;
}

Error ReplySink::Unusable() const {
  const std::string_view type = head_.Find("content-type");
  const std::string shown = Excerpt(Trim(body_), kForeignCharsShown);
  return Error{Code::kModel,
               fmt::format("the answer is no reply of a model: content-type {}, {}",
                           type.empty() ? "(none)" : Excerpt(type, kForeignCharsShown),
                           shown.empty() ? "empty body" : "body: " + shown)};
}

Status ReplySink::End(bool whole) {
  if (!stream_.ok()) return stream_;
  if (head_.status == kOk && whole && form_ == Form::kUnknown && decoder_.empty_body_is_reply()) {
    empty_reply_ = true;
    return {};
  }
  const bool began = form_ == Form::kStream || !body_.empty();
  if (head_.status == kOk && (!began || form_ == Form::kForeign || form_ == Form::kUnknown)) {
    unusable_ = true;
    return Unusable();
  }
  if (form_ == Form::kStream && whole && !decoder_.complete()) {
    // The last event may come without its blank line.
    stream_ = reader_.End();
    refused_ = !stream_.ok();
    if (refused_ || decoder_.began() || decoder_.complete()) return stream_;
    unusable_ = true;
    return Unusable();
  }
  if (form_ == Form::kJson) {
    if (!whole || body_.size() >= kJsonBodyMax) {
      return Error{Code::kModel, fmt::format("the JSON body ended after {} bytes", body_.size())};
    }
    return decoder_.OnBody(body_);
  }
  return {};
}

}  // namespace norma::llm
