#include "lib/tool/capture.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "lib/base/text.h"
#include "lib/io/files.h"

namespace norma::tool {
namespace {

constexpr int kSpillMode = 0600;
constexpr size_t kContinuationsMax = 3;  // of one code point

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

size_t SequenceLength(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte >= 0xF8U) return 1;  // no lead byte at all
  if (byte >= 0xF0U) return 4;
  if (byte >= 0xE0U) return 3;
  return byte >= 0xC0U ? 2 : 1;
}

// Without a last code point that is not whole. Bytes that are no UTF-8 stay.
std::string_view WholeEnd(std::string_view text) {
  for (size_t back = 1; back <= std::min(kContinuationsMax, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (IsContinuation(c)) continue;
    return SequenceLength(c) > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

// Without the rest of a code point that began before the text.
std::string_view WholeStart(std::string_view text) {
  size_t skip = 0;
  while (skip < std::min(kContinuationsMax, text.size()) && IsContinuation(text[skip])) ++skip;
  return text.substr(skip);
}

}  // namespace

std::string NextSpillPath(const ToolEnv& env) {
  // One counter for all runs of the process: it only has to differ within each private folder.
  static std::atomic<uint64_t> next{1};
  if (env.private_dir.empty()) return {};
  return fmt::format("{}/output-{}.txt", env.private_dir, next++);
}

std::string ShownPath(const std::string& path, const ToolEnv& env) {
  const std::string folder = env.cwd + "/";
  return !env.cwd.empty() && path.starts_with(folder) ? path.substr(folder.size()) : path;
}

std::string JoinCut(std::string_view head, std::string_view tail, uint64_t bytes,
                    const std::string& spill_path, const ToolEnv& env) {
  head = WholeEnd(head);
  tail = WholeStart(tail);
  const uint64_t omitted = bytes - head.size() - tail.size();
  std::string marker = fmt::format("[{} of {} bytes omitted here", omitted, bytes);
  if (!spill_path.empty()) {
    marker += fmt::format("; the whole output is in {}, to be read in parts with Read or Grep",
                          ShownPath(spill_path, env));
  }
  return fmt::format("{}{}{}]\n{}", head, head.empty() || head.ends_with('\n') ? "" : "\n", marker,
                     tail);
}

ToolOutput Capture(std::string text, const ToolEnv& env) {
  const size_t budget = env.output_bytes;
  if (text.size() <= budget) return {std::move(text), false, false};
  const std::string path = NextSpillPath(env);
  if (path.empty() || !WriteFileAtomic(path, text, kSpillMode).ok()) {
    // Nowhere to keep the whole: its end then often says more than a longer start.
    const std::string_view view = text;
    const size_t half = budget / 2;
    return {JoinCut(view.substr(0, half), view.substr(view.size() - half), view.size(), "", env),
            false, true};
  }
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  const std::string_view shown = CutUtf8(text, budget);
  return {fmt::format("{}{}[cut: {} of {} bytes shown, {} lines in all; the whole output is in {}, "
                      "to be read in parts with Read or Grep]",
                      shown, shown.ends_with('\n') ? "" : "\n", shown.size(), text.size(), lines,
                      ShownPath(path, env)),
          false, true};
}

}  // namespace norma::tool
