// One rule of `allow` or `deny`, taken apart and held against a tool's name. Strict on purpose: a
// deny rule that can match nothing is a hole that its writer believes to be closed (spec/40 §1.3).
#include <fmt/core.h>

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/policy/policy.h"

namespace norma {
namespace {

constexpr std::string_view kMcpPrefix = "mcp__";
// Enough of an unreadable rule to find it again.
constexpr size_t kShownBytesMax = 80;

// What the model APIs take as the name of a tool; no tool of ours or of a server is named
// otherwise.
bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsNameByte);
}

// "mcp__server__*" → "mcp__server__"; empty when the pattern is no such wildcard.
std::string_view PrefixOfServer(std::string_view pattern) {
  if (!pattern.starts_with(kMcpPrefix) || !pattern.ends_with("__*")) return {};
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);
  if (prefix.size() <= kMcpPrefix.size() + 2) return {};  // no server's name in between
  return IsName(prefix) ? prefix : std::string_view();
}

Error BadRule(std::string_view rule, std::string_view why) {
  const std::string_view shown = CutUtf8(rule, kShownBytesMax);
  return Error{Code::kInvalid, fmt::format("rule {}{} {}", json::Quote(shown),
                                           shown.size() < rule.size() ? " (cut)" : "", why)};
}

// Why `name`, which is neither `*` nor a server's wildcard, can match no tool; empty when it can.
std::string WhyNoName(std::string_view name) {
  if (name.find('*') != std::string_view::npos) {
    return "has a * that can match nothing: the only wildcards in names are * alone and "
           "mcp__SERVER__*";
  }
  if (name != Trim(name)) {
    return fmt::format("can match nothing: there is a blank before the parenthesis; write {}(...)",
                       Trim(name));
  }
  if (!IsName(name)) {
    return "can match nothing: a tool's name is made of letters, digits, _ and - alone";
  }
  // Other programs read this as "all tools of the server"; here it would silently do nothing.
  if (name.starts_with(kMcpPrefix) &&
      name.find("__", kMcpPrefix.size()) == std::string_view::npos) {
    return fmt::format(
        "can match nothing: an MCP tool is named mcp__SERVER__TOOL; write {}__* for all tools of "
        "the server",
        name);
  }
  return {};
}

}  // namespace

Result<Rule> ParseRule(std::string_view text) {
  Rule rule;
  rule.text = Trim(text);
  const std::string_view written = rule.text;
  if (written.empty()) return BadRule(written, "is empty; write a tool's name, or * for all tools");
  const size_t open = written.find('(');
  const std::string_view name = written.substr(0, open);
  if (name.empty()) {
    return BadRule(written, "can match nothing: there is no tool's name before the parenthesis");
  }
  rule.tool = name;
  const bool is_wildcard = name == "*" || !PrefixOfServer(name).empty();
  if (!is_wildcard) {
    if (const std::string why = WhyNoName(name); !why.empty()) return BadRule(written, why);
  }
  if (open == std::string_view::npos) return rule;
  if (is_wildcard) {
    return BadRule(written,
                   "can match nothing: an argument needs the name of one tool before it; write the "
                   "wildcard without parentheses");
  }
  const size_t close = written.rfind(')');
  if (close == std::string_view::npos || close != written.size() - 1) {
    return BadRule(written, "must end with the parenthesis that closes its argument");
  }
  rule.has_argument = true;
  rule.argument = written.substr(open + 1, close - open - 1);
  return rule;
}

bool RuleMatchesTool(const Rule& rule, std::string_view tool) {
  if (rule.tool == "*" || rule.tool == tool) return true;
  const std::string_view prefix = PrefixOfServer(rule.tool);
  return !prefix.empty() && tool.size() > prefix.size() && tool.starts_with(prefix);
}

}  // namespace norma
