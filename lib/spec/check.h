// Holds a tree against a key table: unknown and missing keys, wrong types, bounds, choices, names
// of tools, features that are not built yet. Reads nothing and fills nothing; what it lets pass,
// the functions of values.h can read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/policy/policy.h"
#include "lib/spec/fault.h"
#include "lib/spec/key_table.h"
#include "lib/spec/tree.h"

namespace norma::spec {

// Names that the table cannot know.
struct KnownNames {
  const std::vector<std::string>& tools;    // any that a rule may name
  const std::vector<std::string>& builtin;  // those that exist in this build
};

class Checker {
 public:
  Checker(KeyTable table, const KnownNames& names, Faults& faults)
      : table_(table), names_(names), faults_(faults) {}

  // The map at `pattern` ("" = the whole document), called `path` in messages.
  void CheckMap(const Node& map, std::string_view pattern, const std::string& path);
  // One value against its row.
  void CheckValue(const Node& node, const KeyRow& row, const std::string& path);

 private:
  void CheckUnknown(const Node& key, std::string_view pattern, const std::string& path);
  void CheckNamed(const Node& node, const KeyRow& row, const std::string& path);
  void CheckList(const Node& node, const KeyRow& row, const std::string& path);
  void CheckContainer(const Node& node, const KeyRow& row, const std::string& path);
  void CheckScalar(const Node& node, const KeyRow& row, const std::string& path);
  void CheckRange(const Node& node, const KeyRow& row, const std::string& path, int64_t number);
  void CheckChoice(const Node& node, const KeyRow& row, const std::string& path);
  void CheckTools(const Node& node, const KeyRow& row, const std::string& path);
  void CheckRule(const Node& node, const std::string& path);
  void CheckSegment(const Node& node, const std::string& path);
  void CheckText(const Node& node, const KeyRow& row, const std::string& path);
  bool IsDefault(const Node& node, const KeyRow& row) const;

  KeyTable table_;
  const KnownNames& names_;
  Faults& faults_;
  int not_yet_above_ = 0;  // inside a feature that is not built: said once, at its top
};

// The effective value of a row as canonical JSON: "1m" and "60s" are the same text. The node must
// have passed the Checker.
std::string Canonical(const Node& node, const KeyRow& row);
// The same for a default.
std::string CanonicalDefault(const KeyRow& row);

// Why a rule's tool name can match nothing, with a suggestion; empty when it can.
std::string RuleNameFault(const Rule& rule, const std::vector<std::string>& known);

// "; did you mean \"turns\"?", or nothing.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace norma::spec
