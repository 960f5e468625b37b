// Everything but the model into the RunSpec, with the faults that need more than one key to see.
#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/regex.h"
#include "lib/base/text.h"
#include "lib/spec/loading.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

constexpr int64_t kVersion = 1;

void CheckVersion(Loading& load) {
  int64_t version = kVersion;
  if (!Take(load, "norma", version) || version == kVersion) return;
  load.faults.Add(
      load.At("norma")->place, "norma",
      "unknown version " + std::to_string(version) + " of the spec format; this build knows 1");
}

// A file of the system prompt becomes text here, so that the hash covers it.
void BuildSystem(Loading& load) {
  const Node* system = load.At("system");
  if (system == nullptr || system->kind != NodeKind::kList) return;
  for (size_t i = 0; i < system->items.size(); ++i) {
    const Node& item = system->items[i];
    const std::string key = "system[" + std::to_string(i) + "]";
    std::string text;
    if (item.kind == NodeKind::kScalar) {
      text = item.text;
    } else if (const Node* name = item.Find("file"); name != nullptr && TextOf(*name).ok()) {
      if (name->broken) continue;
      const auto file = load.ReadNamed(*name, key);
      if (!file) continue;
      if (!IsValidUtf8(file->text) || file->text.find('\0') != std::string::npos) {
        load.faults.Add(name->place, key, file->display + " is no UTF-8 text");
        continue;
      }
      text = file->text.starts_with("\xEF\xBB\xBF") ? file->text.substr(3) : file->text;
    }
    // Providers refuse blank text; ${NOTES:-} may well be blank.
    if (!IsBlank(text)) load.out.spec.system.push_back(std::move(text));
  }
}

void BuildRules(Loading& load, const char* key, bool is_allow, std::vector<Rule>& rules) {
  const Node* list = load.At(key);
  if (list == nullptr || list->kind != NodeKind::kList) return;
  const bool says_syntax = load.root.Find("rules") != nullptr;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Node& item = list->items[i];
    const auto text = TextOf(item);
    if (item.broken || !text.ok()) continue;
    auto rule = ParseRule(text.value());
    if (!rule.ok()) continue;
    Rule parsed = std::move(rule).value();
    parsed.line = item.place.line;
    parsed.source = item.place.line > 0 ? load.faults.Where(item.place) : "--set";
    if (is_allow && parsed.has_argument && !says_syntax) {
      load.faults.Add(item.place, std::string(key) + "[" + std::to_string(i) + "]",
                      "by default the part in parentheses is not read, so this allows all of " +
                          parsed.tool +
                          "; say what is meant: rules: names (that) or rules: arguments "
                          "(only what the argument says)");
    }
    rules.push_back(std::move(parsed));
  }
}

void BuildPolicy(Loading& load) {
  RunSpec& spec = load.out.spec;
  std::string word;
  if (Take(load, "mode", word)) spec.mode = ModeOf(word).value_or(Mode::kDefault);
  if (Take(load, "rules", word) && word == "arguments") spec.rules = RuleSyntax::kArguments;
  if (Take(load, "on_denied", word)) spec.fail_on_denied = word == "fail";
  BuildRules(load, "allow", true, spec.allow);
  BuildRules(load, "deny", false, spec.deny);
}

void BuildBudgets(Loading& load) {
  BudgetLimits& budgets = load.out.spec.budgets;
  Take(load, "budgets.turns", budgets.turns);
  Take(load, "budgets.wall", budgets.wall);
  Take(load, "budgets.grace", budgets.grace);
  Take(load, "budgets.requests", budgets.requests);
  Take(load, "budgets.input_tokens", budgets.input_tokens);
  Take(load, "budgets.output_tokens", budgets.output_tokens);
  Take(load, "budgets.calls", budgets.calls);
  Take(load, "budgets.actions", budgets.actions);
  Take(load, "budgets.output_token_target", load.out.spec.output_token_target);
  Nano cost = 0;
  if (TakeUsd(load, "budgets.cost_usd", cost)) budgets.cost = cost;

  const Node* per_tool = load.At("budgets.per_tool");
  if (per_tool != nullptr && per_tool->kind == NodeKind::kMap) {
    for (size_t i = 0; i < per_tool->items.size(); ++i) {
      const Node& item = per_tool->items[i];
      ToolLimit limit;
      if (const Node* calls = item.Find("calls"); calls != nullptr) {
        if (const auto value = IntOf(*calls); value.ok()) limit.calls = value.value();
      }
      if (const Node* wall = item.Find("wall"); wall != nullptr) {
        if (const auto value = DurationOf(*wall); value.ok()) limit.wall = value.value();
      }
      budgets.per_tool[per_tool->keys[i].text] = limit;
    }
  }
  if (!budgets.turns && !budgets.cost && load.faults.empty()) {
    load.out.warnings.push_back(
        "neither budgets.turns nor budgets.cost_usd is set: nothing limits what this run may "
        "spend");
  }
}

void CheckCost(Loading& load) {
  const Node* node = load.At("budgets.cost_usd");
  const RunSpec& spec = load.out.spec;
  if (node == nullptr || spec.model.name.empty() || !spec.budgets.cost) return;
  if (spec.prices.Find(spec.model.name) != nullptr) return;
  // A table that could not be read is the fault; a second one would only hide it.
  if (const Node* prices = load.At("prices"); prices != nullptr && spec.prices.name.empty()) return;
  std::vector<std::string> priced;
  for (const auto& [name, row] : spec.prices.rows) priced.push_back(name);
  load.faults.Add(node->place, "budgets.cost_usd",
                  "the model " + json::Quote(spec.model.name) +
                      " has no price, so its cost cannot be limited: add its row to prices" +
                      DidYouMean(spec.model.name, priced));
}

