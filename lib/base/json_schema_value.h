// What JSON Schema says about single values: equality, integers, formats. Knows no schema.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/json.h"

namespace norma::schema {

bool IsNumber(json::Value value);

// Integral floats count. Up to 64 bits: who reads the value later has no wider integer.
bool IsInteger(json::Value value);

// The same text for equal values in the sense of JSON Schema: keys sorted, 1.0 as 1.
std::string CanonicalText(json::Value value);

// True for a text that has the format, and for each format that is not asserted (draft-07 leaves
// that open). Asserted are `date`, `time` and `date-time`.
bool HasFormat(std::string_view text, std::string_view format);

}  // namespace norma::schema
