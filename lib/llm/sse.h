// Server-sent events: bytes in any chunking in, events out. Lines end with LF, CRLF or CR; caps on
// line and event. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/result.h"

namespace norma::llm {

class SseReader {
 public:
  static constexpr size_t kEventBytesMax = 32u << 20;

  // `name` and `data` are valid during the call only. An error from it ends the feed.
  using OnEvent = std::function<Status(std::string_view name, std::string_view data)>;
  explicit SseReader(OnEvent on_event) : on_event_(std::move(on_event)) {}

  // kModel when a cap is exceeded; else the callback's error.
  Status Feed(std::string_view bytes);
  // End of the body: a pending event is dispatched even without its blank line.
  Status End();

 private:
  Status Line(std::string_view line);
  Status Dispatch();

  OnEvent on_event_;
  std::string partial_;  // an unfinished line
  std::string data_;
  std::string name_;
  bool has_data_ = false;
  bool skip_lf_ = false;  // a CR ended the last line: an LF at the start belongs to it
  bool at_start_ = true;  // a BOM may come
};

}  // namespace norma::llm
