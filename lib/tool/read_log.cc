// See read_log.h.
#include "lib/tool/read_log.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

namespace norma::tool {
namespace {

// Past this everything is forgotten: the model is asked to read again, nothing worse.
constexpr size_t kFilesMax = 100'000;

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Result<FileStamp> StampOf(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return Error{Code::kIo, strerror(errno)};
  return FileStamp{info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
                   Nanoseconds(info.st_mtim), Nanoseconds(info.st_ctim)};
}

void ReadLog::Note(const std::string& real_path, const FileStamp& stamp) {
  std::lock_guard lock(mutex_);
  if (seen_.size() >= kFilesMax) seen_.clear();
  seen_[real_path] = stamp;
}

Status ReadLog::Check(const std::string& real_path, const FileStamp& now) const {
  std::lock_guard lock(mutex_);
  const auto found = seen_.find(real_path);
  if (found == seen_.end()) {
    return Error{Code::kInvalid, "the file was not read in this run: Read it first"};
  }
  if (!(found->second == now)) {
    return Error{Code::kInvalid, "the file has changed since it was read: Read it again"};
  }
  return {};
}

}  // namespace norma::tool
