#include "lib/agent/run.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <system_error>

#include "lib/agent/environment.h"
#include "lib/agent/gate.h"
#include "lib/agent/loop.h"
#include "lib/agent/requester.h"
#include "lib/agent/scope.h"
#include "lib/agent/toolset.h"
#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/io/files.h"
#include "lib/io/process.h"
#include "lib/llm/base_url.h"
#include "lib/tool/read_log.h"

namespace norma::agent {
namespace {

// Children that outlive the run get this long between TERM and KILL.
constexpr Millis kStrayGrace{300};

RunResult Finish(const RunInput& input, const Seams& seams, Ending ending, int signal) {
  RunResult result;
  result.run = input.run_id;
  result.reason = ending.reason;
  result.exit_code = ExitCodeOf(ending.reason, signal);
  result.message = input.redactor->Clean(ending.message);
  if (ending.limit.has_value()) {
    result.limit_name = ending.limit->name;
    result.limit_value = ending.limit->value;
  }
  result.duration = std::chrono::duration_cast<Millis>(seams.clock->Now() - input.started);
  return result;
}

std::string BudgetsJson(const spec::RunSpec& spec) {
  const BudgetLimits& limits = spec.budgets;
  json::Writer out;
  out.BeginObject();
  const auto number = [&](std::string_view key, const std::optional<int64_t>& value) {
    if (value.has_value()) out.Field(key, *value);
  };
  number("turns", limits.turns);
  if (limits.wall.has_value()) {
    out.Field("wall", FormatMillis(*limits.wall)).Field("grace", FormatMillis(limits.grace));
  }
  if (limits.cost.has_value()) out.Field("cost_usd", FormatUsd(*limits.cost));
  if (limits.settlement_reserve > 0) {
    out.Field("settlement_reserve_usd", FormatUsd(limits.settlement_reserve));
  }
  number("requests", limits.requests);
  number("input_tokens", limits.input_tokens);
  number("output_tokens", limits.output_tokens);
  number("calls", limits.calls);
  number("actions", limits.actions);
  if (!limits.per_tool.empty()) {
    out.Key("per_tool").BeginObject();
    for (const auto& [tool, limit] : limits.per_tool) {
      out.Key(tool).BeginObject();
      number("calls", limit.calls);
      if (limit.wall.has_value()) out.Field("wall", FormatMillis(*limit.wall));
      out.EndObject();
    }
    out.EndObject();
  }
  out.EndObject();
  return out.Take();
}

// No tool may write to this file, under none of its names: as it is spelled, where it really is,
// and what it is (a hard link).
void Protect(const std::string& path, tool::ToolEnv& env) {
  env.protected_paths.push_back(path);
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return;
  env.protected_paths.push_back(real.string());
  struct stat info {};
  if (stat(real.c_str(), &info) == 0) env.protected_files.emplace_back(info.st_dev, info.st_ino);
}

// Everything one run owns, in the order it is built. On the heap: when a tool worker is stuck it is
// left alone instead of being destroyed under the worker.
class Run {
 public:
  Run(const RunInput& input, const Seams& seams, Cancel& cancel, Observer& observer)
      : input_(input), seams_(seams), cancel_(cancel), observer_(observer) {}

  RunResult Execute();

 private:
  Status SetUp();
  Status OpenLedger();
  tool::ToolEnv MakeEnv();
  RunScope MakeScope();
  void RecordStart(RunScope& scope);
  LoopOutcome RunLoop();
  void DeliverAnswer(RunResult& result);
  RunResult End(LoopOutcome outcome);

