// Regular expressions on RE2: linear time, bounded memory. RE2 lives behind regex.cc alone;
// std::regex is never used (it crashes on long lines).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace norma {

struct RegexOptions {
  bool ignore_case = false;
  bool dot_matches_newline = false;
  bool multi_line = false;  // ^ and $ also match at line ends
  bool literal = false;     // the pattern is plain text
  bool bytes = false;       // Latin-1: every byte is a character (for files of any encoding)
};

struct Span {
  size_t begin = 0;
  size_t end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

class Regex {
 public:
  // kInvalid with RE2's own reason. Programs over 8 MiB are refused.
  static Result<Regex> Compile(std::string_view pattern, const RegexOptions& options = {});

  bool Matches(std::string_view text) const;  // anywhere in text
  bool FullMatch(std::string_view text) const;
  // First match at or after `from` in text (context before `from` is seen by ^ and \b).
  bool Find(std::string_view text, size_t from, Span* match) const;
  const std::string& pattern() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace norma
