// The meaning of a Grep pattern on one text: which lines match. Whole-buffer searches on RE2 with
// required texts as a shortcut, but the result is by definition that of trying every line alone
// (or, with multiline, of all matches in the whole text).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "lib/base/regex.h"
#include "lib/base/result.h"
#include "lib/tool/grep_literals.h"

namespace norma::tool {

struct GrepPattern {
  std::string text;
  bool ignore_case = false;
  bool multiline = false;  // the dot matches line breaks, matches may span lines
};

class LineMatcher {
 public:
  // `^` and `$` are line anchors in both modes. `$` does not match before a CR.
  static Result<LineMatcher> Compile(const GrepPattern& pattern);

  // Visits each matching line once, in order, as its span without the LF. Ends early when the
  // visitor returns false, or when `stop` (asked now and then) is true.
  using Visit = std::function<bool(const Span& line)>;
  using Stop = std::function<bool()>;
  void Scan(std::string_view text, const Visit& visit, const Stop& stop) const;

  const RequiredTexts& required() const { return required_; }
  bool ignore_case() const { return ignore_case_; }

 private:
  explicit LineMatcher(Regex regex) : regex_(std::move(regex)) {}

  bool MayMatch(std::string_view text) const;
  void ScanByText(std::string_view text, const Visit& visit, const Stop& stop) const;
  void ScanBuffer(std::string_view text, const Visit& visit, const Stop& stop) const;
  bool ScanChunk(std::string_view chunk, size_t base, const Visit& visit, const Stop& stop) const;
  bool ScanLines(std::string_view text, size_t base, const Visit& visit, const Stop& stop) const;
  void ScanMultiline(std::string_view text, const Visit& visit, const Stop& stop) const;

  Regex regex_;
  RequiredTexts required_;
  bool ignore_case_ = false;
  bool multiline_ = false;
  bool line_by_line_ = false;  // anchors that mean the ends of the line when each line stands alone
};

// The line that holds `at` (a line break belongs to the line it ends).
Span LineAt(std::string_view text, size_t at);

}  // namespace norma::tool
