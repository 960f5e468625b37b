// HeadReader: header lines of an HTTP answer in, an HttpHead out. Skips interim (1xx) heads, joins
// folded lines, ignores trailers, refuses a head beyond its cap. Pure.
#pragma once

#include <string_view>

#include "lib/io/http.h"

namespace norma {

class HeadReader {
 public:
  static constexpr size_t kBytesMax = 256u << 10;

  enum class Step {
    kMore,      // the head goes on
    kHead,      // this line ended it; told once
    kTooLarge,  // beyond the cap
  };
  // One line, with its line end.
  Step Feed(std::string_view line);
  bool done() const { return done_; }
  const HttpHead& head() const { return head_; }

 private:
  void AddHeader(std::string_view line);

  HttpHead head_;
  size_t bytes_ = 0;
  bool done_ = false;
};

// May this go out as a header? A value with a line end would be a second header.
bool IsHeaderName(std::string_view name);
bool IsHeaderValue(std::string_view value);

}  // namespace norma
