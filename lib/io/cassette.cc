#include "lib/io/cassette.h"

#include <dirent.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/io/files.h"

namespace norma {
namespace {

constexpr int kVersion = 1;
constexpr uint64_t kFileBytesMax = 512ULL << 20;
constexpr size_t kStemBytesMax = 72;
constexpr int kFileMode = 0600;
constexpr size_t kExtensionBytes = 5;  // ".json", ".body"
constexpr int kDepthMax = 1000;        // a request's own depth and the frame around it

// What changes the meaning of an answer. A list of what may be written, because what must not be
// written (keys under any name) has no complete list.
constexpr std::array<std::string_view, 7> kRequestHeaders = {
    "accept",      "anthropic-beta",       "anthropic-version", "content-type",
    "openai-beta", "mcp-protocol-version", "accept-language"};
// Of the answer: credentials, and what no longer holds for a stored body.
constexpr std::array<std::string_view, 8> kDroppedHeaders = {
    "set-cookie",       "www-authenticate", "proxy-authenticate", "date",
    "content-encoding", "content-length",   "transfer-encoding",  "connection"};
constexpr std::array<std::string_view, 9> kSecretParameters = {
    "key", "api_key", "apikey", "token", "access_token", "sig", "signature", "password", "secret"};

struct FailureName {
  HttpFailure failure;
  std::string_view name;
};
constexpr std::array kFailureNames = {FailureName{HttpFailure::kBadUrl, "bad_url"},
                                      FailureName{HttpFailure::kDns, "dns"},
                                      FailureName{HttpFailure::kConnect, "connect"},
                                      FailureName{HttpFailure::kConnectTimeout, "connect_timeout"},
                                      FailureName{HttpFailure::kTls, "tls"},
                                      FailureName{HttpFailure::kProxy, "proxy"},
                                      FailureName{HttpFailure::kSend, "send"},
                                      FailureName{HttpFailure::kBroken, "broken"},
                                      FailureName{HttpFailure::kIdle, "idle"},
                                      FailureName{HttpFailure::kTotal, "total"},
                                      FailureName{HttpFailure::kCancelled, "cancelled"},
                                      FailureName{HttpFailure::kStopped, "stopped"},
                                      FailureName{HttpFailure::kReplayMiss, "replay_miss"},
                                      FailureName{HttpFailure::kRecord, "record"}};

template <typename List>
bool Has(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

std::string PublicUrl(std::string_view url) {
  std::string out = EndpointOf(url);
  const size_t at = url.find('?');
  if (at == std::string_view::npos) return out;
  const std::string_view query = url.substr(at + 1, url.find('#', at) - at - 1);
  char separator = '?';
  for (const std::string_view part : Split(query, '&')) {
    const std::string_view name = part.substr(0, part.find('='));
    out += separator;
    out += Has(kSecretParameters, ToLower(name)) ? std::string(name) + "=***" : std::string(part);
    separator = '&';
  }
  return out;
}

// Two-space indent of valid JSON on one line; strings and numbers keep their spelling.
std::string Indented(std::string_view json) {
  std::string out;
  size_t depth = 0;
  bool in_string = false;
  const auto line = [&] { out += "\n" + std::string(2 * depth, ' '); };
  for (size_t n = 0; n < json.size(); ++n) {
    const char c = json[n];
    if (in_string) {
      out += c;
      if (c == '\\' && n + 1 < json.size()) out += json[++n];
      in_string = c != '"';
      continue;
    }
    const bool is_open = c == '{' || c == '[';
    if (is_open && n + 1 < json.size() && (json[n + 1] == '}' || json[n + 1] == ']')) {
      out += c;
      out += json[++n];
    } else if (is_open) {
      out += c;
      ++depth;
      line();
    } else if (c == '}' || c == ']') {
      --depth;
      line();
      out += c;
    } else {
      in_string = c == '"';
      out += c;
      if (c == ',') line();
      if (c == ':') out += ' ';
    }
  }
  return out + "\n";
}

std::string HeadJson(const Cassette& cassette, const Redact& redact) {
  json::Writer out;
  out.BeginObject().Field("norma_cassette", kVersion).Field("key", cassette.key);
  out.Key("request").Raw(cassette.request);
  out.Key("response").BeginObject().Field("status", cassette.head.status);
  out.Key("headers").BeginArray();
  for (const auto& [name, value] : cassette.head.headers) {
    if (Has(kDroppedHeaders, name)) continue;
    out.BeginArray().String(name).String(redact(value)).EndArray();
  }
  out.EndArray();
  if (cassette.error) {
    const auto* row =
        std::ranges::find(kFailureNames, cassette.error->failure, &FailureName::failure);
    NORMA_CHECK(row != kFailureNames.end());
    out.Key("error").BeginObject().Field("failure", std::string(row->name));
    out.Field("message", redact(cassette.error->message));
    out.Field("permanent", cassette.error->permanent).EndObject();
  }
  out.Field("body_file", cassette.name + ".body").EndObject().EndObject();
  return out.Take();
}

}  // namespace

std::string CanonicalRequest(const HttpRequest& request, const Redact& redact) {
  json::Writer out;
  out.BeginObject().Field("method", request.method);
  out.Field("url", redact(PublicUrl(request.url)));
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& [name, value] : request.headers) {
    const std::string lower = ToLower(name);
    if (Has(kRequestHeaders, lower)) headers.emplace_back(lower, redact(value));
  }
  std::ranges::sort(headers);
  out.Key("headers").BeginObject();
  for (const auto& [name, value] : headers) out.Field(name, value);
  out.EndObject();
  const std::string body = redact(request.body);
  // A redaction can break JSON (a pattern that takes a quote along); then it is text.
  if (const auto minified = json::Minify(body); minified.ok()) {
    out.Key("body").Raw(minified.value());
  } else if (IsValidUtf8(body)) {
    out.Field("body_text", body);
  } else {
    out.Field("body_sha256", Sha256Hex(body));
  }
  out.EndObject();
  return out.Take();
}

Status WriteCassette(const std::string& folder, const Cassette& cassette, const Redact& redact) {
  const std::string stem = JoinPath(folder, cassette.name);
  NORMA_TRY(WriteFileAtomic(stem + ".body", redact(cassette.body), kFileMode));
  return WriteFileAtomic(stem + ".json", Indented(HeadJson(cassette, redact)), kFileMode);
}

Result<CassetteHead> ReadCassetteHead(const std::string& folder, const std::string& name) {
  const std::string path = JoinPath(folder, name + ".json");
  NORMA_ASSIGN(const std::string text, ReadRegularFile(path, kFileBytesMax));
  auto document = json::Document::Parse(text, {kDepthMax, false});
  const auto bad = [&](const std::string& why) {
    return Error{Code::kInvalid, fmt::format("{} is no recording: {}", path, why)};
  };
  if (!document.ok()) return bad(document.error().message);
  const json::Value root = document.value().root();
  if (root["norma_cassette"].Int() != kVersion) return bad("norma_cassette is not 1");
  CassetteHead cassette{name, std::string(root["key"].Str()), document.value(), {}, {}};
  if (cassette.key.empty() || !root["request"].is_object()) return bad("no key or no request");
  const json::Value response = root["response"];
  cassette.head.status = static_cast<int>(response["status"].Int(-1));
  if (cassette.head.status < 0 || cassette.head.status > 999) return bad("no usable status");
  response["headers"].EachElement([&](json::Value header) {
    cassette.head.headers.emplace_back(header.At(0).Str(), header.At(1).Str());
  });
  if (const json::Value error = response["error"]) {
    const auto* row = std::ranges::find(kFailureNames, error["failure"].Str(), &FailureName::name);
    if (row == kFailureNames.end()) return bad("an unknown response.error.failure");
    cassette.error =
        HttpError{row->failure, std::string(error["message"].Str()), error["permanent"].Bool()};
  }
  return cassette;
}

Result<std::string> ReadCassetteBody(const std::string& folder, const std::string& name) {
  return ReadRegularFile(JoinPath(folder, name + ".body"), kFileBytesMax);
}

Result<std::vector<std::string>> CassetteNames(const std::string& folder) {
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) {
    return Error{Code::kIo,
                 fmt::format("cannot read the folder {}: {}", folder, std::strerror(errno))};
  }
  const auto close = [](DIR* folder_stream) { closedir(folder_stream); };
  const std::unique_ptr<DIR, decltype(close)> guard(open, close);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(open)) {
    std::string name = entry->d_name;
    if (!name.ends_with(".json")) continue;
    name.resize(name.size() - kExtensionBytes);
    if (CassetteNumber(name) > 0) names.push_back(std::move(name));
  }
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return std::pair(CassetteNumber(a), a) < std::pair(CassetteNumber(b), b);
  });
  return names;
}

std::string CassetteName(int number, std::string_view method, std::string_view url) {
  std::string words = ToLower(method) + "-";
  const std::string endpoint = EndpointOf(url);
  const size_t scheme = endpoint.find("://");
  for (const char c : ToLower(endpoint.substr(scheme == std::string::npos ? 0 : scheme + 3))) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (plain) words += c;
    if (!plain && words.back() != '-') words += '-';
  }
  words.resize(std::min(words.size(), kStemBytesMax));
  while (words.ends_with('-')) words.pop_back();
  return fmt::format("{:03}-{}", number, words);
}

int CassetteNumber(std::string_view name) {
  const std::string_view digits = name.substr(0, name.find('-'));
  int number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && stop == end && digits.size() >= 3 && number > 0 ? number : 0;
}

}  // namespace norma
