// What a provider says about a failure, and whether it says that the prompt is too long.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/llm/wire.h"

namespace norma::llm {

// The words in a parsed error body ({"error": {"message": …}} and its relatives); empty when none.
std::string ErrorWords(json::Value body);

// The words of an error body, or the trimmed body itself, at most 500 characters of it.
std::string ErrorWords(std::string_view body);

// At most `count` characters, with "…" behind when something was cut. Control characters become
// blanks, invalid UTF-8 U+FFFD.
std::string Excerpt(std::string_view text, size_t count);

// An error that came in a stream or in a body of status 200: the provider's words, kContextFull
// when they or their code say that the prompt is too long, else kModel.
Error ReportedError(json::Value frame);
// Whether the frame is an error: `{"error": …}` with something in it, or an object that calls
// itself one.
bool IsErrorFrame(json::Value frame);

// Classify of every wire: a body that came with a status other than 200.
ErrorClass ClassifyWords(int status, std::string_view body);

// `status` 0: the words came inside a stream.
bool SaysContextFull(int status, std::string_view words);

}  // namespace norma::llm
