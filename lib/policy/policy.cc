// The order of spec/40 §1.2 as straight code: one `if` a row, in the row's order. Row 11 does not
// exist, because a headless run has no callback; so whatever reaches row 9 is denied.
#include "lib/policy/policy.h"

#include <fmt/core.h>

#include <algorithm>

#include "lib/base/json.h"

namespace norma {
namespace {

// Rows of spec/40 §1.2; the numbers are in the ledger and in FORMAT.md.
enum Stage {
  kDenyRule = 1,
  kOwnDeny = 2,
  kBypass = 3,
  kPlanMode = 4,
  kAllowRule = 5,
  kEditMode = 6,
  kReadOnly = 7,
  kOwnAllow = 8,
  kNoAsking = 9,
  kAutoMode = 10,
  kNoHandler = 12,
};

// MultiEdit is left out by the contract; NotebookEdit is in it although no such tool ships.
constexpr std::array<std::string_view, 3> kEditTools = {"Write", "Edit", "NotebookEdit"};

constexpr std::array<std::string_view, 8> kEffectNames = {"none", "process", "file",   "file",
                                                          "http", "mcp",     "search", "install"};
static_assert(static_cast<size_t>(Effect::kInstall) + 1 == kEffectNames.size());
static_assert(static_cast<size_t>(Mode::kAuto) + 1 == kModeNames.size());

// An allow rule with an argument covers a part of its tool's calls. Where arguments count it must
// not open the whole tool; a deny rule closes the whole tool in any case, the safe direction.
bool MayAllow(const Rule& rule, RuleSyntax syntax) {
  return syntax == RuleSyntax::kNames || !rule.has_argument;
}

Verdict Allow(Stage stage) {
  Verdict verdict;
  verdict.allowed = true;
  verdict.stage = stage;
  return verdict;
}

Verdict Deny(Stage stage, std::string message) {
  Verdict verdict;
  verdict.stage = stage;
  verdict.message = std::move(message);
  return verdict;
}

Verdict DecidedBy(const Rule& rule, Verdict verdict) {
  verdict.rule = rule.text;
  verdict.source = rule.source;
  verdict.line = rule.line;
  return verdict;
}

// Rows 9 to 12: nothing allowed the call, the mode only chooses the words.
Verdict DenyUnmatched(const std::string& tool, Mode mode) {
  switch (mode) {
    case Mode::kDontAsk:
      return Deny(kNoAsking, fmt::format("no allow rule names {}, so it needs approval, and mode "
                                         "dontAsk forbids asking for it",
                                         tool));
    case Mode::kAuto:
      return Deny(kAutoMode,
                  fmt::format("{} is not permitted by any allow rule, as mode auto demands", tool));
    case Mode::kDefault:
    case Mode::kAcceptEdits:
    case Mode::kBypassPermissions:
    case Mode::kPlan:
      break;  // bypassPermissions and plan were answered before; if not, deny is right
  }
  return Deny(kNoHandler, fmt::format("no allow rule names {}, and no approval handler is "
                                      "configured that could be asked (mode {})",
                                      tool, NameOf(mode)));
}

// Sorted and without repetitions: the lists are sets, their order means nothing.
void WriteRules(json::Writer& out, std::string_view key, const std::vector<Rule>& rules) {
  std::vector<std::string_view> texts;
  for (const Rule& rule : rules) texts.push_back(rule.text);
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  out.Key(key).BeginArray();
  for (const std::string_view text : texts) out.String(text);
  out.EndArray();
}

}  // namespace

std::string_view NameOf(Mode mode) {
  return kModeNames[static_cast<size_t>(mode)];
}

std::optional<Mode> ModeOf(std::string_view name) {
  const auto* found = std::find(kModeNames.begin(), kModeNames.end(), name);
  if (found == kModeNames.end()) return std::nullopt;
  return static_cast<Mode>(found - kModeNames.begin());
}

std::string_view NameOf(Effect effect) {
  return kEffectNames[static_cast<size_t>(effect)];
}

Policy::Policy(Mode mode, std::vector<Rule> allow, std::vector<Rule> deny, RuleSyntax syntax)
    : mode_(mode), allow_(std::move(allow)), deny_(std::move(deny)), syntax_(syntax) {}

Verdict Policy::Judge(const CallFacts& call, Mode mode) const {
  for (const Rule& rule : deny_) {
    if (!RuleMatchesTool(rule, call.tool)) continue;
    return DecidedBy(rule, Deny(kDenyRule, fmt::format("the tool {} is disallowed by policy, deny "
                                                       "rule {}",
                                                       call.tool, json::Quote(rule.text))));
  }
  if (call.own == OwnVerdict::kDeny) {
    return Deny(kOwnDeny, !call.own_message.empty()
                              ? call.own_message
                              : fmt::format("the tool {} itself refuses this call", call.tool));
  }
  if (mode == Mode::kBypassPermissions) return Allow(kBypass);
  if (mode == Mode::kPlan) {
    if (call.read_only) return Allow(kPlanMode);
    return Deny(kPlanMode, fmt::format("mode plan permits read-only tools only, and this call of "
                                       "{} is not read-only; an allow rule cannot change that",
                                       call.tool));
  }
  for (const Rule& rule : allow_) {
    if (!MayAllow(rule, syntax_) || !RuleMatchesTool(rule, call.tool)) continue;
    return DecidedBy(rule, Allow(kAllowRule));
  }
  if (mode == Mode::kAcceptEdits &&
      std::find(kEditTools.begin(), kEditTools.end(), call.tool) != kEditTools.end()) {
    return Allow(kEditMode);
  }
  if (call.read_only) return Allow(kReadOnly);
  if (call.own == OwnVerdict::kAllow) return Allow(kOwnAllow);
  return DenyUnmatched(call.tool, mode);
}

bool Policy::DeniesOutright(std::string_view tool) const {
  // Where arguments count, a rule with one leaves the other calls of its tool open.
  return std::any_of(deny_.begin(), deny_.end(), [&](const Rule& rule) {
    return RuleMatchesTool(rule, tool) && (syntax_ == RuleSyntax::kNames || !rule.has_argument);
  });
}

std::string Policy::Canonical() const {
  json::Writer out;
  out.BeginObject();
  out.Field("mode", NameOf(mode_));
  out.Field("rules", syntax_ == RuleSyntax::kNames ? "names" : "arguments");
  WriteRules(out, "allow", allow_);
  WriteRules(out, "deny", deny_);
  out.EndObject();
  return out.Take();
}

}  // namespace norma
