// What Write, Edit and MultiEdit share: the checks before a file may be changed, and the announced,
// atomic change itself.
#pragma once

#include <string>
#include <string_view>

#include "lib/tool/tool.h"
#include "lib/tool/tool_path.h"

namespace norma::tool {

inline constexpr uint64_t kChangeBytesMax = 64ull << 20;  // of a file that is edited or written

// A Prepared that asks, runs alone, and carries the claim's action and own deny. `run` is left
// empty.
Prepared PrepareChange(const PathClaim& claim, const ToolEnv& env);

// Where the file is now; an error for what is neither a regular file nor absent, and, with
// require_read, for a file that was not read or has changed since.
Result<Place> ResolveTarget(const PathClaim& claim, const ToolEnv& env);

// Announces, writes, reports. Nothing was announced when an error says "refused"; `verb` and the
// place make the summary. Afterwards the file counts as read.
struct FileChange {
  std::string verb;           // "write", "edit"
  std::string_view bytes;     // the whole new content
  std::string sha256_before;  // empty for a new file
};
Status CommitChange(const Place& place, const FileChange& change, ToolContext& context);

}  // namespace norma::tool
