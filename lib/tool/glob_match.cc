// See glob_match.h. Both levels (characters in a segment, segments in a path) use the same greedy
// scheme: on a mismatch only the last star is moved on, which is enough since what a star may
// swallow does not depend on what came before it.
#include "lib/tool/glob_match.h"

#include <algorithm>

namespace norma::tool {
namespace {

constexpr size_t kAlternativesMax = 256;  // of one pattern's braces
constexpr size_t kNone = std::string_view::npos;

struct Rune {
  char32_t value;
  size_t bytes;
};

// The code point at `at`. A byte that begins none counts as itself, above the Unicode range so that
// it never equals a real character.
Rune RuneAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const Rune invalid{0x110000u + first, 1};
  const size_t length = first >= 0xf0 && first < 0xf5   ? 4
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xc2 && first < 0xe0 ? 2
                                                        : 0;
  if (length == 0 || at + length > text.size()) return invalid;
  char32_t value = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return invalid;
    value = (value << 6) | (byte(at + i) & 0x3fu);
  }
  return {value, length};
}

// `{a,b}` in all combinations; the pattern itself comes first, so that a file really named `{a}`
// can be matched too. Unbalanced braces stay characters.
std::vector<std::string> ExpandBraces(std::string_view pattern) {
  std::vector<std::string> done = {std::string(pattern)};
  std::vector<std::string> open = {std::string(pattern)};
  while (!open.empty()) {
    const std::string text = std::move(open.back());
    open.pop_back();
    size_t begin = kNone, end = kNone;
    std::vector<size_t> commas;
    int depth = 0;
    bool in_class = false;
    for (size_t i = 0; i < text.size() && end == kNone; ++i) {
      const char c = text[i];
      if (c == '\\') {
        ++i;
      } else if (in_class) {
        in_class = c != ']';
      } else if (c == '[') {
        in_class = true;
      } else if (c == '{') {
        if (depth++ == 0) begin = i;
      } else if (c == '}' && depth > 0) {
        if (--depth == 0) end = i;
      } else if (c == ',' && depth == 1) {
        commas.push_back(i);
      }
    }
    if (end == kNone) {
      if (text != pattern) done.push_back(text);
      continue;
    }
    commas.push_back(end);
    size_t from = begin + 1;
    for (const size_t comma : commas) {
      if (done.size() + open.size() >= kAlternativesMax) return {std::string(pattern)};
      open.push_back(text.substr(0, begin) + text.substr(from, comma - from) +
                     text.substr(end + 1));
      from = comma + 1;
    }
  }
  return done;
}

}  // namespace

bool PathGlob::CompileClass(std::string_view text, size_t* at, Token* token) {
  token->kind = Token::Kind::kClass;
  size_t i = *at + 1;
  if (i < text.size() && (text[i] == '^' || text[i] == '!')) {
    token->negated = true;
    ++i;
  }
  const auto take = [&](char32_t* rune) {
    if (i < text.size() && text[i] == '\\') ++i;
    if (i >= text.size()) return false;
    const Rune found = RuneAt(text, i);
    *rune = found.value;
    i += found.bytes;
    return true;
  };
  for (bool first = true;; first = false) {
    if (i >= text.size()) return false;
    if (text[i] == ']' && !first) break;
    char32_t low = 0;
    if (!take(&low)) return false;
    char32_t high = low;
    if (i + 1 < text.size() && text[i] == '-' && text[i + 1] != ']') {
      ++i;
      if (!take(&high)) return false;
    }
    token->ranges.emplace_back(low, high);
  }
  *at = i;
  return true;
}

bool PathGlob::CompileSegment(std::string_view text, Segment* segment, std::string* problem) {
  if (text == "**") {
    segment->kind = Segment::Kind::kDeep;
    return true;
  }
  std::vector<Token>& tokens = segment->tokens;
  std::string
      plain;  // text without escapes, valid while only characters were seen after a first star
  bool simple = true;
  for (size_t i = 0; i < text.size(); ++i) {
    Token token;
    if (text[i] == '*') {
      if (!tokens.empty() && tokens.back().kind == Token::Kind::kRun) continue;
      simple = simple && i == 0;
      token.kind = Token::Kind::kRun;
    } else if (text[i] == '?') {
      simple = false;
      token.kind = Token::Kind::kAny;
    } else if (text[i] == '[') {
      simple = false;
      if (!CompileClass(text, &i, &token)) {
        *problem = "a [ is not closed";
        return false;
      }
    } else {
      if (text[i] == '\\' && ++i == text.size()) {
        *problem = "it ends in a single backslash";
        return false;
      }
      const Rune rune = RuneAt(text, i);
      token.rune = rune.value;
      plain += text.substr(i, rune.bytes);
      i += rune.bytes - 1;
    }
    tokens.push_back(std::move(token));
  }
  const bool star = !tokens.empty() && tokens.front().kind == Token::Kind::kRun;
  segment->kind = !simple ? Segment::Kind::kTokens
                  : star  ? Segment::Kind::kTail
                          : Segment::Kind::kText;
  segment->text = std::move(plain);
  return true;
}

