// Rules, commands and calls from arbitrary bytes. A line `+rule` allows, `-rule` denies, any other
// line is the name of a called tool and a Bash command. Stops when a verdict breaks a promise.
#include <cstdint>
#include <cstdlib>

#include "lib/base/text.h"
#include "lib/policy/policy.h"

namespace {

void Must(bool holds) {
  if (!holds) std::abort();
}

void AddRule(std::string_view text, std::vector<norma::Rule>* rules) {
  norma::Result<norma::Rule> rule = norma::ParseRule(text);
  if (!rule.ok()) return;
  // What was accepted is the same rule when it is read again, and can match something.
  const norma::Result<norma::Rule> again = norma::ParseRule(rule.value().text);
  Must(again.ok() && again.value() == rule.value() && !rule.value().tool.empty());
  rules->push_back(std::move(rule).value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto mode = static_cast<norma::Mode>(data[0] % norma::kModeNames.size());
  const auto own = static_cast<norma::OwnVerdict>(data[0] / 8 % 3);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<norma::Rule> allow, deny;
  for (const std::string_view line : norma::SplitLines(text)) {
    if (line.starts_with('+')) AddRule(line.substr(1), &allow);
    if (line.starts_with('-')) AddRule(line.substr(1), &deny);
  }
  const norma::Policy policy(mode, allow, deny, norma::RuleSyntax::kNames);
  const norma::Policy no_rules(mode, {}, {}, norma::RuleSyntax::kNames);
  for (const std::string_view line : norma::SplitLines(text)) {
    norma::CallFacts call;
    call.tool = line;
    call.own = norma::BashFloorReason(line).empty() ? own : norma::OwnVerdict::kDeny;
    const norma::Verdict verdict = policy.Judge(call);
    Must(verdict.allowed == verdict.message.empty());
    Must(!verdict.allowed || call.own != norma::OwnVerdict::kDeny);
    Must(!verdict.allowed || !policy.DeniesOutright(line));
    // Without an allow rule nothing opens that the mode and the tool alone would not open.
    if (verdict.allowed && verdict.rule.empty()) Must(no_rules.Judge(call).allowed);
  }
  return 0;
}
