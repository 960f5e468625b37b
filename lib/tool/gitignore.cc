// See gitignore.h.
#include "lib/tool/gitignore.h"

#include "lib/base/text.h"

namespace norma::tool {
namespace {

constexpr size_t kRulesMax = 50'000;  // of one file; later lines are not read

// Trailing blanks do not count unless escaped; git also forgives a CR and a BOM.
std::string_view StripLine(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  while (!line.empty() && line.back() == ' ') {
    size_t backslashes = 0;
    while (backslashes + 1 < line.size() && line[line.size() - 2 - backslashes] == '\\') {
      ++backslashes;
    }
    if (backslashes % 2 == 1) break;
    line.remove_suffix(1);
  }
  return line;
}

}  // namespace

IgnoreFile IgnoreFile::Parse(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  IgnoreFile file;
  for (std::string_view line : SplitLines(text)) {
    if (file.rules_.size() >= kRulesMax) break;
    line = StripLine(line);
    if (line.empty() || line.front() == '#') continue;
    Rule rule;
    if (line.front() == '!') {
      rule.keep = true;
      line.remove_prefix(1);
    }
    if (!line.empty() && line.back() == '/') {
      rule.folder_only = true;
      line.remove_suffix(1);
    }
    if (line.empty()) continue;
    GlobOptions options;
    options.braces = false;
    options.deep_tail = true;
    // A slash anywhere but at the end ties the pattern to this folder; a leading one says only
    // that.
    options.base_name = line.find('/') == std::string_view::npos;
    if (line.front() == '/') line.remove_prefix(1);
    rule.glob = PathGlob::Compile(line, options);
    if (rule.glob.problem().empty()) file.rules_.push_back(std::move(rule));
  }
  return file;
}

IgnoreFile::Verdict IgnoreFile::Check(std::string_view below, bool is_folder) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folder_only && !is_folder) continue;
    if (rule->glob.Matches(below)) return rule->keep ? Verdict::kKept : Verdict::kIgnored;
  }
  return Verdict::kSilent;
}

bool IsIgnored(const IgnoreLevel* innermost, std::string_view path, bool is_folder) {
  for (const IgnoreLevel* level = innermost; level != nullptr; level = level->outer.get()) {
    std::string_view below = path;
    if (!level->folder.empty()) below.remove_prefix(level->folder.size() + 1);
    const IgnoreFile::Verdict verdict = level->file.Check(below, is_folder);
    if (verdict != IgnoreFile::Verdict::kSilent) return verdict == IgnoreFile::Verdict::kIgnored;
  }
  return false;
}

}  // namespace norma::tool
