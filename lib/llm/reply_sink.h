// ReplySink: takes the answer of one attempt apart by status and content type, and feeds a Decoder.
#pragma once

#include <optional>
#include <string>

#include "lib/io/http.h"
#include "lib/llm/sse.h"
#include "lib/llm/wire.h"

namespace norma::llm {

// A longer error body says nothing more.
inline constexpr size_t kErrorBodyMax = 64u << 10;
// A whole JSON reply: its content is capped by the decoder, escapes may triple the bytes.
inline constexpr size_t kJsonBodyMax = 192u << 20;

class ReplySink : public HttpSink {
 public:
  explicit ReplySink(Decoder& decoder);

  void OnHead(const HttpHead& head) override;
  Progress OnBytes(std::string_view bytes) override;

  // After the exchange: what is wrong with the answer, apart from the connection. Ok when the
  // decoder has had everything. Call once, with the body at its end (whole = true) or cut.
  Status End(bool whole);

  const HttpHead& head() const { return head_; }
  const std::string& error_body() const { return body_; }
  // The stream itself said no (an error event, a cap): the connection was fine.
  bool refused() const { return refused_; }
  // Neither an event stream nor JSON, or nothing at all.
  bool unusable() const { return unusable_; }
  // A whole 200 without a body, from a format where that is an empty reply.
  bool empty_reply() const { return empty_reply_; }

 private:
  enum class Form { kUnknown, kError, kStream, kJson, kForeign };

  Form FormOf(std::string_view first_bytes) const;
  Progress Keep(std::string_view bytes, size_t bytes_max);
  Progress FeedStream(std::string_view bytes);
  Error Unusable() const;

  Decoder& decoder_;
  SseReader reader_;
  HttpHead head_;
  Form form_ = Form::kUnknown;
  std::string body_;  // of an error, of JSON, or the start of something foreign
  Status stream_;     // the first error of the reader or the decoder
  bool data_came_ = false;
  bool refused_ = false;
  bool unusable_ = false;
  bool empty_reply_ = false;
};

}  // namespace norma::llm
