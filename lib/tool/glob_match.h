// Path globs over slash paths relative to some root: `*`, `?`, `[...]`, `\` inside a segment, `**`
// for any number of segments, `{a,b}` alternatives. Pure text; knows no files. Matching costs at
// most pattern length x path length, whatever the pattern (no exponential `**`).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace norma::tool {

struct GlobOptions {
  bool braces = true;      // off for .gitignore, where a brace is a character
  bool base_name = true;   // a pattern without `/` meets the last segment, at any depth
  bool deep_tail = false;  // a last `**` needs at least one segment (.gitignore: `a/**` is not `a`)
};

class PathGlob {
 public:
  // Never fails: a malformed pattern matches nothing and problem() says why.
  static PathGlob Compile(std::string_view pattern, const GlobOptions& options = {});

  bool Matches(std::string_view path) const;
  const std::string& problem() const { return problem_; }

 private:
  struct Token {
    enum class Kind { kRun, kAny, kRune, kClass };
    Kind kind = Kind::kRune;
    bool negated = false;                                 // kClass
    char32_t rune = 0;                                    // kRune
    std::vector<std::pair<char32_t, char32_t>> ranges{};  // kClass
  };
  struct Segment {
    enum class Kind { kDeep, kText, kTail, kTokens };  // `**`, `name`, `*.name`, the rest
    Kind kind = Kind::kText;
    std::string text{};
    std::vector<Token> tokens{};
  };
  struct Alternative {
    std::vector<Segment> segments;
    bool base_name = false;
  };

  static bool CompileSegment(std::string_view text, Segment* segment, std::string* problem);
  static bool CompileClass(std::string_view text, size_t* at, Token* token);
  static bool CompileOne(std::string_view pattern, const GlobOptions& options, Alternative* out,
                         std::string* problem);
  static bool TokenTakes(const Token& token, char32_t rune);
  static bool SegmentMatches(const Segment& segment, std::string_view name);
  bool AlternativeMatches(const Alternative& alternative, std::string_view path) const;

  std::vector<Alternative> alternatives_;
  bool deep_tail_ = false;
  std::string problem_;
};

}  // namespace norma::tool
