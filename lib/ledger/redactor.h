// Replaces secrets by [redacted:NAME] in everything norma writes: ledger, stdout, stderr. Knows the
// values of the key variables (plain, JSON-escaped, URL-encoded, base64 in its three alignments)
// and the operator's patterns. Immutable after construction; any thread.
//
// Escaped forms are not enumerated but decoded while comparing, so that any mixture is found: `\/`,
// `\u002F`, JSON inside JSON, shell backslashes, %2f and %2F, a + for a blank, %252F, base64 of
// both alphabets and across line breaks. One pass over the text, whatever the number of secrets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/regex.h"
#include "lib/base/result.h"

namespace norma::ledger {

class Redactor {
 public:
  Redactor() = default;
  // `secrets`: name and value; values shorter than 6 bytes are refused silently (they would eat
  // ordinary text). `patterns`: RE2; kInvalid names the bad one.
  static Result<Redactor> Make(const std::vector<std::pair<std::string, std::string>>& secrets,
                               const std::vector<std::string>& patterns);

  // Where matches overlap, all of them go and the longest gives the name: no half of a secret
  // stays. A pattern's match becomes [redacted:pattern]. A secret of several lines is also found
  // line by line (tools print files with numbers before each line).
  std::string Clean(std::string_view text) const;
  // Cheap question for the common case.
  bool Touches(std::string_view text) const;
  // Longest form of any secret, for writers that must not cut one in half. Patterns are not in it:
  // what they match has no bound.
  size_t LongestForm() const;

 private:
  struct Needle {
    std::string name;
    std::string form;
    bool base64 = false;
    // Base64 characters beside the form that still hold some bits of the secret.
    bool edge_before = false, edge_after = false;
  };
  struct Hit {
    size_t begin = 0, end = 0;
    std::string_view name;
  };

  void AddSecret(const std::string& name, std::string_view value);
  void AddBase64(const std::string& name, std::string_view value);
  void BuildFilter();
  void Allow(unsigned char first, unsigned char second);
  bool MayStart(std::string_view text, size_t at) const;
  // The longest match of any needle that starts at `at`; end == begin when there is none.
  Hit MatchAt(std::string_view text, size_t at) const;
  std::vector<Hit> FindAll(std::string_view text, bool first_only) const;

  std::vector<Needle> needles_;  // longest first
  std::vector<Regex> patterns_;
  // One bit for each pair of bytes that a match can begin with; empty without needles.
  std::vector<uint64_t> filter_;
};

}  // namespace norma::ledger
