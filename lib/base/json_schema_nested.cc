// The keywords with schemas inside: alternatives, conditions, elements, properties.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lib/base/json_schema_checker.h"
#include "lib/base/text.h"

namespace norma::schema {

bool Checker::visit(const AllOfConstraint& constraint) {
  bool fits = true;
  constraint.applyToSubschemas(
      [&](unsigned, const Subschema* schema) { return fits = CheckValue(*schema, value_); });
  return fits;
}

template <typename Alternatives>
bool Checker::CheckAlternatives(const Alternatives& constraint, bool exactly_one) {
  std::vector<Fault> faults;
  int fitting = 0;
  constraint.applyToSubschemas([&](unsigned, const Subschema* schema) {
    Fault fault;
    if (Attempt(*schema, value_, &fault)) {
      ++fitting;
    } else {
      faults.push_back(std::move(fault));
    }
    return !exhausted_ && fitting < (exactly_one ? 2 : 1);
  });
  if (exhausted_) return false;
  if (fitting == 1) return true;
  if (fitting > 1) return Fail("fits more than one alternative of 'oneOf'");
  return FailAlternatives(faults);
}

// What the model most likely meant is the alternative that failed deepest inside.
bool Checker::FailAlternatives(const std::vector<Fault>& faults) {
  constexpr std::string_view kMustBe = "must be ";
  NORMA_CHECK(!faults.empty());
  std::vector<std::string> kinds;
  for (const Fault& fault : faults) {
    if (fault.path != path_ || !fault.text.starts_with(kMustBe)) continue;
    std::string kind = fault.text.substr(kMustBe.size());
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(std::move(kind));
  }
  const bool all_here = std::ranges::all_of(faults, [&](const Fault& fault) {
    return fault.path == path_ && fault.text.starts_with(kMustBe);
  });
  if (all_here) return Fail(fmt::format("{}{}", kMustBe, CutUtf8(OrList(kinds), kShownListMax)));
  const Fault& nearest =
      *std::ranges::max_element(faults, {}, [](const Fault& fault) { return fault.path.size(); });
  if (faults.size() == 1) {
    if (fault_.text.empty()) fault_ = nearest;
    return false;
  }
  return Fail(fmt::format("fits none of {} alternatives; the nearest fails with {}: {}",
                          faults.size(), CutUtf8(nearest.path, kPathBytesMax), nearest.text));
}

bool Checker::visit(const AnyOfConstraint& constraint) {
  return CheckAlternatives(constraint, false);
}

bool Checker::visit(const OneOfConstraint& constraint) {
  return CheckAlternatives(constraint, true);
}

bool Checker::visit(const NotConstraint& constraint) {
  Fault expected;
  if (!Attempt(*constraint.getSubschema(), value_, &expected)) return !exhausted_;
  return Fail("has the form that 'not' excludes");
}

bool Checker::visit(const ConditionalConstraint& constraint) {
  Fault ignored;
  const bool holds = Attempt(*constraint.getIfSubschema(), value_, &ignored);
  if (exhausted_) return false;
  const Subschema* next = holds ? constraint.getThenSubschema() : constraint.getElseSubschema();
  return next == nullptr || CheckValue(*next, value_);
}

bool Checker::visit(const ContainsConstraint& constraint) {
  if (!value_.is_array()) return true;
  bool found = false;
  value_.EachElement([&](json::Value element) {
    Fault ignored;
    found = found || Attempt(*constraint.getSubschema(), element, &ignored);
  });
  return found || Fail("must contain an element that fits 'contains'");
}

bool Checker::visit(const DependenciesConstraint& constraint) {
  if (!value_.is_object()) return true;
  bool fits = true;
  constraint.applyToPropertyDependencies([&](const auto& key, const auto& names) {
    if (!value_[key.c_str()].present()) return true;
    for (const auto& name : names) {
      if (!fits || value_[name.c_str()].present()) continue;
      fits = Fail(fmt::format("missing property '{}', which '{}' needs", Shown(name.c_str()),
                              Shown(key.c_str())));
    }
    return fits;
  });
  constraint.applyToSchemaDependencies([&](const auto& key, const Subschema* schema) {
    fits = fits && (!value_[key.c_str()].present() || CheckValue(*schema, value_));
    return fits;
  });
  return fits;
}

bool Checker::visit(const SingularItemsConstraint& constraint) {
  if (!value_.is_array()) return true;
  bool fits = true;
  size_t index = 0;
  value_.EachElement([&](json::Value element) {
    fits = fits && CheckElement(*constraint.getItemsSubschema(), index++, element);
  });
  return fits;
}

bool Checker::visit(const LinearItemsConstraint& constraint) {
  if (!value_.is_array()) return true;
  std::vector<const Subschema*> schemas;
  constraint.applyToItemSubschemas([&](unsigned, const Subschema* schema) {
    schemas.push_back(schema);
    return true;
  });
  const Subschema* const rest = constraint.getAdditionalItemsSubschema();
  bool fits = true;
  size_t index = 0;
  value_.EachElement([&](json::Value element) {
    if (!fits) return;
    const Subschema* schema = index < schemas.size() ? schemas[index] : rest;
    fits = schema != nullptr ? CheckElement(*schema, index, element)
                             : Fail(fmt::format("must have at most {} elements", schemas.size()));
    ++index;
  });
  return fits;
}

bool Checker::FailUnknown(std::string_view key, const std::vector<std::string>& known) {
  const std::string nearest = Nearest(key, known);
  const std::string hint =
      nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", Shown(nearest));
  return Fail(fmt::format("unknown property '{}'{}", Shown(key), hint));
}

bool Checker::visit(const PropertiesConstraint& constraint) {
  if (!value_.is_object()) return true;
  std::unordered_map<std::string_view, const Subschema*> properties;
  std::vector<std::string> known;
  constraint.applyToProperties([&](const auto& name, const Subschema* schema) {
    properties.emplace(std::string_view(name.data(), name.size()), schema);
    known.emplace_back(name.data(), name.size());
    return true;
  });
  std::vector<std::pair<const Regex*, const Subschema*>> patterns;
  constraint.applyToPatternProperties([&](const auto& pattern, const Subschema* schema) {
    const auto index =
        compiled_.pattern_index.find(std::string_view(pattern.data(), pattern.size()));
    NORMA_CHECK(index != compiled_.pattern_index.end());
    patterns.emplace_back(&compiled_.patterns[index->second], schema);
    return true;
  });
  const Subschema* const rest = constraint.getAdditionalPropertiesSubschema();
  bool fits = true;
  value_.EachMember([&](std::string_view key, json::Value member) {
    if (!fits) return;
    bool named = false;
    if (const auto property = properties.find(key); property != properties.end()) {
      named = true;
      fits = CheckMember(*property->second, key, member);
    }
    for (const auto& [pattern, schema] : patterns) {
      if (!fits || !pattern->Matches(key)) continue;
      named = true;
      fits = CheckMember(*schema, key, member);
    }
    if (named) return;
    fits = rest != nullptr ? CheckMember(*rest, key, member) : FailUnknown(key, known);
  });
  return fits;
}

bool Checker::visit(const PropertyNamesConstraint& constraint) {
  if (!value_.is_object()) return true;
  bool fits = true;
  value_.EachMember([&](std::string_view key, json::Value) {
    if (!fits) return;
    const auto name = json::Document::Parse(json::Quote(key));
    NORMA_CHECK(name.ok());
    Fault fault;
    if (Attempt(*constraint.getSubschema(), name.value().root(), &fault)) return;
    fits = exhausted_ ? false : Fail(fmt::format("the name '{}' {}", Shown(key), fault.text));
  });
  return fits;
}

}  // namespace norma::schema
