// A path argument on its way from the model to an open file: resolved once to be judged, resolved
// again when the call runs, and refused if it leads elsewhere by then. Shared by the file tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/io/files.h"
#include "lib/tool/tool.h"

namespace norma::tool {

struct PathClaim {
  std::string spelled;  // as the model wrote it
  bool for_writing = false;
  std::string real;  // what was judged; empty when `error` is set
  std::optional<Error> error = std::nullopt;
};

// An absent path means the working directory. No effect but looking.
PathClaim ClaimPath(std::string_view spelled, const ToolEnv& env, bool for_writing = false);

// Adds the file action, and the own deny when the path lies outside the roots or is one of norma's
// own files. Says nothing of whether a file outside exists. Other errors are left to the run.
void JudgeClaim(const PathClaim& claim, const ToolEnv& env, Prepared* prepared);

// Where the claim leads now. kDenied when that is not what was judged.
Result<Place> Reclaim(const PathClaim& claim, const ToolEnv& env);

// "write a/b.txt" instead of "write /srv/job/a/b.txt": relative to the working directory when below
// it.
std::string DisplayPath(const std::string& real, const ToolEnv& env);

// A file or folder below `top`, by its relative path, ready for Roots::OpenRegular or
// OpenDirectory.
Place PlaceBelow(const Place& top, std::string_view below);

}  // namespace norma::tool
