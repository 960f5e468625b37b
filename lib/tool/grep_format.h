// How Grep's result looks: output lines, context, separators, and the page of them that is shown.
// One story for counting and for showing, so that the offsets a note names are the ones that work.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/regex.h"

namespace norma::tool {

// The window [offset, offset + limit) of all output lines. Text is kept for lines inside it only.
class Page {
 public:
  static constexpr size_t kTextBytesMax = 8 << 20;

  // A limit of 0 means no limit.
  Page(uint64_t offset, uint64_t limit) : offset_(offset), limit_(limit) {}

  bool Wants(uint64_t index) const {
    return index >= offset_ && (limit_ == 0 || index - offset_ < limit_) &&
           text_.size() < kTextBytesMax;
  }
  // Does the page reach into [first, first + count)?
  bool Reaches(uint64_t first, uint64_t count) const;
  // The next line: its text goes in when it is inside the window and the page is not full.
  void Add(uint64_t index, std::string_view line);

  const std::string& text() const { return text_; }
  uint64_t offset() const { return offset_; }
  uint64_t shown() const { return shown_; }
  // "[3 more lines; continue with offset 250]", or "" when the page shows the end. `total` is the
  // number of output lines in all.
  std::string Note(uint64_t total) const;

 private:
  uint64_t offset_, limit_;
  uint64_t shown_ = 0;
  std::string text_;
};

struct ContentStyle {
  bool numbers = true;
  uint64_t before = 0, after = 0;
};

// The content lines of one file. Feed it the matching lines in order, then Finish.
class ContentEmitter {
 public:
  // With `page` null the lines are only counted. `first` is the index of this file's first output
  // line.
  ContentEmitter(std::string_view path, std::string_view text, const ContentStyle& style,
                 Page* page, uint64_t first);

  void Match(const Span& line);
  void Finish();
  uint64_t count() const { return count_; }

 private:
  void EmitUpTo(size_t end, uint64_t lines_max);
  void Emit(const Span& line, char mark);
  void Add(std::string_view line);

  std::string_view path_, text_;
  ContentStyle style_;
  Page* page_;
  uint64_t first_;
  uint64_t count_ = 0;
  size_t next_ = 0;          // begin of the first line not emitted or passed by
  uint64_t number_ = 1;      // its number
  uint64_t after_left_ = 0;  // context lines still owed to the last match
  bool any_ = false;
};

}  // namespace norma::tool
