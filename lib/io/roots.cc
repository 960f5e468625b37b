// Roots: resolving what a model wrote into where it really is, and opening just that. Resolution is
// done here component by component, because the kernel cannot say where a path that does not exist
// yet would lead. It need not be free of races: whatever changes afterwards, below::Open follows no
// symlink and starts from the root's own descriptor.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <utility>

#include "lib/base/text.h"
#include "lib/io/errno_text.h"
#include "lib/io/files.h"
#include "lib/io/roots_open.h"

namespace norma {
namespace {

constexpr int kSymlinksMax = 40;  // the kernel's own limit
constexpr size_t kPathBytesMax = 64 * 1024;

FileKind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kRegular;
  if (S_ISDIR(mode)) return FileKind::kDirectory;
  return FileKind::kOther;
}

// Inside by whole components; both clean and absolute.
bool IsBelow(const std::string& path, const std::string& root) {
  if (root == "/" || path == root) return true;
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

void PopComponent(std::string& path) {
  const size_t slash = path.rfind('/');
  path.resize(slash == std::string::npos ? 0 : slash);  // "" stands for the top
}

std::string ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> target;
  const ssize_t count = readlink(path.c_str(), target.data(), target.size());
  return count < 0 ? std::string() : std::string(target.data(), static_cast<size_t>(count));
}

struct Walked {
  std::string real;  // without a last slash; "" is the top
  struct stat info {};
  bool exists = true;
  bool wants_folder = false;  // the spelling ended in `/`, `/.` or `/..`
  int error = 0;              // errno at the component behind `real`
  std::string failed;         // that component's path
};

void PushParts(std::deque<std::string>& parts, std::string_view path) {
  const auto split = Split(path, '/');
  for (auto part = split.rbegin(); part != split.rend(); ++part) parts.emplace_front(*part);
}

// Follows an absolute path as the kernel does, and goes on by text where nothing exists.
Walked Walk(const std::string& path) {
  Walked walked;
  std::deque<std::string> parts;
  PushParts(parts, path);
  int links = 0;
  if (stat("/", &walked.info) != 0) walked.error = errno;
  while (!parts.empty() && walked.error == 0) {
    const std::string part = std::move(parts.front());
    parts.pop_front();
    walked.wants_folder = part.empty() || part == "." || part == "..";
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (walked.exists && !S_ISDIR(walked.info.st_mode)) {
        walked.error = ENOTDIR;
        walked.failed = walked.real;
        break;
      }
      PopComponent(walked.real);
      walked.exists = stat((walked.real + "/").c_str(), &walked.info) == 0;
      continue;
    }
    const std::string next = walked.real + "/" + part;
    struct stat info {};
    if (lstat(next.c_str(), &info) != 0) {
      if (errno != ENOENT) {
        walked.error = errno;
        walked.failed = next;
        break;
      }
      walked.exists = false;
      walked.real = next;
      continue;
    }
    walked.exists = true;
    if (S_ISLNK(info.st_mode)) {
      const std::string target = ReadLink(next);
      if (target.empty() || ++links > kSymlinksMax) {
        walked.error = ELOOP;
        walked.failed = next;
        break;
      }
      // Also for the magic links of /proc: their text is judged like any other, and what they
      // really lead to is never opened through them.
      if (target.front() == '/') walked.real.clear();
      PushParts(parts, target);
      continue;
    }
    walked.real = next;
    walked.info = info;
  }
  return walked;
}

Error Unresolved(std::string_view spelled, int error, const std::string& where) {
  std::string why = ErrnoText(error);
  if (error == ENOTDIR) why = "is used as a folder but is none";
  if (error == ELOOP) why = "is a loop of symlinks";
  return Error{Code::kIo, std::string(spelled) + ": " + where + ": " + why};
}

struct Root {
  std::string real;
  UniqueFd fd;
  bool read_only = false;
};

