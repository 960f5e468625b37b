// Bash: one command line in a shell of its own. The text for the model is the command's output and,
// in brackets, how it ended; the limits are those of io/process.h.
#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/text.h"
#include "lib/io/process.h"
#include "lib/policy/policy.h"
#include "lib/tool/builtins.h"
#include "lib/tool/capture.h"

namespace norma::tool {
namespace {

constexpr Millis kTimeoutMax{600'000};
constexpr uint64_t kOutputBytesMax = 50ull << 20;
constexpr size_t kSummaryBytesMax = 120;

constexpr std::string_view kDescription =
    "Runs a command line with `bash -c` in the working folder and returns what it writes to stdout "
    "and stderr. Each call is a new shell: folder changes and variables do not last. There is no "
    "terminal and no input, so use flags that keep a program from asking. A non-zero exit code "
    "makes the result an error and is named at its end. A command that exceeds its timeout is "
    "killed with everything it started. Output that is too long is shown as its start and its end; "
    "the whole is kept in a file that the result names. To read, search or change files use the "
    "tools made for that.";

constexpr std::string_view kSchema =
    R"({"type":"object","properties":{)"
    R"("command":{"type":"string","description":"The command line."},)"
    R"("timeout_ms":{"type":"integer","description":"Milliseconds after which it is killed. )"
    R"(Without it, or when it is 0 or less, the run's default applies (usually 120000); )"
    R"(more than 600000 counts as 600000."}},)"
    R"("required":["command"]})";

// What one call is going to do, fixed when it is judged.
struct BashCall {
  std::string command;
  Millis timeout{0};
};

std::string Summary(const std::string& command) {
  const std::string_view trimmed = Trim(command);
  const std::string_view line = trimmed.substr(0, trimmed.find('\n'));
  const std::string_view shown = CutUtf8(line, kSummaryBytesMax);
  return fmt::format("bash: {}{}", shown, shown.size() < trimmed.size() ? "…" : "");
}

std::vector<std::string> Environment(const ToolEnv& env) {
  // Programs that would wait for somebody at a terminal.
  constexpr std::array<std::string_view, 3> kOurs = {"GIT_TERMINAL_PROMPT=0", "PAGER=cat",
                                                     "GIT_PAGER=cat"};
  std::vector<std::string> result;
  for (const std::string& entry : env.child_env) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    const bool replaced = std::ranges::any_of(
        kOurs, [&](std::string_view ours) { return !name.empty() && ours.starts_with(name); });
    if (!replaced) result.push_back(entry);
  }
  result.insert(result.end(), kOurs.begin(), kOurs.end());
  return result;
}

std::string Shown(Millis duration) {
  const auto count = duration.count();
  return count > 0 && count % 1000 == 0 ? fmt::format("{} s", count / 1000)
                                        : fmt::format("{} ms", count);
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal)
                         : fmt::format("signal {} (SIG{})", signal, name);
}

// How it ended, "" for a success. `timeout`: the limit that applied; zero when the run's own
// deadline came first.
std::string Ending(const ProcessResult& result, Millis timeout) {
  if (result.cancelled) return "[command cancelled: the run is ending]";
  if (result.timed_out && timeout.count() > 0) {
    return fmt::format("[command timed out after {} and was killed]", Shown(timeout));
  }
  if (result.timed_out) {
    return fmt::format("[command timed out after {} and was killed: no time is left for this call]",
                       Shown(result.duration));
  }
  if (result.output_overflow) {
    return fmt::format("[command killed: it wrote more than {}]", FormatBytes(kOutputBytesMax));
  }
  if (result.signal != 0) {
    return fmt::format("[killed by {}, exit code -1]", SignalName(result.signal));
  }
  return result.exit_code == 0 ? "" : fmt::format("[exit code {}]", result.exit_code);
}

