// What children get of the environment, and how the environment and the spec make a provider.
// Provider keys never reach a child (PRODUCT: "Secrets"). Pure: the environment comes in as a list.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/agent/run.h"
#include "lib/base/result.h"
#include "lib/llm/provider.h"
#include "lib/spec/run_spec.h"

namespace norma::agent {

// Does a variable of this name hold a credential by its name alone (*_API_KEY, *_TOKEN, …)?
bool IsSecretName(std::string_view name);

// Names whose values must vanish from children, from our own block and from everything we write.
std::vector<std::string> SecretNames(const spec::RunSpec& spec, const Environment& environment);

// NAME=value for Bash: the parent's environment without secrets (or only tools.bash.env_keep), then
// tools.bash.env on top.
std::vector<std::string> ChildEnvironment(const spec::RunSpec& spec,
                                          const Environment& environment);

std::optional<std::string> Lookup(const Environment& environment, std::string_view name);

// The variable that holds the key: model.api_key_env, else the format's own.
std::string KeyVariable(const spec::RunSpec& spec);

// kUsage when the key is missing or cannot be a header value, and when the environment's proxy must
// not be used (a CGI request, an unusable scheme). `key_file_text`: content of
// model.api_key_file, when the spec names one.
Result<llm::ProviderConfig> ProviderFor(const spec::RunSpec& spec, const Environment& environment,
                                        const std::optional<std::string>& key_file_text);

}  // namespace norma::agent
