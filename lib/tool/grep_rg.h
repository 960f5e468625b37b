// ripgrep as a shortcut in front of the built-in search: it is asked which of a list of files hold
// a fixed text, and only those are scanned. What is shown never comes from it, so the two backends
// cannot differ.
#pragma once

#include <vector>

#include "lib/tool/grep_files.h"

namespace norma::tool {

// The patterns ripgrep may be used for: its list of files is then never smaller than the true one.
bool RipgrepSafe(const RequiredTexts& required);
// Those it is used for: where the built-in search is not as fast by itself.
bool RipgrepPays(const RequiredTexts& required, bool ignore_case);

// Marks as clean the pending files that cannot match. False when ripgrep could not answer for all
// of them (not started, failed, an unreadable file): those stay pending, for the built-in search.
bool SkipByRipgrep(const GrepSearch& search, ToolContext& context, std::vector<GrepFile>* files);

}  // namespace norma::tool
