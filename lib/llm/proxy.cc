#include "lib/llm/proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/text.h"

namespace norma::llm {
namespace {

constexpr std::string_view kLocalhost = "localhost";
constexpr size_t kIpBytes = 16;
constexpr unsigned kIpBits = 128;
constexpr unsigned kMappedBits = 96;  // an IPv4 address stands behind this many bits
constexpr unsigned kPortMax = 65'535;

// IPv4 addresses as IPv4-mapped IPv6, so that both spellings of one address are the same.
using Ip = std::array<unsigned char, kIpBytes>;

struct ParsedUrl {
  std::string scheme;  // lower case
  std::string host;    // as written, without brackets
  std::string port;    // empty: the scheme's default
  std::string user;    // user:password as written
};

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool IsPort(std::string_view text) {
  unsigned port = 0;
  const char* end = text.data() + text.size();
  return IsDigits(text) && std::from_chars(text.data(), end, port).ec == std::errc() &&
         port <= kPortMax;
}

std::optional<Ip> ParseIp(std::string_view text) {
  const std::string name(text.substr(0, text.find('%')));  // a zone does not tell addresses apart
  Ip ip{};
  if (inet_pton(AF_INET6, name.c_str(), ip.data()) == 1) return ip;
  if (text.find('%') != std::string_view::npos) return std::nullopt;
  ip[10] = ip[11] = 0xff;
  if (inet_pton(AF_INET, name.c_str(), ip.data() + 12) == 1) return ip;
  return std::nullopt;
}

bool IsMapped(const Ip& ip) {
  return std::ranges::all_of(ip.begin(), ip.begin() + 10, [](auto byte) { return byte == 0; }) &&
         ip[10] == 0xff && ip[11] == 0xff;
}

bool IsLoopback(const Ip& ip) {
  if (IsMapped(ip)) return ip[12] == 127;
  Ip one{};
  one.back() = 1;
  return ip == one;
}

bool SameNetwork(const Ip& a, const Ip& b, unsigned bits) {
  for (unsigned n = 0; n < bits; ++n) {
    const auto mask = static_cast<unsigned char>(0x80U >> (n % 8));
    if ((a[n / 8] & mask) != (b[n / 8] & mask)) return false;
  }
  return true;
}

// "host", "host:port", "[v6]", "[v6]:port"; a bare v6 address has no port. False: no such thing.
bool SplitHost(std::string_view text, std::string& host, std::string& port) {
  host.clear();
  port.clear();
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (text.empty()) return true;
    if (!text.starts_with(':')) return false;
    port = text.substr(1);
    return true;
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos) {
    host = text;
    return ParseIp(text).has_value();
  }
  host = text.substr(0, colon);
  if (colon != std::string_view::npos) port = text.substr(colon + 1);
  return true;
}

bool IsSchemeName(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && letter(text.front()) && std::ranges::all_of(text, [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

// Scheme, host and port; nullopt for what is no URL with an authority.
std::optional<ParsedUrl> ParseUrl(std::string_view url) {
  if (std::ranges::any_of(url, [](char c) { return static_cast<unsigned char>(c) <= 0x20; }) ||
      url.find('\x7f') != std::string_view::npos) {
    return std::nullopt;
  }
  const size_t end = url.find("://");
  if (end == std::string_view::npos || !IsSchemeName(url.substr(0, end))) return std::nullopt;
  ParsedUrl parsed;
  parsed.scheme = ToLower(url.substr(0, end));
  std::string_view authority = url.substr(end + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    parsed.user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  if (!SplitHost(authority, parsed.host, parsed.port) || parsed.host.empty()) return std::nullopt;
  if (!parsed.port.empty() && !IsPort(parsed.port)) return std::nullopt;
  if (authority.starts_with('[') && !ParseIp(parsed.host)) return std::nullopt;
  return parsed;
}

// ---- NO_PROXY ----------------------------------------------------------------------------------

struct Target {
  std::string host;  // lower case
  std::string port;  // never empty
  std::optional<Ip> ip;
};

// nullopt: this entry is no CIDR.
std::optional<bool> CidrMatches(std::string_view entry, const Target& target) {
  const size_t slash = entry.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view address = entry.substr(0, slash);
  const std::string_view length = entry.substr(slash + 1);
  const auto network = ParseIp(address);
  unsigned bits = 0;
  if (!network || !IsDigits(length) || length.size() > 3 ||
      address.find('%') != std::string_view::npos) {
    return std::nullopt;
  }
  std::from_chars(length.data(), length.data() + length.size(), bits);
  const bool is_v4 = address.find(':') == std::string_view::npos;
  if (bits > (is_v4 ? kIpBits - kMappedBits : kIpBits)) return std::nullopt;
  if (!target.ip || is_v4 != IsMapped(*target.ip)) return false;
  return SameNetwork(*network, *target.ip, is_v4 ? bits + kMappedBits : bits);
}

bool EntryMatches(std::string_view entry, const Target& target) {
  if (entry == "*") return true;
  if (const auto matched = CidrMatches(entry, target)) return *matched;
  std::string host, port;
  if (!SplitHost(entry, host, port) || host.empty()) return false;
  if (!port.empty() && port != target.port) return false;
  if (const auto ip = ParseIp(host)) return target.ip == ip;
  std::string_view name = host;
  if (name.starts_with("*.")) name.remove_prefix(1);
  if (name.starts_with('.')) return name.size() > 1 && target.host.ends_with(name);
  return target.host == name || target.host.ends_with("." + std::string(name));
}

bool NoProxyMatches(std::string_view list, const Target& target) {
  for (const std::string_view part : Split(list, ',')) {
    const std::string entry = ToLower(Trim(part));
    if (!entry.empty() && EntryMatches(entry, target)) return true;
  }
  return false;
}

// ---- the environment ---------------------------------------------------------------------------

struct Variable {
  std::string name;
  std::string value;
};

Variable Read(const EnvLookup& environment, const std::string& upper) {
  Variable variable{upper, environment(upper).value_or("")};
  if (variable.value.empty()) {
    variable.name = ToLower(upper);
    variable.value = environment(variable.name).value_or("");
  }
  return variable;
}

// The value as a URL; without a scheme it gets http://. Empty: it does not parse.
std::string AsProxyUrl(const std::string& value) {
  if (ParseUrl(value)) return value;
  // "http://" itself must not become a proxy that is called "http".
  const std::string prefixed = "http://" + value;
  return value.find("://") == std::string::npos && ParseUrl(prefixed) ? prefixed : "";
}

bool IsLoopbackHost(const ParsedUrl& url, const Target& target) {
  return url.host == kLocalhost || (target.ip && IsLoopback(*target.ip));
}

ProxyChoice Refused(std::string why) {
  ProxyChoice choice;
  choice.kind = ProxyChoice::Kind::kRefused;
  choice.why = std::move(why);
  return choice;
}

ProxyChoice FromEnvironment(const ParsedUrl& url, const EnvLookup& environment) {
  const bool is_https = url.scheme == "https";
  if (!is_https && url.scheme != "http") return {};
  const Variable variable = Read(environment, is_https ? "HTTPS_PROXY" : "HTTP_PROXY");
  if (variable.value.empty()) return {};
  ProxyChoice choice;
  const std::string proxy = AsProxyUrl(variable.value);
  if (proxy.empty()) {
    choice.warning = variable.name + " is no URL of a proxy and is ignored";
    return choice;
  }
  // A CGI server hands the request's own Proxy: header to us in this variable.
  if (!is_https && !environment("REQUEST_METHOD").value_or("").empty()) {
    return Refused(variable.name +
                   " is not used because REQUEST_METHOD is set (a CGI request could have chosen "
                   "it); name the proxy in model.proxy, or unset one of the two");
  }
  const Target target{ToLower(url.host),
                      !url.port.empty() ? url.port : std::string(is_https ? "443" : "80"),
                      ParseIp(url.host)};
  if (IsLoopbackHost(url, target)) return {};
  if (NoProxyMatches(Read(environment, "NO_PROXY").value, target)) return {};
  const std::string scheme = ParseUrl(proxy)->scheme;
  constexpr std::array<std::string_view, 4> kUsable = {"http", "https", "socks5", "socks5h"};
  if (std::ranges::find(kUsable, scheme) == kUsable.end()) {
    return Refused(variable.name + " names a proxy that is neither http, https nor socks5 (" +
                   scheme + "://); going without it was not asked for");
  }
  choice.kind = ProxyChoice::Kind::kProxy;
  choice.proxy = proxy;
  return choice;
}

}  // namespace

ProxyChoice ChooseProxy(std::string_view url, std::string_view explicit_proxy,
                        const EnvLookup& environment) {
  if (!explicit_proxy.empty()) {
    const std::string fault = ExplicitProxyFault(explicit_proxy);
    if (!fault.empty()) return Refused("model.proxy: " + fault);
    ProxyChoice choice;
    choice.kind = ProxyChoice::Kind::kProxy;
    choice.proxy = explicit_proxy;
    return choice;
  }
  const auto parsed = ParseUrl(url);
  // What is no URL fails by itself, and by that name.
  return parsed ? FromEnvironment(*parsed, environment) : ProxyChoice{};
}

std::string ExplicitProxyFault(std::string_view proxy) {
  const auto parsed = ParseUrl(proxy);
  if (!parsed) {
    return "expected a URL like http://host:port, https://host:port or socks5://host:port";
  }
  if (parsed->scheme == "http" || parsed->scheme == "https" || parsed->scheme == "socks5")
    return "";
  return "a proxy is http, https or socks5, not " + parsed->scheme;
}

std::string ProxyCredentials(std::string_view proxy) {
  const auto parsed = ParseUrl(proxy);
  return parsed ? parsed->user : "";
}

}  // namespace norma::llm
