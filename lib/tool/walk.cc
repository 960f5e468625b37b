// See walk.h.
#include "lib/tool/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "lib/tool/gitignore.h"
#include "lib/tool/tool_path.h"

namespace norma::tool {
namespace {

constexpr std::array<std::string_view, 3> kSkippedFolders = {".git", "node_modules", "vendor"};
constexpr uint64_t kIgnoreBytesMax = 1 << 20;  // a larger .gitignore is not read

FileKind KindOf(int folder_fd, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return FileKind::kRegular;
    case DT_DIR:
      return FileKind::kDirectory;
    case DT_UNKNOWN: {  // some file systems do not say
      struct stat info {};
      if (fstatat(folder_fd, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) return FileKind::kNone;
      return S_ISREG(info.st_mode)   ? FileKind::kRegular
             : S_ISDIR(info.st_mode) ? FileKind::kDirectory
                                     : FileKind::kOther;
    }
    default:
      return FileKind::kOther;
  }
}

using LevelPtr = std::shared_ptr<const IgnoreLevel>;

struct PendingFolder {
  std::string below;  // relative to the top, "" for the top itself
  LevelPtr rules;     // of the folders above it
};

class Walker {
 public:
  Walker(const Roots& roots, const Place& top, const WalkOptions& options,
         const std::function<void(const WalkEntry&)>& visit)
      : roots_(roots), top_(top), options_(options), visit_(visit) {
    if (top.below != ".") prefix_ = top.below + "/";
  }

  // Rules of the folders between the tools root and the top, the top's own not among them.
  LevelPtr OuterRules() const {
    if (!options_.gitignore || prefix_.empty()) return nullptr;
    Place root;
    root.root = top_.root;
    root.below = ".";
    root.real = roots_.paths().at(top_.root);
    LevelPtr level;
    for (size_t slash = 0; slash != std::string::npos;) {
      const std::string folder = prefix_.substr(0, slash);
      if (folder.size() + 1 >= prefix_.size()) break;
      level = WithRules(level, folder, root, folder.empty() ? "" : folder + "/");
      slash = prefix_.find('/', slash == 0 ? 0 : slash + 1);
    }
    return level;
  }

  // One folder: visits its entries, puts its folders on the stack.
  Status Enter(const PendingFolder& folder, std::vector<PendingFolder>* stack,
               WalkOutcome* outcome) {
    const Place place = folder.below.empty() ? top_ : PlaceBelow(top_, folder.below);
    NORMA_ASSIGN(const UniqueFd fd, roots_.OpenDirectory(place));
    bool cut = false;
    NORMA_ASSIGN(const std::vector<FolderEntry> entries,
                 ListFolder(fd.get(), options_.entries_max - seen_, &cut));
    outcome->too_many = outcome->too_many || cut;
    seen_ += entries.size();
    const std::string base = folder.below.empty() ? "" : folder.below + "/";
    LevelPtr rules = folder.rules;
    if (options_.gitignore && HasIgnoreFile(entries)) {
      std::string path = prefix_ + folder.below;
      if (!path.empty() && path.back() == '/') path.pop_back();
      rules = WithRules(rules, path, top_, base);
    }
    // Backwards, so that the stack gives folders in order.
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      const bool is_folder = entry->kind == FileKind::kDirectory;
      if (entry->kind == FileKind::kNone) continue;
      if (is_folder && std::find(kSkippedFolders.begin(), kSkippedFolders.end(), entry->name) !=
                           kSkippedFolders.end()) {
        continue;
      }
      std::string below = base + entry->name;
      if (rules != nullptr && IsIgnored(rules.get(), prefix_ + below, is_folder)) continue;
      if (is_folder) {
        stack->push_back({std::move(below), rules});
      } else {
        visit_({below, entry->name, entry->kind, fd.get()});
      }
    }
    return {};
  }

  bool Full() const { return seen_ >= options_.entries_max; }

 private:
  static bool HasIgnoreFile(const std::vector<FolderEntry>& entries) {
    return std::any_of(entries.begin(), entries.end(), [](const FolderEntry& entry) {
      return entry.name == ".gitignore" && entry.kind == FileKind::kRegular;
    });
  }

  // `folder` is relative to the tools root; the file stands at `from`/`prefix`.gitignore.
  LevelPtr WithRules(LevelPtr outer, const std::string& folder, const Place& from,
                     const std::string& prefix) const {
    const auto text = roots_.Read(PlaceBelow(from, prefix + ".gitignore"), kIgnoreBytesMax);
    if (!text.ok()) return outer;
    IgnoreFile file = IgnoreFile::Parse(text.value());
    if (file.empty()) return outer;
    return std::make_shared<const IgnoreLevel>(
        IgnoreLevel{std::move(outer), folder, std::move(file)});
  }

  const Roots& roots_;
  const Place& top_;
  const WalkOptions& options_;
  const std::function<void(const WalkEntry&)>& visit_;
  std::string prefix_;  // the top's path below the tools root, with a slash, "" for the root
  size_t seen_ = 0;
};

}  // namespace

Result<std::vector<FolderEntry>> ListFolder(int fd, size_t entries_max, bool* cut) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);  // fdopendir takes its descriptor over
  DIR* folder = copy < 0 ? nullptr : fdopendir(copy);
  if (folder == nullptr) {
    const int error = errno;
    if (copy >= 0) close(copy);
    return Error{Code::kIo, strerror(error)};
  }
  std::vector<FolderEntry> entries;
  int error = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(folder);
    if (entry == nullptr) {
      error = errno;
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entries.size() >= entries_max) {
      *cut = true;
      break;
    }
    entries.push_back({std::string(name), KindOf(fd, *entry)});
  }
  closedir(folder);
  if (error != 0 && entries.empty()) return Error{Code::kIo, strerror(error)};
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

bool Stat(const WalkEntry& entry, struct stat* info) {
  return fstatat(entry.folder_fd, std::string(entry.name).c_str(), info, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<WalkOutcome> Walk(const Roots& roots, const Place& top, const WalkOptions& options,
                         Clock& clock, const Cancel& cancel,
                         const std::function<void(const WalkEntry&)>& visit) {
  WalkOutcome outcome;
  Walker walker(roots, top, options, visit);
  std::vector<PendingFolder> stack = {{"", walker.OuterRules()}};
  while (!stack.empty()) {
    outcome.cancelled = cancel.tripped();
    outcome.timed_out = clock.Now() >= options.deadline;
    outcome.too_many = outcome.too_many || walker.Full();
    if (outcome.cancelled || outcome.timed_out || outcome.too_many) break;
    const PendingFolder folder = std::move(stack.back());
    stack.pop_back();
    const Status entered = walker.Enter(folder, &stack, &outcome);
    if (!entered.ok()) {
      if (folder.below.empty()) return entered.error();
      ++outcome.folders_unreadable;
    }
  }
  return outcome;
}

std::string DescribeGaps(const WalkOutcome& outcome, const WalkOptions& options) {
  if (outcome.cancelled) return "incomplete: the call was cancelled";
  if (outcome.timed_out) return "incomplete: the time limit was reached; name a smaller folder";
  if (outcome.too_many) {
    return fmt::format("incomplete: stopped after {} entries; name a smaller folder",
                       options.entries_max);
  }
  if (outcome.folders_unreadable > 0) {
    return fmt::format("incomplete: {} folder(s) could not be read", outcome.folders_unreadable);
  }
  return "";
}

}  // namespace norma::tool