bool PathGlob::CompileOne(std::string_view pattern, const GlobOptions& options, Alternative* out,
                          std::string* problem) {
  while (pattern.substr(0, 2) == "./") pattern.remove_prefix(2);
  out->base_name = options.base_name && pattern.find('/') == kNone;
  const bool folder = !pattern.empty() && pattern.back() == '/';
  for (size_t from = 0; from <= pattern.size();) {
    const size_t slash = std::min(pattern.find('/', from), pattern.size());
    if (slash > from) {
      Segment segment;
      if (!CompileSegment(pattern.substr(from, slash - from), &segment, problem)) return false;
      const bool again = segment.kind == Segment::Kind::kDeep && !out->segments.empty() &&
                         out->segments.back().kind == Segment::Kind::kDeep;
      if (!again) out->segments.push_back(std::move(segment));
    }
    from = slash + 1;
  }
  if (out->segments.empty() || folder) {
    *problem = "it names no file";
    return false;
  }
  return true;
}

PathGlob PathGlob::Compile(std::string_view pattern, const GlobOptions& options) {
  PathGlob glob;
  glob.deep_tail_ = options.deep_tail;
  const std::vector<std::string> all =
      options.braces ? ExpandBraces(pattern) : std::vector<std::string>{std::string(pattern)};
  for (const std::string& one : all) {
    Alternative alternative;
    std::string problem;
    if (CompileOne(one, options, &alternative, &problem)) {
      glob.alternatives_.push_back(std::move(alternative));
    } else if (glob.problem_.empty()) {
      glob.problem_ = std::move(problem);
    }
  }
  if (!glob.alternatives_.empty()) glob.problem_.clear();
  return glob;
}

bool PathGlob::TokenTakes(const Token& token, char32_t rune) {
  switch (token.kind) {
    case Token::Kind::kRun:
      return false;  // handled by the caller
    case Token::Kind::kAny:
      return true;
    case Token::Kind::kRune:
      return token.rune == rune;
    case Token::Kind::kClass: {
      const bool inside = std::any_of(
          token.ranges.begin(), token.ranges.end(),
          [&](const auto& range) { return range.first <= rune && rune <= range.second; });
      return inside != token.negated;
    }
  }
  return false;
}

bool PathGlob::SegmentMatches(const Segment& segment, std::string_view name) {
  const std::string_view text = segment.text;
  if (segment.kind == Segment::Kind::kText) return name == text;
  if (segment.kind == Segment::Kind::kTail) {
    return name.size() >= text.size() && name.substr(name.size() - text.size()) == text;
  }
  if (segment.kind == Segment::Kind::kDeep) return true;
  const std::vector<Token>& tokens = segment.tokens;
  size_t token = 0, at = 0, star = kNone, swallowed = 0;
  while (at < name.size()) {
    if (token < tokens.size() && tokens[token].kind == Token::Kind::kRun) {
      star = ++token;
      swallowed = at;
      continue;
    }
    const Rune rune = RuneAt(name, at);
    if (token < tokens.size() && TokenTakes(tokens[token], rune.value)) {
      ++token;
      at += rune.bytes;
      continue;
    }
    if (star == kNone) return false;
    swallowed += RuneAt(name, swallowed).bytes;
    at = swallowed;
    token = star;
  }
  while (token < tokens.size() && tokens[token].kind == Token::Kind::kRun) ++token;
  return token == tokens.size();
}

bool PathGlob::AlternativeMatches(const Alternative& alternative, std::string_view path) const {
  const std::vector<Segment>& want = alternative.segments;
  if (alternative.base_name) {
    return SegmentMatches(want.front(), path.substr(path.rfind('/') + 1));
  }
  std::vector<std::string_view> have;
  for (size_t from = 0; from <= path.size();) {
    const size_t slash = std::min(path.find('/', from), path.size());
    if (slash > from) have.push_back(path.substr(from, slash - from));
    from = slash + 1;
  }
  size_t segment = 0, at = 0, deep = kNone, swallowed = 0;
  while (at < have.size()) {
    if (segment < want.size() && want[segment].kind == Segment::Kind::kDeep) {
      if (segment + 1 == want.size()) return true;  // at least one segment is left for it
      deep = ++segment;
      swallowed = at;
    } else if (segment < want.size() && SegmentMatches(want[segment], have[at])) {
      ++segment;
      ++at;
    } else if (deep == kNone) {
      return false;
    } else {
      at = ++swallowed;
      segment = deep;
    }
  }
  const bool rest_is_deep =
      segment + 1 == want.size() && want[segment].kind == Segment::Kind::kDeep;
  return segment == want.size() || (rest_is_deep && !deep_tail_);
}

bool PathGlob::Matches(std::string_view path) const {
  return std::any_of(
      alternatives_.begin(), alternatives_.end(),
      [&](const Alternative& alternative) { return AlternativeMatches(alternative, path); });
}

}  // namespace norma::tool
