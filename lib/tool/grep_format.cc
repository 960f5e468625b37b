// See grep_format.h.
#include "lib/tool/grep_format.h"

#include <fmt/core.h>

#include <algorithm>

#include "lib/base/text.h"

namespace norma::tool {

bool Page::Reaches(uint64_t first, uint64_t count) const {
  if (count == 0 || text_.size() >= kTextBytesMax) return false;
  const bool begins_before_end = limit_ == 0 || first < offset_ || first - offset_ < limit_;
  return begins_before_end && first + count > offset_;
}

void Page::Add(uint64_t index, std::string_view line) {
  if (!Wants(index)) return;
  if (shown_ > 0) text_ += '\n';
  text_ += RepairUtf8(line);
  ++shown_;
}

std::string Page::Note(uint64_t total) const {
  const uint64_t next = offset_ + shown_;
  if (shown_ == 0 && total > 0) {
    return fmt::format("[no output: offset {} is behind the last of {} lines]", offset_, total);
  }
  if (next >= total) return "";
  const uint64_t more = total - next;
  return fmt::format("[{} more line{}; continue with offset {}]", more, more == 1 ? "" : "s", next);
}

ContentEmitter::ContentEmitter(std::string_view path, std::string_view text,
                               const ContentStyle& style, Page* page, uint64_t first)
    : path_(path), text_(text), style_(style), page_(page), first_(first) {}

void ContentEmitter::Match(const Span& line) {
  // What the last match is still owed, as far as this line.
  EmitUpTo(line.begin, after_left_);
  // The nearest lines before, no further back than what was emitted.
  size_t from = line.begin;
  uint64_t before = 0;
  while (before < style_.before && from > next_) {
    const std::string_view skipped = text_.substr(next_, from - 1 - next_);
    const size_t lf = skipped.rfind('\n');
    from = lf == std::string_view::npos ? next_ : next_ + lf + 1;
    ++before;
  }
  const bool gap = from > next_;
  if (gap && style_.numbers && page_ != nullptr) {
    number_ +=
        static_cast<uint64_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(next_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(from), '\n'));
  }
  if (gap && any_ && style_.before + style_.after > 0) Add("--");
  next_ = from;
  EmitUpTo(line.begin, before);
  Emit(line, ':');
  after_left_ = style_.after;
  any_ = true;
}

void ContentEmitter::Finish() {
  EmitUpTo(text_.size(), after_left_);
}

// Context lines from next_ on that begin before `end`.
void ContentEmitter::EmitUpTo(size_t end, uint64_t lines_max) {
  for (uint64_t i = 0; i < lines_max && next_ < end; ++i) {
    Emit({next_, std::min(text_.find('\n', next_), text_.size())}, '-');
  }
}

void ContentEmitter::Emit(const Span& line, char mark) {
  if (page_ != nullptr && page_->Wants(first_ + count_)) {
    const std::string_view text = text_.substr(line.begin, line.end - line.begin);
    Add(style_.numbers ? fmt::format("{}{}{}{}{}", path_, mark, number_, mark, text)
                       : fmt::format("{}{}{}", path_, mark, text));
  } else {
    ++count_;
  }
  next_ = line.end + 1;
  ++number_;
}

void ContentEmitter::Add(std::string_view line) {
  if (page_ != nullptr) page_->Add(first_ + count_, line);
  ++count_;
}

}  // namespace norma::tool
