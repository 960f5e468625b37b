// See grep_literals.h. A small recursive-descent reader of RE2's syntax. It keeps, for each part, a
// set of texts of which one must occur, and gives up (proves nothing) at flags, \Q, \x, \p and the
// like.
#include "lib/tool/grep_literals.h"

#include <algorithm>
#include <cctype>

namespace norma::tool {
namespace {

constexpr int kDepthMax = 50;        // nested groups
constexpr size_t kTextsMax = 16;     // alternatives
constexpr size_t kTextBytesMin = 2;  // one byte stands nearly everywhere: no help
constexpr size_t kTextBytesMax = 200;

// What is known of a part of the expression.
struct Part {
  bool is_text = false;  // it matches exactly `text`
  std::string text{};
  std::vector<std::string> any_of{};  // else: one of these occurs; empty: unknown
};

size_t ShortestOf(const std::vector<std::string>& texts) {
  size_t shortest = texts.empty() ? 0 : texts.front().size();
  for (const std::string& text : texts) shortest = std::min(shortest, text.size());
  return shortest;
}

class Reader {
 public:
  Reader(std::string_view pattern, bool ignore_case)
      : pattern_(pattern), ignore_case_(ignore_case) {}

  bool Read(Part* part) {
    *part = Alternatives(0);
    return !failed_ && at_ == pattern_.size();
  }
  bool anchored() const { return anchored_; }

 private:
  bool More() const { return !failed_ && at_ < pattern_.size(); }
  bool Take(char c) {
    if (at_ >= pattern_.size() || pattern_[at_] != c) return false;
    ++at_;
    return true;
  }
  Part Fail() {
    failed_ = true;
    return {};
  }

  Part Alternatives(int depth) {
    if (depth > kDepthMax) return Fail();
    Part first = Sequence(depth);
    if (!More() || pattern_[at_] != '|') return first;
    Part all;
    bool known = true;
    const auto add = [&](const Part& branch) {
      const std::vector<std::string> texts =
          branch.is_text ? std::vector<std::string>{branch.text} : branch.any_of;
      known = known && !texts.empty() && ShortestOf(texts) >= kTextBytesMin;
      all.any_of.insert(all.any_of.end(), texts.begin(), texts.end());
    };
    add(first);
    while (More() && Take('|')) add(Sequence(depth));
    if (!known || all.any_of.size() > kTextsMax) all.any_of.clear();
    return all;
  }

  // Parts in a row: neighbouring texts grow together, the best set seen is kept.
  Part Sequence(int depth) {
    Part result;
    std::string run;
    bool only_text = true;
    const auto offer = [&](std::vector<std::string> texts) {
      if (ShortestOf(texts) > ShortestOf(result.any_of)) result.any_of = std::move(texts);
    };
    const auto flush = [&] {
      only_text = false;
      if (!run.empty()) offer({run});
      run.clear();
    };
    while (More() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      bool zero_width = false;
      const Part part = Atom(depth, &zero_width);
      if (failed_) return {};
      const int least = Quantifier();
      if (zero_width) continue;
      if (part.is_text && least == kOnce) {
        run += part.text;
        if (run.size() > kTextBytesMax) flush();
      } else if (least > 0 && part.is_text) {  // x+: ends one run and begins the next
        run += part.text;
        flush();
        run = part.text;
      } else {
        flush();
        if (least != 0) offer(part.any_of);
      }
    }
    result.is_text = only_text;
    if (only_text) {
      result.text = run;
    } else {
      flush();
    }
    return result;
  }

  static constexpr int kOnce = -1;  // no quantifier

  // The least number of repetitions.
  int Quantifier() {
    int least = kOnce;
    while (More()) {
      const char c = pattern_[at_];
      int count = 0;
      if (c == '*' || c == '?') {
        ++at_;
      } else if (c == '+') {
        count = 1;
        ++at_;
      } else if (c == '{' && at_ + 1 < pattern_.size() && isdigit(Byte(at_ + 1))) {
        const size_t close = pattern_.find('}', at_);
        const std::string_view inside =
            close == std::string_view::npos ? "" : pattern_.substr(at_ + 1, close - at_ - 1);
        if (inside.empty() || inside.find_first_not_of("0123456789,") != std::string_view::npos) {
          return least;  // not a repetition: a character
        }
        count = inside.find_first_not_of('0') == 0 ? 1 : 0;
        at_ = close + 1;
      } else {
        return least;
      }
      // `x+?` is lazy, `(x+)?` was closed before: a second sign after a first may make it optional.
      least = least == kOnce ? count : std::min(least, count);
      if (least == 1 && More() && pattern_[at_] == '?') ++at_;
    }
    return least;
  }

