// Read: a range of a text file's lines, numbered. Streams, so that a range of a huge file costs its
// bytes once and no memory; stops at the result's size limit with the offset that goes on.
#include <errno.h>
#include <fmt/core.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/tool/builtins.h"
#include "lib/tool/read_log.h"
#include "lib/tool/tool_path.h"

namespace norma::tool {
namespace {

constexpr int64_t kLinesDefault = 2'000;
constexpr size_t kLineBytesMax = 2'000;
constexpr size_t kProbeBytes = 8'000;  // a NUL in them makes a file binary
constexpr size_t kBufferBytes = 64 * 1024;
constexpr size_t kOverBudget = 1'000;  // Read may exceed the common budget by this

struct Line {
  std::string head;    // at most kLineBytesMax + 4 bytes, so that the cut can fall on a character
  uint64_t bytes = 0;  // of the whole line
  bool last = false;   // ended by the end of the file
};

// A text of n line breaks has n + 1 lines; the last may be empty.
class LineStream {
 public:
  LineStream(int fd, ToolContext& context)
      : fd_(fd), context_(context), buffer_(kBufferBytes, '\0') {}

  // Fills the buffer for the first time; true when the file looks binary.
  Result<bool> Probe() {
    while (end_ < kProbeBytes && !eof_) NORMA_TRY(Fill());
    return memchr(buffer_.data(), '\0', std::min(end_, kProbeBytes)) != nullptr;
  }
  bool empty() const { return eof_ && total_ == 0; }

  Status Next(Line* line) {
    line->head.clear();
    line->bytes = 0;
    for (;;) {
      if (at_ == end_ && !eof_) {
        at_ = end_ = 0;
        NORMA_TRY(Fill());
        continue;
      }
      const char* from = buffer_.data() + at_;
      const size_t left = end_ - at_;
      const void* lf = left == 0 ? nullptr : memchr(from, '\n', left);
      const size_t part =
          lf == nullptr ? left : static_cast<size_t>(static_cast<const char*>(lf) - from);
      const size_t room = kLineBytesMax + 4 - line->head.size();
      line->head.append(from, std::min(part, room));
      line->bytes += part;
      at_ += part;
      if (lf != nullptr) {
        ++at_;
        line->last = false;
        return {};
      }
      if (eof_) {
        line->last = true;
        return {};
      }
    }
  }

 private:
  Status Fill() {
    if (context_.cancel().tripped()) return Error{Code::kCancelled, "the call was cancelled"};
    if (context_.env().clock->Now() >= context_.deadline()) {
      return Error{Code::kTimeout, "the call's time is over"};
    }
    const ssize_t got = read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) return {};
    if (got < 0) return Error{Code::kIo, strerror(errno)};
    eof_ = got == 0;
    end_ += static_cast<size_t>(got);
    total_ += static_cast<uint64_t>(got);
    return {};
  }

  int fd_;
  ToolContext& context_;
  std::string buffer_;
  size_t at_ = 0, end_ = 0;
  uint64_t total_ = 0;
  bool eof_ = false;
};

std::string Row(int64_t number, const Line& line) {
  if (line.bytes <= kLineBytesMax) {
    return fmt::format("{:6}\t{}\n", number, RepairUtf8(line.head));
  }
  return fmt::format("{:6}\t{} … [line cut, it has {} bytes]\n", number,
                     RepairUtf8(CutUtf8(line.head, kLineBytesMax)), line.bytes);
}

struct Range {
  int64_t offset = 1;
  int64_t limit = kLinesDefault;
  bool limit_given = false;
};

Result<ToolOutput> ReadRange(LineStream& lines, const Range& range, size_t bytes_max) {
  Line line;
  for (int64_t number = 1; number < range.offset; ++number) {
    if (number == 1 && lines.empty()) return ToolOutput{"(file is empty)"};
    NORMA_TRY(lines.Next(&line));
    if (line.last) return ToolOutput{"(no lines in the requested range)"};
  }
  ToolOutput output;
  int64_t shown = 0;
  while (shown < range.limit) {
    NORMA_TRY(lines.Next(&line));
    const std::string row = Row(range.offset + shown, line);
    output.truncated = output.text.size() + row.size() > bytes_max;
    if (output.truncated) {
      if (shown == 0) {  // a limit smaller than one line: show its start, go on behind it
        output.text = std::string(CutUtf8(row, bytes_max)) + '\n';
        ++shown;
      }
      output.text += fmt::format("[cut at {} bytes; continue with offset {}]\n", bytes_max,
                                 range.offset + shown);
      return output;
    }
    output.text += row;
    ++shown;
    if (line.last) return output;
  }
  // Who gave a limit knows where it ends; the default must not look like the whole file.
  if (!range.limit_given) {
    output.truncated = true;
    output.text +=
        fmt::format("[more lines follow; continue with offset {}]\n", range.offset + shown);
  }
  return output;
}

Result<ToolOutput> ReadFile(const PathClaim& claim, const Range& range, ToolContext& context) {
  const ToolEnv& env = context.env();
  NORMA_ASSIGN(const Place place, Reclaim(claim, env));
  if (place.kind == FileKind::kDirectory) {
    return Error{Code::kInvalid, "it is a directory: use LS or Glob to see what is in it"};
  }
  if (place.kind == FileKind::kNone) return Error{Code::kNotFound, "no such file"};
  NORMA_ASSIGN(const UniqueFd fd, env.roots->OpenRegular(place));
  NORMA_ASSIGN(const FileStamp stamp, StampOf(fd.get()));
  LineStream lines(fd.get(), context);
  NORMA_ASSIGN(const bool binary, lines.Probe());
  if (binary) {
    return ToolOutput{
        fmt::format("[binary file {} not shown — {} bytes]", claim.spelled, stamp.bytes)};
  }
  NORMA_ASSIGN(ToolOutput output, ReadRange(lines, range, env.output_bytes + kOverBudget));
  if (env.reads != nullptr) env.reads->Note(place.real, stamp);
  return output;
}

Result<Prepared> Prepare(json::Value arguments, const ToolEnv& env) {
  const PathClaim claim = ClaimPath(arguments["file_path"].Str(), env);
  Range range;
  range.offset = std::max<int64_t>(1, arguments["offset"].Int(1));
  const int64_t limit = arguments["limit"].Int(0);
  range.limit_given = limit > 0;
  if (range.limit_given) range.limit = limit;

  Prepared prepared;
  prepared.read_only = true;
  prepared.own = OwnVerdict::kAllow;
  JudgeClaim(claim, env, &prepared);
  prepared.run = [claim, range](ToolContext& context) {
    const auto output = ReadFile(claim, range, context);
    if (output.ok()) return output.value();
    return Fail(fmt::format("Error reading {}: {}", claim.spelled, output.error().message));
  };
  return prepared;
}

}  // namespace

Tool ReadTool() {
  return {"Read",
          "Shows lines of a text file with their numbers (number, tab, text). Without offset and "
          "limit it shows the first 2000 lines; a longer file says with which offset to go on. "
          "Lines over 2000 bytes are cut. Binary files are not shown. For folders use LS or Glob.",
          R"json({"type":"object","required":["file_path"],"properties":{
"file_path":{"type":"string","description":"Absolute, or relative to the working directory"},
"offset":{"type":"integer","description":"First line to show, from 1"},
"limit":{"type":"integer","description":"How many lines to show (default 2000)"}}})json",
          true,
          true,
          OwnVerdict::kAllow,
          Prepare};
}

}  // namespace norma::tool
