// Which files Read has shown in this run, and in which state: what tools.edit.require_read asks
// before a file is changed. Thread-safe: reads run beside each other.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "lib/base/result.h"

namespace norma::tool {

// Enough to notice that a file is another one or was written since. Change time is in it because a
// program may set the modification time back.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
Result<FileStamp> StampOf(int fd);

class ReadLog {
 public:
  void Note(const std::string& real_path, const FileStamp& stamp);
  // Ok when this very state was noted; else kInvalid saying what the model must do.
  Status Check(const std::string& real_path, const FileStamp& now) const;

 private:
  mutable std::mutex mutex_;  // guards seen_
  std::map<std::string, FileStamp> seen_;
};

}  // namespace norma::tool
