#include "lib/ledger/redactor.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/ledger/escaped_match.h"

namespace norma::ledger {
namespace {

constexpr size_t kSecretBytesMin = 6;
// A line of a secret of several lines: shorter ones are too likely to be ordinary text.
constexpr size_t kSecretLineBytesMin = 12;
// The widest escape of one byte: \u00XX.
constexpr size_t kEscapeWidthMax = 6;

// The name ends up inside JSON strings and on terminals.
std::string SafeName(std::string_view name) {
  std::string safe;
  for (const char c : name) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    safe += plain ? c : '_';
  }
  return safe.empty() ? "secret" : safe;
}

char HexDigit(unsigned value, bool upper) {
  return (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value & 15U];
}

}  // namespace

Result<Redactor> Redactor::Make(const std::vector<std::pair<std::string, std::string>>& secrets,
                                const std::vector<std::string>& patterns) {
  Redactor redactor;
  for (const auto& [name, value] : secrets) redactor.AddSecret(SafeName(name), value);
  std::ranges::stable_sort(redactor.needles_, [](const Needle& a, const Needle& b) {
    return a.form.size() > b.form.size();
  });
  redactor.BuildFilter();
  for (const std::string& pattern : patterns) {
    auto regex = Regex::Compile(pattern);
    if (!regex.ok()) {
      return Error{Code::kInvalid,
                   "redact pattern `" + pattern + "` cannot be used: " + regex.error().message};
    }
    if (regex.value().Matches("")) {
      return Error{Code::kInvalid, "redact pattern `" + pattern +
                                       "` matches the empty text; make it match the secret only"};
    }
    redactor.patterns_.push_back(std::move(regex).value());
  }
  return redactor;
}

void Redactor::AddSecret(const std::string& name, std::string_view value) {
  // A key file's last newline is no part of the key.
  const std::string_view secret = Trim(value);
  if (secret.size() < kSecretBytesMin) return;
  needles_.push_back({.name = name, .form = std::string(secret)});
  AddBase64(name, secret);
  if (secret.find('\n') == std::string_view::npos) return;
  for (const std::string_view raw_line : SplitLines(secret)) {
    const std::string_view line = Trim(raw_line);
    // "-----BEGIN PRIVATE KEY-----" is no secret.
    if (line.size() < kSecretLineBytesMin || line.substr(0, 5) == "-----") continue;
    needles_.push_back({.name = name, .form = std::string(line)});
    AddBase64(name, line);
  }
}

// Base64 of a text that contains the secret holds, at one of three alignments, characters that
// depend on nothing but the secret: those are the needle. The characters at the edges mix in bits
// of the neighbours; they are swallowed when the needle was found.
void Redactor::AddBase64(const std::string& name, std::string_view value) {
  for (size_t offset = 0; offset < 3; ++offset) {
    const std::string encoded = Base64(std::string(offset, '\0') + std::string(value));
    const size_t first = offset == 0 ? 0 : offset + 1;
    const size_t bits = (offset + value.size()) * 8;
    const size_t whole = bits / 6;
    needles_.push_back({.name = name,
                        .form = encoded.substr(first, whole - first),
                        .base64 = true,
                        .edge_before = offset != 0,
                        .edge_after = bits % 6 != 0});
  }
}

void Redactor::Allow(unsigned char first, unsigned char second) {
  const size_t pair = size_t{first} << 8 | second;
  filter_[pair >> 6] |= uint64_t{1} << (pair & 63);
}

