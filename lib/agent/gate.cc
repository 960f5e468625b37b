#include "lib/agent/gate.h"

#include <fmt/core.h>

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::agent {
namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kShownNameBytesMax = 80;
constexpr size_t kIdBytesMax = 4096;  // gateways hide signatures in ids; the ledger keeps 8 KiB

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

// What every model API takes back as the name of a tool.
bool IsLegalName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), IsNameCharacter);
}

// What the provider takes back as the id of a call. Anthropic names the characters; the others take
// what they gave, and some models (Kimi: "functions.LS:0") lose their way when it is another one.
bool IsLegalId(std::string_view format, std::string_view id) {
  const bool free = format == "openai-chat" || format == "openai-responses";
  const auto fits = [free](char c) { return free ? c > 0x20 && c < 0x7f : IsNameCharacter(c); };
  return !id.empty() && id.size() <= kIdBytesMax && std::all_of(id.begin(), id.end(), fits);
}

std::string LegalName(std::string_view name) {
  std::string legal(name.substr(0, kNameBytesMax));
  for (char& c : legal) {
    if (!IsNameCharacter(c)) c = '_';
  }
  return legal.empty() ? "unnamed" : legal;
}

Judged Invalid(std::string message) {
  Judged judged;
  judged.message = std::move(message);
  return judged;
}

Judged Denied(Verdict verdict) {
  Judged judged;
  judged.kind = Judged::Kind::kDenied;
  judged.message = "Permission denied: " + verdict.message;
  judged.verdict = std::move(verdict);
  return judged;
}

ledger::ActionDetail DetailOf(const tool::ActionReport& report) {
  ledger::ActionDetail detail;
  detail.effect = report.effect;
  detail.method = report.method;
  detail.host = report.host;
  detail.path = report.path;
  detail.proxy = report.proxy;
  detail.hop = report.hop;
  detail.status = report.status;
  detail.exit = report.exit;
  detail.signal = report.signal;
  detail.bytes = report.bytes;
  detail.killed = report.killed;
  detail.sha256_before = report.sha256_before;
  detail.sha256_after = report.sha256_after;
  detail.command.text = report.command;
  detail.fallback = report.fallback;
  detail.timed_out = report.timed_out;
  detail.cancelled = report.cancelled;
  detail.truncated = report.truncated;
  detail.error = report.error;
  return detail;
}

std::string_view NameOf(Judged::Kind kind) {
  switch (kind) {
    case Judged::Kind::kInvalid:
      return "invalid";
    case Judged::Kind::kDenied:
      return "deny";
    case Judged::Kind::kAllowed:
      return "allow";
  }
  return "invalid";
}

}  // namespace

Judge::Judge(const Policy& policy, std::vector<const tool::Tool*> offered)
    : policy_(policy), offered_(std::move(offered)) {}

const tool::Tool* Judge::Find(std::string_view name) const {
  for (const tool::Tool* tool : offered_) {
    if (tool->name == name) return tool;
  }
  return nullptr;
}

Judged Judge::Look(std::string_view name, const std::string& input, const tool::ToolEnv& env,
                   Mode mode) {
  const tool::Tool* tool = Find(name);
  if (tool == nullptr) {
    std::vector<std::string> names;
    for (const tool::Tool* known : offered_) names.push_back(known->name);
    return Invalid(
        fmt::format("There is no tool named {}. The tools are: {}", name, Join(names, ", ")));
  }
  auto schema = schemas_.find(name);
  if (schema == schemas_.end()) {
    Result<JsonSchema> compiled = JsonSchema::Compile(tool->input_schema);
    NORMA_CHECK(compiled.ok());
    schema = schemas_.emplace(tool->name, std::move(compiled).value()).first;
  }
  if (Status fits = schema->second.Validate(input); !fits.ok()) {
    return Invalid(fmt::format("Invalid arguments for {}: {}", name, fits.error().message));
  }
  const Result<json::Document> document = json::Document::Parse(input);
  if (!document.ok()) {
    return Invalid(fmt::format("Invalid arguments for {}: {}", name, document.error().message));
  }
  Result<tool::Prepared> prepared = tool->prepare(document.value().root(), env);
  if (!prepared.ok()) {
    return Invalid(fmt::format("Invalid arguments for {}: {}", name, prepared.error().message));
  }
  CallFacts facts;
  facts.tool = tool->name;
  facts.read_only = prepared.value().read_only;
  facts.own = prepared.value().own;
  facts.own_message = prepared.value().own_message;
  facts.actions = prepared.value().actions;
  Verdict verdict = policy_.Judge(facts, mode);
  if (!verdict.allowed) return Denied(std::move(verdict));
  Judged judged;
  judged.kind = Judged::Kind::kAllowed;
  judged.verdict = std::move(verdict);
  judged.prepared = std::move(prepared).value();
  return judged;
}

