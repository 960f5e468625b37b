// The walk itself with its bounds, and the keywords that judge a value without looking inside.
#include "lib/base/json_schema_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "lib/base/json_schema_checker.h"
#include "lib/base/json_schema_value.h"
#include "lib/base/text.h"

namespace norma::schema {
namespace {

namespace vc = valijson::constraints;

// One level of a document costs two checks when it goes through a $ref.
constexpr int kNestedChecksMax = 600;
// Alternatives inside alternatives multiply; a document that needs more is refused.
constexpr size_t kChecksMax = 1'000'000;
constexpr size_t kShownBytesMax = 80;  // of a name or a value in a message

// 64 bits of mantissa where the machine has them, so that large integers compare exactly.
long double Number(json::Value value) {
  if (value.kind() == json::Kind::kInt) return static_cast<long double>(value.Int());
  if (value.kind() == json::Kind::kUint) return static_cast<long double>(value.Uint());
  return static_cast<long double>(value.Double());
}

size_t CodePoints(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

const char* TypeWords(vc::TypeConstraint::JsonType type) {
  switch (type) {
    case vc::TypeConstraint::kAny:
      return "anything";
    case vc::TypeConstraint::kArray:
      return "an array";
    case vc::TypeConstraint::kBoolean:
      return "true or false";
    case vc::TypeConstraint::kInteger:
      return "an integer";
    case vc::TypeConstraint::kNull:
      return "null";
    case vc::TypeConstraint::kNumber:
      return "a number";
    case vc::TypeConstraint::kObject:
      return "an object";
    case vc::TypeConstraint::kString:
      return "a string";
  }
  return "nothing";
}

bool HasType(json::Value value, vc::TypeConstraint::JsonType type) {
  switch (type) {
    case vc::TypeConstraint::kAny:
      return true;
    case vc::TypeConstraint::kArray:
      return value.is_array();
    case vc::TypeConstraint::kBoolean:
      return value.kind() == json::Kind::kBool;
    case vc::TypeConstraint::kInteger:
      return IsInteger(value);
    case vc::TypeConstraint::kNull:
      return value.is_null();
    case vc::TypeConstraint::kNumber:
      return IsNumber(value);
    case vc::TypeConstraint::kObject:
      return value.is_object();
    case vc::TypeConstraint::kString:
      return value.is_string();
  }
  return false;
}

// A wrong type and a missing property explain most other faults, so they are told first.
enum class Pass { kType, kRequired, kRest };

Pass PassOf(const vc::Constraint& constraint) {
  if (dynamic_cast<const vc::TypeConstraint*>(&constraint) != nullptr) return Pass::kType;
  const auto* own = dynamic_cast<const OwnConstraint*>(&constraint);
  return own != nullptr && own->kind() == OwnKind::kRequired ? Pass::kRequired : Pass::kRest;
}

}  // namespace

std::string Shown(std::string_view text) {
  std::string shown(CutUtf8(text, kShownBytesMax));
  if (shown.size() < text.size()) shown += "…";
  return shown;
}

// "a", "a or b", "a, b or c".
std::string OrList(const std::vector<std::string>& parts) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += i + 1 == parts.size() ? " or " : ", ";
    out += parts[i];
  }
  return out;
}

Status Checker::Run(json::Value document) {
  const bool fits = CheckTarget(0, document);
  if (fits && !exhausted_) return {};
  std::string_view path = CutUtf8(fault_.path, kPathBytesMax);
  return Error{Code::kInvalid, fmt::format("{}: {}", path, fault_.text)};
}

bool Checker::Fail(std::string text) {
  if (fault_.text.empty()) fault_ = Fault{path_, std::move(text)};
  return false;
}

bool Checker::Exhaust(const char* text) {
  if (!exhausted_) fault_ = Fault{path_, text};
  exhausted_ = true;
  return false;
}

bool Checker::CheckTarget(size_t index, json::Value value) {
  NORMA_CHECK(index < compiled_.targets.size());
  return CheckValue(*compiled_.targets[index], value);
}

