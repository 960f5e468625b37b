// Texts that stand in everything a regular expression matches. They let a search skip files and
// lines without running the expression, and they are all that ripgrep is ever asked for: a fixed
// text has one meaning in every engine. Pure, conservative: what is not understood proves nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace norma::tool {

struct RequiredTexts {
  // Each match holds at least one of them; empty: nothing could be proven. None holds a line break.
  std::vector<std::string> any_of;
  // The expression is exactly the one text: finding it is matching.
  bool exact = false;
};

// `pattern` compiles as RE2. With `ignore_case` the texts hold only characters whose case variants
// are their ASCII ones.
RequiredTexts FindRequiredTexts(std::string_view pattern, bool ignore_case);

}  // namespace norma::tool
