// norma run: spec, key, prompt, then one run. Everything that can be refused is refused before the
// ledger is made.
#include <fmt/core.h>
#include <unistd.h>

#include "cmd/norma/commands.h"
#include "cmd/norma/load.h"
#include "cmd/norma/mouth.h"
#include "cmd/norma/prepare.h"
#include "cmd/norma/prompt.h"
#include "cmd/norma/stdio.h"
#include "lib/agent/environment.h"
#include "lib/agent/run.h"

namespace norma::cmd {
namespace {

constexpr Millis kTickLive{1'000};
constexpr Millis kTickPlain{25'000};  // a heartbeat at least every 30 s

// The folder of --record or --replay is not usable: the run ends before it began.
int RefuseNetwork(const Error& error, const agent::RunInput& input, Mouth& mouth) {
  agent::RunResult result;
  result.run = input.run_id;
  result.reason = EndReason::kSetupFailed;
  result.exit_code = ExitCodeOf(result.reason);
  result.message = error.message;
  return mouth.Close(result);
}

Result<agent::RunInput> InputFor(const RunFlags& flags, const LoadedSpec& spec,
                                 ProcessState& process) {
  const spec::RunSpec& run_spec = spec.loaded.spec;
  NORMA_ASSIGN(agent::RunInput input, BuildInput(spec, process, flags.replay.has_value()));
  const MonoTime deadline =
      EarlierOf(kNever, process.started, run_spec.budgets.wall.value_or(Millis{0}));
  NORMA_ASSIGN(Prompt prompt, FindPrompt(flags, run_spec, deadline, process));
  input.prompt = std::move(prompt.text);
  input.prompt_was_repaired = prompt.was_repaired;
  input.replay_folder = flags.replay.value_or("");
  return input;
}

}  // namespace

int RunCommand(const RunFlags& flags, ProcessState& process) {
  const auto refuse = [&](const Error& error) {
    Complain(fmt::format("norma: {}\n", error.message));
    return ExitOf(error, process.cancel.cause());
  };
  Result<LoadedSpec> spec = LoadSpec(flags.spec, process);
  if (!spec.ok()) return refuse(spec.error());
  const spec::RunSpec& run_spec = spec.value().loaded.spec;
  process.EraseFromEnvironment(agent::SecretNames(run_spec, process.environment));

  Result<agent::RunInput> input = InputFor(flags, spec.value(), process);
  if (!input.ok()) return refuse(input.error());
  Result<ledger::Redactor> redactor =
      RedactorFor(run_spec, input.value().provider, process.environment);
  if (!redactor.ok()) return refuse(redactor.error());
  input.value().redactor = &redactor.value();

  const std::optional<Millis> wall = run_spec.budgets.wall;
  const MonoTime deadline = wall.has_value()
                                ? EarlierOf(kNever, process.started, *wall + run_spec.budgets.grace)
                                : kNever;
  Mouth mouth(flags, redactor.value(), process.cancel, process.stdout_was_closed, deadline);
  input.value().tick = mouth.is_live() ? kTickLive : kTickPlain;
  input.value().watch_output_fd = STDOUT_FILENO;
  if (process.stdout_was_closed) process.cancel.Trip(Cancel::kOutput);

  Result<Network> network =
      OpenNetwork(flags.record, flags.replay, run_spec, process.cwd, redactor.value());
  if (!network.ok()) return RefuseNetwork(network.error(), input.value(), mouth);
  agent::Seams seams;
  seams.clock = &SystemClock();
  seams.transport = network.value().transport.get();
  seams.open_ledger = OpenAppendFile;
  seams.rate_limiter = network.value().limiter.get();
  const agent::RunResult result = RunOne(input.value(), seams, process.cancel, mouth);
  const int exit_code = mouth.Close(result);
  if (result.has_stuck_worker) _exit(exit_code);
  return exit_code;
}

}  // namespace norma::cmd
