// `model:` into the RunSpec, with what no table can say: credentials, our own body keys, URLs.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/spec/loading.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

// Headers that carry a credential: a key itself must not stand in a spec.
constexpr std::array<std::string_view, 9> kCredentialHeaders = {
    "authorization", "proxy-authorization",  "x-api-key", "api-key",     "x-goog-api-key",
    "x-auth-token",  "x-amz-security-token", "cookie",    "x-auth-token"};
// Headers that describe the connection or the body: norma and curl set them.
constexpr std::array<std::string_view, 8> kOwnHeaders = {
    "host",       "content-length", "content-type",    "transfer-encoding",
    "connection", "accept",         "accept-encoding", "expect"};

// Request-body keys that norma writes itself, by format; extra_body may not replace them.
constexpr std::array<std::string_view, 21> kOwnBodyKeys = {"model",
                                                           "messages",
                                                           "system",
                                                           "tools",
                                                           "max_tokens",
                                                           "stream",
                                                           "temperature",
                                                           "stop",
                                                           "stop_sequences",
                                                           "thinking",
                                                           "output_config",
                                                           "effort",
                                                           "input",
                                                           "instructions",
                                                           "reasoning",
                                                           "reasoning_effort",
                                                           "max_completion_tokens",
                                                           "max_output_tokens",
                                                           "stream_options",
                                                           "previous_response_id",
                                                           "store"};

template <typename List>
bool Has(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool IsCredentialHeader(std::string_view lower) {
  return Has(kCredentialHeaders, lower) || lower.ends_with("-api-key") ||
         lower.ends_with("-auth-token") || lower.ends_with("-access-token") ||
         lower.ends_with("authorization");
}

bool IsHeaderName(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && kMarks.find(c) == std::string_view::npos) return false;
  }
  return !name.empty();
}

// Visible ASCII, blanks and tabs: anything else fails every request, or splits it.
bool IsHeaderValue(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c == '\t' || (c >= 0x20 && c < 0x7F); });
}

void CheckHeaders(Loading& load) {
  const Node* headers = load.At("model.headers");
  if (headers == nullptr || headers->kind != NodeKind::kMap) return;
  std::set<std::string> seen;
  for (size_t i = 0; i < headers->items.size(); ++i) {
    const Node& key = headers->keys[i];
    const std::string path = "model.headers." + key.text;
    const std::string lower = ToLower(key.text);
    if (!IsHeaderName(key.text)) {
      load.faults.Add(key.place, path, "this is no legal header name");
    } else if (IsCredentialHeader(lower)) {
      load.faults.Add(key.place, path,
                      lower +
                          " carries a credential; a key must not stand in a spec: use "
                          "model.api_key_env or model.api_key_file");
    } else if (Has(kOwnHeaders, lower)) {
      load.faults.Add(key.place, path, "norma sets " + lower + " itself; leave it out");
    } else if (!seen.insert(lower).second) {
      load.faults.Add(key.place, path, "the header " + lower + " stands here twice");
    } else if (!IsHeaderValue(headers->items[i].text)) {
      load.faults.Add(headers->items[i].place, path,
                      "a header's value is ASCII text on one line; encode the rest");
    }
  }
}

void CheckExtraBody(Loading& load) {
  const Node* body = load.At("model.extra_body");
  if (body == nullptr || body->kind != NodeKind::kMap) return;
  for (const Node& key : body->keys) {
    if (!Has(kOwnBodyKeys, key.text)) continue;
    load.faults.Add(key.place, "model.extra_body." + key.text,
                    "norma writes " + key.text + " itself, extra_body may not replace it");
  }
  if (auto text = JsonOf(*body); text.ok() && !body->items.empty()) {
    load.out.spec.model.extra_body = std::move(text).value();
  }
}

