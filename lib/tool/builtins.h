// One maker per built-in tool; builtin.cc lists them.
#pragma once

#include "lib/tool/tool.h"

namespace norma::tool {

Tool ReadTool();
Tool WriteTool();
Tool EditTool();
Tool MultiEditTool();
Tool LsTool();
Tool GlobTool();
Tool GrepTool();
Tool BashTool();
Tool SleepTool();
Tool TodoWriteTool();

}  // namespace norma::tool
