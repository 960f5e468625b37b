// A base URL that already carries what a format appends (spec: plain concatenation, never
// rewritten): how that shows in the final endpoint. Pure.
#pragma once

#include <string>
#include <string_view>

namespace norma::llm {

// A warning when the path of `endpoint` says something twice in a row ("/v1/v1/messages"); empty
// when all is well. Such a URL is used as it is: a gateway may really look like that.
std::string BaseUrlWarning(std::string_view endpoint);

}  // namespace norma::llm
