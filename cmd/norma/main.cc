// norma: the command line. Parses flags into plain data and hands them to one function a
// subcommand.
#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>

#include "cmd/norma/commands.h"
#include "cmd/norma/stdio.h"
#include "lib/base/text.h"
#include "lib/chat/end_reason.h"

namespace norma::cmd {
namespace {

constexpr int kUsageExit = ExitCodeOf(EndReason::kUsage);

struct AllFlags {
  RunFlags run;
  ExplainFlags explain;
  SpecFlags check;
  ProbeFlags probe;
  bool check_json = false;
  bool cost_json = false;
  std::string output = "text";
  std::vector<std::string> files;
  std::string what;
  std::string later;  // value of a flag whose feature is not built yet
};

void AddSpecFlags(CLI::App* app, SpecFlags& flags) {
  app->add_option("SPEC", flags.spec, "the run spec (YAML or JSON)")->required();
  app->add_option("--set", flags.sets, "KEY=VALUE in the spec, e.g. budgets.turns=5; repeatable")
      ->allow_extra_args(false);
  app->add_option("--model", flags.model, "model.name");
  app->add_option("--cwd", flags.cwd, "folder the tools work in (default: this one)");
  app->add_option("--deadline", flags.deadline, "budgets.wall, e.g. 90s");
  app->add_option("--ledger", flags.ledger, "file of the ledger");
}

int Dispatch(CLI::App& app, AllFlags& flags) {
  const auto is = [&](const char* name) { return app.got_subcommand(name); };
  if (is("schema")) return SchemaCommand(flags.what);
  if (is("completion")) return CompletionCommand(flags.what);
  if (is("ledger")) {
    return app.get_subcommand("ledger")->got_subcommand("verify")
               ? LedgerVerifyCommand(flags.files)
               : LedgerCostCommand(flags.files, flags.cost_json);
  }
  ProcessState process;
  if (is("check")) return CheckCommand(flags.check, flags.check_json, process);
  if (is("explain")) return ExplainCommand(flags.explain, process);
  if (is("probe")) {
    if (app.get_subcommand("probe")->got_subcommand("model")) {
      return ProbeModelCommand(flags.probe, process);
    }
    Complain("norma: of the probes only `norma probe model` is supported yet\n");
    return kUsageExit;
  }
  if (!flags.later.empty()) {
    Complain("norma: --resume is not supported yet\n");
    return kUsageExit;
  }
  flags.run.output = flags.output == "json"          ? OutputFormat::kJson
                     : flags.output == "stream-json" ? OutputFormat::kStreamJson
                                                     : OutputFormat::kText;
  return RunCommand(flags.run, process);
}

void Define(CLI::App& app, AllFlags& flags) {
  app.set_version_flag("--version", "norma " NORMA_VERSION);
  app.require_subcommand(1);
  CLI::App* run = app.add_subcommand("run", "run one prompt through the loop");
  AddSpecFlags(run, flags.run.spec);
  run->add_option("-p,--prompt", flags.run.prompt, "the prompt");
  run->add_option("--prompt-file", flags.run.prompt_file, "file with the prompt; - is stdin");
  run->add_option("-o,--output", flags.output, "what stdout carries")
      ->check(CLI::IsMember({"text", "json", "stream-json"}));
  run->add_flag("-q,--quiet", flags.run.quiet, "no progress on stderr");
  run->add_flag("-v,--verbose", flags.run.verbose, "more progress on stderr");
  CLI::Option* record =
      run->add_option("--record", flags.run.record, "write every HTTP exchange to this folder");
  run->add_option("--replay", flags.run.replay, "take every answer from this folder, send nothing")
      ->excludes(record);
  run->add_option("--resume", flags.later, "not supported yet");
  CLI::App* probe = app.add_subcommand("probe", "one real call, to see whether a spec works");
  probe->require_subcommand(1);
  for (const char* what : {"model", "search", "mcp"}) {
    CLI::App* one = probe->add_subcommand(what, std::string("probe the ") + what);
    AddSpecFlags(one, flags.probe.spec);
    one->add_flag("--json", flags.probe.json, "as one JSON object");
  }
  CLI::App* check = app.add_subcommand("check", "validate a spec and show what it means");
  AddSpecFlags(check, flags.check);
  check->add_flag("--json", flags.check_json, "as one JSON object");
  CLI::App* explain = app.add_subcommand("explain", "the verdict for one tool call");
  AddSpecFlags(explain, flags.explain.spec);
  explain->add_option("TOOL", flags.explain.tool, "name of the tool")->required();
  explain->add_option("JSON", flags.explain.input, "arguments of the call")->required();
  CLI::App* ledger = app.add_subcommand("ledger", "read ledgers");
  ledger->require_subcommand(1);
  CLI::App* verify = ledger->add_subcommand("verify", "check the chain and the totals");
  verify->add_option("FILE", flags.files)->required();
  CLI::App* cost = ledger->add_subcommand("cost", "what was paid, by model, tool and day");
  cost->add_option("FILE", flags.files)->required();
  cost->add_flag("--json", flags.cost_json, "as one JSON object");
  CLI::App* schema = app.add_subcommand("schema", "JSON Schema of the spec or the ledger");
  schema->add_option("WHAT", flags.what)->required()->check(CLI::IsMember({"spec", "ledger"}));
  CLI::App* completion = app.add_subcommand("completion", "shell completion script");
  completion->add_option("SHELL", flags.what)
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

// What a typo most likely meant: of a flag or of a command.
std::string Hint(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    const std::string name = argument.substr(0, argument.find('='));
    const auto& flags = FlagNames();
    if (std::find(flags.begin(), flags.end(), name) != flags.end()) continue;
    const std::string near = Nearest(name, flags);
    if (!near.empty()) return fmt::format("; did you mean {} instead of {}?", near, name);
  }
  return "";
}

int Main(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments[0] == "help") {
    if (arguments.size() > 1 && arguments[1] == "exit-codes") return HelpExitCodesCommand();
    arguments = {"--help"};
  }
  const auto& commands = CommandNames();
  const bool is_command =
      arguments.empty() || arguments[0].starts_with('-') ||
      std::find(commands.begin(), commands.end(), arguments[0]) != commands.end();
  if (!is_command) {
    const std::string& first = arguments[0];
    if (first.find_first_of("./") == std::string::npos && access(first.c_str(), F_OK) != 0) {
      const std::string near = Nearest(first, commands);
      Complain(fmt::format("norma: there is no command and no spec file {}{}\n", first,
                           near.empty() ? "" : fmt::format("; did you mean {}?", near)));
      return kUsageExit;
    }
    arguments.insert(arguments.begin(), "run");  // norma SPEC is the short form
  }
  if (!arguments.empty() && arguments[0] == "batch") {
    Complain(fmt::format("norma: `norma {}` is not supported yet\n", arguments[0]));
    return kUsageExit;
  }
  CLI::App app("norma runs LLM agents where nobody watches", "norma");
  AllFlags flags;
  Define(app, flags);
  const std::vector<std::string> as_given = arguments;
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them last first
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    Complain(fmt::format("norma: {}{}\nTry `norma --help`.\n", error.what(), Hint(as_given)));
    return kUsageExit;
  }
  return Dispatch(app, flags);
}

}  // namespace
}  // namespace norma::cmd

int main(int argc, char** argv) {
  try {
    return norma::cmd::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    norma::cmd::Complain(fmt::format("norma: internal: {}; please report this\n", error.what()));
    return norma::ExitCodeOf(norma::EndReason::kInternal);
  }
}
