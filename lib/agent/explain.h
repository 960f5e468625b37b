// What a spec means for the tools, without running anything: for `norma check` and `norma explain`.
// The verdicts come from the same Judge that a run uses.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/policy/policy.h"
#include "lib/spec/run_spec.h"

namespace norma::agent {

struct ToolVerdict {
  std::string tool;
  bool offered = true;  // false: a deny rule names the whole tool
  Verdict verdict;      // for a usual call
};

struct CheckReport {
  std::vector<ToolVerdict> tools;
  std::string worst_case;  // one line for people
  std::string policy_hash;
};

CheckReport Check(const spec::RunSpec& spec);

struct Explanation {
  Verdict verdict;
  std::string message;  // what the model would be told
};

// kUsage when there is no such tool or `input` does not fit its schema; `cwd` is absolute.
Result<Explanation> Explain(const spec::RunSpec& spec, const std::string& tool,
                            const std::string& input, const std::string& cwd,
                            const std::vector<std::string>& protected_paths);

// "a deny rule", "mode bypassPermissions", …: the rows of spec/40 §1.2.
std::string StageText(int stage);

}  // namespace norma::agent
