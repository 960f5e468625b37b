// The decision order: the security reviewer's table from testdata/policy, the words of each denial,
// and random rule sets held against a second reading of spec/40 §1.2.
#include "lib/policy/policy.h"

#include <doctest/doctest.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "lib/base/json.h"

namespace norma {
namespace {

std::vector<Rule> RulesOf(const std::vector<std::string>& texts) {
  std::vector<Rule> rules;
  for (const std::string& text : texts) {
    Result<Rule> rule = ParseRule(text);
    REQUIRE_MESSAGE(rule.ok(), text);
    rules.push_back(std::move(rule).value());
  }
  return rules;
}

std::vector<std::string> StringsOf(const json::Value& array) {
  std::vector<std::string> texts;
  array.EachElement([&](const json::Value& text) { texts.emplace_back(text.Str()); });
  return texts;
}

OwnVerdict OwnOf(std::string_view name) {
  if (name == "allow") return OwnVerdict::kAllow;
  if (name == "deny") return OwnVerdict::kDeny;
  REQUIRE(name == "ask");
  return OwnVerdict::kAsk;
}

CallFacts Facts(std::string tool, OwnVerdict own = OwnVerdict::kAsk, bool read_only = false) {
  CallFacts facts;
  facts.tool = std::move(tool);
  facts.own = own;
  facts.read_only = read_only;
  return facts;
}

// A row with "command" asks the safety floor, as the tool Bash does; others say `own` themselves.
CallFacts FactsOf(const json::Value& row) {
  CallFacts facts = Facts(std::string(row["tool"].Str()));
  facts.read_only = row["read_only"].Bool();
  if (row["command"].present()) {
    facts.own_message = BashFloorReason(row["command"].Str());
    facts.own = facts.own_message.empty() ? OwnVerdict::kAsk : OwnVerdict::kDeny;
  } else {
    facts.own = OwnOf(row["own"].Str());
  }
  return facts;
}

// The table with a misspelled key would test less than it says.
void CheckKeys(const json::Value& row) {
  static const std::set<std::string, std::less<>> known = {"id",   "mode",      "allow",   "deny",
                                                           "tool", "read_only", "command", "own",
                                                           "want", "stage",     "rule",    "why"};
  row.EachMember([](std::string_view key, const json::Value&) {
    CHECK_MESSAGE(known.contains(key), std::string(key));
  });
}

void CheckRow(const json::Value& row) {
  CheckKeys(row);
  const std::string id(row["id"].Str());
  const std::optional<Mode> mode = ModeOf(row["mode"].Str());
  REQUIRE_MESSAGE(mode.has_value(), id);
  const Policy policy(*mode, RulesOf(StringsOf(row["allow"])), RulesOf(StringsOf(row["deny"])),
                      RuleSyntax::kNames);
  const Verdict verdict = policy.Judge(FactsOf(row));
  const std::string got = std::string(verdict.allowed ? "allow " : "deny ") +
                          std::to_string(verdict.stage) + " " + verdict.rule;
  const std::string want = std::string(row["want"].Str()) + " " +
                           std::to_string(row["stage"].Int()) + " " +
                           std::string(row["rule"].Str());
  CHECK_MESSAGE(got == want, id);
  // The model hears why it was denied, and nothing else.
  CHECK_MESSAGE(verdict.message.empty() == verdict.allowed, id);
  if (!verdict.allowed && verdict.stage != 2) {
    CHECK_MESSAGE(verdict.message.find(row["tool"].Str()) != std::string::npos, id);
  }
}

TEST_CASE("policy: every row of the reviewer's table holds") {
  std::ifstream file(NORMA_SOURCE_DIR "/testdata/policy/cases.jsonl");
  std::set<std::string> ids;
  for (std::string line; std::getline(file, line);) {
    const Result<json::Document> row = json::Document::Parse(line);
    REQUIRE_MESSAGE(row.ok(), line);
    CheckRow(row.value().root());
    CHECK_MESSAGE(ids.insert(std::string(row.value().root()["id"].Str())).second, line);
  }
  CHECK(ids.size() >= 140);
}

TEST_CASE("policy: an empty policy denies what is neither read-only nor self-allowed") {
  const Verdict want{false,
                     12,
                     "",
                     "",
                     0,
                     "no allow rule names Bash, and no approval handler is configured that could "
                     "be asked (mode default)"};
  CHECK(Policy().Judge(Facts("Bash")) == want);
  // No name is an unknown name, never a wildcard.
  CHECK_FALSE(Policy().Judge(Facts("")).allowed);
}

TEST_CASE("policy: the verdict names the rule, its place and the reason") {
  std::vector<Rule> deny = RulesOf({"Bash(git:*)"});
  deny[0].source = "spec.yaml:12";
  deny[0].line = 12;
  std::vector<Rule> allow = RulesOf({"Write"});
  allow[0].source = "--set";
  const Policy policy(Mode::kDontAsk, allow, deny, RuleSyntax::kNames);
  CHECK(policy.Judge(Facts("Bash")) ==
        Verdict{false, 1, "Bash(git:*)", "spec.yaml:12", 12,
                "the tool Bash is disallowed by policy, deny rule \"Bash(git:*)\""});
  CHECK(policy.Judge(Facts("Write")) == Verdict{true, 5, "Write", "--set", 0, ""});
  CHECK(policy.Judge(Facts("Edit")) == Verdict{false, 9, "", "", 0,
                                               "no allow rule names Edit, so it needs approval, "
                                               "and mode dontAsk forbids asking for it"});
  CHECK(policy.Judge(Facts("Edit"), Mode::kAuto) ==
        Verdict{false, 10, "", "", 0,
                "Edit is not permitted by any allow rule, as mode auto demands"});
  CHECK(policy.Judge(Facts("Write"), Mode::kPlan) ==
        Verdict{false, 4, "", "", 0,
                "mode plan permits read-only tools only, and this call of Write is not read-only; "
                "an allow rule cannot change that"});
}

TEST_CASE("policy: an own deny speaks with the tool's own words") {
  CallFacts facts = Facts("Read", OwnVerdict::kDeny, true);
  facts.own_message = "../x is outside of tools.roots";
  CHECK(Policy().Judge(facts, Mode::kBypassPermissions) ==
        Verdict{false, 2, "", "", 0, "../x is outside of tools.roots"});
  facts.own_message.clear();
  CHECK(Policy().Judge(facts).message == "the tool Read itself refuses this call");
}

TEST_CASE("policy: the mode is read for every call") {
  const Policy policy(Mode::kPlan, RulesOf({"Write"}), {}, RuleSyntax::kNames);
  CHECK_FALSE(policy.Judge(Facts("Write")).allowed);
  CHECK(policy.Judge(Facts("Write"), Mode::kDefault).allowed);
  CHECK_FALSE(policy.Judge(Facts("Write")).allowed);
}

TEST_CASE("policy: where arguments count, an argument never opens and always closes a tool") {
  const Policy open(Mode::kDefault, RulesOf({"Bash(git status)"}), {}, RuleSyntax::kArguments);
  CHECK_FALSE(open.Judge(Facts("Bash")).allowed);
  const Policy closed(Mode::kBypassPermissions, {}, RulesOf({"Bash(git push)"}),
                      RuleSyntax::kArguments);
  CHECK_FALSE(closed.Judge(Facts("Bash")).allowed);
}

TEST_CASE("policy: tools that a rule denies whole are the ones not to offer") {
  const auto denies = [](std::vector<std::string> rules, RuleSyntax syntax, const char* tool) {
    return Policy(Mode::kDefault, {}, RulesOf(rules), syntax).DeniesOutright(tool);
  };
  CHECK(denies({"Bash"}, RuleSyntax::kNames, "Bash"));
  CHECK(denies({"Bash(git:*)"}, RuleSyntax::kNames, "Bash"));
  CHECK(denies({"*"}, RuleSyntax::kNames, "Read"));
  CHECK(denies({"mcp__files__*"}, RuleSyntax::kNames, "mcp__files__read"));
  CHECK_FALSE(denies({"mcp__files__*"}, RuleSyntax::kNames, "mcp__docs__read"));
  CHECK_FALSE(denies({"Bash"}, RuleSyntax::kNames, "bash"));
  CHECK_FALSE(denies({}, RuleSyntax::kNames, "Bash"));
  CHECK(denies({"Bash"}, RuleSyntax::kArguments, "Bash"));
  CHECK_FALSE(denies({"Bash(git:*)"}, RuleSyntax::kArguments, "Bash"));
}

TEST_CASE("policy: the canonical text is the same for the same sets, and only for those") {
  const auto text = [](std::vector<std::string> allow, std::vector<std::string> deny,
                       Mode mode = Mode::kAuto, RuleSyntax syntax = RuleSyntax::kNames) {
    return Policy(mode, RulesOf(allow), RulesOf(deny), syntax).Canonical();
  };
  CHECK(text({"Write", "Bash"}, {"Read"}) ==
        R"({"mode":"auto","rules":"names","allow":["Bash","Write"],"deny":["Read"]})");
  CHECK(text({"Write", "Bash", " Write "}, {"Read"}) == text({"Bash", "Write"}, {"Read"}));
  const std::set<std::string> different = {
      text({}, {}),
      text({"Bash"}, {}),
      text({}, {"Bash"}),
      text({"Bash"}, {}, Mode::kPlan),
      text({"Bash"}, {}, Mode::kAuto, RuleSyntax::kArguments),
      text({"Bash(a)", "Write"}, {}),
      text({"Bash(a\",\"Write)"}, {}),
  };
  CHECK(different.size() == 7);
}

TEST_CASE("policy: every mode and effect has its name, and no other word is a mode") {
  for (size_t i = 0; i < kModeNames.size(); ++i) {
    CHECK(ModeOf(kModeNames[i]) == static_cast<Mode>(i));
    CHECK(NameOf(static_cast<Mode>(i)) == kModeNames[i]);
  }
  for (const char* word : {"", "Default", "acceptedits", "yolo", "plan ", "default\n"}) {
    CHECK(ModeOf(word) == std::nullopt);
  }
  CHECK(NameOf(Effect::kFileRead) == "file");
  CHECK(NameOf(Effect::kFileWrite) == "file");
  CHECK(NameOf(Effect::kInstall) == "install");
}

// ------------------------------------------------------------------------- random rule sets

// Reads the table of spec/40 §1.2 a second time, as data: the stage that decides, negative = deny.
int StageByTheBook(const CallFacts& call, Mode mode, const std::vector<std::string>& allow,
                   const std::vector<std::string>& deny) {
  const auto names = [&](const std::vector<std::string>& rules) {
    for (const std::string& rule : rules) {
      const std::string name = rule.substr(0, rule.find('('));
      if (name == "*" || name == call.tool) return true;
      if (name.ends_with("__*") && call.tool.rfind(name.substr(0, name.size() - 1), 0) == 0) {
        return true;
      }
    }
    return false;
  };
  const bool edits = call.tool == "Write" || call.tool == "Edit" || call.tool == "NotebookEdit";
  const bool plan = mode == Mode::kPlan;
  const std::pair<bool, int> rows[] = {
      {names(deny), -1},
      {call.own == OwnVerdict::kDeny, -2},
      {mode == Mode::kBypassPermissions, 3},
      {plan && call.read_only, 4},
      {plan, -4},
      {names(allow), 5},
      {mode == Mode::kAcceptEdits && edits, 6},
      {call.read_only, 7},
      {call.own == OwnVerdict::kAllow, 8},
      {mode == Mode::kDontAsk, -9},
      {mode == Mode::kAuto, -10},
      {true, -12},
  };
  for (const auto& [applies, stage] : rows) {
    if (applies) return stage;
  }
  return 0;
}

struct Draw {
  std::vector<std::string> allow, deny;
  Mode mode = Mode::kDefault;
  CallFacts call;
};

Draw DrawCase(std::mt19937& random) {
  static const std::vector<std::string> rules = {
      "*",         "Bash",         "Bash(git:*)", "Read",         "Write",
      "Write()",   "Edit(src/**)", "MultiEdit",   "NotebookEdit", "TodoWrite",
      "mcp__a__*", "mcp__a__read", "mcp__ab__*",  "web_search",   "LS"};
  static const std::vector<std::string> tools = {
      "Bash",      "Read",         "Write",     "Edit",       "MultiEdit",  "NotebookEdit",
      "TodoWrite", "mcp__a__read", "mcp__a__w", "mcp__ab__x", "web_search", "LS",
      "bash",      "Writ",         "Write2",    "mcp__a"};
  const auto pick = [&](const std::vector<std::string>& of) { return of[random() % of.size()]; };
  Draw draw;
  for (auto n = random() % 4; n > 0; --n) draw.allow.push_back(pick(rules));
  for (auto n = random() % 3; n > 0; --n) draw.deny.push_back(pick(rules));
  draw.mode = static_cast<Mode>(random() % kModeNames.size());
  draw.call = Facts(pick(tools), static_cast<OwnVerdict>(random() % 3), random() % 2 == 0);
  return draw;
}

TEST_CASE("policy: 20,000 random rule sets are judged as the book says") {
  std::mt19937 random(40);
  int faults = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Draw draw = DrawCase(random);
    const Policy policy(draw.mode, RulesOf(draw.allow), RulesOf(draw.deny), RuleSyntax::kNames);
    const Verdict got = policy.Judge(draw.call);
    const int want = StageByTheBook(draw.call, draw.mode, draw.allow, draw.deny);
    faults += (got.allowed ? got.stage : -got.stage) != want;
    faults += policy.DeniesOutright(draw.call.tool) != (want == -1);
  }
  CHECK(faults == 0);
}

TEST_CASE("policy: one more deny rule or one less allow rule never opens anything") {
  std::mt19937 random(41);
  int opened = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Draw draw = DrawCase(random);
    const auto allows = [&](const std::vector<std::string>& allow,
                            const std::vector<std::string>& deny) {
      return Policy(draw.mode, RulesOf(allow), RulesOf(deny), RuleSyntax::kNames)
          .Judge(draw.call)
          .allowed;
    };
    if (allows(draw.allow, draw.deny)) continue;
    std::vector<std::string> fewer = draw.allow;
    if (!fewer.empty()) fewer.pop_back();
    opened += allows(fewer, draw.deny);
    std::vector<std::string> more = draw.deny;
    more.push_back(DrawCase(random).deny.empty() ? "LS" : "mcp__a__*");
    opened += allows(draw.allow, more);
  }
  CHECK(opened == 0);
}

}  // namespace
}  // namespace norma
