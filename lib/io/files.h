// Files below roots: every path a tool names is resolved here, symlinks included, and opened below
// the root it was found under, so that a race cannot lead outside (openat2 RESOLVE_BENEATH, with a
// component-wise walk where the kernel refuses). Also plain reading and atomic writing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"

namespace norma {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

enum class FileKind { kNone, kRegular, kDirectory, kOther };

// A path after resolution: where it really is, and below which root.
struct Place {
  std::string spelled;  // as the model wrote it
  std::string lexical;  // absolute, `.` and `..` removed by text alone
  std::string real;     // absolute, symlinks resolved; parts that do not exist yet are appended
  size_t root = 0;      // index into the roots
  std::string below;    // `real` relative to that root, "." for the root itself
  FileKind kind = FileKind::kNone;
  uint64_t device = 0;  // of the file itself when it exists
  uint64_t inode = 0;
  uint64_t bytes = 0;
};

class Roots {
 public:
  // `roots` relative to `cwd` (absolute). A missing root is an error (kSpec) that names it.
  // `read_only` roots are added behind them: reading is allowed there, WriteAtomic is not.
  static Result<Roots> Open(const std::vector<std::string>& roots, const std::string& cwd,
                            const std::vector<std::string>& read_only = {});
  Roots(Roots&&) noexcept;
  Roots& operator=(Roots&&) noexcept;
  ~Roots();

  // kDenied when the place lies outside every root (or, with `for_writing`, inside a read-only
  // one), kInvalid for an empty path or one with NUL, kIo when it cannot be resolved (a loop, a
  // file used as a folder). `..` after a symlink is resolved as the kernel does. A dangling link
  // resolves to its target. /proc magic links (/proc/self/root, /proc/*/fd) never lead outside.
  Result<Place> Resolve(std::string_view path, bool for_writing = false) const;

  // Opens what Resolve found, below its root and without following a symlink that was put there
  // since. Never blocks (FIFOs) and refuses what is no regular file.
  Result<UniqueFd> OpenRegular(const Place& place) const;
  Result<UniqueFd> OpenDirectory(const Place& place) const;
  // Whole content; kInvalid when larger than `bytes_max`, naming both sizes.
  Result<std::string> Read(const Place& place, uint64_t bytes_max) const;
  // Parents are made (0755); temp file beside the target, fsync, rename; the mode of an existing
  // file is kept, a new one gets 0666 & ~umask. Nothing half-written stays.
  Status WriteAtomic(const Place& place, std::string_view bytes) const;

  const std::vector<std::string>& paths() const;  // real paths, in order
  const std::string& cwd() const;

  // Opens by the component-wise walk from now on, as where openat2 is missing. For tests.
  void ForceWalk();

 private:
  struct Impl;
  explicit Roots(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// For files named by the operator (spec, prompts, prices), not by the model: follows symlinks,
// refuses what is no regular file, never blocks, caps the size. kNotFound when it is missing.
Result<std::string> ReadRegularFile(const std::string& path, uint64_t bytes_max);
Status WriteFileAtomic(const std::string& path, std::string_view bytes, int mode);

// A fresh private folder (0700) below TMPDIR; removed with everything in it when the object dies.
class PrivateFolder {
 public:
  static Result<PrivateFolder> Make(const std::string& tmpdir);
  PrivateFolder(PrivateFolder&&) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) noexcept;
  ~PrivateFolder();
  const std::string& path() const { return path_; }

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Lexical helpers; no file system.
std::string JoinPath(std::string_view folder, std::string_view path);  // absolute `path` wins
std::string CleanPath(std::string_view path);                          // removes ., .., //

}  // namespace norma
