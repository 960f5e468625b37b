// The walk of a document along a compiled schema, by valijson's visitor interface. Not valijson's
// own validator: that one runs patterns on std::regex, which crashes on long lines, recurses
// without a bound, and its messages name neither paths nor properties in a way a model can act
// upon. json_schema_check.cc has the walk and the keywords for single values,
// json_schema_nested.cc those with schemas inside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_schema_check.h"

namespace norma::schema {

using valijson::Subschema;

inline constexpr size_t kShownListMax = 400;  // bytes of a list of values in a message
inline constexpr size_t kPathBytesMax = 400;

struct Fault {
  std::string path;
  std::string text;
};

// A name or a value, short enough for a message.
std::string Shown(std::string_view text);

// "a", "a or b", "a, b or c".
std::string OrList(const std::vector<std::string>& parts);

// One check of one document; one thread.
class Checker final : public valijson::constraints::ConstraintVisitor {
 public:
  Checker(const Compiled& compiled, std::string_view root) : compiled_(compiled), path_(root) {}

  // Ok, or the first fault. Once.
  Status Run(json::Value document);

  bool visit(const AllOfConstraint& constraint) override;
  bool visit(const AnyOfConstraint& constraint) override;
  bool visit(const ConditionalConstraint& constraint) override;
  bool visit(const ContainsConstraint& constraint) override;
  bool visit(const DependenciesConstraint& constraint) override;
  bool visit(const LinearItemsConstraint& constraint) override;
  bool visit(const MaximumConstraint& constraint) override;
  bool visit(const MaxItemsConstraint& constraint) override;
  bool visit(const MaxLengthConstraint& constraint) override;
  bool visit(const MaxPropertiesConstraint& constraint) override;
  bool visit(const MinimumConstraint& constraint) override;
  bool visit(const MinItemsConstraint& constraint) override;
  bool visit(const MinLengthConstraint& constraint) override;
  bool visit(const MinPropertiesConstraint& constraint) override;
  bool visit(const MultipleOfDoubleConstraint& constraint) override;
  bool visit(const MultipleOfIntConstraint& constraint) override;
  bool visit(const NotConstraint& constraint) override;
  bool visit(const OneOfConstraint& constraint) override;
  bool visit(const PolyConstraint& constraint) override;
  bool visit(const PropertiesConstraint& constraint) override;
  bool visit(const PropertyNamesConstraint& constraint) override;
  bool visit(const SingularItemsConstraint& constraint) override;
  bool visit(const TypeConstraint& constraint) override;
  bool visit(const UniqueItemsConstraint& constraint) override;
  // The compiler hands these over as OwnConstraint; one that slips through denies.
  bool visit(const ConstConstraint&) override { return Fail("has an unsupported 'const'"); }
  bool visit(const EnumConstraint&) override { return Fail("has an unsupported 'enum'"); }
  bool visit(const FormatConstraint&) override { return Fail("has an unsupported 'format'"); }
  bool visit(const PatternConstraint&) override { return Fail("has an unsupported 'pattern'"); }
  bool visit(const RequiredConstraint&) override { return Fail("has an unsupported 'required'"); }

 private:
  // False, always; the first fault counts.
  bool Fail(std::string text);

  // Ends the whole check, whatever `not` or `anyOf` is around.
  bool Exhaust(const char* text);

  bool CheckTarget(size_t index, json::Value value);

  bool CheckValue(const Subschema& schema, json::Value value);

  bool CheckMember(const Subschema& schema, std::string_view key, json::Value value);

  bool CheckElement(const Subschema& schema, size_t index, json::Value value);

  // A check whose fault does not count yet.
  bool Attempt(const Subschema& schema, json::Value value, Fault* fault);

  template <typename Alternatives>
  bool CheckAlternatives(const Alternatives& constraint, bool exactly_one);
  bool FailAlternatives(const std::vector<Fault>& faults);
  bool CheckBound(bool fits, const char* words, double bound);
  bool CheckCount(bool fits, const char* words, uint64_t count, const char* things);
  bool CheckRequired(const std::vector<std::string>& names);
  bool CheckEnum(const std::vector<std::string>& allowed);
  bool FailUnknown(std::string_view key, const std::vector<std::string>& known);

  const Compiled& compiled_;
  std::string path_;
  json::Value value_;
  Fault fault_;
  bool exhausted_ = false;
  int nested_ = 0;
  size_t checks_ = 0;
};

}  // namespace norma::schema