ToolOutput Render(const ProcessResult& result, Millis timeout, const std::string& spill_path,
                  const ToolEnv& env) {
  if (!result.started) return Fail(fmt::format("[failed to run: {}]", result.start_error));
  ToolOutput output;
  output.truncated = result.omitted > 0;
  output.text = output.truncated ? JoinCut(result.head, result.tail, result.bytes,
                                           result.spilled ? spill_path : "", env)
                                 : result.head;
  const std::string ending = Ending(result, timeout);
  if (ending.empty()) {
    if (IsBlank(output.text)) output.text = "(command produced no output)";
    return output;
  }
  output.is_error = true;
  if (IsBlank(output.text)) output.text = "(no output)";
  if (output.text.ends_with('\n')) output.text.pop_back();
  output.text += "\n\n" + ending;
  return output;
}

ActionReport Outcome(ActionReport report, const ProcessResult& result) {
  if (result.started && result.signal == 0) report.exit = result.exit_code;
  if (result.signal != 0) report.signal = result.signal;
  report.bytes = static_cast<int64_t>(result.bytes);
  if (result.killed > 0) report.killed = result.killed;
  report.timed_out = result.timed_out;
  report.cancelled = result.cancelled;
  report.truncated = result.omitted > 0 || result.output_overflow;
  report.duration = result.duration;
  if (!result.started) report.error = result.start_error;
  if (result.output_overflow) report.error = "too much output";
  return report;
}

ToolOutput Run(const BashCall& call, ToolContext& context) {
  const ToolEnv& env = context.env();
  ActionReport report;
  report.effect = "process";
  report.summary = Summary(call.command);
  report.command = call.command;
  auto action = context.Begin(report);
  if (!action.ok()) return Fail(action.error().message);

  Clock& clock = env.clock == nullptr ? SystemClock() : *env.clock;
  ProcessSpec spec;
  spec.argv = {"bash", "-c", call.command};
  spec.env = Environment(env);
  spec.cwd = env.cwd;
  spec.marker = env.run_marker + ":" + context.call_id();
  spec.head_bytes_max = env.output_bytes / 2;
  spec.tail_bytes_max = env.output_bytes - spec.head_bytes_max;
  spec.spill_path = NextSpillPath(env);
  spec.output_bytes_max = kOutputBytesMax;
  const MonoTime own_deadline = clock.Now() + call.timeout;
  spec.deadline = std::min(own_deadline, context.deadline());
  const ProcessResult result = RunProcess(spec, clock, context.cancel());
  context.End(action.value(), Outcome(std::move(report), result));
  const Millis timeout = spec.deadline == own_deadline ? call.timeout : Millis(0);
  return Render(result, timeout, spec.spill_path, env);
}

Result<Prepared> Prepare(json::Value arguments, const ToolEnv& env) {
  BashCall call;
  call.command = arguments["command"].Str();
  // The shell would be given the part before it, which is not what was judged.
  if (call.command.find('\0') != std::string::npos) {
    return Error{Code::kInvalid, "command holds a NUL character, which no command line can"};
  }
  const Millis asked(arguments["timeout_ms"].Int());
  const Millis most = std::max(kTimeoutMax, env.bash_timeout);
  call.timeout = asked.count() <= 0 ? env.bash_timeout : std::min(asked, most);

  Prepared prepared;
  prepared.actions = {Action{Effect::kProcess, call.command, call.command}};
  prepared.own_message = BashFloorReason(call.command);
  if (!prepared.own_message.empty()) prepared.own = OwnVerdict::kDeny;
  if (IsBlank(call.command)) {
    prepared.run = [](ToolContext&) { return Fail("the command is blank: nothing was run"); };
  } else {
    prepared.run = [call](ToolContext& context) { return Run(call, context); };
  }
  return prepared;
}

}  // namespace

Tool BashTool() {
  return Tool{.name = "Bash",
              .description = std::string(kDescription),
              .input_schema = std::string(kSchema),
              .read_only = false,
              .own = OwnVerdict::kAsk,
              .prepare = Prepare};
}

}  // namespace norma::tool
