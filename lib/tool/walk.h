// Lists what lies below a folder, for LS, Glob and Grep. Iterative, one descriptor at a time, never
// through a symlink (each folder is opened below its root as it was resolved), bounded in entries
// and time. Every list is sorted, so that a cut is the same cut on every machine.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/io/files.h"

namespace norma::tool {

struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::kOther;  // of the entry itself: a symlink is kOther
};

// Sorted by name; `.` and `..` left out. Reading stops behind `entries_max` (then *cut is set).
Result<std::vector<FolderEntry>> ListFolder(int fd, size_t entries_max, bool* cut);

struct WalkOptions {
  bool gitignore = false;  // honour .gitignore files from the tools root down
  MonoTime deadline = kNever;
  size_t entries_max = 1'000'000;
};

struct WalkEntry {
  std::string_view below;  // relative to the top, "a/b.txt"
  std::string_view name;
  FileKind kind = FileKind::kOther;
  int folder_fd = -1;  // valid during the visit, for Stat
};
// lstat of an entry under visit.
bool Stat(const WalkEntry& entry, struct stat* info);

struct WalkOutcome {
  bool timed_out = false, cancelled = false, too_many = false;
  uint64_t folders_unreadable = 0;

  bool complete() const { return !timed_out && !cancelled && !too_many && folders_unreadable == 0; }
};

// Visits everything below `top` that is no folder. Folders named .git, node_modules or vendor are
// skipped (but `top` may be one: it was named on purpose), and what .gitignore excludes.
// An error only when `top` itself cannot be read.
Result<WalkOutcome> Walk(const Roots& roots, const Place& top, const WalkOptions& options,
                         Clock& clock, const Cancel& cancel,
                         const std::function<void(const WalkEntry&)>& visit);

// One sentence for people about what was left out, "" when nothing was.
std::string DescribeGaps(const WalkOutcome& outcome, const WalkOptions& options);

}  // namespace norma::tool
