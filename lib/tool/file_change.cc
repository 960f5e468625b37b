// See file_change.h.
#include "lib/tool/file_change.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/tool/read_log.h"

namespace norma::tool {
namespace {

Status CheckWasRead(const Place& place, const ToolEnv& env) {
  if (env.reads == nullptr) {
    return Error{Code::kInternal, "tools.edit.require_read is set but reads are not kept"};
  }
  NORMA_ASSIGN(const UniqueFd fd, env.roots->OpenRegular(place));
  NORMA_ASSIGN(const FileStamp stamp, StampOf(fd.get()));
  return env.reads->Check(place.real, stamp);
}

// So that an edit can follow an edit without a Read between them.
void NoteWritten(const Place& place, const ToolEnv& env) {
  if (env.reads == nullptr) return;
  Place fresh = place;  // the rename gave it another inode
  fresh.kind = FileKind::kRegular;
  fresh.device = fresh.inode = 0;
  const auto fd = env.roots->OpenRegular(fresh);
  if (!fd.ok()) return;
  const auto stamp = StampOf(fd.value().get());
  if (stamp.ok()) env.reads->Note(place.real, stamp.value());
}

}  // namespace

Prepared PrepareChange(const PathClaim& claim, const ToolEnv& env) {
  Prepared prepared;
  prepared.own = OwnVerdict::kAsk;
  JudgeClaim(claim, env, &prepared);
  return prepared;
}

Result<Place> ResolveTarget(const PathClaim& claim, const ToolEnv& env) {
  NORMA_ASSIGN(Place place, Reclaim(claim, env));
  switch (place.kind) {
    case FileKind::kNone:
      return place;
    case FileKind::kDirectory:
      return Error{Code::kInvalid, fmt::format("{} is an existing directory", claim.spelled)};
    case FileKind::kOther:
      return Error{Code::kInvalid, fmt::format("{} is not a regular file", claim.spelled)};
    case FileKind::kRegular:
      break;
  }
  if (env.require_read) NORMA_TRY(CheckWasRead(place, env));
  return place;
}

Status CommitChange(const Place& place, const FileChange& change, ToolContext& context) {
  const ToolEnv& env = context.env();
  if (change.bytes.size() > kChangeBytesMax) {
    return Error{Code::kInvalid,
                 fmt::format("the content has {}, more than the {} a file may get",
                             FormatBytes(change.bytes.size()), FormatBytes(kChangeBytesMax))};
  }
  // A rename would replace a write-protected file without asking it.
  if (place.kind == FileKind::kRegular &&
      faccessat(AT_FDCWD, place.real.c_str(), W_OK, AT_EACCESS) != 0) {
    return Error{Code::kIo, fmt::format("{} is not writable", place.spelled)};
  }
  if (context.cancel().tripped()) return Error{Code::kCancelled, "cancelled before the write"};

  ActionReport report;
  report.effect = "file";
  report.path = DisplayPath(place.real, env);
  report.summary = fmt::format("{} {}", change.verb, report.path);
  report.bytes = static_cast<int64_t>(change.bytes.size());
  report.sha256_before = change.sha256_before;
  NORMA_ASSIGN(const std::string action, context.Begin(report));
  const Status written = env.roots->WriteAtomic(place, change.bytes);
  if (written.ok()) {
    report.sha256_after = Sha256Hex(change.bytes);
    NoteWritten(place, env);
  } else {
    report.error = written.error().message;
  }
  context.End(action, report);
  return written;
}

}  // namespace norma::tool