void Redactor::BuildFilter() {
  if (needles_.empty()) return;
  filter_.assign(65536 / 64, 0);
  for (const Needle& needle : needles_) {
    const auto c0 = static_cast<unsigned char>(needle.form[0]);
    const auto c1 = static_cast<unsigned char>(needle.form[1]);
    std::string firsts(1, needle.form[0]);
    std::string seconds(1, needle.form[1]);
    seconds += "\\%";
    if (needle.base64) {
      if (c0 == '+') firsts += '-';
      if (c0 == '/') firsts += '_';
      if (c1 == '+') seconds += '-';
      if (c1 == '/') seconds += '_';
      seconds += "\r\n";
    } else {
      if (c0 == ' ') firsts += '+';
      if (c1 == ' ') seconds += '+';
    }
    for (const char first : firsts) {
      for (const char second : seconds) {
        Allow(static_cast<unsigned char>(first), static_cast<unsigned char>(second));
      }
    }
    // The first byte itself escaped: \u0022 \x22 \n \/ and %22 %2522.
    for (const char letter : {'u', 'x', 'n', 'r', 't', 'b', 'f', '0', '/', '"'}) {
      Allow('\\', static_cast<unsigned char>(letter));
    }
    Allow('%', static_cast<unsigned char>(HexDigit(c0 >> 4U, true)));
    Allow('%', static_cast<unsigned char>(HexDigit(c0 >> 4U, false)));
    Allow('%', '2');
  }
}

bool Redactor::MayStart(std::string_view text, size_t at) const {
  const size_t pair =
      size_t{static_cast<unsigned char>(text[at])} << 8 | static_cast<unsigned char>(text[at + 1]);
  return (filter_[pair >> 6] >> (pair & 63) & 1) != 0;
}

Redactor::Hit Redactor::MatchAt(std::string_view text, size_t at) const {
  Hit best{at, at, {}};
  for (const Needle& needle : needles_) {
    Span span{at, at};
    if (needle.base64) {
      span = MatchBase64(text, at, needle.form, needle.edge_before, needle.edge_after);
    } else {
      span = MatchEscaped(text, at, needle.form);
    }
    if (span.end - span.begin > best.end - best.begin) best = {span.begin, span.end, needle.name};
  }
  return best;
}

std::vector<Redactor::Hit> Redactor::FindAll(std::string_view text, bool first_only) const {
  std::vector<Hit> hits;
  if (!filter_.empty() && text.size() >= kSecretBytesMin) {
    for (size_t at = 0; at + 1 < text.size(); ++at) {
      if (!MayStart(text, at)) continue;
      const Hit hit = MatchAt(text, at);
      if (hit.end == hit.begin) continue;
      hits.push_back(hit);
      if (first_only) return hits;
    }
  }
  for (const Regex& pattern : patterns_) {
    Span span;
    for (size_t from = 0; from < text.size() && pattern.Find(text, from, &span);) {
      if (span.end > span.begin) hits.push_back({span.begin, span.end, "pattern"});
      if (first_only && !hits.empty()) return hits;
      from = std::max(span.end, from + 1);
    }
  }
  return hits;
}

std::string Redactor::Clean(std::string_view text) const {
  std::vector<Hit> hits = FindAll(text, false);
  if (hits.empty()) return std::string(text);
  std::ranges::stable_sort(hits, [](const Hit& a, const Hit& b) { return a.begin < b.begin; });
  std::string clean;
  clean.reserve(text.size());
  size_t copied = 0;
  for (size_t i = 0; i < hits.size();) {
    Hit merged = hits[i];
    size_t longest = merged.end - merged.begin;
    for (++i; i < hits.size() && hits[i].begin < merged.end; ++i) {
      const size_t length = hits[i].end - hits[i].begin;
      merged.end = std::max(merged.end, hits[i].end);
      // A named secret tells more than "pattern".
      const bool named = merged.name == "pattern" && hits[i].name != "pattern";
      if (named || (length > longest && hits[i].name != "pattern")) merged.name = hits[i].name;
      longest = std::max(longest, length);
    }
    clean.append(text.substr(copied, merged.begin - copied));
    clean.append("[redacted:").append(merged.name).append("]");
    copied = merged.end;
  }
  clean.append(text.substr(copied));
  return clean;
}

bool Redactor::Touches(std::string_view text) const {
  return !FindAll(text, true).empty();
}

size_t Redactor::LongestForm() const {
  size_t longest = 0;
  for (const Needle& needle : needles_) {
    longest = std::max(
        longest, needle.base64 ? needle.form.size() + 4 : needle.form.size() * kEscapeWidthMax);
  }
  return longest;
}

}  // namespace norma::ledger
