// See grep_filter.h. The type table is the contract's; an unknown type is taken as an extension.
#include "lib/tool/grep_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"

namespace norma::tool {
namespace {

struct TypeRow {
  std::string_view names, globs;  // blank-separated
};

constexpr std::array kTypes = {TypeRow{"go", "*.go"},
                               TypeRow{"py python", "*.py *.pyi"},
                               TypeRow{"js", "*.js *.jsx *.mjs *.cjs *.vue"},
                               TypeRow{"ts", "*.ts *.tsx *.mts *.cts"},
                               TypeRow{"rust", "*.rs"},
                               TypeRow{"java", "*.java"},
                               TypeRow{"kotlin", "*.kt *.kts"},
                               TypeRow{"c", "*.c *.h"},
                               TypeRow{"cpp", "*.cpp *.cc *.cxx *.hpp *.hh *.hxx *.h"},
                               TypeRow{"cs", "*.cs"},
                               TypeRow{"rb ruby", "*.rb"},
                               TypeRow{"php", "*.php"},
                               TypeRow{"swift", "*.swift"},
                               TypeRow{"sh", "*.sh *.bash *.zsh"},
                               TypeRow{"html", "*.html *.htm"},
                               TypeRow{"css", "*.css *.scss *.sass *.less"},
                               TypeRow{"json", "*.json"},
                               TypeRow{"yaml", "*.yaml *.yml"},
                               TypeRow{"toml", "*.toml"},
                               TypeRow{"xml", "*.xml"},
                               TypeRow{"md markdown", "*.md *.markdown"},
                               TypeRow{"sql", "*.sql"},
                               TypeRow{"proto", "*.proto"}};

}  // namespace

GrepFilter::GrepFilter(std::string_view glob, std::string_view type) {
  if (glob.substr(0, 1) == "!") {
    negated_ = true;
    glob.remove_prefix(1);
  }
  if (!glob.empty()) {
    // A leading slash anchors, as in .gitignore: `/x.c` is the one at the top.
    GlobOptions options;
    options.base_name = glob.front() != '/';
    glob_ = PathGlob::Compile(glob, options);
    if (!glob_->problem().empty())
      problem_ = fmt::format("the glob can match nothing: {}", glob_->problem());
  }
  if (type.empty()) return;
  const std::string key = ToLower(type);
  for (const TypeRow& row : kTypes) {
    const std::vector<std::string_view> names = Split(row.names, ' ');
    if (std::find(names.begin(), names.end(), key) == names.end()) continue;
    for (const std::string_view one : Split(row.globs, ' ')) {
      types_.push_back(PathGlob::Compile(one));
    }
    return;
  }
  types_.push_back(PathGlob::Compile("*." + std::string(type)));
}

bool GrepFilter::Takes(std::string_view below) const {
  if (glob_ && glob_->Matches(below) == negated_) return false;
  return types_.empty() || std::any_of(types_.begin(), types_.end(),
                                       [&](const PathGlob& one) { return one.Matches(below); });
}

}  // namespace norma::tool
