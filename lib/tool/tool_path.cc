// See tool_path.h.
#include "lib/tool/tool_path.h"

#include <fmt/core.h>

#include <algorithm>

#include "lib/base/text.h"

namespace norma::tool {
namespace {

std::string DenialOf(const PathClaim& claim, const ToolEnv& env) {
  if (claim.for_writing && env.roots->Resolve(claim.spelled, false).ok()) {
    return fmt::format("{} lies in a folder that may only be read", claim.spelled);
  }
  return fmt::format("{} is outside the folders this run may touch (tools.roots: {})",
                     claim.spelled, Join(env.roots->paths(), ", "));
}

bool IsProtected(const Place& place, const ToolEnv& env) {
  const std::pair<uint64_t, uint64_t> identity{place.device, place.inode};
  const auto& files = env.protected_files;
  const auto& paths = env.protected_paths;
  return (place.kind != FileKind::kNone &&
          std::find(files.begin(), files.end(), identity) != files.end()) ||
         std::find(paths.begin(), paths.end(), place.real) != paths.end();
}

Result<Place> ResolveClaim(const PathClaim& claim, const ToolEnv& env) {
  auto place = env.roots->Resolve(claim.spelled, claim.for_writing);
  if (!place.ok() && place.error().code == Code::kDenied) {
    return Error{Code::kDenied, DenialOf(claim, env)};
  }
  if (place.ok() && claim.for_writing && IsProtected(place.value(), env)) {
    return Error{Code::kDenied,
                 fmt::format("{} is one of this run's own files (ledger, transcript or spec)",
                             claim.spelled)};
  }
  return place;
}

}  // namespace

PathClaim ClaimPath(std::string_view spelled, const ToolEnv& env, bool for_writing) {
  PathClaim claim;
  claim.spelled = spelled;
  claim.for_writing = for_writing;
  const auto place = ResolveClaim(claim, env);
  if (place.ok()) {
    claim.real = place.value().real;
  } else {
    claim.error = place.error();
  }
  return claim;
}

void JudgeClaim(const PathClaim& claim, const ToolEnv& env, Prepared* prepared) {
  const std::string target =
      claim.real.empty() ? CleanPath(JoinPath(env.cwd, claim.spelled)) : claim.real;
  prepared->actions.push_back(
      {claim.for_writing ? Effect::kFileWrite : Effect::kFileRead, target, claim.spelled});
  if (claim.error && claim.error->code == Code::kDenied) {
    prepared->own = OwnVerdict::kDeny;
    prepared->own_message = claim.error->message;
  }
}

Result<Place> Reclaim(const PathClaim& claim, const ToolEnv& env) {
  if (claim.error) return *claim.error;
  auto place = ResolveClaim(claim, env);
  if (place.ok() && place.value().real != claim.real) {
    return Error{Code::kDenied,
                 fmt::format("{} leads elsewhere than when this call was judged: call again",
                             claim.spelled)};
  }
  return place;
}

std::string DisplayPath(const std::string& real, const ToolEnv& env) {
  const std::string prefix = env.cwd.empty() || env.cwd.back() == '/' ? env.cwd : env.cwd + "/";
  if (!prefix.empty() && real.size() > prefix.size() &&
      real.compare(0, prefix.size(), prefix) == 0) {
    return real.substr(prefix.size());
  }
  return real;
}

Place PlaceBelow(const Place& top, std::string_view below) {
  const auto join = [&](const std::string& folder) {
    if (folder == ".") return std::string(below);
    return fmt::format("{}{}{}", folder, !folder.empty() && folder.back() == '/' ? "" : "/", below);
  };
  Place place;
  place.root = top.root;
  place.below = join(top.below);
  place.real = join(top.real);
  place.lexical = place.real;
  place.spelled = below;
  return place;
}

}  // namespace norma::tool
