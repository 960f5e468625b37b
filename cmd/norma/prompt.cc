#include "cmd/norma/prompt.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cmd/norma/stdio.h"
#include "lib/agent/environment.h"
#include "lib/base/text.h"
#include "lib/io/files.h"

namespace norma::cmd {
namespace {

constexpr size_t kPromptBytesMax = 16u << 20;
constexpr std::string_view kBom = "\xEF\xBB\xBF";

Error TooLarge(std::string_view where) {
  return {Code::kUsage,
          fmt::format("the prompt {} is larger than 16 MiB ({} bytes)", where, kPromptBytesMax)};
}

// The BOM does not count: it is dropped.
Result<std::string> ReadFrom(int fd, std::string_view where, MonoTime deadline,
                             const Cancel& cancel) {
  Result<std::string> read = ReadAll(fd, kPromptBytesMax + kBom.size(), deadline, cancel);
  if (!read.ok()) {
    if (read.error().code != Code::kUsage) return read.error();
    return Error{Code::kUsage, fmt::format("the prompt {}: {}", where, read.error().message)};
  }
  return read;
}

Result<std::string> ReadStdin(MonoTime deadline, ProcessState& process) {
  if (process.stdin_was_closed) return std::string();
  if (isatty(STDIN_FILENO) == 1) {
    return Error{Code::kUsage,
                 "no prompt: give one with -p, --prompt-file, `prompt` in the spec, or on stdin"};
  }
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{Code::kUsage, "the prompt on stdin is a folder"};
  }
  return ReadFrom(STDIN_FILENO, "on stdin", deadline, process.cancel);
}

Result<std::string> ReadPromptFile(const std::string& name, MonoTime deadline,
                                   ProcessState& process) {
  if (name == "-") return ReadStdin(deadline, process);
  const std::string path = JoinPath(process.cwd, name);
  // A pipe is welcome here: <(command) is one. O_NONBLOCK, so that opening a FIFO waits for nobody.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) {
    return Error{Code::kUsage,
                 fmt::format("cannot read the prompt file {}: {}", name, std::strerror(errno))};
  }
  return ReadFrom(file.get(), "in " + name, deadline, process.cancel);
}

// Replaces {{stdin}} and {{env.NAME}} in one pass: what they hold is no template.
Result<std::string> FillTemplate(const std::string& text, MonoTime deadline,
                                 ProcessState& process) {
  std::string out;
  std::optional<std::string> from_stdin;
  size_t at = 0;
  while (true) {
    const size_t open = text.find("{{", at);
    const size_t close = open == std::string::npos ? open : text.find("}}", open);
    if (close == std::string::npos) {
      out.append(text, at);
      return out;
    }
    out.append(text, at, open - at);
    const std::string_view name = Trim(std::string_view(text).substr(open + 2, close - open - 2));
    if (name == "stdin") {
      if (!from_stdin.has_value()) {
        NORMA_ASSIGN(from_stdin, ReadStdin(deadline, process));
      }
      out += *from_stdin;
    } else if (name.starts_with("env.")) {
      const std::string variable(name.substr(4));
      const auto value = agent::Lookup(process.environment, variable);
      if (!value.has_value()) {
        return Error{Code::kUsage, fmt::format("the spec's prompt uses {{{{env.{}}}}}, but {} is "
                                               "not set",
                                               variable, variable)};
      }
      out += *value;
    } else {
      out += "{{";  // somebody else's braces; ours may follow inside
      at = open + 2;
      continue;
    }
    if (out.size() > kPromptBytesMax + kBom.size()) return TooLarge("after filling it in");
    at = close + 2;
  }
}

Result<std::string> FindRaw(const RunFlags& flags, const spec::RunSpec& spec, MonoTime deadline,
                            ProcessState& process) {
  if (flags.prompt.has_value()) return *flags.prompt;
  if (flags.prompt_file.has_value()) {
    return ReadPromptFile(*flags.prompt_file, deadline, process);
  }
  if (spec.prompt.has_value()) return FillTemplate(*spec.prompt, deadline, process);
  return ReadStdin(deadline, process);
}

}  // namespace

Result<Prompt> FindPrompt(const RunFlags& flags, const spec::RunSpec& spec, MonoTime deadline,
                          ProcessState& process) {
  NORMA_ASSIGN(std::string raw, FindRaw(flags, spec, deadline, process));
  if (raw.starts_with(kBom)) raw.erase(0, kBom.size());
  if (raw.size() > kPromptBytesMax) return TooLarge("");
  Prompt prompt;
  prompt.was_repaired = !IsValidUtf8(raw);
  prompt.text = prompt.was_repaired ? RepairUtf8(raw) : std::move(raw);
  if (IsBlank(prompt.text)) {
    return Error{
        Code::kUsage,
        "the prompt is blank: give one with -p, --prompt-file, `prompt` in the spec, or on "
        "stdin"};
  }
  return prompt;
}

}  // namespace norma::cmd