Gate::Gate(RunScope& scope, Judge& judge) : scope_(scope), judge_(judge) {}

void Gate::BeginReply(Scheduler* scheduler) {
  scheduler_ = scheduler;
  reply_ids_.clear();
}

void Gate::Disable(const std::vector<std::string>& tools, std::string why) {
  disabled_.insert(tools.begin(), tools.end());
  disabled_why_ = std::move(why);
}

std::string Gate::UniqueId(const ToolCall& call, bool* duplicate) {
  *duplicate = !call.id.empty() && !reply_ids_.insert(call.id).second;
  std::string id = call.id;
  const bool legal = IsLegalId(scope_.spec.model.format, id);
  if (!legal || scope_.state.call_ids.contains(id)) {
    // Ids pair results with calls for the provider; ours differ from the model's only here.
    do {
      id = fmt::format("call_{}", ++scope_.state.calls);
    } while (scope_.state.call_ids.contains(id));
    if (!call.id.empty()) {
      scope_.Warn(
          "call_id_replaced",
          fmt::format("the model gave a call of {} an id that {}; it is {} here",
                      LegalName(call.name), legal ? "was used before" : "is not legal", id));
    }
  }
  scope_.state.call_ids.insert(id);
  return id;
}

Judged Gate::Look(const ToolCall& call) {
  if (duplicates_.contains(call.id)) {
    return Invalid("This call has the id of another call in the same reply; it was not run.");
  }
  if (const auto written = misnamed_.find(call.id); written != misnamed_.end()) {
    return Invalid(
        fmt::format("There is no tool named {}: a name has 1 to {} letters, digits, _ "
                    "and -",
                    json::Quote(written->second), kNameBytesMax));
  }
  if (judge_.Find(call.name) != nullptr && IsDisabled(call.name)) {
    Verdict refused;
    refused.rule = "settlement.disabled_tools";
    refused.message = fmt::format("{} is not available {}", call.name, disabled_why_);
    return Denied(std::move(refused));
  }
  if (call.valid_input.empty() && judge_.Find(call.name) != nullptr) {
    return Invalid(fmt::format(
        "The arguments of {} are not one complete JSON object (cut off, malformed or with a "
        "repeated key), so it was not run. Send the call again.",
        call.name));
  }
  return judge_.Look(call.name, call.valid_input, scope_.env, scope_.mode);
}

std::optional<LimitHit> Gate::BudgetAgainst(const ToolCall& call) const {
  if (!scope_.budget().Fits(Limit::kCalls, 1)) return scope_.budget().HitOf(Limit::kCalls);
  return scope_.budget().ToolCallFits(call.name);
}

Gate::Taken Gate::Take(const ToolCall& call) {
  bool duplicate = false;
  ToolCall ours = call;
  ours.id = UniqueId(call, &duplicate);
  if (duplicate) duplicates_.insert(ours.id);
  const tool::Tool* tool = judge_.Find(call.name);
  // A name that no API takes back would make every later request of the run invalid. The legal one
  // is for the history only: it may be that of a tool, which the model did not call.
  if (tool == nullptr && !IsLegalName(call.name)) {
    ours.name = LegalName(call.name);
    misnamed_.emplace(ours.id, RepairUtf8(CutUtf8(call.name, kShownNameBytesMax)));
  }
  Taken taken{ours.id, ours.name};
  const Scheduler::How how = tool == nullptr       ? Scheduler::How::kExclusive
                             : tool->on_run_thread ? Scheduler::How::kOnRunThread
                             : tool->parallel      ? Scheduler::How::kParallel
                                                   : Scheduler::How::kExclusive;
  scheduler_->Add(std::move(ours), how);
  return taken;
}

CallStart Gate::OnStart(const ToolCall& call) {
  Judged judged = LookAndRecord(call);
  std::string refusal = RefusalOf(call, judged);
  if (!refusal.empty()) return tool::Fail(std::move(refusal));
  scope_.budget().ChargeToolCall(call.name);
  return std::move(judged.prepared.run);
}

void Gate::OnSkipped(const ToolCall& call) {
  [[maybe_unused]] const Judged judged = LookAndRecord(call);
}