void CheckBaseUrl(Loading& load) {
  const Node* node = load.At("model.base_url");
  const std::string& url = load.out.spec.model.base_url;
  if (node == nullptr || url.empty()) {
    if (node != nullptr && node->kind == NodeKind::kScalar && node->text.empty() &&
        !node->replaced) {
      load.faults.Add(node->place, "model.base_url", "an empty URL; leave the key out");
    }
    return;
  }
  const std::string lower = ToLower(url);
  const size_t scheme = lower.starts_with("https://") ? 8 : lower.starts_with("http://") ? 7 : 0;
  const std::string_view host = std::string_view(url).substr(scheme).substr(
      0, std::string_view(url).substr(scheme).find_first_of("/?#"));
  const bool odd = std::ranges::any_of(url, [](char c) { return c <= 0x20 || c == 0x7F; });
  if (scheme == 0 || host.empty() || odd) {
    load.faults.Add(node->place, "model.base_url",
                    "expected a URL like https://host or http://host:port/path");
  } else if (host.find('@') != std::string_view::npos) {
    load.faults.Add(node->place, "model.base_url",
                    "a user name or password in the URL; a credential must not stand in a spec");
  } else if (url.find_first_of("?#") != std::string::npos) {
    load.faults.Add(node->place, "model.base_url",
                    "a base URL has neither a query (?) nor a fragment (#)");
  }
}

// user:password is fine here: it opens a proxy, not a model; the redactor hides it.
void CheckProxy(Loading& load) {
  const Node* node = load.At("model.proxy");
  if (node == nullptr || node->kind != NodeKind::kScalar) return;
  const std::string& url = load.out.spec.model.proxy;
  if (url.empty() && node->replaced) return;  // ${NAME:-} without a value: as if it were absent
  const std::string lower = ToLower(url);
  size_t host = 0;
  for (const std::string_view scheme : {"http://", "https://", "socks5://"}) {
    if (lower.starts_with(scheme)) host = scheme.size();
  }
  std::string_view authority = std::string_view(url).substr(host);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  authority = authority.substr(authority.rfind('@') + 1);  // npos + 1 == 0
  const bool odd = std::ranges::any_of(url, [](char c) { return c <= 0x20 || c == 0x7F; });
  if (host == 0 || authority.empty() || authority.front() == ':' || odd) {
    load.faults.Add(node->place, "model.proxy",
                    "expected http://host:port, https://host:port or socks5://host:port "
                    "(user:password@ before the host is allowed)");
  }
}

void BuildRateLimit(Loading& load) {
  RateLimit limit;
  const bool by_second = Take(load, "model.rate_limit.per_second", limit.per_second);
  const bool by_minute = Take(load, "model.rate_limit.per_minute", limit.per_minute);
  Take(load, "model.rate_limit.burst", limit.burst);
  if (by_second || by_minute) load.out.spec.model.rate_limit = limit;
  if (const Node* burst = load.At("model.rate_limit.burst"); burst != nullptr && !by_second) {
    load.faults.Add(burst->place, "model.rate_limit.burst",
                    "how many may go out at once is said of per_second; set that too");
  }
}

void CheckName(Loading& load) {
  Model& model = load.out.spec.model;
  const Node* node = load.At("model.name");
  if (node != nullptr && node->kind == NodeKind::kScalar && IsBlank(node->text)) {
    load.faults.Add(node->place, "model.name", "a blank model name");
  }
  const Node* all = load.At("model");
  if (all == nullptr || all->kind != NodeKind::kMap || all->Find("name") != nullptr) return;
  if (model.format == "script") {
    model.name = "script";
  } else {
    load.faults.Add(all->place, "model.name", "this key is required and missing");
  }
}

void CheckKeys(Loading& load) {
  Model& model = load.out.spec.model;
  if (const Node* file = load.At("model.api_key_file");
      file != nullptr && !model.api_key_file.empty()) {
    if (!model.api_key_env.empty()) {
      load.faults.Add(file->place, "model.api_key_file",
                      "the key comes from one place: api_key_env or api_key_file, not both");
    }
    // Not read here: `norma check` needs no key.
    model.api_key_file = load.PathOf(model.api_key_file);
  }
  if (const Node* file = load.At("model.ca_file"); file != nullptr && !model.ca_file.empty()) {
    if (const auto pem = load.ReadNamed(*file, "model.ca_file")) {
      model.ca_file = pem->path;
      if (pem->text.find("-----BEGIN CERTIFICATE-----") == std::string::npos &&
          pem->text.find("-----BEGIN TRUSTED CERTIFICATE-----") == std::string::npos) {
        load.faults.Add(file->place, "model.ca_file", pem->display + " holds no PEM certificate");
      }
    }
  }
}

