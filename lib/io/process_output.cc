#include "lib/io/process_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/io/roots_open.h"

namespace norma {
namespace {

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// No folder of the path is followed through a symlink either: an earlier command may have put one
// in the place of the folder, and what is written would go wherever it leads.
UniqueFd CreateSpill(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || !path.starts_with('/')) return UniqueFd();
  const UniqueFd top(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const below::Opened folder = below::Open(top.get(), slash == 0 ? "." : path.substr(1, slash - 1),
                                           O_PATH | O_DIRECTORY, false);
  if (!folder.fd.valid()) return UniqueFd();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  return UniqueFd(openat(folder.fd.get(), path.c_str() + slash + 1, kFlags, 0600));
}

}  // namespace

OutputBuffer::OutputBuffer(size_t head_bytes_max, size_t tail_bytes_max, std::string spill_path)
    : head_max_(head_bytes_max), tail_max_(tail_bytes_max), spill_path_(std::move(spill_path)) {}

void OutputBuffer::Add(std::string_view bytes) {
  if (bytes_ + bytes.size() > head_max_ + tail_max_) Spill(bytes);
  bytes_ += bytes.size();
  const std::string_view start = bytes.substr(0, head_max_ - head_.size());
  head_.append(start);
  bytes.remove_prefix(start.size());
  tail_.append(bytes);
  if (tail_.size() > 2 * tail_max_) tail_.erase(0, tail_.size() - tail_max_);
}

// Before `bytes` are added: at the first time head and tail still are all there is.
void OutputBuffer::Spill(std::string_view bytes) {
  if (spill_path_.empty()) return;
  bool good = true;
  if (!spill_.valid()) {
    spill_ = CreateSpill(spill_path_);
    if (!spill_.valid()) {
      spill_path_.clear();
      return;
    }
    good = WriteAll(spill_.get(), head_) && WriteAll(spill_.get(), tail_);
  }
  if (good && WriteAll(spill_.get(), bytes)) return;
  // A full disk: half an output under a name that promises the whole would be worse than none.
  spill_.reset();
  unlink(spill_path_.c_str());
  spill_path_.clear();
}

}  // namespace norma