Judged Gate::LookAndRecord(const ToolCall& call) {
  Judged judged = Look(call);
  RecordJudged(call, judged);
  if (judged.kind == Judged::Kind::kDenied && scope_.state.first_denied.empty()) {
    scope_.state.first_denied = fmt::format("{}: {}", call.name, judged.verdict.message);
  }
  return judged;
}

// Why a call does not run, in this order; empty when it does. Counts it.
std::string Gate::RefusalOf(const ToolCall& call, const Judged& judged) {
  const std::optional<LimitHit> hit = BudgetAgainst(call);
  scope_.budget().Charge(Limit::kCalls, 1);
  // A call that is refused anyway still counts: a model cannot spend a budget on nothing but
  // denials.
  if (hit.has_value() && !scope_.state.limit_hit.has_value()) scope_.state.limit_hit = hit;
  if (judged.kind != Judged::Kind::kAllowed) return judged.message;
  if (scope_.state.fatal.has_value() || scope_.cancel.tripped())
    return "Not run: the run is ending.";
  if (scope_.spec.fail_on_denied && !scope_.state.first_denied.empty()) {
    return "Not run: the run ends because a call was denied.";
  }
  if (!hit.has_value()) return "";
  return fmt::format("Not run: budgets.{} ({}) is used up.", hit->name, hit->value);
}

void Gate::RecordJudged(const ToolCall& call, const Judged& judged) {
  ledger::CallJudged record;
  record.call = call.id;
  record.tool = call.name;
  record.input.text = call.valid_input.empty() ? call.input : call.valid_input;
  record.verdict = NameOf(judged.kind);
  record.stage = judged.verdict.stage;
  record.rule = judged.verdict.rule;
  record.line = judged.verdict.line;
  record.reason = judged.kind == Judged::Kind::kInvalid ? judged.message : judged.verdict.message;
  // A failure is kept in scope.state.fatal; Take starts nothing then.
  [[maybe_unused]] const Status ignored = scope_.Record(record);
}

Result<std::string> Gate::OnBegin(const ToolCall& call, const tool::ActionReport& action) {
  if (scope_.state.fatal.has_value()) return Error{Code::kCancelled, "the run is ending"};
  if (!scope_.budget().Fits(Limit::kActions, 1)) {
    const LimitHit hit = scope_.budget().HitOf(Limit::kActions);
    if (!scope_.state.limit_hit.has_value()) scope_.state.limit_hit = hit;
    return Error{Code::kBudget,
                 fmt::format("Not run: budgets.{} ({}) is used up.", hit.name, hit.value)};
  }
  std::string id = fmt::format("a{}", scope_.state.actions + 1);
  NORMA_TRY(scope_.Announce(ledger::ActionStarted{
      .id = id, .call = call.id, .action = action.summary, .detail = DetailOf(action)}));
  ++scope_.state.actions;
  scope_.budget().Charge(Limit::kActions, 1);
  return id;
}

void Gate::OnEnd(const ToolCall& call, const std::string& action_id,
                 const tool::ActionReport& outcome) {
  ledger::ActionFinished record;
  record.id = action_id;
  record.call = call.id;
  record.action = outcome.summary;
  record.detail = DetailOf(outcome);
  record.duration_ms = outcome.duration.count();
  [[maybe_unused]] const Status ignored = scope_.Record(record);  // kept in scope.state.fatal
}

MonoTime Gate::DeadlineOf(const ToolCall& call) {
  scope_.state.doing = call.name + " runs";
  const MonoTime hard = scope_.budget().HardDeadline();
  const std::optional<Millis> left = scope_.budget().ToolWallLeft(call.name);
  if (!left.has_value()) return hard;
  return std::min(hard, scope_.clock.Now() + std::max(*left, Millis{0}));
}

void Gate::OnFinished(const ToolCall& call, tool::ToolOutput& output, bool synthetic,
                      Millis duration) {
  scope_.budget().ChargeToolWall(call.name, duration);
  const std::optional<Millis> left = scope_.budget().ToolWallLeft(call.name);
  if (left.has_value() && left->count() <= 0 && !scope_.state.limit_hit.has_value()) {
    scope_.state.limit_hit = scope_.budget().ToolWallHit(call.name);
  }
  ledger::CallFinished record;
  record.call = call.id;
  record.tool = call.name;
  record.result.text = output.text;
  record.is_error = output.is_error;
  record.truncated = output.truncated;
  record.synthetic = synthetic;
  record.duration_ms = duration.count();
  [[maybe_unused]] const Status ignored = scope_.Record(record);  // kept in scope.state.fatal
}

}  // namespace norma::agent