void BuildSettlement(Loading& load) {
  const Node* node = load.At("settlement");
  if (node == nullptr || node->kind != NodeKind::kMap) return;
  Settlement settlement;
  Take(load, "settlement.prompt", settlement.prompt);
  Take(load, "settlement.turns", settlement.turns);
  Take(load, "settlement.disabled_tools", settlement.disabled_tools);
  const Node* prompt = load.At("settlement.prompt");
  if (prompt != nullptr && prompt->kind == NodeKind::kScalar && IsBlank(prompt->text)) {
    load.faults.Add(prompt->place, "settlement.prompt", "a blank prompt");
  }
  load.out.spec.settlement = std::move(settlement);

  BudgetLimits& budgets = load.out.spec.budgets;
  if (!TakeUsd(load, "settlement.reserve_usd", budgets.settlement_reserve)) return;
  const Place place = load.At("settlement.reserve_usd")->place;
  const Nano reserve = budgets.settlement_reserve;
  if (reserve == 0) return;
  if (!budgets.cost) {
    if (load.At("budgets.cost_usd") != nullptr) return;
    load.faults.Add(place, "settlement.reserve_usd",
                    "there is nothing to reserve from: set budgets.cost_usd");
  } else if (reserve >= *budgets.cost) {
    load.faults.Add(place, "settlement.reserve_usd",
                    "the reserve of " + FormatUsd(reserve) +
                        " leaves nothing of budgets.cost_usd " + FormatUsd(*budgets.cost) +
                        " for the work");
  }
}

void CheckNoBlanks(Loading& load, const char* path, const char* what) {
  const Node* list = load.At(path);
  if (list == nullptr) return;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Node& item = list->items[i];
    if (item.kind == NodeKind::kScalar && !item.broken && IsBlank(item.text)) {
      load.faults.Add(item.place, std::string(path) + "[" + std::to_string(i) + "]", what);
    }
  }
}

void BuildTools(Loading& load) {
  Tools& tools = load.out.spec.tools;
  tools.enabled = load.input.default_tools;
  if (std::vector<std::string> named; Take(load, "tools.enabled", named)) {
    // The contract's order, so that the request bytes do not depend on the order in the file.
    tools.enabled.clear();
    for (const std::string& tool : load.input.known_tools) {
      if (std::ranges::find(named, tool) != named.end()) tools.enabled.push_back(tool);
    }
  }
  Take(load, "tools.roots", tools.roots);
  TakeSize(load, "tools.output_bytes", tools.output_bytes);
  Take(load, "tools.bash.timeout", tools.bash_timeout);
  Take(load, "tools.bash.on_timeout", tools.bash_on_timeout);
  Take(load, "tools.bash.on_exit", tools.bash_on_exit);
  Take(load, "tools.bash.env", tools.bash_env);
  Take(load, "tools.bash.env_keep", tools.bash_env_keep);
  Take(load, "tools.grep.ripgrep", tools.ripgrep);
  Take(load, "tools.edit.require_read", tools.edit_require_read);

  if (const Node* roots = load.At("tools.roots");
      roots != nullptr && roots->kind == NodeKind::kList) {
    CheckNoBlanks(load, "tools.roots", "a blank folder name");
    if (roots->items.empty()) {
      load.faults.Add(roots->place, "tools.roots", "at least one folder; [.] is the default");
    }
  }
  if (const Node* env = load.At("tools.bash.env"); env != nullptr && env->kind == NodeKind::kMap) {
    for (const Node& key : env->keys) {
      if (IsVariableName(key.text)) continue;
      load.faults.Add(key.place, "tools.bash.env." + key.text,
                      "this is not the name of an environment variable (letters, digits, _)");
    }
  }
}

void BuildRedact(Loading& load) {
  Redact& redact = load.out.spec.redact;
  Take(load, "redact.env", redact.env);
  Take(load, "redact.patterns", redact.patterns);
  const Node* patterns = load.At("redact.patterns");
  if (patterns == nullptr || patterns->kind != NodeKind::kList) return;
  for (size_t i = 0; i < patterns->items.size(); ++i) {
    const Node& item = patterns->items[i];
    if (item.broken || !TextOf(item).ok()) continue;
    const std::string path = "redact.patterns[" + std::to_string(i) + "]";
    const auto regex = Regex::Compile(item.text);
    if (!regex.ok()) {
      load.faults.Add(item.place, path, "no regular expression: " + regex.error().message);
    } else if (regex.value().Matches("")) {
      load.faults.Add(item.place, path,
                      "this pattern matches the empty text, so it would redact everywhere");
    }
  }
}

void BuildLedger(Loading& load) {
  LedgerSpec& ledger = load.out.spec.ledger;
  Take(load, "ledger.path", ledger.path);
  Take(load, "ledger.sync", ledger.sync);
  Take(load, "ledger.content", ledger.content);
  TakeSize(load, "ledger.excerpt_bytes", ledger.excerpt_bytes);
  const Node* path = load.At("ledger.path");
  if (path != nullptr && path->kind == NodeKind::kScalar && IsBlank(path->text)) {
    load.faults.Add(path->place, "ledger.path", "a blank file name; every run has a ledger");
  }
}

}  // namespace

void BuildRest(Loading& load) {
  RunSpec& spec = load.out.spec;
  CheckVersion(load);
  BuildSystem(load);
  Take(load, "prompt", spec.prompt);
  BuildPolicy(load);
  BuildBudgets(load);
  CheckCost(load);
  BuildSettlement(load);
  BuildTools(load);
  Take(load, "context.window", spec.context_window);
  // `compaction` is the default and acts as `none` until it is built, so the spec keeps `none`.
  BuildLedger(load);
  BuildRedact(load);
}

}  // namespace norma::spec
