// Cassette: one recorded HTTP exchange as two files that a person can review. NNN-name.json holds
// the request in canonical form, its SHA-256 as the key, and the head and end of the answer;
// NNN-name.body the answer's body as it came (decoded from gzip). No timings. Knows no secrets
// itself: everything written goes through the Redact function that was handed in.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/io/http.h"

namespace norma {

// Replaces secrets in a text. Same text in, same text out; any thread.
using Redact = std::function<std::string(std::string_view)>;

// Method, URL (no user, no secret query values), the headers that change what an answer means, and
// the body (as JSON when it is JSON), redacted, on one line. Two requests with the same text are
// the same request.
std::string CanonicalRequest(const HttpRequest& request, const Redact& redact);

struct Cassette {
  std::string name;     // file stem
  std::string key;      // SHA-256 of the canonical request
  std::string request;  // canonical
  HttpHead head;        // status 0: no answer came
  std::optional<HttpError> error;
  std::string body;
};

// Body first, so that a .json file always has its body. Files are 0600.
Status WriteCassette(const std::string& folder, const Cassette& cassette, const Redact& redact);

// What was read of a .json file; the body is read when it is needed.
struct CassetteHead {
  std::string name;
  std::string key;
  json::Document document;
  HttpHead head;
  std::optional<HttpError> error;

  json::Value request() const { return document.root()["request"]; }
};
Result<CassetteHead> ReadCassetteHead(const std::string& folder, const std::string& name);
Result<std::string> ReadCassetteBody(const std::string& folder, const std::string& name);

// The stems of all cassettes in a folder, in the order in which they were recorded.
Result<std::vector<std::string>> CassetteNames(const std::string& folder);

// "007-post-api.example.com-v1-messages".
std::string CassetteName(int number, std::string_view method, std::string_view url);
// 7; 0 when this is no cassette's name.
int CassetteNumber(std::string_view name);

// Where two canonical requests differ first: "body.messages[2].content[0].text: …".
struct Difference {
  std::string text;
  size_t matched = 0;  // bytes of values that were the same before it: how near the two are
};
Difference FirstDifference(json::Value recorded, json::Value now);

}  // namespace norma