bool Checker::CheckValue(const Subschema& schema, json::Value value) {
  if (exhausted_) return false;
  if (nested_ == kNestedChecksMax) {
    return Exhaust("nests too deep for its schema (or the schema refers to itself)");
  }
  if (++checks_ > kChecksMax) return Exhaust("takes too many steps to check");
  if (schema.getAlwaysInvalid()) return Fail("is not allowed");
  const json::Value outer = value_;
  value_ = value;
  ++nested_;
  bool fits = true;
  for (const Pass pass : {Pass::kType, Pass::kRequired, Pass::kRest}) {
    Subschema::ApplyFunction apply = [&](const vc::Constraint& constraint) {
      return PassOf(constraint) != pass || constraint.accept(*this);
    };
    fits = fits && schema.applyStrict(apply);
  }
  --nested_;
  value_ = outer;
  return fits && !exhausted_;
}

bool Checker::CheckMember(const Subschema& schema, std::string_view key, json::Value value) {
  const size_t length = path_.size();
  const bool plain = !key.empty() && std::ranges::all_of(key, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '$';
  });
  path_ += plain ? "." + Shown(key) : "[" + json::Quote(Shown(key)) + "]";
  const bool fits = CheckValue(schema, value);
  path_.resize(length);
  return fits;
}

bool Checker::CheckElement(const Subschema& schema, size_t index, json::Value value) {
  const size_t length = path_.size();
  path_ += fmt::format("[{}]", index);
  const bool fits = CheckValue(schema, value);
  path_.resize(length);
  return fits;
}

bool Checker::Attempt(const Subschema& schema, json::Value value, Fault* fault) {
  const Fault outer = std::exchange(fault_, {});
  const bool fits = CheckValue(schema, value);
  if (exhausted_) return false;
  *fault = std::exchange(fault_, outer);
  return fits;
}

bool Checker::CheckBound(bool fits, const char* words, double bound) {
  return fits || Fail(fmt::format("must be {} {}", words, bound));
}

bool Checker::CheckCount(bool fits, const char* words, uint64_t count, const char* things) {
  return fits || Fail(fmt::format("must have {} {} {}", words, count, things));
}

bool Checker::visit(const MaximumConstraint& constraint) {
  if (!IsNumber(value_)) return true;
  const double bound = constraint.getMaximum();
  const long double number = Number(value_);
  if (constraint.getExclusiveMaximum()) return CheckBound(number < bound, "less than", bound);
  return CheckBound(number <= bound, "at most", bound);
}

bool Checker::visit(const MinimumConstraint& constraint) {
  if (!IsNumber(value_)) return true;
  const double bound = constraint.getMinimum();
  const long double number = Number(value_);
  if (constraint.getExclusiveMinimum()) return CheckBound(number > bound, "more than", bound);
  return CheckBound(number >= bound, "at least", bound);
}

bool Checker::visit(const MultipleOfIntConstraint& constraint) {
  if (!IsNumber(value_)) return true;
  const auto divisor = static_cast<long double>(constraint.getDivisor());
  const bool fits = std::fmod(Number(value_), divisor) == 0;
  return fits || Fail(fmt::format("must be a multiple of {}", constraint.getDivisor()));
}

bool Checker::visit(const MultipleOfDoubleConstraint& constraint) {
  // 4.35 is a multiple of 0.01 for people, though not for binary fractions.
  constexpr long double kSlack = 1e-9L;
  if (!IsNumber(value_)) return true;
  const long double quotient = Number(value_) / static_cast<long double>(constraint.getDivisor());
  const long double off = std::fabs(quotient - std::round(quotient));
  const bool fits = off <= kSlack * std::max(1.0L, std::fabs(quotient));
  return fits || Fail(fmt::format("must be a multiple of {}", constraint.getDivisor()));
}

bool Checker::visit(const MaxItemsConstraint& constraint) {
  const uint64_t bound = constraint.getMaxItems();
  return !value_.is_array() || CheckCount(value_.size() <= bound, "at most", bound, "elements");
}

bool Checker::visit(const MinItemsConstraint& constraint) {
  const uint64_t bound = constraint.getMinItems();
  return !value_.is_array() || CheckCount(value_.size() >= bound, "at least", bound, "elements");
}

bool Checker::visit(const MaxLengthConstraint& constraint) {
  const uint64_t bound = constraint.getMaxLength();
  return !value_.is_string() ||
         CheckCount(CodePoints(value_.Str()) <= bound, "at most", bound, "characters");
}

