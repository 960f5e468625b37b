// What run and probe share before a ledger is made: key, proxy, redactor, and the way to the
// network (or to a recording). Everything that can be refused is refused here.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cmd/norma/load.h"
#include "cmd/norma/process_state.h"
#include "lib/agent/run.h"
#include "lib/io/record_transport.h"
#include "lib/io/replay_transport.h"
#include "lib/ledger/redactor.h"
#include "lib/llm/rate_limit.h"

namespace norma::cmd {

// The exit code of an error that kept a run from starting.
int ExitOf(const Error& error, int signal);

// Everything but prompt, redactor and mouth. With `replayed` no key is needed: nothing is sent.
Result<agent::RunInput> BuildInput(const LoadedSpec& spec, ProcessState& process, bool replayed);

// Knows the keys, the secrets of the environment and the passwords of proxies.
Result<ledger::Redactor> RedactorFor(const spec::RunSpec& spec, const llm::ProviderConfig& provider,
                                     const agent::Environment& environment);

// The transport of a process as its flags want it, and what it stands on.
struct Network {
  std::unique_ptr<Recording> recording;
  std::unique_ptr<ReplayTape> tape;
  std::unique_ptr<Transport> curl;
  std::unique_ptr<Transport> transport;  // on top
  std::unique_ptr<llm::RateLimiter> limiter;
};

// kIo and kInvalid when the folder of --record or --replay cannot be used. `redactor` must outlive
// it.
Result<Network> OpenNetwork(const std::optional<std::string>& record,
                            const std::optional<std::string>& replay, const spec::RunSpec& spec,
                            const std::string& cwd, const ledger::Redactor& redactor);

}  // namespace norma::cmd
