// The words of error bodies, and which of them mean that the prompt is too long.
#include "lib/llm/error_words.h"

#include <doctest/doctest.h>

#include <vector>

using namespace norma;
using namespace norma::llm;

TEST_CASE("error words: found wherever providers put them") {
  struct Row {
    std::string body, want;
  };
  const std::vector<Row> rows = {
      {R"({"type":"error","error":{"type":"api_error","message":" boom "},"request_id":"r"})",
       "boom"},
      {R"({"error":"boom"})", "boom"},
      {R"({"message":"boom"})", "boom"},
      {R"({"detail":"boom"})", "boom"},
      {R"({"error":{"type":"overloaded_error"}})", "overloaded_error"},
      {R"({"x":1})", R"({"x":1})"},
      {" <html>\n<b>502</b></html> ", "<html> <b>502</b></html>"},
      {"", ""},
      {"\xff", "\xEF\xBF\xBD"},
  };
  for (const Row& row : rows) CHECK(ErrorWords(row.body) == row.want);
  CHECK(ErrorWords(std::string(600, 'x')) == std::string(500, 'x') + "…");
  std::string umlauts;
  for (int n = 0; n < 600; ++n) umlauts += "ü";
  CHECK(ErrorWords(umlauts) == umlauts.substr(0, 1000) + "…");
}

TEST_CASE("error words: a full context is told from other refusals") {
  struct Row {
    int status;
    std::string words;
    bool want;
  };
  const std::vector<Row> rows = {
      {400, "prompt is too long: 250000 tokens > 200000 maximum", true},
      {400, "Input is too long for requested model.", true},
      {400, "This model's maximum context length is 8192 tokens", true},
      {400, "context_length_exceeded", true},
      {400, "input length and `max_tokens` exceed context limit: 1 + 2 > 3", true},
      {400, "Your input exceeds the context window of this model", true},
      {422, "Prompt exceeds the available context", true},
      {0, "PROMPT IS TOO LONG", true},
      {413, "", true},
      {413, "Request Entity Too Large", true},
      {400, "max_tokens: must be at least 1", false},
      {400, "messages.1.content.0.id: string too long. Expected a maximum length of 64", false},
      {429, "This request would exceed the rate limit for long context", false},
      {401, "invalid x-api-key", false},
      {500, "prompt is too long", false},
      {400, "", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    CHECK(SaysContextFull(row.status, row.words) == row.want);
  }
}
