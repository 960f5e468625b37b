// RE2 behind a small door. The only file that sees it.
#include "lib/base/regex.h"

#include <fmt/core.h>
#include <re2/re2.h>

namespace norma {
namespace {

// For program and caches of one expression; a larger program is refused.
constexpr int64_t kMemoryMax = int64_t{8} << 20;
// Far above any pattern a person writes; RE2's parser is linear, but messages and copies are not
// free.
constexpr size_t kPatternBytesMax = 256 * 1024;

re2::StringPiece Piece(std::string_view text) {
  return {text.data(), text.size()};
}

RE2::Options EngineOptions(const RegexOptions& options) {
  // `Quiet`: a bad pattern or a full cache is told by the return value, never on stderr.
  RE2::Options engine(RE2::Quiet);
  engine.set_max_mem(kMemoryMax);
  engine.set_case_sensitive(!options.ignore_case);
  engine.set_dot_nl(options.dot_matches_newline);
  engine.set_literal(options.literal);
  if (options.bytes) engine.set_encoding(RE2::Options::EncodingLatin1);
  return engine;
}

}  // namespace

struct Regex::Impl {
  Impl(std::string_view given, const std::string& program, const RE2::Options& options)
      : pattern(given), engine(program, options) {}

  std::string pattern;  // as given, without our prefix
  RE2 engine;
};

Result<Regex> Regex::Compile(std::string_view pattern, const RegexOptions& options) {
  if (pattern.size() > kPatternBytesMax) {
    return Error{Code::kInvalid,
                 fmt::format("the regular expression is longer than {} bytes", kPatternBytesMax)};
  }
  // RE2 offers multi-line only as a flag inside the pattern (its option is for POSIX syntax).
  std::string program = options.multi_line && !options.literal ? "(?m)" : "";
  program += pattern;
  auto impl = std::make_shared<const Impl>(pattern, program, EngineOptions(options));
  if (!impl->engine.ok()) {
    return Error{Code::kInvalid,
                 fmt::format("bad regular expression: {} (the syntax is RE2's: no look-around, no "
                             "backreferences)",
                             impl->engine.error())};
  }
  Regex regex;
  regex.impl_ = std::move(impl);
  return regex;
}

bool Regex::Matches(std::string_view text) const {
  return impl_->engine.Match(Piece(text), 0, text.size(), RE2::UNANCHORED, nullptr, 0);
}

bool Regex::FullMatch(std::string_view text) const {
  return impl_->engine.Match(Piece(text), 0, text.size(), RE2::ANCHOR_BOTH, nullptr, 0);
}

bool Regex::Find(std::string_view text, size_t from, Span* match) const {
  if (from > text.size()) return false;
  re2::StringPiece found;
  if (!impl_->engine.Match(Piece(text), from, text.size(), RE2::UNANCHORED, &found, 1)) {
    return false;
  }
  match->begin = static_cast<size_t>(found.data() - text.data());
  match->end = match->begin + found.size();
  return true;
}

const std::string& Regex::pattern() const {
  return impl_->pattern;
}

}  // namespace norma
