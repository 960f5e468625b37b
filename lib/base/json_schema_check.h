// Between the two halves of json_schema.cc, and for nobody else: the compiled form of a schema and
// the check of a document against it. valijson holds the tree of sub-schemas; what it takes less
// exactly than draft-07 (or would run on std::regex, or resolve by unbounded recursion) is carried
// by OwnConstraint, valijson's extension point for foreign keywords.
#pragma once

// Without this valijson calls abort() on a bad schema; Debian's package leaves it off.
#define VALIJSON_USE_EXCEPTIONS 1

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <valijson/constraints/concrete_constraints.hpp>
#include <valijson/schema.hpp>

#include "lib/base/json.h"
#include "lib/base/regex.h"
#include "lib/base/result.h"

namespace norma::schema {

enum class OwnKind { kRef, kEnum, kPattern, kFormat, kRequired };

// Keyword under which the compiler hands a value of the kind, as an index, to valijson's parser.
struct OwnKeyword {
  const char* name;
  OwnKind kind;
};
inline constexpr OwnKeyword kOwnKeywords[] = {{"$norma-ref", OwnKind::kRef},
                                              {"$norma-enum", OwnKind::kEnum},
                                              {"$norma-pattern", OwnKind::kPattern},
                                              {"$norma-format", OwnKind::kFormat},
                                              {"$norma-required", OwnKind::kRequired}};

class OwnConstraint : public valijson::constraints::PolyConstraint {
 public:
  OwnConstraint(OwnKind kind, size_t index) : kind_(kind), index_(index) {}

  OwnKind kind() const { return kind_; }
  size_t index() const { return index_; }  // into the list of the kind in Compiled

  // Only valijson's own validator calls it, which is never used here.
  bool validate(const valijson::adapters::Adapter& target, const std::vector<std::string>& context,
                valijson::ValidationResults* results) const override;

 private:
  valijson::constraints::Constraint* cloneInto(void* memory) const override;
  size_t sizeOf() const override { return sizeof(OwnConstraint); }

  OwnKind kind_;
  size_t index_;
};

// Immutable once built; read by any thread.
struct Compiled {
  std::vector<std::unique_ptr<valijson::Schema>> targets;  // [0] the root, then each $ref target
  std::vector<std::vector<std::string>> enums;             // canonical texts
  std::vector<std::vector<std::string>> required;          // names in the schema's order
  std::vector<std::string> formats;
  std::vector<Regex> patterns;
  std::map<std::string, size_t, std::less<>> pattern_index;  // by the schema's spelling
};

// kInvalid with the path and the reason of the first fault.
Status Check(const Compiled& compiled, json::Value document, std::string_view root);

}  // namespace norma::schema
