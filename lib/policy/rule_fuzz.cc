// Fuzz target: rules. Whatever is accepted as a rule meets the tool it names, and a policy that
// only denies never allows a call of that tool in any mode.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/policy/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace norma;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rule = ParseRule(text);
  if (!rule.ok()) return 0;
  const bool is_pattern = rule.value().tool.find('*') != std::string::npos;
  if (!is_pattern) NORMA_CHECK(RuleMatchesTool(rule.value(), rule.value().tool));
  CallFacts call;
  call.tool = is_pattern ? "mcp__server__tool" : rule.value().tool;
  call.read_only = true;
  for (const Mode mode : {Mode::kDefault, Mode::kBypassPermissions, Mode::kDontAsk, Mode::kPlan}) {
    const Policy policy(mode, {rule.value()}, {rule.value()}, RuleSyntax::kNames);
    if (RuleMatchesTool(rule.value(), call.tool)) NORMA_CHECK(!policy.Judge(call).allowed);
  }
  return 0;
}
