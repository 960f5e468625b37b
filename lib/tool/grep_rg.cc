// See grep_rg.h.
#include "lib/tool/grep_rg.h"

#include <algorithm>

#include "lib/io/process.h"
#include "lib/tool/grep_literals.h"

namespace norma::tool {
namespace {

// Names on one command line; the kernel takes at least 1 MiB with the environment.
constexpr size_t kArgumentBytesMax = 512 * 1024;

constexpr size_t kTextsCheap = 3;  // as many are looked for one after the other

// Every flag that a configuration, an ignore file or another default could turn is pinned. Names
// are given one by one, so ripgrep walks nothing: which files are searched is decided in walk.cc
// alone.
std::vector<std::string> BaseArguments(const GrepSearch& search) {
  std::vector<std::string> argv = {
      search.env.ripgrep,
      "--no-config",
      "--no-messages",
      "--color=never",
      "--no-ignore",
      "--hidden",
      "--no-mmap",
      "--text",
      "--encoding=none",
      "--fixed-strings",
      "--files-with-matches",
      "--null",
      search.matcher.ignore_case() ? "--ignore-case" : "--case-sensitive"};
  for (const std::string& text : search.matcher.required().any_of) {
    argv.push_back("-e");
    argv.push_back(text);
  }
  argv.push_back("--");
  return argv;
}

std::vector<std::string> CleanEnvironment(const std::vector<std::string>& env) {
  std::vector<std::string> clean;
  for (const std::string& entry : env) {
    if (entry.rfind("RIPGREP_CONFIG_PATH=", 0) != 0) clean.push_back(entry);
  }
  return clean;
}

// Asks about files[begin, end), which are sorted by name.
bool AskAbout(ProcessSpec spec, const GrepSearch& search, std::vector<GrepFile*> asked) {
  for (const GrepFile* file : asked) spec.argv.push_back("./" + file->below);
  const ProcessResult result = RunProcess(spec, *search.env.clock, search.cancel);
  const bool answered = result.started && result.signal == 0 && !result.timed_out &&
                        !result.cancelled && !result.output_overflow && result.omitted == 0 &&
                        (result.exit_code == 0 || result.exit_code == 1);
  if (!answered) return false;
  std::vector<bool> candidate(asked.size(), false);
  const std::string_view output = result.head;
  for (size_t from = 0; from < output.size();) {
    const size_t end = std::min(output.find('\0', from), output.size());
    std::string_view name = output.substr(from, end - from);
    if (name.substr(0, 2) == "./") name.remove_prefix(2);
    const auto found = std::lower_bound(
        asked.begin(), asked.end(), name,
        [](const GrepFile* file, std::string_view key) { return file->below < key; });
    if (found == asked.end() || (*found)->below != name) return false;  // not what was asked
    candidate[static_cast<size_t>(found - asked.begin())] = true;
    from = end + 1;
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!candidate[i]) asked[i]->state = ScanState::kClean;
  }
  return true;
}

}  // namespace

// Only fixed texts are handed over, never an expression: Unicode classes, case folding beyond
// ASCII, what a dot does on invalid UTF-8, line anchors, set operations in classes and repetition
// limits differ between the engines, a search for bytes does not. So a pattern is safe when texts
// were proven that each of its matches must hold:
// - texts have at least two bytes and no line break (`--fixed-strings` works by line);
// - with ignore_case they hold only ASCII letters whose case variants are ASCII (no k, no s);
// - `--text` and `--encoding=none` keep ripgrep from skipping or decoding, so its list is never
// smaller
//   than the true one; a binary file on it is dropped by the scan.
bool RipgrepSafe(const RequiredTexts& required) {
  return !required.any_of.empty();
}

// Measured on 20,000 files: for one exact text the built-in search (memmem) takes the time of
// ripgrep alone, and asking it first doubles that; without case, or with many texts, asking is
// faster.
bool RipgrepPays(const RequiredTexts& required, bool ignore_case) {
  return RipgrepSafe(required) && (ignore_case || required.any_of.size() > kTextsCheap);
}

bool SkipByRipgrep(const GrepSearch& search, ToolContext& context, std::vector<GrepFile>* files) {
  ProcessSpec spec;
  spec.argv = BaseArguments(search);
  spec.env = CleanEnvironment(search.env.child_env);
  spec.cwd = search.top.real;
  spec.marker = search.env.run_marker + context.call_id();
  spec.merge_stderr = false;
  spec.head_bytes_max = 2 * kArgumentBytesMax;  // it can only repeat the names
  spec.tail_bytes_max = 0;
  spec.deadline = search.deadline;

  std::vector<GrepFile*> asked;
  size_t bytes = 0;
  for (size_t i = 0; i <= files->size(); ++i) {
    const bool end = i == files->size();
    if (!asked.empty() && (end || bytes >= kArgumentBytesMax)) {
      if (!AskAbout(spec, search, std::move(asked))) return false;
      asked.clear();
      bytes = 0;
    }
    if (end || (*files)[i].state != ScanState::kPending) continue;
    asked.push_back(&(*files)[i]);
    bytes += (*files)[i].below.size() + 2 + 1 + sizeof(char*);
  }
  return true;
}

}  // namespace norma::tool
