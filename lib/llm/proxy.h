// Which proxy a model request takes (the environment rule is that of Go's httpproxy): a pure
// function of the URL, the explicit proxy and the environment. Resolves no names, sends nothing,
// and reads no environment itself.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace norma::llm {

using EnvLookup = std::function<std::optional<std::string>(std::string_view name)>;

struct ProxyChoice {
  enum class Kind {
    kDirect,
    kProxy,
    kRefused,  // deterministic: the same request would be refused again
  };
  Kind kind = Kind::kDirect;
  std::string proxy;    // kProxy: with a scheme; may hold user:password
  std::string why;      // kRefused: for the person who set the variable; holds no credentials
  std::string warning;  // a variable that was ignored, and why; empty mostly

  friend bool operator==(const ProxyChoice&, const ProxyChoice&) = default;
};

// An explicit proxy serves every URL; NO_PROXY and the loopback exception are for the environment
// alone. HTTPS_PROXY serves https, HTTP_PROXY http, no fallback between them; the lower-case name
// counts when the upper-case one is empty. ALL_PROXY is not read.
ProxyChoice ChooseProxy(std::string_view url, std::string_view explicit_proxy,
                        const EnvLookup& environment);

// Why this cannot be an explicit proxy (http, https or socks5, a host, user:password allowed);
// empty when it can. The text holds nothing of the value.
std::string ExplicitProxyFault(std::string_view proxy);

// "user:password" of a proxy URL as it stands there, empty when there is none: for the redactor.
std::string ProxyCredentials(std::string_view proxy);

}  // namespace norma::llm
