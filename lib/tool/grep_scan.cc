// See grep_scan.h.
//
// Why a search of the whole buffer finds what the lines alone would: with `^` and `$` as line
// anchors a match inside one line is also a match in the buffer, so the leftmost match in the
// buffer never begins behind the first line that matches alone. It may begin before it and run over
// a line break; then its first line is tried alone, and the search goes on behind that line.
#include "lib/tool/grep_scan.h"

#include <string.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace norma::tool {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr int kStopEvery = 32;             // searches between two looks at the clock
constexpr size_t kChunkBytes = 16 * 1024;  // searched at once, then to the end of the line

size_t FindText(std::string_view text, std::string_view part, size_t from) {
  if (from >= text.size()) return kNone;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? kNone
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

// `\A`, `\z` and a switched-off (?m) look at the ends of what they are given. False alarms only
// cost time.
bool NeedsLinesAlone(std::string_view pattern) {
  if (pattern.find("\\A") != kNone || pattern.find("\\z") != kNone ||
      pattern.find("\\C") != kNone) {
    return true;
  }
  for (size_t at = pattern.find("(?"); at != kNone; at = pattern.find("(?", at + 1)) {
    const size_t end = pattern.find_first_not_of("imsU", at + 2);
    if (end != kNone && pattern[end] == '-') return true;
  }
  return false;
}

// Not for an empty text, which has no line.
std::string_view WithoutLastBreak(std::string_view text) {
  if (text.back() == '\n') text.remove_suffix(1);
  return text;
}

class EveryFew {
 public:
  explicit EveryFew(const LineMatcher::Stop& stop) : stop_(stop) {}
  bool Stopped() { return ++count_ % kStopEvery == 0 && stop_(); }

 private:
  const LineMatcher::Stop& stop_;
  int count_ = 0;
};

}  // namespace

Span LineAt(std::string_view text, size_t at) {
  const size_t before = at == 0 ? kNone : text.rfind('\n', at - 1);
  const size_t after = text.find('\n', at);
  return {before == kNone ? 0 : before + 1, after == kNone ? text.size() : after};
}

Result<LineMatcher> LineMatcher::Compile(const GrepPattern& pattern) {
  RegexOptions options;
  options.ignore_case = pattern.ignore_case;
  options.dot_matches_newline = pattern.multiline;
  options.multi_line = true;
  NORMA_ASSIGN(Regex regex, Regex::Compile(pattern.text, options));
  LineMatcher matcher(std::move(regex));
  matcher.required_ = FindRequiredTexts(pattern.text, pattern.ignore_case);
  matcher.ignore_case_ = pattern.ignore_case;
  matcher.multiline_ = pattern.multiline;
  matcher.line_by_line_ = !pattern.multiline && NeedsLinesAlone(pattern.text);
  return matcher;
}

bool LineMatcher::MayMatch(std::string_view text) const {
  if (ignore_case_ || required_.any_of.empty()) return true;
  return std::any_of(required_.any_of.begin(), required_.any_of.end(),
                     [&](const std::string& part) { return FindText(text, part, 0) != kNone; });
}

void LineMatcher::Scan(std::string_view text, const Visit& visit, const Stop& stop) const {
  const bool texts_help = !ignore_case_ && !required_.any_of.empty();
  if (multiline_) {
    if (MayMatch(text)) ScanMultiline(text, visit, stop);
  } else if (texts_help && required_.any_of.size() == 1) {
    ScanByText(text, visit, stop);
  } else if (line_by_line_) {
    if (!text.empty() && MayMatch(text)) ScanLines(WithoutLastBreak(text), 0, visit, stop);
  } else if (!text.empty() && MayMatch(text)) {
    ScanBuffer(WithoutLastBreak(text), visit, stop);
  }
}

// From one place of the required text to the next; the expression sees only those lines.
void LineMatcher::ScanByText(std::string_view text, const Visit& visit, const Stop& stop) const {
  const std::string& part = required_.any_of.front();
  EveryFew few(stop);
  for (size_t at = FindText(text, part, 0); at != kNone;) {
    const Span line = LineAt(text, at);
    const bool matches =
        required_.exact || regex_.Matches(text.substr(line.begin, line.end - line.begin));
    if ((matches && !visit(line)) || few.Stopped()) return;
    at = FindText(text, part, line.end + 1);
  }
}

// Chunk by chunk of whole lines, which changes nothing for matches inside lines. An expression may
// look far ahead for each match it finds; so it cannot look further than the chunk.
void LineMatcher::ScanBuffer(std::string_view text, const Visit& visit, const Stop& stop) const {
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find('\n', from + kChunkBytes), text.size());
    if (!ScanChunk(text.substr(from, end - from), from, visit, stop)) return;
    from = end + 1;
  }
}

// `chunk` stands at `base` in the text. False when the scan is to end.
bool LineMatcher::ScanChunk(std::string_view chunk, size_t base, const Visit& visit,
                            const Stop& stop) const {
  if (stop()) return false;
  EveryFew few(stop);
  size_t overrun = 0;
  Span match;
  for (size_t at = 0; at <= chunk.size() && regex_.Find(chunk, at, &match);) {
    const Span line = LineAt(chunk, match.begin);
    const bool inside = match.end <= line.end;
    if ((inside || regex_.Matches(chunk.substr(line.begin, line.end - line.begin))) &&
        !visit({base + line.begin, base + line.end})) {
      return false;
    }
    if (few.Stopped()) return false;
    at = line.end + 1;
    // Matches that run over line breaks are found again and again: singly the lines cost less.
    if (!inside) overrun += match.end - line.end;
    if (overrun > chunk.size() && at <= chunk.size()) {
      return ScanLines(chunk.substr(at), base + at, visit, stop);
    }
  }
  return true;
}

// The text without its last line break: what is left has a line at its end, maybe an empty one.
bool LineMatcher::ScanLines(std::string_view text, size_t base, const Visit& visit,
                            const Stop& stop) const {
  EveryFew few(stop);
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const bool matches = regex_.Matches(text.substr(from, end - from));
    if ((matches && !visit({base + from, base + end})) || few.Stopped()) return false;
    from = end + 1;
  }
  return true;
}

void LineMatcher::ScanMultiline(std::string_view text, const Visit& visit, const Stop& stop) const {
  EveryFew few(stop);
  size_t next = 0;  // begin of the first line that was not visited yet
  Span match;
  for (size_t at = 0; at <= text.size() && regex_.Find(text, at, &match);) {
    const size_t last = std::max(match.begin, match.end == 0 ? 0 : match.end - 1);
    if (last >= next && match.begin > next) {
      // Looking back no further than `next` keeps many matches on one huge line linear.
      const size_t before = text.substr(next, match.begin - next).rfind('\n');
      if (before != kNone) next += before + 1;
    }
    while (next <= last && next < text.size()) {
      const Span line{next, std::min(text.find('\n', next), text.size())};
      if (!visit(line)) return;
      next = line.end + 1;
    }
    if (few.Stopped()) return;
    at = match.end > match.begin ? match.end : match.end + 1;
  }
}

}  // namespace norma::tool
