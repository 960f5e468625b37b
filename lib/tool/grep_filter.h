// Which files a Grep call looks at, by name: its `glob` and `type` fields. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/tool/glob_match.h"

namespace norma::tool {

class GrepFilter {
 public:
  // Empty texts filter nothing. `!pattern` leaves out what matches.
  GrepFilter(std::string_view glob, std::string_view type);

  bool Takes(std::string_view below) const;
  const std::string& problem() const { return problem_; }

 private:
  std::optional<PathGlob> glob_;
  bool negated_ = false;
  std::vector<PathGlob> types_;  // any of them
  std::string problem_;
};

}  // namespace norma::tool
