// One function a subcommand; each gives the process's exit code (norma help exit-codes).
#pragma once

#include <string>
#include <vector>

#include "cmd/norma/flags.h"
#include "cmd/norma/process_state.h"

namespace norma::cmd {

int RunCommand(const RunFlags& flags, ProcessState& process);
int ProbeModelCommand(const ProbeFlags& flags, ProcessState& process);
int CheckCommand(const SpecFlags& flags, bool as_json, ProcessState& process);
int ExplainCommand(const ExplainFlags& flags, ProcessState& process);
int LedgerVerifyCommand(const std::vector<std::string>& files);
int LedgerCostCommand(const std::vector<std::string>& files, bool as_json);
int SchemaCommand(const std::string& what);
int CompletionCommand(const std::string& shell);
int HelpExitCodesCommand();

// Every command and flag by name, for completions and near misses.
const std::vector<std::string>& CommandNames();
const std::vector<std::string>& FlagNames();

}  // namespace norma::cmd
