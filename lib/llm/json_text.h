// Pieces of JSON as text: what must go back byte for byte is cut out of the document as it came,
// never parsed and written again. Also the repair of damaged strings, and the one check that turns
// the arguments of a call into something that may run.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace norma::llm {

// All of these take text that a json::Parser accepted; on other text they end early, harmlessly.

// Raw text of a member of an object, empty when there is none. The first one counts.
std::string_view RawMember(std::string_view object, std::string_view key);
void EachRawMember(std::string_view object,
                   const std::function<void(std::string_view key, std::string_view raw)>& visit);
void EachRawElement(std::string_view array, const std::function<void(std::string_view raw)>& visit);

// Lone surrogate escapes and invalid UTF-8 become U+FFFD: some servers cut text between the halves
// of a character, and a strict parser would refuse the whole event.
std::string RepairJsonText(std::string_view json);

// The minified object when `raw` is exactly one JSON object without duplicate keys, else empty.
// Blank counts as `{}`: a block that streamed no argument at all has none.
std::string ValidArguments(std::string_view raw);

}  // namespace norma::llm
