#include "lib/llm/base_url.h"

#include <doctest/doctest.h>

using norma::llm::BaseUrlWarning;

TEST_CASE("base URL: what a format appends twice is said, and nothing else") {
  for (const char* good :
       {"https://api.anthropic.com/v1/messages", "http://h/v1/chat/completions",
        "http://h:8080/a/b/v1/messages", "http://h/v1/x/v1/messages", "http://v1/v1/messages",
        "http://h", "", "h/v1", "http://h//v1/messages"}) {
    CAPTURE(good);
    CHECK(BaseUrlWarning(good).empty());
  }
  CHECK(BaseUrlWarning("http://h/v1/v1/messages") ==
        "requests go to http://h/v1/v1/messages, which holds /v1 twice; the base URL should end "
        "before it");
  CHECK(BaseUrlWarning("http://h/p/v1/messages/v1/messages").find("/v1/messages twice") !=
        std::string::npos);
  CHECK(BaseUrlWarning("http://h/v1/chat/completions/chat/completions")
            .find("/chat/completions twice") != std::string::npos);
}
