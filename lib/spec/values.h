// Scalars of the spec, one function a type. Each refuses what two YAML readers would take
// differently (octal, hexadecimal, underscores, yes/no) instead of guessing. Pure; an error says
// what was expected and what stands there, but not where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/money.h"
#include "lib/base/result.h"
#include "lib/spec/tree.h"

namespace norma::spec {

// What an unquoted scalar is: by YAML 1.2's core schema, kTrap where a YAML 1.1 reader disagrees.
enum class PlainKind { kText, kBool, kInt, kNumber, kTrap };
PlainKind ClassifyPlain(std::string_view text);

// "the text \"abc\"", "the number 5", "a list", "nothing": for messages, cut to a readable length.
std::string Describe(const Node& node);

Result<int64_t> IntOf(const Node& node);
Result<double> NumberOf(const Node& node);
Result<bool> BoolOf(const Node& node);
Result<std::string> TextOf(const Node& node);
Result<Nano> UsdOf(const Node& node);         // quoted or not, read as text
Result<Millis> DurationOf(const Node& node);  // "10s"
Result<int64_t> SizeOf(const Node& node);     // 2048, "64KiB"

// The value as JSON text; kInvalid with the path inside it for what JSON cannot say.
Result<std::string> JsonOf(const Node& node);

// "FOO_1": a name that the environment can hold.
bool IsVariableName(std::string_view name);

}  // namespace norma::spec
