// Bash's safety floor: a handful of commands that wreck the machine and are refused whatever the
// mode (spec/41 §4). Looks at the text alone: it does not know the shell, so it refuses such words
// in a quoted string too. A floor, not a sandbox: it stops accidents, nobody who hides the command.
#include <fmt/core.h>

#include <array>
#include <vector>

#include "lib/base/regex.h"
#include "lib/base/result.h"
#include "lib/base/text.h"
#include "lib/policy/policy.h"

namespace norma {
namespace {

struct FloorRow {
  std::string pattern;
  std::string_view what;
};

constexpr std::string_view kRemovesRoot = "it would delete the root folder";
constexpr std::string_view kFormats = "it would make a new file system over a device";
constexpr std::string_view kOverwrites = "it would overwrite a disk";
constexpr std::string_view kForkBomb = "it is a fork bomb";

// Start of a command's name: "rm" in "docker run --rm" or "farm" is another word.
constexpr std::string_view kStart = R"((?:^|[\s;|&(){}`"'/\\!]))";
// Any further word of the same command; `#` would start a comment.
constexpr std::string_view kWord = R"((?:[ \t]+[^\s;|&#][^\s;|&]*)*?)";
constexpr std::string_view kEnd = R"((?:[\s;|&<>(){}"'`]|$))";

// The contract's four patterns first and as they stand, then what is plainly the same act spelled
// otherwise. Rows are only ever added: each denies more.
std::vector<FloorRow> FloorRows() {
  const std::string flag = R"([ \t]+["']?(?:-[A-Za-z]*[rRf][A-Za-z]*|--(?:r|f|no-p)[a-z-]*)["']?)";
  // "/", "/*", "/.", "//", with quotes around; never "/tmp" or "/*.log".
  const std::string root = R"([ \t]+["']?/[/.]*["']?[*.]*["']?)";
  const std::string disk = R"(["']?/dev/(?:sd|nvme|hd|vd|xvd|mmcblk|md\d|dm-|mapper/|disk|rdisk))";
  const std::string writer = R"((?:[ \t]+[^\s;|&<>]+)*?[ \t]+)";
  return {
      {R"(\brm\s+-[A-Za-z]*[rf][A-Za-z]*\s+/(?:\s|$))", kRemovesRoot},
      {R"(:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;)", kForkBomb},
      {R"(\bmkfs\.\w+\s+/dev/)", kFormats},
      {R"(\bdd\b.*\bof=/dev/(?:sd|nvme|hd))", kOverwrites},
      {fmt::format("{}rm{}{}{}{}{}", kStart, kWord, flag, kWord, root, kEnd), kRemovesRoot},
      {fmt::format("{}rm{}{}{}{}{}", kStart, kWord, root, kWord, flag, kEnd), kRemovesRoot},
      {fmt::format(R"({}(?:mkfs|mke2fs)(?:\.\w+)?{}["']?/dev/)", kStart, writer), kFormats},
      {fmt::format(R"(\bdd\b.*\bof={})", disk), kOverwrites},
      // Not the arrows -> and =>, which are prose.
      {fmt::format(R"((?:^|[^-=])>\|?[ \t]*{})", disk), kOverwrites},
  };
}

// A function that pipes itself into itself in the background, whatever its name. RE2 has no
// backreferences, so the three names are compared by hand.
constexpr std::string_view kBomb = R"([\w:.]+\s*(?:\(\s*\)\s*)?\{\s*[\w:.]+\s*\|&?\s*[\w:.]+\s*&)";

Regex CompileOwn(std::string_view pattern) {
  RegexOptions options;
  options.bytes = true;  // commands need not be UTF-8
  Result<Regex> regex = Regex::Compile(pattern, options);
  NORMA_CHECK(regex.ok());
  return std::move(regex).value();
}

bool IsNameByte(char c) {
  return c == ':' || c == '.' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool NamesItself(std::string_view definition) {
  std::vector<std::string> names(1);
  for (const char c : definition) {
    if (IsNameByte(c)) {
      names.back() += c;
    } else if (!names.back().empty()) {
      names.emplace_back();
    }
  }
  return names.size() >= 3 && names[0] == names[1] && names[1] == names[2];
}

struct Floor {
  struct Row {
    Regex regex;
    std::string_view what;
  };
  std::vector<Row> rows;
  Regex bomb = CompileOwn(kBomb);

  Floor() {
    for (const FloorRow& row : FloorRows()) rows.push_back({CompileOwn(row.pattern), row.what});
  }

  std::string_view WhatIsWrong(std::string_view command) const {
    for (const Row& row : rows) {
      if (row.regex.Matches(command)) return row.what;
    }
    // Each turn begins behind the last match, so the search ends with the text.
    for (Span match; bomb.Find(command, match.end, &match);) {
      if (NamesItself(command.substr(match.begin, match.end - match.begin))) return kForkBomb;
    }
    return {};
  }
};

}  // namespace

std::string BashFloorReason(std::string_view command) {
  static const Floor floor;  // compiled once; matching is const and thread-safe
  std::string_view what = floor.WhatIsWrong(command);
  // The shell drops a backslash before a newline, so a command may go on in the next line.
  if (what.empty() && command.find("\\\n") != std::string_view::npos) {
    what = floor.WhatIsWrong(ReplaceAll(command, "\\\n", ""));
  }
  if (what.empty()) return {};
  return fmt::format(
      "the safety floor of Bash refuses this command: {}. No mode and no rule allows "
      "it",
      what);
}

}  // namespace norma
