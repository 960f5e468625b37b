#include "lib/agent/environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"
#include "lib/llm/proxy.h"

namespace norma::agent {
namespace {

constexpr std::array<std::string_view, 10> kSecretEndings = {
    "_API_KEY",    "_TOKEN",       "_SECRET", "_PASSWORD",    "_SECRET_KEY",
    "_ACCESS_KEY", "_PRIVATE_KEY", "_PASSWD", "_CREDENTIALS", "_AUTH_TOKEN"};

bool IsHeaderSafe(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string TrimSlashes(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

Result<std::string> KeyFor(const spec::RunSpec& spec, const Environment& environment,
                           const std::optional<std::string>& key_file_text) {
  const std::string variable = KeyVariable(spec);
  std::string key;
  std::string where;
  if (key_file_text.has_value()) {
    key = Trim(*key_file_text);
    where = fmt::format("model.api_key_file {}", spec.model.api_key_file);
  } else {
    key = Lookup(environment, variable).value_or("");
    where = fmt::format("the environment variable {}", variable);
  }
  if (IsBlank(key)) {
    return Error{Code::kUsage,
                 fmt::format("no API key: {} is {}; set it, or name another with "
                             "model.api_key_env or model.api_key_file",
                             where, key_file_text.has_value() ? "empty" : "not set or empty")};
  }
  if (!IsHeaderSafe(key)) {
    return Error{Code::kUsage,
                 fmt::format("the API key in {} holds a line break or a character that no HTTP "
                             "header can carry",
                             where)};
  }
  return key;
}

// model.proxy, else what the environment says; fills config.proxy.
Status ChooseModelProxy(const spec::RunSpec& spec, const Environment& environment,
                        llm::ProviderConfig& config) {
  const llm::ProxyChoice choice =
      llm::ChooseProxy(config.base_url, spec.model.proxy,
                       [&](std::string_view name) { return Lookup(environment, name); });
  if (!choice.warning.empty()) config.warnings.push_back(choice.warning);
  switch (choice.kind) {
    case llm::ProxyChoice::Kind::kDirect:
      return {};
    case llm::ProxyChoice::Kind::kProxy:
      config.proxy = choice.proxy;
      return {};
    case llm::ProxyChoice::Kind::kRefused:
      break;
  }
  return Error{Code::kUsage, choice.why};
}

}  // namespace

bool IsSecretName(std::string_view name) {
  if (name == "PGPASSWORD" || name == "MYSQL_PWD") return true;
  return std::any_of(kSecretEndings.begin(), kSecretEndings.end(), [&](std::string_view ending) {
    return name.ends_with(ending) || name == ending.substr(1);
  });
}

std::optional<std::string> Lookup(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string KeyVariable(const spec::RunSpec& spec) {
  if (!spec.model.api_key_env.empty()) return spec.model.api_key_env;
  const llm::WireRow* wire = llm::FindWire(spec.model.format);
  return wire == nullptr ? std::string() : std::string(wire->key_variable);
}

std::vector<std::string> SecretNames(const spec::RunSpec& spec, const Environment& environment) {
  std::vector<std::string> names = spec.redact.env;
  if (const std::string key = KeyVariable(spec); !key.empty()) names.push_back(key);
  for (const auto& [name, value] : environment) {
    if (IsSecretName(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Not even tools.bash.env_keep gives these to a child.
static bool IsProviderKey(const spec::RunSpec& spec, std::string_view name) {
  if (name == KeyVariable(spec)) return true;
  for (const char* format : {"anthropic", "openai-chat", "openai-responses"}) {
    const llm::WireRow* wire = llm::FindWire(format);
    if (wire != nullptr && wire->key_variable == name) return true;
  }
  return false;
}

std::vector<std::string> ChildEnvironment(const spec::RunSpec& spec,
                                          const Environment& environment) {
  const std::vector<std::string> secrets = SecretNames(spec, environment);
  const std::vector<std::string>& keep = spec.tools.bash_env_keep;
  std::vector<std::string> child;
  for (const auto& variable : environment) {
    const std::string& name = variable.first;
    const bool is_kept = keep.empty() ? !std::binary_search(secrets.begin(), secrets.end(), name)
                                      : std::find(keep.begin(), keep.end(), name) != keep.end() &&
                                            !IsProviderKey(spec, name);
    const bool is_replaced = std::any_of(spec.tools.bash_env.begin(), spec.tools.bash_env.end(),
                                         [&](const auto& entry) { return entry.first == name; });
    if (is_kept && !is_replaced) child.push_back(name + "=" + variable.second);
  }
  for (const auto& [name, value] : spec.tools.bash_env) child.push_back(name + "=" + value);
  return child;
}

Result<llm::ProviderConfig> ProviderFor(const spec::RunSpec& spec, const Environment& environment,
                                        const std::optional<std::string>& key_file_text) {
  const spec::Model& model = spec.model;
  llm::ProviderConfig config;
  config.format = model.format;
  config.model = model.name;
  config.script = model.script;
  config.retry.retries = static_cast<int>(model.retries);
  if (const llm::WireRow* wire = llm::FindWire(model.format)) {
    NORMA_ASSIGN(config.api_key, KeyFor(spec, environment, key_file_text));
    config.base_url = model.base_url;
    if (config.base_url.empty()) {
      config.base_url = Lookup(environment, wire->base_url_variable).value_or("");
    }
    if (config.base_url.empty()) config.base_url = wire->default_base_url;
    config.base_url = TrimSlashes(std::move(config.base_url));
    NORMA_TRY(ChooseModelProxy(spec, environment, config));
  }
  config.ca_file = model.ca_file;
  config.headers = model.headers;
  config.extra_body = model.extra_body;
  config.temperature = model.temperature;
  config.stop = model.stop;
  config.thinking = model.thinking;
  config.thinking_budget = model.thinking_budget;
  config.effort = model.effort;
  config.cache = model.cache;
  config.max_token_key = model.max_token_key;
  config.stream = model.stream;
  config.empty_retries = static_cast<int>(model.empty_retries);
  config.timeouts = {model.timeout_connect, model.timeout_idle, model.timeout_total};
  return config;
}

}  // namespace norma::agent
