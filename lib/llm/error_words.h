// What a provider says about a failure, and whether it says that the prompt is too long.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/json.h"

namespace norma::llm {

// The words in a parsed error body ({"error": {"message": …}} and its relatives); empty when none.
std::string ErrorWords(json::Value body);

// The words of an error body, or the trimmed body itself, at most 500 characters of it.
std::string ErrorWords(std::string_view body);

// At most `count` characters, with "…" behind when something was cut. Control characters become
// blanks, invalid UTF-8 U+FFFD.
std::string Excerpt(std::string_view text, size_t count);

// `status` 0: the words came inside a stream.
bool SaysContextFull(int status, std::string_view words);

}  // namespace norma::llm
