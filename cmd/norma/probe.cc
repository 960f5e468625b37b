// norma probe model: one small real call through the same machinery as a run, ledger and budgets
// included, so that a person setting up sees at once whether key, URL, proxy and prices are right.
#include <fmt/core.h>
#include <unistd.h>

#include <optional>

#include "cmd/norma/commands.h"
#include "cmd/norma/load.h"
#include "cmd/norma/prepare.h"
#include "cmd/norma/stdio.h"
#include "lib/agent/environment.h"
#include "lib/agent/run.h"
#include "lib/base/json.h"
#include "lib/base/money.h"

namespace norma::cmd {
namespace {

constexpr std::string_view kPrompt = "Reply with the word ok.";
constexpr int64_t kTokensMax = 16;
constexpr Millis kWriteGrace{1'000};

// Keeps the records that say how the call went.
class Listener : public agent::Observer {
 public:
  void OnRecord(const ledger::Record& record, std::string_view) override {
    if (const auto* reply = std::get_if<ledger::ReplyReceived>(&record)) replied = *reply;
    if (const auto* failure = std::get_if<ledger::RequestFailed>(&record)) failed = *failure;
    if (const auto* started = std::get_if<ledger::RunStarted>(&record))
      endpoint = started->endpoint;
    if (const auto* warning = std::get_if<ledger::Warning>(&record)) {
      Complain(fmt::format("norma: warning: {}\n", warning->message));
    }
  }
  void OnTick(std::string_view doing) override { Complain(fmt::format("norma: {}\n", doing)); }
  std::string Deliver(const agent::RunResult&) override { return ""; }

  std::string endpoint;
  std::optional<ledger::ReplyReceived> replied;
  std::optional<ledger::RequestFailed> failed;
};

// What the spec says about the model, and nothing else of it: no tools, no system prompt, nothing
// that asks twice. Budgets stay in force.
void MakeSmall(spec::RunSpec& spec) {
  spec.tools.enabled.clear();
  spec.system.clear();
  spec.settlement.reset();
  spec.model.max_tokens = kTokensMax;
  spec.model.thinking.clear();  // a thinking budget would have to be below max_tokens
  spec.model.thinking_budget = 0;
}

std::string Text(const Listener& heard, const agent::RunResult& result, std::string_view model) {
  std::string out = fmt::format("model       {}\nendpoint    {}\n", model, heard.endpoint);
  const auto line = [&](std::string_view name, const std::string& value) {
    out += fmt::format("{:<11} {}\n", name, value);
  };
  if (heard.replied.has_value()) {
    const ledger::ReplyReceived& reply = *heard.replied;
    line("status", std::to_string(reply.status));
    line("first byte", fmt::format("{} ms", reply.first_byte_ms));
    line("total", fmt::format("{} ms", reply.duration_ms));
    if (!reply.proxy.empty()) line("proxy", reply.proxy);
    line("usage", fmt::format("{} in, {} out{}", reply.usage.input, reply.usage.output,
                              reply.estimated ? " (estimated)" : ""));
    line("cost", reply.cost.has_value() ? "$" + FormatUsd(*reply.cost)
                                        : "unknown (no price for this model)");
    line("stop", reply.stop_reason);
    line("answer", result.text);
  } else if (heard.failed.has_value()) {
    line("status", heard.failed->status == 0 ? "none" : std::to_string(heard.failed->status));
    line("failure", heard.failed->error_class);
    line("total", fmt::format("{} ms", heard.failed->duration_ms));
  }
  line("ledger", result.ledger_path);
  return out;
}

std::string Json(const Listener& heard, const agent::RunResult& result, std::string_view model) {
  json::Writer out;
  out.BeginObject().Field("model", model).Field("endpoint", heard.endpoint);
  const int64_t status = heard.replied  ? heard.replied->status
                         : heard.failed ? heard.failed->status
                                        : 0;
  out.Field("status", status);
  if (heard.replied.has_value()) {
    out.Field("first_byte_ms", heard.replied->first_byte_ms);
    out.Field("duration_ms", heard.replied->duration_ms);
    out.Field("stop_reason", heard.replied->stop_reason);
    out.Field("proxy", heard.replied->proxy);
  }
  out.Key("result").Raw(ResultJson(result, false)).EndObject();
  return out.Take() + "\n";
}

}  // namespace

int ProbeModelCommand(const ProbeFlags& flags, ProcessState& process) {
  const auto refuse = [&](const Error& error) {
    Complain(fmt::format("norma: {}\n", error.message));
    return ExitOf(error, process.cancel.cause());
  };
  Result<LoadedSpec> spec = LoadSpec(flags.spec, process);
  if (!spec.ok()) return refuse(spec.error());
  spec::RunSpec& run_spec = spec.value().loaded.spec;
  process.EraseFromEnvironment(agent::SecretNames(run_spec, process.environment));
  MakeSmall(run_spec);
  Result<agent::RunInput> input = BuildInput(spec.value(), process, false);
  if (!input.ok()) return refuse(input.error());
  Result<ledger::Redactor> redactor =
      RedactorFor(run_spec, input.value().provider, process.environment);
  if (!redactor.ok()) return refuse(redactor.error());
  input.value().redactor = &redactor.value();
  input.value().prompt = kPrompt;
  input.value().one_request = true;
  Result<Network> network = OpenNetwork({}, {}, run_spec, process.cwd, redactor.value());
  if (!network.ok()) return refuse(network.error());
  agent::Seams seams;
  seams.clock = &SystemClock();
  seams.transport = network.value().transport.get();
  seams.open_ledger = OpenAppendFile;
  seams.rate_limiter = network.value().limiter.get();
  Listener heard;
  const agent::RunResult result = RunOne(input.value(), seams, process.cancel, heard);
  if (result.reason != EndReason::kCompleted) {
    Complain(fmt::format("norma: {}: {}\n", RowOf(result.reason).name, result.message));
  }
  const std::string shown = flags.json ? Json(heard, result, run_spec.model.name)
                                       : Text(heard, result, run_spec.model.name);
  const WriteOutcome written =
      WriteAll(STDOUT_FILENO, redactor.value().Clean(shown), process.cancel, kWriteGrace);
  const bool lost = written != WriteOutcome::kDone && result.exit_code == 0;
  return lost ? ExitCodeOf(EndReason::kAbortedOutput) : result.exit_code;
}

}  // namespace norma::cmd
