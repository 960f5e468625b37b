// The middle of a Grep call: which files are looked at, and what a scan of each says. The scan runs
// on a few threads and keeps no text; what a page shows is read again, so that memory does not grow
// with the number of matches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tool/grep_filter.h"
#include "lib/tool/grep_format.h"
#include "lib/tool/grep_scan.h"
#include "lib/tool/tool.h"
#include "lib/tool/walk.h"

namespace norma::tool {

enum class GrepMode { kFiles, kContent, kCount };

enum class ScanState : uint8_t { kPending, kClean, kMatched, kBinary, kTooLarge, kUnreadable };

struct GrepFile {
  std::string below;  // as it is shown
  ScanState state = ScanState::kPending;
  uint64_t matches = 0;       // matching lines (kCount)
  uint64_t output_lines = 0;  // what it adds to the output
};

// One call's search: where, for what, until when.
struct GrepSearch {
  const ToolEnv& env;
  const Cancel& cancel;
  MonoTime deadline;
  Place top;  // a folder, or the one file
  const LineMatcher& matcher;
  GrepMode mode = GrepMode::kFiles;
  ContentStyle style;

  bool Stopped() const { return cancel.tripped() || env.clock->Now() >= deadline; }
  Place PlaceOf(const GrepFile& file) const;
};

inline constexpr uint64_t kGrepFileBytesMax = 16ull << 20;
inline constexpr size_t kGrepProbeBytes = 8'000;  // a NUL in them makes a file binary

// The regular files below the top that pass the filter, sorted bytewise by path. With `sizes` those
// over the cap are marked already.
struct GrepList {
  std::vector<GrepFile> files;
  WalkOutcome walk;
};
Result<GrepList> ListGrepFiles(const GrepSearch& search, const GrepFilter& filter,
                               const WalkOptions& options, bool sizes);

// Settles every file that is still pending, unless the time is over.
void ScanGrepFiles(const GrepSearch& search, std::vector<GrepFile>* files);

// The content lines of one file into the page; `first` is the index of its first output line. False
// when the search was stopped meanwhile.
bool ShowGrepFile(const GrepSearch& search, const GrepFile& file, uint64_t first, Page* page);

}  // namespace norma::tool
