// YAML → RunSpec, strict: every fault of the file is found in one go, as file:line:column with the
// key's path and a did-you-mean. yaml-cpp lives in this room alone. Does not know which tools or
// wire formats exist: the caller hands their names in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/spec/run_spec.h"

namespace norma::spec {

struct LoadInput {
  std::string path;                        // as named on the command line
  std::string display;                     // how messages call it (the path as given)
  std::vector<std::string> sets;           // "path.to.key=VALUE", in order, validated like the file
  std::optional<std::string> model_name;   // --model
  std::optional<std::string> deadline;     // --deadline, sets budgets.wall
  std::optional<std::string> ledger_path;  // --ledger (made absolute by the caller)
  std::function<std::optional<std::string>(const std::string&)> env;  // ${NAME}
  // Regular files only, at most this many bytes: norma::ReadRegularFile. This room opens no file.
  std::function<Result<std::string>(const std::string& path, uint64_t bytes_max)> read_file;
  std::string cwd;  // where relative paths of flags start; empty: the process's
  std::vector<std::string> known_tools;    // every name a rule may use, enabled or not
  std::vector<std::string> builtin_tools;  // those of them that exist in this build
  std::vector<std::string> default_tools;  // the default of tools.enabled
  std::vector<std::string> formats;        // wire formats that exist in this build, and "script"
};

// Where an effective value comes from, for `norma check`.
struct Origin {
  std::string key;    // "budgets.turns"
  std::string value;  // as a person writes it; secrets never
  std::string from;   // "spec.yaml:12", "--set", "--deadline", "environment", "default"
};

struct Loaded {
  RunSpec spec;
  std::vector<Origin> origins;        // in the order of PRODUCT §3
  std::vector<std::string> warnings;  // for stderr and `norma check`
};

// kSpec: all faults, one a line, each `file:line:column: path: what; what to do`. kUsage when the
// file itself cannot be read. The spec must be a regular file of at most 4 MiB.
Result<Loaded> Load(const LoadInput& input);

// JSON Schema of the run spec, for `norma schema spec`: generated from the table that Load checks
// against, with every key, type, default and unit.
std::string SpecSchemaJson(const std::vector<std::string>& known_tools);

// "250ms", "10s", "5m", "2h": kInvalid otherwise. Also for --deadline.
Result<Millis> ParseDuration(std::string_view text);

}  // namespace norma::spec
