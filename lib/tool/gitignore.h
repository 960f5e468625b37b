// .gitignore as git reads it: comments, negation, folder-only and anchored patterns, the last match
// wins, a deeper file beats a shallower one. Pure: who reads the files, and which, is walk.cc's
// business. Deliberately knows no global excludes, no .git/info/exclude, no .ignore: the same tree
// gives the same result on every machine, inside a repository or not.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tool/glob_match.h"

namespace norma::tool {

class IgnoreFile {
 public:
  enum class Verdict { kSilent, kIgnored, kKept };

  static IgnoreFile Parse(std::string_view text);

  // `below` is the path relative to the folder that holds the file.
  Verdict Check(std::string_view below, bool is_folder) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    PathGlob glob;
    bool keep = false;
    bool folder_only = false;
  };
  std::vector<Rule> rules_;
};

// The ignore files from the outermost folder down to one folder, as a linked list that siblings
// share.
struct IgnoreLevel {
  std::shared_ptr<const IgnoreLevel> outer;
  std::string folder;  // relative to the common root, "" for the root itself
  IgnoreFile file;
};

// `path` is relative to the common root. A folder that is ignored must not be entered: what lies in
// it cannot be brought back.
bool IsIgnored(const IgnoreLevel* innermost, std::string_view path, bool is_folder);

}  // namespace norma::tool
