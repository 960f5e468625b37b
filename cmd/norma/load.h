// Loads a spec with the flags of the command line, the same way for run, check and explain.
#pragma once

#include <string>

#include "cmd/norma/flags.h"
#include "cmd/norma/process_state.h"
#include "lib/base/result.h"
#include "lib/spec/load.h"

namespace norma::cmd {

struct LoadedSpec {
  spec::Loaded loaded;
  std::string cwd;        // absolute: --cwd or the current folder
  std::string spec_path;  // absolute
};

Result<LoadedSpec> LoadSpec(const SpecFlags& flags, const ProcessState& process);

// Every tool name a rule may use, whether this build has the tool or not.
std::vector<std::string> KnownTools();

}  // namespace norma::cmd
