// The table of built-in tools. A list, not self-registration: static initialisers inside a static
// library are dropped by the linker and run in unknown order.
#include "lib/tool/builtins.h"

namespace norma::tool {

const std::vector<Tool>& BuiltinTools() {
  static const std::vector<Tool> tools = {ReadTool(),  WriteTool(),    EditTool(), MultiEditTool(),
                                          LsTool(),    GlobTool(),     GrepTool(), BashTool(),
                                          SleepTool(), TodoWriteTool()};
  return tools;
}

const Tool* FindBuiltin(std::string_view name) {
  for (const Tool& tool : BuiltinTools()) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

}  // namespace norma::tool
