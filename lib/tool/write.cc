// Write: a whole file, new or replaced, in one atomic step.
#include <errno.h>
#include <fmt/core.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/sha256.h"
#include "lib/tool/builtins.h"
#include "lib/tool/file_change.h"

namespace norma::tool {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

// Of what is going to be replaced, whatever its size.
Result<std::string> HashFile(const Place& place, ToolContext& context) {
  NORMA_ASSIGN(const UniqueFd fd, context.env().roots->OpenRegular(place));
  Sha256 hash;
  std::string buffer(kBufferBytes, '\0');
  for (;;) {
    if (context.cancel().tripped()) return Error{Code::kCancelled, "the call was cancelled"};
    if (context.env().clock->Now() >= context.deadline()) {
      return Error{Code::kTimeout, "the call's time is over"};
    }
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{Code::kIo, strerror(errno)};
    if (got == 0) return hash.FinishHex();
    hash.Update({buffer.data(), static_cast<size_t>(got)});
  }
}

Result<ToolOutput> WriteFile(const PathClaim& claim, const std::string& content,
                             ToolContext& context) {
  NORMA_ASSIGN(const Place place, ResolveTarget(claim, context.env()));
  FileChange change{"write", content, ""};
  if (place.kind == FileKind::kRegular) {
    NORMA_ASSIGN(change.sha256_before, HashFile(place, context));
  }
  NORMA_TRY(CommitChange(place, change, context));
  return ToolOutput{fmt::format("{} {} ({} bytes)",
                                place.kind == FileKind::kNone ? "Created" : "Overwrote",
                                claim.spelled, content.size())};
}

Result<Prepared> Prepare(json::Value arguments, const ToolEnv& env) {
  const PathClaim claim = ClaimPath(arguments["file_path"].Str(), env, true);
  Prepared prepared = PrepareChange(claim, env);
  prepared.run = [claim, content = std::string(arguments["content"].Str())](ToolContext& context) {
    const auto output = WriteFile(claim, content, context);
    if (output.ok()) return output.value();
    return Fail(fmt::format("Error writing {}: {}", claim.spelled, output.error().message));
  };
  return prepared;
}

}  // namespace

Tool WriteTool() {
  return {"Write",
          "Writes a whole text file: makes it (and missing parent folders) or replaces what was "
          "there. To change a part of a file use Edit; before replacing an existing file, Read it.",
          R"json({"type":"object","required":["file_path","content"],"properties":{
"file_path":{"type":"string","description":"Absolute, or relative to the working directory"},
"content":{"type":"string","description":"The whole new content"}}})json",
          false,
          false,
          OwnVerdict::kAsk,
          Prepare};
}

}  // namespace norma::tool
