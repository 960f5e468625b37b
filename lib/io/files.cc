#include "lib/io/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "lib/base/text.h"
#include "lib/io/errno_text.h"
#include "lib/io/roots_open.h"

namespace norma {
namespace {

constexpr int kSymlinksMax = 40;
// Folders deeper than this are moved up before they are emptied: one descriptor a level.
constexpr int kRemoveDepthMax = 32;
// How often the top is looked at again: for what was moved up, or came in meanwhile.
constexpr int kRemovePassesMax = 64;

// Where a path of the operator really leads; a dangling link leads to its target.
Result<std::string> FollowLinks(std::string path) {
  std::array<char, PATH_MAX> target;
  for (int i = 0; i < kSymlinksMax; ++i) {
    const ssize_t count = readlink(path.c_str(), target.data(), target.size());
    if (count < 0) return path;
    const std::string_view text(target.data(), static_cast<size_t>(count));
    const size_t slash = path.rfind('/');
    // Not JoinPath: it would take `..` after a symlink by text.
    path = text.starts_with('/') || slash == std::string::npos
               ? std::string(text)
               : path.substr(0, slash + 1) + std::string(text);
  }
  return Error{Code::kIo, path + ": too many symlinks"};
}

class TreeRemover {
 public:
  explicit TreeRemover(int top) : top_(top) {}

  // Leaves the top folder itself.
  void Run() {
    for (int pass = 0; pass < kRemovePassesMax; ++pass) {
      again_ = false;
      Empty(top_, 0);
      if (!again_) return;
    }
  }

 private:
  void Empty(int folder, int depth) {
    const int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR* stream = copy < 0 ? nullptr : fdopendir(copy);
    if (stream == nullptr) {
      if (copy >= 0) close(copy);
      return;
    }
    rewinddir(stream);  // the position is shared with `folder`, which an earlier pass has read
    while (const dirent* item = readdir(stream)) {
      const std::string name = item->d_name;
      if (name != "." && name != "..") Remove(folder, name, depth);
    }
    closedir(stream);
  }

  void Remove(int folder, const std::string& name, int depth) {
    // Never follows: a symlink is unlinked like a file.
    if (unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return;
    UniqueFd inner = OpenFolder(folder, name);
    if (!inner.valid()) return;
    if (depth >= kRemoveDepthMax) {
      const std::string moved = "deep-" + std::to_string(moved_++);
      renameat(folder, name.c_str(), top_, moved.c_str());
      again_ = true;
      return;
    }
    Empty(inner.get(), depth + 1);
    if (unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0 && errno == ENOTEMPTY) again_ = true;
  }

  // A folder without rights for its owner is given them, through a descriptor that no rename moves.
  static UniqueFd OpenFolder(int folder, const std::string& name) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const UniqueFd pinned(
        openat(folder, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!pinned.valid()) return UniqueFd();
    chmod(("/proc/self/fd/" + std::to_string(pinned.get())).c_str(), 0700);
    return UniqueFd(openat(pinned.get(), ".", kFlags));
  }

  int top_;
  int moved_ = 0;
  bool again_ = false;
};

void RemoveTree(const std::string& path) {
  const UniqueFd top(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (top.valid()) TreeRemover(top.get()).Run();
  rmdir(path.c_str());
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

Result<std::string> ReadRegularFile(const std::string& path, uint64_t bytes_max) {
  if (path.find('\0') != std::string::npos) {
    return Error{Code::kInvalid, "the path of a file holds a NUL byte"};
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kIo;
    return Error{code, path + ": " + ErrnoText(errno)};
  }
  // Before it is opened: opening a device can do things.
  if (const std::string why = below::NotRegular(info.st_mode); !why.empty()) {
    return Error{Code::kIo, path + " " + why + " and cannot be read"};
  }
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return Error{Code::kIo, path + ": " + ErrnoText(errno)};
  }
  if (!S_ISREG(info.st_mode)) return Error{Code::kIo, path + " is no regular file"};
  return below::ReadAll(fd.get(), bytes_max, path);
}

Status WriteFileAtomic(const std::string& path, std::string_view bytes, int mode) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Error{Code::kInvalid, "the path of a file is empty or holds a NUL byte"};
  }
  NORMA_ASSIGN(const std::string target, FollowLinks(path));
  const size_t slash = target.rfind('/');
  std::string folder = ".";
  if (slash != std::string::npos) folder = slash == 0 ? "/" : target.substr(0, slash);
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return Error{Code::kIo, path + " is a folder and cannot be written"};
  }
  const UniqueFd parent(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kIo;
    return Error{code, path + ": its folder cannot be used: " + ErrnoText(errno)};
  }
  return below::ReplaceFile(parent.get(), name, bytes, mode, true, path);
}

Result<PrivateFolder> PrivateFolder::Make(const std::string& tmpdir) {
  std::string pattern = (tmpdir.empty() ? std::string("/tmp") : tmpdir) + "/norma-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return Error{Code::kIo, "no private folder can be made in " +
                                (tmpdir.empty() ? std::string("/tmp") : tmpdir) + ": " +
                                ErrnoText(errno) + " (set TMPDIR to a folder that can be written)"};
  }
  // Its real path: it becomes a root, and the file names that the model is told lie below it.
  std::array<char, PATH_MAX> real;
  if (realpath(pattern.c_str(), real.data()) != nullptr) pattern = real.data();
  return PrivateFolder(std::move(pattern));
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

PrivateFolder& PrivateFolder::operator=(PrivateFolder&& other) noexcept {
  if (this != &other) {
    if (!path_.empty()) RemoveTree(path_);
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

PrivateFolder::~PrivateFolder() {
  if (!path_.empty()) RemoveTree(path_);
}

std::string JoinPath(std::string_view folder, std::string_view path) {
  if (path.starts_with('/')) return CleanPath(path);
  return CleanPath(std::string(folder) + "/" + std::string(path));
}

std::string CleanPath(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string_view> kept;
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      kept.push_back(part);
    } else if (!kept.empty() && kept.back() != "..") {
      kept.pop_back();
    } else if (!absolute) {
      kept.push_back(part);  // `/..` is `/`, but `../x` leads somewhere
    }
  }
  std::string clean = absolute ? "/" : "";
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i > 0) clean += '/';
    clean += kept[i];
  }
  return clean.empty() ? "." : clean;
}

}  // namespace norma
