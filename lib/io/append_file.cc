// Append-only file with a lock. The lock is flock(2) on a descriptor of our own: it excludes other
// processes and other AppendFiles of this process, and a crash gives it back.
#include "lib/io/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/io/errno_text.h"
#include "lib/io/files.h"

namespace norma {
namespace {

using std::chrono::microseconds;

constexpr Millis kLockWaitMax{10'000};
constexpr microseconds kLockPauseFirst{50};
constexpr microseconds kLockPauseMax{5'000};
// A longer line cannot be one of ours; looking on would read a whole foreign file.
constexpr uint64_t kLineBytesMax = 64ull << 20;
constexpr size_t kBlockBytes = 64 * 1024;
constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

Error Refused(const std::string& path, const std::string& why) {
  return Error{Code::kIo, path + ": " + why};
}

// Reads exactly `size` bytes at `offset`.
Status ReadAt(int fd, uint64_t offset, size_t size, char* out) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = pread(fd, out + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{Code::kIo, "cannot be read: " + ErrnoText(errno)};
    if (count == 0) return Error{Code::kIo, "became shorter while it was locked"};
    done += static_cast<size_t>(count);
  }
  return {};
}

// Position after the last newline before `end`; 0 when there is none.
Result<uint64_t> LineStart(int fd, uint64_t end) {
  std::vector<char> block(kBlockBytes);
  uint64_t at = end;
  while (at > 0) {
    if (end - at > kLineBytesMax) {
      return Error{Code::kIo, "holds no line end within 64 MiB: this is no file of whole lines"};
    }
    const size_t size = static_cast<size_t>(std::min<uint64_t>(at, kBlockBytes));
    at -= size;
    NORMA_TRY(ReadAt(fd, at, size, block.data()));
    const auto from = block.rend() - static_cast<std::ptrdiff_t>(size);
    const auto newline = std::find(from, block.rend(), '\n');
    if (newline != block.rend()) {
      return at + static_cast<uint64_t>(block.rend() - newline);
    }
  }
  return uint64_t{0};
}

Result<FileTail> ReadTail(int fd, uint64_t file_size) {
  FileTail tail;
  NORMA_ASSIGN(tail.size, LineStart(fd, file_size));
  tail.torn_bytes = file_size - tail.size;
  if (tail.size == 0) return tail;
  NORMA_ASSIGN(const uint64_t begin, LineStart(fd, tail.size - 1));
  tail.last_line.resize(static_cast<size_t>(tail.size - 1 - begin));
  NORMA_TRY(ReadAt(fd, begin, tail.last_line.size(), tail.last_line.data()));
  return tail;
}

class LockedFile {
 public:
  explicit LockedFile(int fd) : fd_(fd) {}
  ~LockedFile() {
    if (locked_) flock(fd_, LOCK_UN);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  // flock has no time limit of its own, and a signal to end a blocking one would need a handler.
  Status Lock() {
    Clock& clock = SystemClock();
    const MonoTime give_up = clock.Now() + kLockWaitMax;
    microseconds pause = kLockPauseFirst;
    while (true) {
      if (flock(fd_, LOCK_EX | LOCK_NB) == 0) {
        locked_ = true;
        return {};
      }
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return Error{Code::kIo, "cannot be locked: " + ErrnoText(errno)};
      }
      if (clock.Now() >= give_up) {
        return Error{Code::kIo, "is locked by another process for more than 10 s"};
      }
      usleep(static_cast<useconds_t>(pause.count()));
      pause = std::min(pause * 2, kLockPauseMax);
    }
  }

 private:
  int fd_;
  bool locked_ = false;
};

class DiskAppendFile : public AppendFile {
 public:
  DiskAppendFile(std::string path, UniqueFd fd, std::pair<uint64_t, uint64_t> identity,
                 std::string folder_to_sync)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        identity_(identity),
        folder_to_sync_(std::move(folder_to_sync)) {}

  Status Append(const std::function<Result<std::string>(const FileTail&)>& make_line) override {
    std::lock_guard guard(mutex_);
    return AppendLocked(make_line);
  }

  Status Sync() override {
    std::lock_guard guard(mutex_);
    if (fdatasync(fd_.get()) != 0) return Refused(path_, "cannot be synced: " + ErrnoText(errno));
    if (folder_to_sync_.empty()) return {};
    // A new file is not safe before its name is.
    const UniqueFd folder(open(folder_to_sync_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.valid() && fsync(folder.get()) == 0) folder_to_sync_.clear();
    return {};  // some file systems cannot sync a folder; that is no reason to stop
  }

  std::pair<uint64_t, uint64_t> Identity() const override { return identity_; }

 private:
  Status AppendLocked(const std::function<Result<std::string>(const FileTail&)>& make_line);
  Status CheckOwn(const struct stat& info) const;
  Status Write(std::string line, uint64_t file_size);

  const std::string path_;
  const UniqueFd fd_;
  const std::pair<uint64_t, uint64_t> identity_;
  std::mutex mutex_;  // guards the rest; flock knows descriptors, not threads
  std::string folder_to_sync_;
  FileTail tail_;
  bool tail_known_ = false;
  std::string own_line_;  // the last line written here, with its newline
  uint64_t own_end_ = 0;  // where it ends
  bool broken_ = false;   // a torn line of ours could not be cut off
};

Status DiskAppendFile::AppendLocked(
    const std::function<Result<std::string>(const FileTail&)>& make_line) {
  if (broken_)
    return Refused(path_, "an earlier line was written in part and could not be cut off");
  LockedFile lock(fd_.get());
  if (const Status locked = lock.Lock(); !locked.ok()) {
    return Refused(path_, locked.error().message);
  }
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0) return Refused(path_, ErrnoText(errno));
  NORMA_TRY(CheckOwn(info));
  const auto file_size = static_cast<uint64_t>(info.st_size);
  if (!tail_known_ || tail_.size != file_size) {
    tail_known_ = false;
    auto tail = ReadTail(fd_.get(), file_size);
    if (!tail.ok()) return Refused(path_, tail.error().message);
    tail_ = std::move(tail).value();
  }
  auto line = make_line(tail_);
  if (!line.ok()) return line.error();
  NORMA_CHECK(line.value().find('\n') == std::string::npos);
  if (tail_.torn_bytes > 0) {
    if (ftruncate(fd_.get(), static_cast<off_t>(tail_.size)) != 0) {
      return Refused(path_, "its torn last line cannot be cut off: " + ErrnoText(errno));
    }
    tail_.torn_bytes = 0;
  }
  return Write(std::move(line).value(), tail_.size);
}

// Others may append, nobody may do anything else. What a child process cut off, rewrote or moved
// away would otherwise be continued as if nothing had happened. When each line holds the hash of
// the one before it, our last line stands for all before it: they cannot be rewritten without it.
Status DiskAppendFile::CheckOwn(const struct stat& info) const {
  if (info.st_nlink == 0) {
    return Refused(path_, "was deleted while it was in use; what is written would be lost");
  }
  struct stat named {};
  if (stat(path_.c_str(), &named) != 0 || named.st_dev != info.st_dev ||
      named.st_ino != info.st_ino) {
    return Refused(path_, "was moved away or replaced while it was in use");
  }
  if (static_cast<uint64_t>(info.st_size) < own_end_) {
    return Refused(path_, "was cut short while it was in use: lines of this run are gone");
  }
  std::string line(own_line_.size(), '\0');
  if (const Status read = ReadAt(fd_.get(), own_end_ - line.size(), line.size(), line.data());
      !read.ok()) {
    return Refused(path_, read.error().message);
  }
  if (line == own_line_) return {};
  return Refused(path_, "was rewritten while it was in use: the last line of this run is changed");
}

Status DiskAppendFile::Write(std::string line, uint64_t file_size) {
  line += '\n';
  ssize_t written = -1;
  do {
    written = write(fd_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) {
    tail_.size = file_size + line.size();
    own_line_ = line;
    own_end_ = tail_.size;
    line.pop_back();
    tail_.last_line = std::move(line);
    tail_known_ = true;
    return {};
  }
  const std::string why = written < 0 ? ErrnoText(errno) : "no room for the whole line";
  tail_known_ = false;
  // The lock is still held: nobody else's line can stand behind the torn one.
  if (written > 0 && ftruncate(fd_.get(), static_cast<off_t>(file_size)) != 0) {
    broken_ = true;
    return Refused(path_, "cannot be written (" + why +
                              ") and the torn line cannot be cut off: " + ErrnoText(errno));
  }
  return Refused(path_, "cannot be written: " + why);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), kFolderMode) == 0 || errno == EEXIST) continue;
    const int error = errno;
    struct stat info {};
    // EROFS and EACCES are told before EEXIST by some file systems.
    if (stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return Refused(path, "the folder " + folder + " cannot be made: " + ErrnoText(error));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<AppendFile>> OpenAppendFile(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Error{Code::kIo, "the path of the file is empty or holds a NUL byte"};
  }
  struct stat info {};
  const bool existed = stat(path.c_str(), &info) == 0;
  // A link that waits for somebody to make a file at a place of its own choice.
  if (!existed && lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return Refused(path, "is a symlink to a file that does not exist; make it, or remove the link");
  }
  // Before it is opened: opening a device can do things.
  if (existed && !S_ISREG(info.st_mode)) return Refused(path, "is no regular file");
  if (!existed) NORMA_TRY(MakeParents(path));
  constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  UniqueFd fd(open(path.c_str(), kFlags, kFileMode));
  if (!fd.valid()) return Refused(path, "cannot be opened for appending: " + ErrnoText(errno));
  if (fstat(fd.get(), &info) != 0) return Refused(path, ErrnoText(errno));
  if (!S_ISREG(info.st_mode)) return Refused(path, "is no regular file");
  const std::pair<uint64_t, uint64_t> identity{info.st_dev, info.st_ino};
  return std::unique_ptr<AppendFile>(std::make_unique<DiskAppendFile>(
      path, std::move(fd), identity, existed ? std::string() : FolderOf(path)));
}

}  // namespace norma
