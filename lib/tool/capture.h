// Shared by tools whose result may be longer than its budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/tool/tool.h"

namespace norma::tool {

// A fresh name in the run's private folder; "" when there is none. The file is not made.
std::string NextSpillPath(const ToolEnv& env);

// As the model should spell it: relative when it lies in the working folder.
std::string ShownPath(const std::string& path, const ToolEnv& env);

// Start and end of a longer text with a marker between them that says how many of its `bytes` are
// missing and where the whole is (`spill_path`, may be empty). Cuts code points off that `head` and
// `tail` hold only in part.
std::string JoinCut(std::string_view head, std::string_view tail, uint64_t bytes,
                    const std::string& spill_path, const ToolEnv& env);

}  // namespace norma::tool
