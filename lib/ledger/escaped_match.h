// Compares a secret with text that may hold it escaped, one unit at a time: what JSON, shells, URLs
// and base64 encoders make of it. Errs on the side of a match. Pure; bounded work for each byte.
#pragma once

#include <cstddef>
#include <string_view>

#include "lib/base/regex.h"

namespace norma::ledger {

// The span of `needle` at text[at], plain, behind backslash escapes of any depth or percent-encoded
// once or twice; {at, at} when it is not there. `needle` must not be empty.
Span MatchEscaped(std::string_view text, size_t at, std::string_view needle);

// The span of base64 characters (standard alphabet in `needle`, both in `text`, line breaks and
// escapes between them allowed), widened over the neighbours that still hold bits of the secret.
Span MatchBase64(std::string_view text, size_t at, std::string_view needle, bool edge_before,
                 bool edge_after);

}  // namespace norma::ledger
