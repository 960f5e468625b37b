// Where the prompt comes from (PRODUCT: "Prompt"): -p, --prompt-file, the spec, else stdin. With a
// prompt from elsewhere stdin is never touched, so that a shell loop keeps its lines.
#pragma once

#include <string>

#include "cmd/norma/flags.h"
#include "cmd/norma/process_state.h"
#include "lib/base/result.h"
#include "lib/spec/run_spec.h"

namespace norma::cmd {

struct Prompt {
  std::string text;
  bool was_repaired = false;  // invalid UTF-8 became U+FFFD
};

// kUsage for a blank, missing or oversized one; kTimeout and kCancelled while waiting for stdin.
Result<Prompt> FindPrompt(const RunFlags& flags, const spec::RunSpec& spec, MonoTime deadline,
                          ProcessState& process);

}  // namespace norma::cmd
