// AppendFile: whole lines at the end of a file, one write(2) each. A seam, because a full disk, a
// torn write and a lost sync are faults we want to inject. The process must ignore SIGXFSZ:
// otherwise a file size limit kills it instead of failing the write.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace norma {

// What stands at the end of the file when the lock is held.
struct FileTail {
  uint64_t size = 0;        // bytes up to and with the last newline
  std::string last_line;    // without its newline; empty when there is no whole line
  uint64_t torn_bytes = 0;  // bytes after the last newline: a line that a crash cut
};

class AppendFile {
 public:
  virtual ~AppendFile() = default;

  // Under the file's lock (flock; other threads and processes wait, at most 10 s, then kIo): reads
  // the tail, cuts torn bytes off when the caller's `make_line` got to see them, asks for one line
  // (without newline) and appends it with one write(2). A short write is cut off again and
  // reported. `make_line` is not called when the tail is unchanged since this object's own last
  // append and the cached tail is good: it is then called with the cached one.
  virtual Status Append(const std::function<Result<std::string>(const FileTail&)>& make_line) = 0;

  // fdatasync.
  virtual Status Sync() = 0;

  // Device and inode, so that tools can refuse to write to it under any name.
  virtual std::pair<uint64_t, uint64_t> Identity() const = 0;
};

// Opens or creates (0600, parents 0700) `path`; a directory, a device or a FIFO is refused.
Result<std::unique_ptr<AppendFile>> OpenAppendFile(const std::string& path);

}  // namespace norma
