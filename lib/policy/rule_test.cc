#include <doctest/doctest.h>

#include <random>

#include "lib/policy/policy.h"

namespace norma {
namespace {

Rule Made(std::string text, std::string tool) {
  Rule rule;
  rule.text = std::move(text);
  rule.tool = std::move(tool);
  return rule;
}

Rule Made(std::string text, std::string tool, std::string argument) {
  Rule rule = Made(std::move(text), std::move(tool));
  rule.argument = std::move(argument);
  rule.has_argument = true;
  return rule;
}

TEST_CASE("rule: a rule is trimmed and split at its first and last parenthesis") {
  const std::pair<const char*, Rule> cases[] = {
      {"Bash", Made("Bash", "Bash")},
      {" \t Bash\r\n", Made("Bash", "Bash")},
      {"*", Made("*", "*")},
      {" * ", Made("*", "*")},
      {"web_search", Made("web_search", "web_search")},
      {"toString", Made("toString", "toString")},
      {"__proto__", Made("__proto__", "__proto__")},
      {"Bash(git log *)", Made("Bash(git log *)", "Bash", "git log *")},
      {"Bash(git:*)", Made("Bash(git:*)", "Bash", "git:*")},
      {"Bash()", Made("Bash()", "Bash", "")},
      {"Bash( x )", Made("Bash( x )", "Bash", " x ")},
      {"Bash(echo $(date))", Made("Bash(echo $(date))", "Bash", "echo $(date)")},
      {"Bash(a) (b)", Made("Bash(a) (b)", "Bash", "a) (b")},
      {"Write(src/**)", Made("Write(src/**)", "Write", "src/**")},
      {"mcp__files__*", Made("mcp__files__*", "mcp__files__*")},
      {"mcp__files__read", Made("mcp__files__read", "mcp__files__read")},
      {"mcp__a__b__*", Made("mcp__a__b__*", "mcp__a__b__*")},
      {"mcp__files__read(x)", Made("mcp__files__read(x)", "mcp__files__read", "x")},
  };
  for (const auto& row : cases) {  // doctest's lambdas cannot capture a binding with clang 14
    const Result<Rule> got = ParseRule(row.first);
    REQUIRE_MESSAGE(got.ok(), row.first);
    CHECK_MESSAGE(got.value() == row.second, row.first);
  }
}

TEST_CASE("rule: what can match nothing is an error that says what to write") {
  const std::pair<const char*, const char*> cases[] = {
      {"", "write a tool's name"},
      {" \n ", "write a tool's name"},
      {"(x)", "no tool's name before the parenthesis"},
      {"Bash (x)", "write Bash(...)"},
      {"Bash\t(x)", "write Bash(...)"},
      {"Bash(x", "closes its argument"},
      {"Bash(x) y", "closes its argument"},
      {"Bash(", "closes its argument"},
      {"Bash)", "letters, digits"},
      {"Bash git", "letters, digits"},
      {"Bash,Write", "letters, digits"},
      {"B\xC3\xA4sh", "letters, digits"},
      {"Bash\xC2\xA0", "letters, digits"},  // a no-break space from a web page
      {"Ba*", "only wildcards"},
      {"**", "only wildcards"},
      {"mcp__*", "only wildcards"},
      {"mcp____*", "only wildcards"},
      {"mcp__a b__*", "only wildcards"},
      {"mcp__files__re*", "only wildcards"},
      {"mcp__*__read", "only wildcards"},
      {"*(x)", "name of one tool"},
      {"mcp__files__*(x)", "name of one tool"},
      {"mcp__files", "write mcp__files__*"},
      {"mcp__", "mcp__SERVER__TOOL"},
  };
  for (const auto& row : cases) {
    const Result<Rule> got = ParseRule(row.first);
    REQUIRE_MESSAGE(!got.ok(), row.first);
    CHECK(got.error().code == Code::kInvalid);
    CHECK_MESSAGE(got.error().message.find(row.second) != std::string::npos, got.error().message);
    CHECK(got.error().message.starts_with("rule \""));
  }
}

TEST_CASE("rule: an error shows a bounded, printable piece of the rule") {
  const Result<Rule> got = ParseRule("Bash " + std::string(100'000, '\x01'));
  REQUIRE(!got.ok());
  CHECK(got.error().message.size() < 1000);
  CHECK(got.error().message.find('\x01') == std::string::npos);
}

TEST_CASE("rule: a name matches itself, * everything, a server's wildcard its tools") {
  struct Row {
    const char* rule;
    const char* tool;
    bool matches;
  };
  const Row rows[] = {
      {"Bash", "Bash", true},
      {"Bash", "bash", false},
      {"Bash", "BashX", false},
      {"Bash", "Bas", false},
      {"Bash", "", false},
      {"Bash(x)", "Bash", true},
      {"*", "Bash", true},
      {"*", "mcp__a__b", true},
      {"mcp__a__*", "mcp__a__b", true},
      {"mcp__a__*", "mcp__a__b__c", true},
      {"mcp__a__*", "mcp__a__", false},
      {"mcp__a__*", "mcp__a", false},
      {"mcp__a__*", "mcp__ab__c", false},
      {"mcp__a__*", "xmcp__a__b", false},
      {"mcp__a__*", "MCP__a__b", false},
      {"mcp__a__*", "Bash", false},
      {"mcp__a__b", "mcp__a__b", true},
      {"mcp__a__b", "mcp__a__bc", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rule);
    CAPTURE(row.tool);
    CHECK(RuleMatchesTool(ParseRule(row.rule).value(), row.tool) == row.matches);
  }
  // A rule that was never parsed matches nothing.
  CHECK_FALSE(RuleMatchesTool(Rule{}, "Bash"));
}

TEST_CASE("rule: any text is either refused or means what spec/40 says") {
  // A second reading: trimmed; `*`, or the name, or the name before the first parenthesis.
  constexpr std::string_view kAlphabet = "Bash()* _mcp__a\t\n\"\\";
  std::mt19937 random(42);
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    if (random() % 2 == 0) text = random() % 2 == 0 ? "Bash" : "mcp__a__";
    for (auto n = random() % 8; n > 0; --n) text += kAlphabet[random() % kAlphabet.size()];
    const Result<Rule> rule = ParseRule(text);
    if (!rule.ok()) continue;
    ++accepted;
    const std::string& written = rule.value().text;
    REQUIRE(ParseRule(written).value() == rule.value());
    const std::string name = written.substr(0, written.find('('));
    const bool matches = written == "*" || name == "Bash";
    REQUIRE_MESSAGE(RuleMatchesTool(rule.value(), "Bash") == matches, written);
    REQUIRE(rule.value().has_argument == (written.find('(') != std::string::npos));
  }
  CHECK(accepted > 1000);
}

}  // namespace
}  // namespace norma