Result<Root> OpenRoot(const std::string& spelled, const std::string& cwd, bool read_only) {
  const std::string path = JoinPath(cwd, spelled);
  const auto refuse = [&](int error) {
    return Error{Code::kSpec,
                 "the root " + spelled + " (" + path + ") cannot be used: " + ErrnoText(error)};
  };
  std::array<char, PATH_MAX> real;
  if (realpath(path.c_str(), real.data()) == nullptr) return refuse(errno);
  Root root{real.data(), UniqueFd(), read_only};
  root.fd.reset(open(real.data(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.fd.valid()) return refuse(errno);
  return root;
}

}  // namespace

struct Roots::Impl {
  std::string cwd;
  std::vector<Root> roots;
  std::vector<std::string> paths;
  bool walk_only = false;

  // The deepest root wins, so that a read-only root inside another one protects itself.
  const Root* Find(const std::string& real) const {
    const Root* best = nullptr;
    for (const Root& root : roots) {
      if (!IsBelow(real, root.real)) continue;
      if (best == nullptr || root.real.size() > best->real.size()) best = &root;
    }
    return best;
  }

  Error Outside(std::string_view spelled, const std::string& real) const {
    std::string text = std::string(spelled);
    if (real != spelled) text += " (really " + real + ")";
    return Error{Code::kDenied, text + " is outside the allowed folders: " + Join(paths, ", ")};
  }

  const Root& At(const Place& place) const {
    NORMA_CHECK(place.root < roots.size());
    return roots[place.root];
  }
};

Roots::Roots(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Roots::Roots(Roots&&) noexcept = default;
Roots& Roots::operator=(Roots&&) noexcept = default;
Roots::~Roots() = default;

Result<Roots> Roots::Open(const std::vector<std::string>& roots, const std::string& cwd,
                          const std::vector<std::string>& read_only) {
  auto impl = std::make_unique<Impl>();
  impl->cwd = cwd;
  for (const std::string& root : roots) {
    NORMA_ASSIGN(Root opened, OpenRoot(root, cwd, false));
    impl->roots.push_back(std::move(opened));
  }
  for (const std::string& root : read_only) {
    NORMA_ASSIGN(Root opened, OpenRoot(root, cwd, true));
    impl->roots.push_back(std::move(opened));
  }
  for (const Root& root : impl->roots) impl->paths.push_back(root.real);
  return Roots(std::move(impl));
}

Result<Place> Roots::Resolve(std::string_view path, bool for_writing) const {
  if (path.empty()) return Error{Code::kInvalid, "the path is empty"};
  if (path.find('\0') != std::string_view::npos) {
    return Error{Code::kInvalid, "the path holds a NUL byte"};
  }
  if (path.size() > kPathBytesMax) return Error{Code::kInvalid, "the path is longer than 64 KiB"};
  // Not cleaned by text first: `..` after a symlink would then mean another folder.
  const std::string full =
      path.front() == '/' ? std::string(path) : impl_->cwd + "/" + std::string(path);
  const Walked walked = Walk(full);
  const std::string real = walked.real.empty() ? "/" : walked.real;
  // Confinement is asked first: what lies outside is denied whatever else is wrong with it.
  const Root* root = impl_->Find(real);
  if (root == nullptr) return impl_->Outside(path, real);
  if (walked.error != 0) return Unresolved(path, walked.error, walked.failed);
  Place place;
  place.kind = walked.exists ? KindOf(walked.info.st_mode) : FileKind::kNone;
  if (walked.wants_folder && place.kind != FileKind::kDirectory &&
      (for_writing || place.kind != FileKind::kNone)) {
    return Unresolved(path, ENOTDIR, real);
  }
  if (for_writing && root->read_only) {
    return Error{Code::kDenied, std::string(path) + " is in " + root->real +
                                    ", which may be read but not written"};
  }
  place.spelled = path;
  place.lexical = JoinPath(impl_->cwd, path);
  place.real = real;
  place.root = static_cast<size_t>(root - impl_->roots.data());
  place.below =
      real == root->real ? "." : real.substr(root->real == "/" ? 1 : root->real.size() + 1);
  if (walked.exists) {
    place.device = walked.info.st_dev;
    place.inode = walked.info.st_ino;
    place.bytes = static_cast<uint64_t>(std::max<off_t>(walked.info.st_size, 0));
  }
  return place;
}

Result<UniqueFd> Roots::OpenRegular(const Place& place) const {
  const Root& root = impl_->At(place);
  if (place.kind == FileKind::kDirectory) {
    return Error{Code::kIo, place.spelled + " is a folder, no regular file"};
  }
  // Before it is opened: opening a device can do things.
  if (place.kind == FileKind::kOther) {
    return Error{Code::kIo, place.spelled + " is not a regular file (a device, FIFO or socket)"};
  }
  below::Opened opened =
      below::Open(root.fd.get(), place.below, O_RDONLY | O_NONBLOCK | O_NOCTTY, impl_->walk_only);
  if (opened.error == ENOENT) {
    return Error{Code::kNotFound, place.spelled + " does not exist"};
  }
  if (!opened.fd.valid()) {
    std::string why = ErrnoText(opened.error);
    if (opened.error == ELOOP || opened.error == ENOTDIR) {
      why = "a part of it was replaced while it was being opened";
    }
    return Error{Code::kIo, place.spelled + ": " + why};
  }
  struct stat info {};
  if (fstat(opened.fd.get(), &info) != 0) {
    return Error{Code::kIo, place.spelled + ": " + ErrnoText(errno)};
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{Code::kIo, place.spelled + " is not a regular file"};
  }
  return std::move(opened.fd);
}

Result<UniqueFd> Roots::OpenDirectory(const Place& place) const {
  const Root& root = impl_->At(place);
  below::Opened opened =
      below::Open(root.fd.get(), place.below, O_RDONLY | O_DIRECTORY, impl_->walk_only);
  if (opened.error == ENOENT) {
    return Error{Code::kNotFound, place.spelled + " does not exist"};
  }
  if (!opened.fd.valid()) {
    const bool no_folder = opened.error == ENOTDIR || opened.error == ELOOP;
    return Error{Code::kIo, place.spelled + (no_folder ? std::string(" is no folder")
                                                       : ": " + ErrnoText(opened.error))};
  }
  return std::move(opened.fd);
}

Result<std::string> Roots::Read(const Place& place, uint64_t bytes_max) const {
  NORMA_ASSIGN(const UniqueFd fd, OpenRegular(place));
  return below::ReadAll(fd.get(), bytes_max, place.spelled);
}

Status Roots::WriteAtomic(const Place& place, std::string_view bytes) const {
  const Root& root = impl_->At(place);
  if (root.read_only) {
    return Error{Code::kDenied,
                 place.spelled + " is in " + root.real + ", which may be read but not written"};
  }
  if (place.below == ".") {
    return Error{Code::kIo, place.spelled + " is a folder and cannot be written"};
  }
  const size_t slash = place.below.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : place.below.substr(0, slash);
  const std::string name = slash == std::string::npos ? place.below : place.below.substr(slash + 1);
  const below::Opened parent = below::MakeFolders(root.fd.get(), folder);
  if (!parent.fd.valid()) {
    return Error{Code::kIo,
                 place.spelled + ": its folder cannot be used: " + ErrnoText(parent.error)};
  }
  return below::ReplaceFile(parent.fd.get(), name, bytes, -1, false, place.spelled);
}

const std::vector<std::string>& Roots::paths() const {
  return impl_->paths;
}
const std::string& Roots::cwd() const {
  return impl_->cwd;
}
void Roots::ForceWalk() {
  impl_->walk_only = true;
}

}  // namespace norma
