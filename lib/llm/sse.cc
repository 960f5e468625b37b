#include "lib/llm/sse.h"

#include <cstring>

#include "lib/base/text.h"

namespace norma::llm {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Two passes of memchr are several times faster than one find_first_of. Answers the end when there
// is none.
const char* Seek(char wanted, std::string_view bytes) {
  const void* found = std::memchr(bytes.data(), wanted, bytes.size());
  return found == nullptr ? bytes.data() + bytes.size() : static_cast<const char*>(found);
}

Error TooLarge(std::string_view what) {
  return Error{Code::kModel, "an event stream " + std::string(what) + " is larger than " +
                                 FormatBytes(SseReader::kEventBytesMax)};
}

}  // namespace

Status SseReader::Feed(std::string_view bytes) {
  const char* lf = nullptr;  // the next LF, kept while the lines before it end with CR
  while (!bytes.empty()) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    // Only CR and LF end a line. U+2028, U+2029 and U+0085 are legal inside JSON strings.
    if (lf < bytes.data()) lf = Seek('\n', bytes);
    const std::string_view before(bytes.data(), static_cast<size_t>(lf - bytes.data()));
    const char* const stop = Seek('\r', before);
    const bool ended = stop != bytes.data() + bytes.size();
    const size_t end = ended ? static_cast<size_t>(stop - bytes.data()) : std::string_view::npos;
    const std::string_view piece = bytes.substr(0, end);
    if (partial_.size() + piece.size() > kEventBytesMax) return TooLarge("line");
    if (end == std::string_view::npos) {
      partial_ += piece;
      return {};
    }
    skip_lf_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (partial_.empty()) {
      NORMA_TRY(Line(piece));
    } else {
      partial_ += piece;
      // Moved out first: after an error from the callback the reader holds no half line.
      const std::string line = std::exchange(partial_, {});
      NORMA_TRY(Line(line));
    }
  }
  return {};
}

Status SseReader::End() {
  if (!partial_.empty()) {
    const std::string line = std::exchange(partial_, {});
    NORMA_TRY(Line(line));
  }
  return Dispatch();
}

Status SseReader::Line(std::string_view line) {
  if (at_start_) {
    at_start_ = false;
    if (line.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
      line.remove_prefix(kByteOrderMark.size());
    }
  }
  if (line.empty()) return Dispatch();
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "event") {
    name_ = Trim(value);
  } else if (field == "data") {
    if (data_.size() + value.size() >= kEventBytesMax) return TooLarge("event");
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  return {};  // a comment (empty field), id, retry and unknown fields say nothing to us
}

Status SseReader::Dispatch() {
  const std::string name = std::exchange(name_, {});
  const bool has_data = std::exchange(has_data_, false);
  Status status;
  if (!name.empty() || (has_data && !data_.empty())) status = on_event_(name, data_);
  data_.clear();
  return status;
}

}  // namespace norma::llm
