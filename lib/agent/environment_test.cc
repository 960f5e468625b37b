#include "lib/agent/environment.h"

#include <doctest/doctest.h>

using namespace norma;
using namespace norma::agent;

namespace {

spec::RunSpec AnthropicSpec() {
  spec::RunSpec spec;
  spec.model.format = "anthropic";
  spec.model.name = "m";
  return spec;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("environment: names that hold credentials") {
  for (const char* name :
       {"ANTHROPIC_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "X_AUTH_TOKEN",
        "SSH_PRIVATE_KEY", "API_KEY", "TOKEN", "PGPASSWORD"}) {
    CHECK_MESSAGE(IsSecretName(name), name);
  }
  for (const char* name :
       {"PATH", "HOME", "TOKENIZERS_PARALLELISM", "MYTOKEN", "API_KEYS", "LANG"}) {
    CHECK_MESSAGE(!IsSecretName(name), name);
  }
}

TEST_CASE("environment: children get everything but secrets, and tools.bash.env on top") {
  spec::RunSpec spec = AnthropicSpec();
  spec.model.api_key_env = "MY_KEY";
  spec.redact.env = {"PASS"};
  spec.tools.bash_env = {{"CI", "1"}, {"LANG", "C"}};
  const Environment environment = {{"PATH", "/bin"},        {"MY_KEY", "k"}, {"PASS", "p"},
                                   {"OPENAI_API_KEY", "o"}, {"LANG", "de"},  {"EMPTY", ""}};
  CHECK(ChildEnvironment(spec, environment) == Names{"PATH=/bin", "EMPTY=", "CI=1", "LANG=C"});
}

TEST_CASE("environment: env_keep names all that children get") {
  spec::RunSpec spec = AnthropicSpec();
  spec.tools.bash_env_keep = {"PATH", "GITHUB_TOKEN", "ANTHROPIC_API_KEY"};
  const Environment environment = {
      {"PATH", "/bin"}, {"GITHUB_TOKEN", "t"}, {"HOME", "/h"}, {"ANTHROPIC_API_KEY", "k"}};
  CHECK(ChildEnvironment(spec, environment) == Names{"PATH=/bin", "GITHUB_TOKEN=t"});
}

TEST_CASE("environment: base URL comes from the spec, then the variable, then the format") {
  const Environment key = {{"ANTHROPIC_API_KEY", "k"}};
  Environment both = key;
  both.emplace_back("ANTHROPIC_BASE_URL", "http://gateway/x/");
  spec::RunSpec spec = AnthropicSpec();
  CHECK(ProviderFor(spec, key, {}).value().base_url == "https://api.anthropic.com");
  CHECK(ProviderFor(spec, both, {}).value().base_url == "http://gateway/x");
  spec.model.base_url = "http://spec///";
  CHECK(ProviderFor(spec, both, {}).value().base_url == "http://spec");
}

TEST_CASE("environment: a missing, blank or unsendable key is a usage error that names its place") {
  spec::RunSpec spec = AnthropicSpec();
  for (const char* value : {"", " \t", "a\nb", "caf\xC3\xA9"}) {
    const auto config = ProviderFor(spec, {{"ANTHROPIC_API_KEY", value}}, {});
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().code == Code::kUsage);
    CHECK(config.error().message.find("ANTHROPIC_API_KEY") != std::string::npos);
    CHECK(config.error().message.find("caf") == std::string::npos);
  }
  CHECK_FALSE(ProviderFor(spec, {}, {}).ok());
  CHECK(ProviderFor(spec, {}, "from-file\n").value().api_key == "from-file");
  CHECK_FALSE(ProviderFor(spec, {{"ANTHROPIC_API_KEY", "k"}}, "\n").ok());
}

TEST_CASE("environment: the script model needs no key") {
  spec::RunSpec spec;
  spec.model.format = "script";
  CHECK(ProviderFor(spec, {}, {}).value().api_key.empty());
}

TEST_CASE("environment: model.proxy goes before the rules of the environment") {
  const Environment environment = {{"ANTHROPIC_API_KEY", "k"},
                                   {"HTTPS_PROXY", "http://u:secret-word@env:1"},
                                   {"HTTP_PROXY", "ftp://u:secret-word@env:1"}};
  spec::RunSpec spec = AnthropicSpec();
  CHECK(ProviderFor(spec, environment, {}).value().proxy == "http://u:secret-word@env:1");
  spec.model.proxy = "socks5://spec:1";
  CHECK(ProviderFor(spec, environment, {}).value().proxy == "socks5://spec:1");
  spec.model.proxy.clear();
  spec.model.base_url = "http://127.0.0.1:8080";
  CHECK(ProviderFor(spec, environment, {}).value().proxy.empty());
  spec.model.base_url = "http://h";
  const auto refused = ProviderFor(spec, environment, {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::kUsage);
  CHECK(refused.error().message.find("secret-word") == std::string::npos);
}

TEST_CASE("environment: a proxy variable that is ignored is said") {
  const Environment environment = {{"ANTHROPIC_API_KEY", "k"}, {"https_proxy", "http://:1"}};
  const auto config = ProviderFor(AnthropicSpec(), environment, {});
  REQUIRE(config.ok());
  CHECK(config.value().proxy.empty());
  CHECK(config.value().warnings == Names{"https_proxy is no URL of a proxy and is ignored"});
}
