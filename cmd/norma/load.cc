#include "cmd/norma/load.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include "lib/agent/environment.h"
#include "lib/io/files.h"
#include "lib/llm/provider.h"
#include "lib/tool/tool.h"

namespace norma::cmd {
namespace {

std::vector<std::string> BuiltinNames() {
  std::vector<std::string> names;
  for (const tool::Tool& tool : tool::BuiltinTools()) names.push_back(tool.name);
  return names;
}

}  // namespace

std::vector<std::string> KnownTools() {
  std::vector<std::string> names = BuiltinNames();
  for (const char* later :
       {"NotebookEdit", "WebFetch", "web_search", "TaskOutput", "TaskStop", "TaskList", "Monitor",
        "Agent", "Skill", "RecallMemory", "RecordMemory", "EnterPlanMode", "ExitPlanMode",
        "SearchExtraTools", "ExecuteExtraTool", "Compress"}) {
    names.emplace_back(later);
  }
  return names;
}

Result<LoadedSpec> LoadSpec(const SpecFlags& flags, const ProcessState& process) {
  LoadedSpec result;
  if (process.cwd.empty()) {
    return Error{Code::kUsage,
                 "the current folder does not exist any more (it was deleted or moved out of "
                 "reach): change to one that does"};
  }
  result.cwd = process.cwd;
  if (flags.cwd.has_value()) {
    result.cwd = CleanPath(JoinPath(process.cwd, *flags.cwd));
    struct stat status {};
    if (stat(result.cwd.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      return Error{Code::kUsage, fmt::format("--cwd {}: there is no such folder", *flags.cwd)};
    }
  }
  result.spec_path = CleanPath(JoinPath(process.cwd, flags.spec));

  spec::LoadInput input;
  input.path = result.spec_path;
  input.display = flags.spec;
  input.sets = flags.sets;
  input.model_name = flags.model;
  input.deadline = flags.deadline;
  if (flags.ledger.has_value()) input.ledger_path = JoinPath(process.cwd, *flags.ledger);
  input.env = [&process](const std::string& name) {
    return agent::Lookup(process.environment, name);
  };
  input.read_file = ReadRegularFile;
  input.known_tools = KnownTools();
  input.builtin_tools = BuiltinNames();
  input.default_tools = BuiltinNames();
  input.formats = llm::WireNames();
  input.formats.emplace_back("script");
  NORMA_ASSIGN(result.loaded, spec::Load(input));
  return result;
}

}  // namespace norma::cmd