  unsigned char Byte(size_t i) const { return static_cast<unsigned char>(pattern_[i]); }

  Part Text(std::string_view text) const {
    const unsigned char first = static_cast<unsigned char>(text.front());
    // K and S have case variants outside ASCII; everything outside has its own rules.
    const bool tricky = first >= 0x80 || (first | 0x20) == 'k' || (first | 0x20) == 's';
    if (text == "\n" || (ignore_case_ && tricky)) return {};
    Part part;
    part.is_text = true;
    part.text = text;
    return part;
  }

  Part Atom(int depth, bool* zero_width) {
    const char c = pattern_[at_];
    switch (c) {
      case '(':
        return Group(depth);
      case '[':
        return Class();
      case '\\':
        return Escape(zero_width);
      case '.':
        ++at_;
        return {};
      case '^':
      case '$':
        ++at_;
        *zero_width = anchored_ = true;
        return {};
      case '*':
      case '+':
      case '?':
        return Fail();
      default:
        break;
    }
    // A whole character, since a quantifier takes it whole.
    size_t end = at_ + 1;
    while (end < pattern_.size() && (Byte(end) & 0xc0) == 0x80) ++end;
    const std::string_view text = pattern_.substr(at_, end - at_);
    at_ = end;
    return Text(text);
  }

  Part Group(int depth) {
    ++at_;
    if (Take('?')) {
      if (pattern_.substr(at_, 2) == "P<") {
        const size_t close = pattern_.find('>', at_);
        if (close == std::string_view::npos) return Fail();
        at_ = close + 1;
      } else if (!Take(':')) {
        return Fail();  // flags
      }
    }
    Part part = Alternatives(depth + 1);
    if (failed_ || !Take(')')) return Fail();
    return part;
  }

  Part Class() {
    ++at_;
    Take('^');
    Take(']');  // first, it is a member
    while (More() && pattern_[at_] != ']') {
      if (pattern_[at_] == '\\') {
        at_ += 2;
      } else if (pattern_.substr(at_, 2) == "[:") {
        const size_t close = pattern_.find(":]", at_);
        at_ = close == std::string_view::npos ? at_ + 1 : close + 2;
      } else {
        ++at_;
      }
    }
    return Take(']') ? Part{} : Fail();
  }

  Part Escape(bool* zero_width) {
    if (at_ + 1 >= pattern_.size()) return Fail();
    const char c = pattern_[at_ + 1];
    at_ += 2;
    if (c == 't') return Text("\t");
    if (c == 'r') return Text("\r");
    if (std::string_view("dDsSwWnfva").find(c) != std::string_view::npos) return {};
    if (std::string_view("bBAz").find(c) != std::string_view::npos) {
      *zero_width = anchored_ = true;
      return {};
    }
    if (isalnum(static_cast<unsigned char>(c)) || Byte(at_ - 1) >= 0x80) return Fail();
    return Text(std::string_view(&pattern_[at_ - 1], 1));
  }

  std::string_view pattern_;
  bool ignore_case_;
  size_t at_ = 0;
  bool failed_ = false;
  bool anchored_ = false;  // holds ^, $ or \b: the text alone is no match
};

}  // namespace

RequiredTexts FindRequiredTexts(std::string_view pattern, bool ignore_case) {
  Reader reader(pattern, ignore_case);
  Part part;
  RequiredTexts result;
  if (!reader.Read(&part)) return result;
  result.any_of = part.is_text ? std::vector<std::string>{part.text} : part.any_of;
  if (ShortestOf(result.any_of) < kTextBytesMin) result.any_of.clear();
  result.exact = part.is_text && !result.any_of.empty() && !reader.anchored() && !ignore_case;
  return result;
}

}  // namespace norma::tool