  const RunInput& input_;
  const Seams& seams_;
  Cancel& cancel_;
  Observer& observer_;
  std::optional<PrivateFolder> folder_;
  std::optional<Roots> roots_;
  tool::TodoList todos_;
  tool::ReadLog reads_;
  std::unique_ptr<llm::Provider> provider_;
  std::unique_ptr<ledger::Ledger> ledger_;
  std::optional<Purse> purse_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  // A worker that is stuck holds on to these.
  std::optional<tool::ToolEnv> env_;
  std::optional<RunState> state_;
  std::optional<RunScope> scope_;
  std::optional<Toolset> toolset_;
  std::optional<Judge> judge_;
  std::optional<Gate> gate_;
};

Status Run::SetUp() {
  const spec::RunSpec& spec = *input_.spec;
  NORMA_ASSIGN(folder_, PrivateFolder::Make(input_.temp_folder));
  Result<Roots> roots = Roots::Open(spec.tools.roots, input_.cwd, {folder_->path()});
  if (!roots.ok()) {
    return Error{Code::kUsage, fmt::format("tools.roots: {}", roots.error().message)};
  }
  roots_.emplace(std::move(roots).value());
  NORMA_ASSIGN(provider_, llm::NewProvider(input_.provider, *seams_.transport, *seams_.clock));
  if (seams_.rate_limiter != nullptr) {
    provider_ = llm::NewRateLimited(std::move(provider_), *seams_.rate_limiter);
  }
  purse_.emplace(spec.budgets.cost, spec.budgets.settlement_reserve);
  return {};
}

Status Run::OpenLedger() {
  const spec::LedgerSpec& spec = input_.spec->ledger;
  Result<std::unique_ptr<AppendFile>> file = seams_.open_ledger(input_.ledger_path);
  if (!file.ok()) {
    return Error{Code::kLedger, fmt::format("cannot open the ledger {}: {}", input_.ledger_path,
                                            file.error().message)};
  }
  ledger::LedgerOptions options;
  options.run = input_.run_id;
  options.encode.content = spec.content == "digest" ? ledger::ContentMode::kDigest
                           : spec.content == "full" ? ledger::ContentMode::kFull
                                                    : ledger::ContentMode::kExcerpt;
  options.encode.excerpt_bytes = static_cast<size_t>(spec.excerpt_bytes);
  options.sync_actions = spec.sync == "action";
  ledger_ = std::make_unique<ledger::Ledger>(std::move(file).value(), std::move(options),
                                             *input_.redactor, *seams_.clock);
  return {};
}

tool::ToolEnv Run::MakeEnv() {
  const spec::RunSpec& spec = *input_.spec;
  tool::ToolEnv env;
  env.roots = &*roots_;
  env.cwd = input_.cwd;
  env.child_env = ChildEnvironment(spec, input_.environment);
  env.output_bytes = static_cast<size_t>(spec.tools.output_bytes);
  env.private_dir = folder_->path();
  env.bash_timeout = spec.tools.bash_timeout;
  env.run_marker = input_.run_id;
  env.ripgrep = input_.ripgrep;
  env.protected_files = {ledger_->FileIdentity()};
  for (const std::string& path : input_.protected_paths) Protect(path, env);
  Protect(input_.ledger_path, env);
  env.require_read = spec.tools.edit_require_read;
  env.todos = &todos_;
  env.reads = &reads_;
  env.clock = seams_.clock;
  return env;
}

RunScope Run::MakeScope() {
  const spec::RunSpec& spec = *input_.spec;
  return RunScope{
      .spec = spec,
      .clock = *seams_.clock,
      .cancel = cancel_,
      .observer = observer_,
      .ledger = *ledger_,
      .state = *state_,
      .purse = *purse_,
      .price = spec.prices.Find(spec.model.name),
      .env = *env_,
      .inbox = inbox_,
      .policy = Policy(spec.mode, spec.allow, spec.deny, spec.rules),
      .mode = spec.mode,
      .agent = "main",
      .depth = 0,
      .system = spec.system,
      .turns_max = spec.budgets.turns,
      .one_request = input_.one_request,
  };
}

void Run::RecordStart(RunScope& scope) {
  const spec::RunSpec& spec = *input_.spec;
  ledger::RunStarted record;
  record.version = input_.version;
  record.spec_path = spec.path;
  record.spec_hash = spec.hash;
  record.policy_hash = Sha256Hex(scope.policy.Canonical());
  record.model = spec.model.name;
  record.format = spec.model.format;
  record.endpoint = provider_->Endpoint();
  record.mode = NameOf(spec.mode);
  for (const tool::Tool* tool : toolset_->tools()) {
    if (!scope.policy.DeniesOutright(tool->name)) record.tools.push_back(tool->name);
  }
  record.budgets_json = BudgetsJson(spec);
  record.price_table = scope.price == nullptr ? "" : spec.prices.name;
  record.price_hash = scope.price == nullptr ? "" : spec.prices.hash;
  record.host = input_.host;
  record.cwd = input_.cwd;
  record.pid = getpid();
  record.prompt_sha256 = Sha256Hex(input_.prompt);
  record.prompt_bytes = static_cast<int64_t>(input_.prompt.size());
  if (!scope.Record(record).ok()) return;
  if (input_.prompt_was_repaired) {
    scope.Warn("prompt_utf8", "the prompt held invalid UTF-8; it was replaced by U+FFFD");
  }
  for (const std::string& warning : input_.provider.warnings) scope.Warn("model_proxy", warning);
  if (const std::string doubled = llm::BaseUrlWarning(record.endpoint); !doubled.empty()) {
    scope.Warn("model_base_url", doubled);
  }
  if (!input_.replay_folder.empty()) {
    scope.Warn("replay", "the model's replies come from " + input_.replay_folder +
                             "; nothing is sent, and costs are those of the recording");
  }
}

LoopOutcome Run::RunLoop() {
  RunScope& scope = *scope_;
  try {
    inbox_->EveryTick(input_.tick, [this] { observer_.OnTick(scope_->state.doing); });
    if (input_.watch_output_fd >= 0) {
      inbox_->WatchReader(input_.watch_output_fd, [this] { cancel_.Trip(Cancel::kOutput); });
      inbox_->Serve();
    }
    judge_.emplace(scope.policy, toolset_->tools());
    gate_.emplace(scope, *judge_);
    Requester requester(scope, *provider_,
                        input_.provider.format != "script" && input_.provider.cache != "off");
    Loop loop(scope, *gate_, *judge_, requester);
    return loop.Run(input_.prompt);
  } catch (const std::exception& error) {
    LoopOutcome outcome;
    outcome.ending = {
        EndReason::kInternal, fmt::format("{}; please report this", error.what()), {}};
    return outcome;
  }
}

// The answer goes out before run.ended is written. What already ended the run keeps its reason;
// only a completed one becomes something else when its answer reached nobody.
void Run::DeliverAnswer(RunResult& result) {
  std::string lost;
  try {
    lost = observer_.Deliver(result);
  } catch (const std::exception& error) {
    lost = error.what();
  }
  if (lost.empty() || result.reason != EndReason::kCompleted) return;
  const int signal = cancel_.cause() > 0 ? cancel_.cause() : 0;
  const MonoTime deadline = scope_->budget().HardDeadline();
  Ending ending{signal > 0 ? EndReason::kAbortedStreaming : EndReason::kAbortedOutput, lost, {}};
  if (signal == 0 && seams_.clock->Now() >= deadline) {
    ending = EndingOfLimit(EndReason::kTimeout, scope_->budget().HitOf(Limit::kWall));
    result.limit_name = ending.limit->name;
    result.limit_value = ending.limit->value;
  }
  result.reason = ending.reason;
  result.exit_code = ExitCodeOf(ending.reason, signal);
  result.message = ending.message;
}

RunResult Run::End(LoopOutcome outcome) {
  inbox_->Close();
  const int killed = KillDescendants("", kStrayGrace, *seams_.clock);
  RunResult result = Finish(input_, seams_, outcome.ending, cancel_.cause());
  result.text = input_.redactor->Clean(outcome.text);
  result.turns = outcome.turns;
  result.has_stuck_worker = outcome.has_stuck_worker;
  result.killed_processes = killed;
  result.ledger_path = input_.ledger_path;
  result.denied = ledger_->denied();
  result.totals = ledger_->totals();
  for (ledger::Denied& denied : result.denied) {
    denied.tool = input_.redactor->Clean(denied.tool);
    denied.rule = input_.redactor->Clean(denied.rule);
  }
  DeliverAnswer(result);
  ledger::RunEnded record;
  record.reason = RowOf(result.reason).name;
  record.exit_code = result.exit_code;
  record.limit_name = result.limit_name;
  record.limit_value = result.limit_value;
  record.message = result.message;
  record.totals = result.totals;
  record.denied = result.denied;
  record.killed_processes = killed;
  record.turns = result.turns;
  record.duration_ms = result.duration.count();
  Status written = scope_->Record(record);
  if (written.ok()) written = ledger_->Sync();
  if (!written.ok() && result.reason != EndReason::kLedgerError) {
    result.reason = EndReason::kLedgerError;
    result.exit_code = ExitCodeOf(result.reason);
    result.message = written.error().message;
  }
  result.ledger_head = ledger_->head();
  return result;
}

RunResult Run::Execute() {
  if (const Status ready = SetUp(); !ready.ok()) {
    return Finish(input_, seams_, {EndReason::kUsage, ready.error().message, {}}, 0);
  }
  if (const int signal = cancel_.cause(); signal > 0) {
    return Finish(input_, seams_,
                  {EndReason::kAbortedStreaming, "stopped by a signal before the run began", {}},
                  signal);
  }
  if (const Status opened = OpenLedger(); !opened.ok()) {
    return Finish(input_, seams_, {EndReason::kLedgerError, opened.error().message, {}}, 0);
  }
  env_.emplace(MakeEnv());
  state_.emplace(Budget(input_.spec->budgets, input_.started));
  scope_.emplace(MakeScope());
  toolset_.emplace(*scope_);
  ledger_->SetTap([this](const ledger::Record& record, std::string_view line) {
    observer_.OnRecord(record, line);
  });
  RecordStart(*scope_);
  return End(RunLoop());
}

}  // namespace

RunResult RunOne(const RunInput& input, const Seams& seams, Cancel& cancel, Observer& observer) {
  auto run = std::make_unique<Run>(input, seams, cancel, observer);
  try {
    RunResult result = run->Execute();
    if (result.has_stuck_worker) [[maybe_unused]]
      Run* left_alone = run.release();
    return result;
  } catch (const std::exception& error) {
    return Finish(input, seams,
                  {EndReason::kInternal, fmt::format("{}; please report this", error.what()), {}},
                  0);
  }
}

std::string ResultJson(const RunResult& result, bool as_event) {
  json::Writer out;
  out.BeginObject();
  if (as_event) out.Field("kind", "result");
  out.Field("run", result.run)
      .Field("reason", std::string(RowOf(result.reason).name))
      .Field("exit_code", result.exit_code);
  if (result.limit_name.empty()) {
    out.Key("limit").Null();
  } else {
    out.Key("limit").BeginObject().Field("name", result.limit_name);
    out.Field("value", result.limit_value).EndObject();
  }
  out.Field("message", result.message).Field("text", result.text);
  out.Key("output").Null();
  const ledger::Totals& totals = result.totals;
  out.Key("usage").BeginObject();
  out.Field("input", totals.input).Field("output", totals.output);
  out.Field("cache_read", totals.cache_read).Field("cache_write", totals.cache_write).EndObject();
  out.Key("cost_usd");
  if (totals.cost.has_value()) {
    out.Raw(FormatUsd(*totals.cost));
  } else {
    out.Null();
  }
  out.Field("unpriced", totals.unpriced)
      .Field("turns", result.turns)
      .Field("requests", totals.requests)
      .Field("calls", totals.calls)
      .Field("actions", totals.actions);
  out.Key("denied").BeginArray();
  for (const ledger::Denied& denied : result.denied) {
    out.BeginObject().Field("tool", denied.tool).Field("call", denied.call);
    out.Field("rule", denied.rule).EndObject();
  }
  out.EndArray();
  out.Field("killed_processes", result.killed_processes)
      .Field("duration_ms", static_cast<int64_t>(result.duration.count()));
  out.Key("ledger");
  if (result.ledger_path.empty()) {
    out.Null();
  } else {
    out.String(result.ledger_path);
  }
  out.Field("ledger_head", result.ledger_head).EndObject();
  return out.Take();
}

}  // namespace norma::agent
