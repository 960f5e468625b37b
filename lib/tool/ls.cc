// LS: one folder's entries, folders first.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "lib/base/text.h"
#include "lib/tool/builtins.h"
#include "lib/tool/tool_path.h"
#include "lib/tool/walk.h"

namespace norma::tool {
namespace {

constexpr size_t kEntriesMax = 100'000;

Result<ToolOutput> ListPath(const PathClaim& claim, const ToolEnv& env) {
  NORMA_ASSIGN(const Place place, Reclaim(claim, env));
  if (place.kind == FileKind::kNone) return Error{Code::kNotFound, "no such directory"};
  if (place.kind != FileKind::kDirectory) return Error{Code::kInvalid, "it is not a directory"};
  NORMA_ASSIGN(const UniqueFd fd, env.roots->OpenDirectory(place));
  bool cut = false;
  NORMA_ASSIGN(const std::vector<FolderEntry> entries, ListFolder(fd.get(), kEntriesMax, &cut));

  std::vector<std::string> folders, others;
  for (const FolderEntry& entry : entries) {
    struct stat info {};
    if (fstatat(fd.get(), entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      folders.push_back(entry.name + "/");
    } else {
      others.push_back(fmt::format("{}\t{} bytes", entry.name, info.st_size));
    }
  }
  folders.insert(folders.end(), others.begin(), others.end());
  if (folders.empty()) return ToolOutput{"(empty directory)"};
  ToolOutput output = Capture(Join(folders, "\n"), env);
  if (cut) {
    output.text += fmt::format("\n[incomplete: only {} entries were listed]", kEntriesMax);
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
  prepared.run = [claim](ToolContext& context) {
    const auto output = ListPath(claim, context.env());
    if (output.ok()) return output.value();
    return Fail(fmt::format("Error listing {}: {}", claim.spelled, output.error().message));
  };
  return prepared;
}

}  // namespace

Tool LsTool() {
  return {"LS",
          "Lists one directory (not what is below its folders): folders first as name/, then files "
          "with their sizes. To find files by name anywhere use Glob.",
          R"json({"type":"object","properties":{
"path":{"type":"string","description":"The directory (default: the working directory)"}}})json",
          true,
          true,
          OwnVerdict::kAllow,
          Prepare};
}

}  // namespace norma::tool
