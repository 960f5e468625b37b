// What needs no spec: exit codes, schemas, completions. All of it derives from the tables the code
// itself uses.
#include <fmt/core.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cmd/norma/commands.h"
#include "cmd/norma/load.h"
#include "cmd/norma/stdio.h"
#include "lib/base/text.h"
#include "lib/chat/end_reason.h"
#include "lib/ledger/reader.h"
#include "lib/spec/load.h"

namespace norma::cmd {
namespace {

constexpr Millis kGrace{1'000};

int Print(std::string_view text) {
  const Cancel never;
  return WriteAll(STDOUT_FILENO, text, never, kGrace) == WriteOutcome::kDone
             ? 0
             : ExitCodeOf(EndReason::kAbortedOutput);
}

std::string BashCompletion() {
  return fmt::format(R"(# bash completion for norma
_norma() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$current") $(compgen -f -- "$current"))
  elif [ "${{current#-}}" != "$current" ]; then
    COMPREPLY=($(compgen -W "{}" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _norma norma
)",
                     Join(CommandNames(), " "), Join(FlagNames(), " "));
}

std::string ZshCompletion() {
  return fmt::format(R"(#compdef norma
_norma() {{
  if (( CURRENT == 2 )); then
    compadd -- {}
    _files
  elif [[ "$words[CURRENT]" == -* ]]; then
    compadd -- {}
  else
    _files
  fi
}}
_norma "$@"
)",
                     Join(CommandNames(), " "), Join(FlagNames(), " "));
}

std::string FishCompletion() {
  std::string out = "# fish completion for norma\n";
  for (const std::string& command : CommandNames()) {
    out += fmt::format("complete -c norma -n __fish_use_subcommand -a {}\n", command);
  }
  for (const std::string& flag : FlagNames()) {
    out += fmt::format("complete -c norma -l {}\n", flag.substr(2));
  }
  return out;
}

}  // namespace

const std::vector<std::string>& CommandNames() {
  static const std::vector<std::string> names = {
      "run", "check", "explain", "ledger", "probe", "schema", "completion", "help", "batch"};
  return names;
}

const std::vector<std::string>& FlagNames() {
  static const std::vector<std::string> names = {
      "--prompt", "--prompt-file", "--ledger", "--output",  "--set",    "--model",
      "--cwd",    "--deadline",    "--quiet",  "--verbose", "--resume", "--record",
      "--replay", "--json",        "--help",   "--version"};
  return names;
}

int SchemaCommand(const std::string& what) {
  return Print((what == "spec" ? spec::SpecSchemaJson(KnownTools()) : ledger::LedgerSchemaJson()) +
               "\n");
}

int CompletionCommand(const std::string& shell) {
  return Print(shell == "bash"  ? BashCompletion()
               : shell == "zsh" ? ZshCompletion()
                                : FishCompletion());
}

int HelpExitCodesCommand() {
  std::string out = "exit     reason               when\n";
  for (const EndReasonRow& row : kEndReasons) {
    const std::string code = row.exit_code >= 0 ? std::to_string(row.exit_code) : "128+N";
    out += fmt::format("{:<8} {:<20} {}\n", code, row.name, row.when);
  }
  out +=
      "\nOther commands: check 0/2 · explain 0 allow, 7 deny, 2 no such call · ledger verify 0\n"
      "intact and complete, 1 not intact, 3 intact but incomplete. 128+N: signal N (130 INT,\n"
      "143 TERM, 129 HUP, 141 stdout closed).\n";
  return Print(out);
}

}  // namespace norma::cmd
