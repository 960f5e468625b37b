// norma check and norma explain: what a spec means, before anything runs. No network, no effect, no
// key needed.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "cmd/norma/commands.h"
#include "cmd/norma/load.h"
#include "cmd/norma/stdio.h"
#include "lib/agent/explain.h"
#include "lib/base/json.h"
#include "lib/base/money.h"
#include "lib/chat/end_reason.h"
#include "lib/io/files.h"

namespace norma::cmd {
namespace {

constexpr Millis kGrace{1'000};

int Print(std::string_view text, int exit_code, const Cancel& cancel) {
  return WriteAll(STDOUT_FILENO, text, cancel, kGrace) == WriteOutcome::kDone
             ? exit_code
             : ExitCodeOf(EndReason::kAbortedOutput);
}

int Refuse(const Error& error) {
  Complain(fmt::format("norma: {}\n", error.message));
  return ExitCodeOf(error.code == Code::kInternal ? EndReason::kInternal : EndReason::kUsage);
}

std::string CheckJson(const LoadedSpec& spec, const agent::CheckReport& report) {
  json::Writer out;
  out.BeginObject().Key("values").BeginArray();
  for (const spec::Origin& origin : spec.loaded.origins) {
    out.BeginObject().Field("key", origin.key).Field("value", origin.value);
    out.Field("from", origin.from).EndObject();
  }
  out.EndArray().Key("tools").BeginArray();
  for (const agent::ToolVerdict& tool : report.tools) {
    out.BeginObject().Field("tool", tool.tool).Field("offered", tool.offered);
    out.Field("verdict", tool.verdict.allowed ? "allow" : "deny");
    out.Field("stage", tool.verdict.stage).Field("rule", tool.verdict.rule);
    out.Field("at", tool.verdict.source).EndObject();
  }
  out.EndArray().Field("worst_case", report.worst_case).Key("warnings").BeginArray();
  for (const std::string& warning : spec.loaded.warnings) out.String(warning);
  out.EndArray().Field("policy_hash", report.policy_hash).EndObject();
  return out.Take() + "\n";
}

std::string CheckText(const LoadedSpec& spec, const agent::CheckReport& report) {
  size_t width = 0;
  for (const spec::Origin& origin : spec.loaded.origins) {
    width = std::max(width, origin.key.size() + origin.value.size() + 3);
  }
  width = std::min<size_t>(width, 60);
  std::string out;
  for (const spec::Origin& origin : spec.loaded.origins) {
    out += fmt::format("{:<{}}  # {}\n", origin.key + " = " + origin.value, width, origin.from);
  }
  out += "\ntools (verdict for a usual call; a tool's own checks may still deny)\n";
  for (const agent::ToolVerdict& tool : report.tools) {
    const Verdict& verdict = tool.verdict;
    const std::string why = !verdict.rule.empty()
                                ? fmt::format("rule {} ({})", verdict.rule, verdict.source)
                                : agent::StageText(verdict.stage);
    out += fmt::format("  {:<12} {:<6} stage {:<2} {}{}\n", tool.tool,
                       verdict.allowed ? "allow" : "deny", verdict.stage, why,
                       tool.offered ? "" : "; not offered to the model");
  }
  out += fmt::format("\nworst case: {}\npolicy hash: {}\n", report.worst_case, report.policy_hash);
  for (const std::string& warning : spec.loaded.warnings) {
    out += fmt::format("warning: {}\n", warning);
  }
  return out;
}

}  // namespace

int CheckCommand(const SpecFlags& flags, bool as_json, ProcessState& process) {
  const Result<LoadedSpec> spec = LoadSpec(flags, process);
  if (!spec.ok()) return Refuse(spec.error());
  const Result<Roots> roots = Roots::Open(spec.value().loaded.spec.tools.roots, spec.value().cwd);
  if (!roots.ok()) return Refuse({Code::kUsage, "tools.roots: " + roots.error().message});
  const agent::CheckReport report = agent::Check(spec.value().loaded.spec);
  return Print(as_json ? CheckJson(spec.value(), report) : CheckText(spec.value(), report), 0,
               process.cancel);
}

int ExplainCommand(const ExplainFlags& flags, ProcessState& process) {
  const Result<LoadedSpec> spec = LoadSpec(flags.spec, process);
  if (!spec.ok()) return Refuse(spec.error());
  const Result<agent::Explanation> found =
      agent::Explain(spec.value().loaded.spec, flags.tool, flags.input, spec.value().cwd,
                     {spec.value().spec_path,
                      CleanPath(JoinPath(spec.value().cwd, spec.value().loaded.spec.ledger.path))});
  if (!found.ok()) return Refuse(found.error());
  const Verdict& verdict = found.value().verdict;
  std::string out =
      fmt::format("{}: {}\nstage: {} ({})\n", flags.tool, verdict.allowed ? "allow" : "deny",
                  verdict.stage, agent::StageText(verdict.stage));
  if (!verdict.rule.empty()) {
    out += fmt::format("rule: {} ({})\n", verdict.rule, verdict.source);
  }
  if (!verdict.allowed) out += fmt::format("reason: {}\n", found.value().message);
  return Print(out, verdict.allowed ? 0 : ExitCodeOf(EndReason::kDenied), process.cancel);
}

}  // namespace norma::cmd
