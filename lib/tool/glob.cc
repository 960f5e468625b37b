// Glob: files below a folder by path pattern, newest first.
#include <fmt/core.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/tool/builtins.h"
#include "lib/tool/glob_match.h"
#include "lib/tool/tool_path.h"
#include "lib/tool/walk.h"

namespace norma::tool {
namespace {

constexpr Millis kTimeMax{30'000};

struct Found {
  std::string path;
  int64_t modified_ns = 0;
};

// Models often write the whole path into the pattern; below the folder searched it means the same.
std::string_view RelativePattern(std::string_view pattern, const Place& top) {
  if (pattern.substr(0, 1) != "/") return pattern;
  for (const std::string* prefix : {&top.lexical, &top.real}) {
    if (pattern.substr(0, prefix->size()) == *prefix) {
      const std::string_view rest = pattern.substr(prefix->size());
      if (rest.substr(0, 1) == "/") return rest.substr(1);
    }
  }
  return pattern;
}

Result<ToolOutput> FindFiles(const PathClaim& claim, const std::string& pattern,
                             ToolContext& context) {
  const ToolEnv& env = context.env();
  NORMA_ASSIGN(const Place top, Reclaim(claim, env));
  if (top.kind == FileKind::kNone) return Error{Code::kNotFound, "no such directory"};
  if (top.kind != FileKind::kDirectory) return Error{Code::kInvalid, "it is not a directory"};

  const std::string_view relative = RelativePattern(pattern, top);
  const PathGlob glob = PathGlob::Compile(relative);
  if (!glob.problem().empty()) {
    return ToolOutput{
        fmt::format("No files found\n[the pattern can match nothing: {}]", glob.problem())};
  }
  if (relative.substr(0, 1) == "/") {
    return ToolOutput{fmt::format(
        "No files found\n[the pattern is matched against paths relative to {}]", top.real)};
  }
  WalkOptions options;
  options.deadline = EarlierOf(context.deadline(), env.clock->Now(), kTimeMax);
  std::vector<Found> found;
  const auto outcome =
      Walk(*env.roots, top, options, *env.clock, context.cancel(), [&](const WalkEntry& entry) {
        struct stat info {};
        if (!glob.Matches(entry.below) || !Stat(entry, &info)) return;
        found.push_back({std::string(entry.below),
                         int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
      });
  if (!outcome.ok()) return outcome.error();
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.modified_ns != b.modified_ns ? a.modified_ns > b.modified_ns : a.path < b.path;
  });

  const std::string gaps = DescribeGaps(outcome.value(), options);
  std::string text;
  for (const Found& file : found) {
    if (!text.empty()) text += '\n';
    text += top.real == "/" ? "/" + file.path : top.real + "/" + file.path;
  }
  ToolOutput output = Capture(std::move(text), env);
  if (found.empty()) output.text = gaps.empty() ? "No files found" : "Nothing found so far";
  if (!gaps.empty()) {
    output.text += fmt::format("\n[{}]", gaps);
    output.truncated = true;
  }
  return output;
}

Result<Prepared> Prepare(json::Value arguments, const ToolEnv& env) {
  const std::string_view path = arguments["path"].Str();
  const PathClaim claim = ClaimPath(path.empty() ? "." : path, env);
  Prepared prepared;
  prepared.read_only = true;
  prepared.own = OwnVerdict::kAllow;
  JudgeClaim(claim, env, &prepared);
  prepared.run = [claim, pattern = std::string(arguments["pattern"].Str())](ToolContext& context) {
    const auto output = FindFiles(claim, pattern, context);
    if (output.ok()) return output.value();
    return Fail(fmt::format("Error searching {}: {}", claim.spelled, output.error().message));
  };
  return prepared;
}

}  // namespace

Tool GlobTool() {
  return {"Glob",
          "Finds files by name, newest first: `*.go` at any depth, `src/**/*.{ts,tsx}` by path. "
          "`**` stands for any number of folders. .git, node_modules and vendor are skipped, "
          "symlinks are listed but not followed. To search what is in files use Grep.",
          R"json({"type":"object","required":["pattern"],"properties":{
"pattern":{"type":"string","description":"Path pattern, relative to the directory searched"},
"path":{"type":"string","description":"Where to search (default: the working directory)"}}})json",
          true,
          true,
          OwnVerdict::kAllow,
          Prepare};
}

}  // namespace norma::tool
