// norma run: spec, key, prompt, then one run. Everything that can be refused is refused before the
// ledger is made.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

#include "cmd/norma/commands.h"
#include "cmd/norma/load.h"
#include "cmd/norma/mouth.h"
#include "cmd/norma/prompt.h"
#include "cmd/norma/stdio.h"
#include "lib/agent/environment.h"
#include "lib/agent/run.h"
#include "lib/base/text.h"
#include "lib/io/files.h"
#include "lib/io/http.h"
#include "lib/io/process.h"
#include "lib/ledger/redactor.h"

namespace norma::cmd {
namespace {

constexpr Millis kTickLive{1'000};
constexpr Millis kTickPlain{25'000};  // a heartbeat at least every 30 s
constexpr uint64_t kKeyBytesMax = 64 << 10;

int ExitOf(const Error& error, int signal) {
  switch (error.code) {
    case Code::kTimeout:
      return ExitCodeOf(EndReason::kTimeout);
    case Code::kCancelled:
      return ExitCodeOf(EndReason::kAbortedStreaming, signal);
    case Code::kInternal:
      return ExitCodeOf(EndReason::kInternal);
    case Code::kUsage:
    case Code::kSpec:
    case Code::kIo:
    case Code::kNotFound:
    case Code::kDenied:
    case Code::kInvalid:
    case Code::kNetwork:
    case Code::kModel:
    case Code::kContextFull:
    case Code::kReplayMiss:
    case Code::kBudget:
    case Code::kLedger:
      break;  // nothing was started: what is wrong is what the caller gave us
  }
  return ExitCodeOf(EndReason::kUsage);
}

Result<ledger::Redactor> RedactorFor(const spec::RunSpec& spec, const std::string& key,
                                     const agent::Environment& environment) {
  std::vector<std::pair<std::string, std::string>> secrets;
  if (!key.empty()) secrets.emplace_back(agent::KeyVariable(spec), key);
  for (const std::string& name : agent::SecretNames(spec, environment)) {
    const auto value = agent::Lookup(environment, name);
    if (value.has_value() && *value != key) secrets.emplace_back(name, *value);
  }
  return ledger::Redactor::Make(secrets, spec.redact.patterns);
}

std::string LedgerPath(const spec::RunSpec& spec, const std::string& cwd,
                       const std::string& run_id) {
  return CleanPath(JoinPath(cwd, ReplaceAll(spec.ledger.path, "{run}", run_id)));
}

std::string FindRipgrep(const spec::RunSpec& spec, const agent::Environment& environment) {
  const std::string disabled = agent::Lookup(environment, "NORMA_DISABLE_RIPGREP").value_or("");
  if (spec.tools.ripgrep == "never" || !(disabled.empty() || disabled == "0")) return "";
  return FindProgram("rg", agent::Lookup(environment, "PATH").value_or(""));
}

Result<agent::RunInput> BuildInput(const RunFlags& flags, const LoadedSpec& spec,
                                   ProcessState& process) {
  const spec::RunSpec& run_spec = spec.loaded.spec;
  std::optional<std::string> key_text;
  if (!run_spec.model.api_key_file.empty()) {
    NORMA_ASSIGN(key_text, ReadRegularFile(run_spec.model.api_key_file, kKeyBytesMax));
  }
  agent::RunInput input;
  NORMA_ASSIGN(input.provider, agent::ProviderFor(run_spec, process.environment, key_text));
  const MonoTime deadline =
      EarlierOf(kNever, process.started, run_spec.budgets.wall.value_or(Millis{0}));
  NORMA_ASSIGN(Prompt prompt, FindPrompt(flags, run_spec, deadline, process));
  input.spec = &run_spec;
  input.version = NORMA_VERSION;
  input.run_id = process.NewRunId();
  input.prompt = std::move(prompt.text);
  input.prompt_was_repaired = prompt.was_repaired;
  input.cwd = spec.cwd;
  input.ledger_path = LedgerPath(run_spec, spec.cwd, input.run_id);
  input.temp_folder = agent::Lookup(process.environment, "TMPDIR").value_or("/tmp");
  input.host = process.host;
  input.environment = process.environment;
  input.protected_paths = {spec.spec_path};
  input.ripgrep = FindRipgrep(run_spec, process.environment);
  input.started = process.started;
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

  Result<agent::RunInput> input = BuildInput(flags, spec.value(), process);
  if (!input.ok()) return refuse(input.error());
  Result<ledger::Redactor> redactor =
      RedactorFor(run_spec, input.value().provider.api_key, process.environment);
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

  const std::unique_ptr<Transport> transport = NewCurlTransport(SystemClock());
  agent::Seams seams;
  seams.clock = &SystemClock();
  seams.transport = transport.get();
  seams.open_ledger = OpenAppendFile;
  const agent::RunResult result = RunOne(input.value(), seams, process.cancel, mouth);
  const int exit_code = mouth.Close(result);
  if (result.has_stuck_worker) _exit(exit_code);
  return exit_code;
}

}  // namespace norma::cmd