bool Checker::visit(const MinLengthConstraint& constraint) {
  const uint64_t bound = constraint.getMinLength();
  return !value_.is_string() ||
         CheckCount(CodePoints(value_.Str()) >= bound, "at least", bound, "characters");
}

bool Checker::visit(const MaxPropertiesConstraint& constraint) {
  const uint64_t bound = constraint.getMaxProperties();
  return !value_.is_object() || CheckCount(value_.size() <= bound, "at most", bound, "properties");
}

bool Checker::visit(const MinPropertiesConstraint& constraint) {
  const uint64_t bound = constraint.getMinProperties();
  return !value_.is_object() || CheckCount(value_.size() >= bound, "at least", bound, "properties");
}

bool Checker::visit(const PolyConstraint& constraint) {
  const auto& own = dynamic_cast<const OwnConstraint&>(constraint);
  switch (own.kind()) {
    case OwnKind::kRef:
      return CheckTarget(own.index(), value_);
    case OwnKind::kEnum:
      return CheckEnum(compiled_.enums.at(own.index()));
    case OwnKind::kRequired:
      return CheckRequired(compiled_.required.at(own.index()));
    case OwnKind::kPattern: {
      const Regex& pattern = compiled_.patterns.at(own.index());
      if (!value_.is_string() || pattern.Matches(value_.Str())) return true;
      return Fail(fmt::format("must match the pattern {}", Shown(pattern.pattern())));
    }
    case OwnKind::kFormat: {
      const std::string& format = compiled_.formats.at(own.index());
      if (!value_.is_string() || HasFormat(value_.Str(), format)) return true;
      return Fail(fmt::format("must be a {} as in RFC 3339", format));
    }
  }
  return Fail("has an unknown constraint");
}

bool Checker::CheckRequired(const std::vector<std::string>& names) {
  if (!value_.is_object()) return true;
  for (const std::string& name : names) {
    if (value_[name].present()) continue;
    return Fail(fmt::format("missing required property '{}'", Shown(name)));
  }
  return true;
}

bool Checker::CheckEnum(const std::vector<std::string>& allowed) {
  const std::string text = CanonicalText(value_);
  if (std::ranges::find(allowed, text) != allowed.end()) return true;
  if (allowed.empty()) return Fail("can have no value ('enum' and 'const' exclude each other)");
  std::string list;
  for (const std::string& one : allowed) {
    if (list.size() > kShownListMax) return Fail(fmt::format("must be one of {}, …", list));
    list += (list.empty() ? "" : ", ") + Shown(one);
  }
  return Fail(fmt::format("must be {}{}", allowed.size() > 1 ? "one of " : "", list));
}

bool Checker::visit(const TypeConstraint& constraint) {
  bool fits = false;
  std::vector<std::string> words;
  bool or_null = false;
  constraint.applyToNamedTypes([&](vc::TypeConstraint::JsonType type) {
    fits = fits || HasType(value_, type);
    or_null = or_null || type == vc::TypeConstraint::kNull;
    if (type != vc::TypeConstraint::kNull) words.emplace_back(TypeWords(type));
    return !fits;
  });
  if (or_null) words.emplace_back(TypeWords(vc::TypeConstraint::kNull));
  return fits || Fail("must be " + OrList(words));
}

bool Checker::visit(const UniqueItemsConstraint&) {
  if (!value_.is_array()) return true;
  std::unordered_map<std::string, size_t> seen;
  bool fits = true;
  size_t index = 0;
  value_.EachElement([&](json::Value element) {
    if (!fits) return;
    const auto [entry, added] = seen.emplace(CanonicalText(element), index);
    if (!added) fits = Fail(fmt::format("has equal elements at {} and {}", entry->second, index));
    ++index;
  });
  return fits;
}

bool OwnConstraint::validate(const valijson::adapters::Adapter& /*target*/,
                             const std::vector<std::string>& /*context*/,
                             valijson::ValidationResults* /*results*/) const {
  return false;
}

valijson::constraints::Constraint* OwnConstraint::cloneInto(void* memory) const {
  return new (memory) OwnConstraint(*this);
}

Status Check(const Compiled& compiled, json::Value document, std::string_view root) {
  return Checker(compiled, root).Run(document);
}

}  // namespace norma::schema
