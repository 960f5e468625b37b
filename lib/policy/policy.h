// The part that says no: mode, rules and a tool's own verdict in, one verdict out. Pure: no I/O, no
// clock, no tool. Can be read, tested as a table and fuzzed alone. Order: spec/40 §1.2.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace norma {

enum class Mode { kDefault, kAcceptEdits, kBypassPermissions, kPlan, kDontAsk, kAuto };
inline constexpr std::array<std::string_view, 6> kModeNames = {
    "default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto"};
std::string_view NameOf(Mode mode);
std::optional<Mode> ModeOf(std::string_view name);

enum class RuleSyntax { kNames, kArguments };

// One entry of `allow` or `deny`.
struct Rule {
  std::string text;      // trimmed, as written
  std::string tool;      // "*", a tool's name, or `mcp__server__*`
  std::string argument;  // between the first ( and the last ), empty when there is none
  bool has_argument = false;
  std::string source;  // file:line, or "--set"
  int line = 0;        // 0 when it comes from no file

  friend bool operator==(const Rule&, const Rule&) = default;
};

// Splits "Bash(git log *)"; kInvalid for a rule that can match nothing ("(x)", "Bash (x)", "").
Result<Rule> ParseRule(std::string_view text);
// `*`, the exact name, or `mcp__server__*` against a name.
bool RuleMatchesTool(const Rule& rule, std::string_view tool);

// An effect a call is going to have, as far as its arguments tell before it runs.
enum class Effect { kNone, kProcess, kFileRead, kFileWrite, kHttp, kMcp, kSearch, kInstall };
std::string_view NameOf(Effect effect);  // process, file, file, http, mcp, search, install

struct Action {
  Effect effect = Effect::kNone;
  std::string target;   // command line, real path, URL … by effect
  std::string spelled;  // paths: as the model wrote it
  friend bool operator==(const Action&, const Action&) = default;
};

enum class OwnVerdict { kAsk, kAllow, kDeny };

// What is known of a call when it is judged.
struct CallFacts {
  std::string tool;
  bool read_only = false;
  OwnVerdict own = OwnVerdict::kAsk;
  std::string own_message;      // the reason of an own deny
  std::vector<Action> actions;  // for rules with arguments
};

struct Verdict {
  bool allowed = false;
  int stage = 0;       // row of spec/40 §1.2
  std::string rule;    // the deciding rule's text, empty when none decided
  std::string source;  // where that rule stands (file:line)
  int line = 0;
  std::string message;  // for the model: why it was denied

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

class Policy {
 public:
  Policy() = default;
  Policy(Mode mode, std::vector<Rule> allow, std::vector<Rule> deny, RuleSyntax syntax);

  // Deny beats allow, no rule means deny. The mode is read live: plan mode may change it.
  Verdict Judge(const CallFacts& call) const { return Judge(call, mode_); }
  Verdict Judge(const CallFacts& call, Mode mode) const;

  // A deny rule names the whole tool: it is not offered to the model.
  bool DeniesOutright(std::string_view tool) const;

  Mode mode() const { return mode_; }
  const std::vector<Rule>& allow() const { return allow_; }
  const std::vector<Rule>& deny() const { return deny_; }
  RuleSyntax syntax() const { return syntax_; }

  // Canonical text of mode, syntax and rules: hashed into `policy_hash`.
  std::string Canonical() const;

 private:
  Mode mode_ = Mode::kDefault;
  std::vector<Rule> allow_;
  std::vector<Rule> deny_;
  RuleSyntax syntax_ = RuleSyntax::kNames;
};

// Bash's safety floor (spec/41 §4): a reason to deny whatever the mode, or empty.
std::string BashFloorReason(std::string_view command);

}  // namespace norma
