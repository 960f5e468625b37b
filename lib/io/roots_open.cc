#include "lib/io/roots_open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include "lib/base/text.h"
#include "lib/io/errno_text.h"

namespace norma::below {
namespace {

// openat2 answers EAGAIN when something was renamed under its feet.
constexpr int kOpenTriesMax = 8;
constexpr int kTempNameTriesMax = 16;
constexpr size_t kBlockBytes = 256 * 1024;
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Opened Take(int fd) {
  return fd >= 0 ? Opened{UniqueFd(fd), 0} : Opened{UniqueFd(), errno};
}

Opened OpenInKernel(int folder, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
  Opened opened;
  for (int i = 0; i < kOpenTriesMax; ++i) {
    opened = Take(static_cast<int>(syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
    if (opened.error != EAGAIN && opened.error != EINTR) break;
  }
  return opened;
}

Opened OpenByWalk(int folder, const std::string& path, int flags) {
  UniqueFd parent;
  std::string_view rest = path;
  while (true) {
    const size_t slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    const int at = parent.valid() ? parent.get() : folder;
    if (name == ".." || name.empty()) return {UniqueFd(), EINVAL};
    if (slash == std::string_view::npos) {
      return Take(openat(at, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
    }
    Opened next = Take(openat(at, name.c_str(), kFolderFlags));
    if (!next.fd.valid()) return next;
    parent = std::move(next.fd);
    rest.remove_prefix(slash + 1);
  }
}

std::string TempName() {
  static constexpr std::string_view kDigits = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string name = ".norma-";
  for (int i = 0; i < 12; ++i) name += kDigits[random() % kDigits.size()];
  return name + ".tmp";
}

Status WriteAll(int fd, std::string_view bytes, const std::string& shown) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error{Code::kIo, shown + ": cannot be written: " + ErrnoText(errno)};
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  if (fsync(fd) != 0) return Error{Code::kIo, shown + ": cannot be synced: " + ErrnoText(errno)};
  return {};
}

// Owner first: chown takes the set-id bits away.
Status CopyOwnerAndMode(int fd, const struct stat& old, const std::string& shown) {
  mode_t mode = old.st_mode & 07777;
  if (old.st_uid != geteuid() || old.st_gid != getegid()) {
    if (fchown(fd, old.st_uid, old.st_gid) != 0) {
      // A file that becomes ours must not run as us.
      mode &= 0777;
      [[maybe_unused]] const int group_only = fchown(fd, static_cast<uid_t>(-1), old.st_gid);
    }
  }
  if (fchmod(fd, mode) == 0) return {};
  return Error{Code::kIo, shown + ": its mode cannot be kept: " + ErrnoText(errno)};
}

// Removes the temp file unless it became the target.
struct TempGuard {
  int folder;
  std::string name;
  ~TempGuard() {
    if (!name.empty()) unlinkat(folder, name.c_str(), 0);
  }
};

}  // namespace

Opened Open(int folder, const std::string& path, int flags, bool walk_only) {
  if (!walk_only) {
    Opened opened = OpenInKernel(folder, path, flags);
    // ENOSYS: an old kernel; EPERM: a container's filter that does not know the call; E2BIG,
    // EINVAL: a kernel that knows less of it. The walk then says what is really wrong.
    const bool answered = opened.error != ENOSYS && opened.error != EPERM &&
                          opened.error != E2BIG && opened.error != EINVAL;
    if (answered) return opened;
  }
  return OpenByWalk(folder, path, flags);
}

Opened MakeFolders(int folder, const std::string& path) {
  Opened current = Take(openat(folder, ".", kFolderFlags));
  if (path == "." || !current.fd.valid()) return current;
  for (const std::string_view part : Split(path, '/')) {
    const std::string name(part);
    if (name.empty() || name == "..") return {UniqueFd(), EINVAL};
    Opened next = Take(openat(current.fd.get(), name.c_str(), kFolderFlags));
    if (next.error == ENOENT) {
      if (mkdirat(current.fd.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
        return {UniqueFd(), errno};
      }
      next = Take(openat(current.fd.get(), name.c_str(), kFolderFlags));
    }
    if (!next.fd.valid()) return next;
    current = std::move(next);
  }
  return current;
}

Status ReplaceFile(int folder, const std::string& name, std::string_view bytes, int new_mode,
                   bool replace_mode, const std::string& shown) {
  struct stat old {};
  const bool existed = fstatat(folder, name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!existed && errno != ENOENT) return Error{Code::kIo, shown + ": " + ErrnoText(errno)};
  if (existed) {
    if (const std::string why = NotRegular(old.st_mode); !why.empty()) {
      return Error{Code::kIo, shown + " " + why + " and cannot be written"};
    }
    // rename asks only the folder; a file its owner protected must stay protected.
    if (faccessat(folder, name.c_str(), W_OK, AT_EACCESS) != 0) {
      return Error{Code::kIo, shown + ": " + ErrnoText(errno)};
    }
  }
  TempGuard temp{folder, {}};
  UniqueFd fd;
  // 0600 until the bytes are whole: the old file may have been more private than the umask.
  const mode_t mode = !existed && new_mode < 0 ? 0666 : 0600;
  for (int i = 0; i < kTempNameTriesMax && !fd.valid(); ++i) {
    const std::string candidate = TempName();
    fd.reset(openat(folder, candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    mode));
    if (fd.valid()) temp.name = candidate;
    if (!fd.valid() && errno != EEXIST) break;
  }
  if (!fd.valid()) {
    return Error{Code::kIo,
                 shown + ": no temporary file can be made beside it: " + ErrnoText(errno)};
  }
  if (existed && !replace_mode) NORMA_TRY(CopyOwnerAndMode(fd.get(), old, shown));
  if ((!existed || replace_mode) && new_mode >= 0 &&
      fchmod(fd.get(), static_cast<mode_t>(new_mode)) != 0) {
    return Error{Code::kIo, shown + ": its mode cannot be set: " + ErrnoText(errno)};
  }
  NORMA_TRY(WriteAll(fd.get(), bytes, shown));
  if (renameat(folder, temp.name.c_str(), folder, name.c_str()) != 0) {
    return Error{Code::kIo, shown + ": cannot be replaced: " + ErrnoText(errno)};
  }
  temp.name.clear();
  return {};
}

Result<std::string> ReadAll(int fd, uint64_t bytes_max, const std::string& shown) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return Error{Code::kIo, shown + ": " + ErrnoText(errno)};
  const auto too_large = [&](const std::string& size) {
    return Error{Code::kInvalid,
                 shown + " has " + size + "; at most " + FormatBytes(bytes_max) + " are read"};
  };
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > bytes_max) return too_large(FormatBytes(size));
  std::string bytes;
  // Files below /proc say 0; a file may also grow while it is read: so until its end, and no size
  // is trusted. One byte more than expected finds the end with the first read.
  size_t want = static_cast<size_t>(size) + 1;
  while (true) {
    const size_t done = bytes.size();
    bytes.resize(done + want);
    const ssize_t count = read(fd, bytes.data() + done, want);
    const int error = errno;
    bytes.resize(done + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && error == EINTR) continue;
    if (count < 0) return Error{Code::kIo, shown + ": cannot be read: " + ErrnoText(error)};
    if (bytes.size() > bytes_max) return too_large("more than " + FormatBytes(bytes_max));
    if (count == 0) return bytes;
    want = size >= bytes.size() ? static_cast<size_t>(size) + 1 - bytes.size() : kBlockBytes;
  }
}

std::string NotRegular(mode_t mode) {
  if (S_ISREG(mode)) return {};
  if (S_ISDIR(mode)) return "is a folder";
  if (S_ISLNK(mode)) return "has become a symlink";
  if (S_ISFIFO(mode)) return "is a FIFO, no regular file,";
  if (S_ISSOCK(mode)) return "is a socket, no regular file,";
  return "is a device, no regular file,";
}

}  // namespace norma::below
