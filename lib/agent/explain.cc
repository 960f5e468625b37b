#include "lib/agent/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

#include "lib/agent/gate.h"
#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/io/files.h"
#include "lib/tool/tool.h"

namespace norma::agent {
namespace {

constexpr std::array<std::string_view, 13> kStages = {
    "no rule of the policy",
    "a deny rule",
    "the tool's own refusal",
    "mode bypassPermissions",
    "mode plan allows read-only tools only",
    "an allow rule",
    "mode acceptEdits",
    "the tool only reads",
    "the tool allows itself",
    "mode dontAsk: what no rule allows is denied",
    "mode auto: what no rule allows is denied",
    "a callback",
    "nobody can be asked: what no rule allows is denied"};

Policy PolicyOf(const spec::RunSpec& spec) {
  return Policy(spec.mode, spec.allow, spec.deny, spec.rules);
}

// The most the run can spend, said for a person.
std::string WorstCase(const spec::RunSpec& spec) {
  const BudgetLimits& limits = spec.budgets;
  const PriceRow* price = spec.prices.Find(spec.model.name);
  if (limits.cost.has_value()) {
    return fmt::format("${} (budgets.cost_usd)", FormatUsd(*limits.cost));
  }
  if (price == nullptr) return "unknown: there is no price for this model";
  constexpr int64_t kEscalatedTokens = 64'000;  // what one escalated request may ask for
  const int64_t output = spec.model.escalate ? std::max(spec.model.max_tokens, kEscalatedTokens)
                                             : spec.model.max_tokens;
  const Nano each = WorstCaseCost(*price, spec.context_window, output, spec.model.cache != "off");
  if (!limits.requests.has_value()) {
    return fmt::format(
        "no bound: at most ${} for each request, and neither budgets.cost_usd nor "
        "budgets.requests is set",
        FormatUsd(each));
  }
  const auto total = static_cast<__int128>(each) * *limits.requests;
  const Nano capped = total > std::numeric_limits<Nano>::max() ? std::numeric_limits<Nano>::max()
                                                               : static_cast<Nano>(total);
  return fmt::format("${} ({} requests of at most ${})", FormatUsd(capped), *limits.requests,
                     FormatUsd(each));
}

}  // namespace

std::string StageText(int stage) {
  if (stage < 0 || static_cast<size_t>(stage) >= kStages.size()) return "an unknown stage";
  return std::string(kStages[static_cast<size_t>(stage)]);
}

CheckReport Check(const spec::RunSpec& spec) {
  const Policy policy = PolicyOf(spec);
  CheckReport report;
  report.policy_hash = Sha256Hex(policy.Canonical());
  report.worst_case = WorstCase(spec);
  for (const std::string& name : spec.tools.enabled) {
    const tool::Tool* tool = tool::FindBuiltin(name);
    NORMA_CHECK(tool != nullptr);  // the loader knows which exist
    CallFacts usual;
    usual.tool = tool->name;
    usual.read_only = tool->read_only;
    usual.own = tool->own;
    report.tools.push_back({tool->name, !policy.DeniesOutright(tool->name), policy.Judge(usual)});
  }
  return report;
}

Result<Explanation> Explain(const spec::RunSpec& spec, const std::string& name,
                            const std::string& input, const std::string& cwd,
                            const std::vector<std::string>& protected_paths) {
  const tool::Tool* tool = tool::FindBuiltin(name);
  if (tool == nullptr) {
    return Error{Code::kUsage, fmt::format("there is no tool named {}", name)};
  }
  Result<Roots> roots = Roots::Open(spec.tools.roots, cwd);
  if (!roots.ok()) {
    return Error{Code::kUsage, fmt::format("tools.roots: {}", roots.error().message)};
  }
  NORMA_ASSIGN(const std::string arguments, json::Minify(input));
  tool::ToolEnv env;
  env.roots = &roots.value();
  env.cwd = cwd;
  env.bash_timeout = spec.tools.bash_timeout;
  env.protected_paths = protected_paths;
  const Policy policy = PolicyOf(spec);
  Judge judge(policy, {tool});
  Judged judged = judge.Look(name, arguments, env, policy.mode());
  if (judged.kind == Judged::Kind::kInvalid) return Error{Code::kUsage, judged.message};
  Explanation explanation{std::move(judged.verdict), std::move(judged.message)};
  const auto& enabled = spec.tools.enabled;
  if (std::find(enabled.begin(), enabled.end(), name) == enabled.end()) {
    explanation.verdict = Verdict{};
    explanation.message = fmt::format("{} is not in tools.enabled: a run does not know it", name);
  }
  return explanation;
}

}  // namespace norma::agent
