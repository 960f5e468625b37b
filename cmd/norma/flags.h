// What the command line said, as plain data; main.cc fills it, the subcommands read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace norma::cmd {

enum class OutputFormat { kText, kJson, kStreamJson };

struct SpecFlags {
  std::string spec;
  std::vector<std::string> sets;
  std::optional<std::string> model;
  std::optional<std::string> deadline;
  std::optional<std::string> ledger;
  std::optional<std::string> cwd;
};

struct RunFlags {
  SpecFlags spec;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  OutputFormat output = OutputFormat::kText;
  bool quiet = false;
  bool verbose = false;
  std::optional<std::string> record;
  std::optional<std::string> replay;
};

struct ProbeFlags {
  SpecFlags spec;
  bool json = false;
};

struct ExplainFlags {
  SpecFlags spec;
  std::string tool;
  std::string input;
};

}  // namespace norma::cmd