void CheckFormat(Loading& load) {
  const Node* node = load.At("model.format");
  const std::string& format = load.out.spec.model.format;
  if (node == nullptr || format.empty() || Has(load.input.formats, format)) return;
  // A name that no build knows is the Checker's business.
  for (const std::string_view known : {"anthropic", "openai-chat", "openai-responses", "script"}) {
    if (format != known) continue;
    load.faults.Add(
        node->place, "model.format",
        format + " is not supported yet; this build knows " + Join(load.input.formats, ", "));
  }
}

void CheckRest(Loading& load) {
  Model& model = load.out.spec.model;
  for (const char* path : {"model.thinking", "model.effort"}) {
    const Node* node = load.At(path);
    if (node != nullptr && node->kind == NodeKind::kScalar && IsBlank(node->text) &&
        !node->replaced) {
      load.faults.Add(node->place, path, "blank; leave the key out, then nothing is sent");
    }
  }
  if (const Node* budget = load.At("model.thinking_budget");
      budget != nullptr && model.thinking_budget > 0 && model.thinking.empty()) {
    load.faults.Add(budget->place, "model.thinking_budget",
                    "a budget without thinking: set model.thinking");
  }
  if (const Node* stop = load.At("model.stop"); stop != nullptr) {
    for (size_t i = 0; i < stop->items.size(); ++i) {
      if (stop->items[i].kind == NodeKind::kScalar && stop->items[i].text.empty()) {
        load.faults.Add(stop->items[i].place, "model.stop[" + std::to_string(i) + "]",
                        "an empty stop sequence");
      }
    }
  }
  const Node* script = load.At("model.script");
  if (script != nullptr && !model.format.empty() && model.format != "script") {
    load.faults.Add(script->place, "model.script", "only format: script reads a script");
  }
}

}  // namespace

void BuildModel(Loading& load) {
  Model& model = load.out.spec.model;
  Take(load, "model.format", model.format);
  Take(load, "model.name", model.name);
  Take(load, "model.base_url", model.base_url);
  Take(load, "model.api_key_env", model.api_key_env);
  Take(load, "model.api_key_file", model.api_key_file);
  Take(load, "model.max_tokens", model.max_tokens);
  Take(load, "model.temperature", model.temperature);
  Take(load, "model.stop", model.stop);
  Take(load, "model.thinking", model.thinking);
  Take(load, "model.thinking_budget", model.thinking_budget);
  Take(load, "model.effort", model.effort);
  Take(load, "model.cache", model.cache);
  Take(load, "model.headers", model.headers);
  Take(load, "model.escalate", model.escalate);
  if (Take(load, "model.retries", model.retries))
    model.retries = std::max<int64_t>(model.retries, 0);
  Take(load, "model.timeout.connect", model.timeout_connect);
  Take(load, "model.timeout.idle", model.timeout_idle);
  Take(load, "model.timeout.total", model.timeout_total);
  Take(load, "model.ca_file", model.ca_file);
  Take(load, "model.max_token_key", model.max_token_key);
  Take(load, "model.stream", model.stream);
  Take(load, "model.empty_retries", model.empty_retries);
  Take(load, "model.proxy", model.proxy);
  BuildRateLimit(load);
  CheckProxy(load);
  CheckFormat(load);
  CheckName(load);
  CheckBaseUrl(load);
  CheckKeys(load);
  CheckHeaders(load);
  CheckExtraBody(load);
  CheckRest(load);
  BuildScript(load);
}

}  // namespace norma::spec
