// The environment rule and the explicit proxy as one table: a row is a request and what happens.
#include "lib/llm/proxy.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

using namespace norma::llm;

namespace {

using Env = std::map<std::string, std::string, std::less<>>;
using Kind = ProxyChoice::Kind;

EnvLookup LookupIn(const Env& env) {
  return [env](std::string_view name) -> std::optional<std::string> {
    const auto found = env.find(name);
    if (found == env.end()) return std::nullopt;
    return found->second;
  };
}

struct Row {
  std::string url;
  Env env;
  std::string want;  // a proxy; "direct"; "refused"
  std::string explicit_proxy = {};
};

std::string Outcome(const Row& row) {
  const ProxyChoice choice = ChooseProxy(row.url, row.explicit_proxy, LookupIn(row.env));
  switch (choice.kind) {
    case Kind::kDirect:
      return "direct";
    case Kind::kProxy:
      return choice.proxy;
    case Kind::kRefused:
      return "refused";
  }
  return "";
}

void CheckRows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.url);
    CAPTURE(row.explicit_proxy);
    std::string env;
    for (const auto& [name, value] : row.env) env += name + "=" + value + " ";
    CAPTURE(env);
    CHECK(Outcome(row) == row.want);
  }
}

const std::string kP = "http://p:1";

// HTTP_PROXY and HTTPS_PROXY are set, and NO_PROXY is this.
Row No(std::string no_proxy, std::string url, bool direct) {
  return {std::move(url),
          {{"HTTP_PROXY", kP}, {"HTTPS_PROXY", kP}, {"NO_PROXY", std::move(no_proxy)}},
          direct ? "direct" : kP};
}

}  // namespace

TEST_CASE("proxy: which variable serves which URL") {
  CheckRows({
      {"http://h/", {}, "direct"},
      {"http://h/", {{"HTTP_PROXY", kP}}, kP},
      {"https://h/", {{"HTTP_PROXY", kP}}, "direct"},  // no cross fallback
      {"https://h/", {{"HTTPS_PROXY", kP}}, kP},
      {"http://h/", {{"HTTPS_PROXY", kP}}, "direct"},
      {"HTTPS://h/", {{"HTTPS_PROXY", kP}}, kP},
      {"http://h/", {{"http_proxy", kP}}, kP},
      {"http://h/", {{"HTTP_PROXY", ""}, {"http_proxy", kP}}, kP},
      {"http://h/", {{"HTTP_PROXY", "http://up:1"}, {"http_proxy", kP}}, "http://up:1"},
      {"https://h/", {{"https_proxy", kP}}, kP},
      {"http://h/", {{"ALL_PROXY", kP}, {"all_proxy", kP}}, "direct"},
      {"https://h/", {{"ALL_PROXY", kP}}, "direct"},
      {"http://h/", {{"HTTP_PROXY", kP}, {"no_proxy", "h"}}, "direct"},
      {"http://h/", {{"HTTP_PROXY", kP}, {"NO_PROXY", "x"}, {"no_proxy", "h"}}, kP},
      {"http://h/", {{"HTTP_PROXY", kP}, {"NO_PROXY", ""}, {"no_proxy", "h"}}, "direct"},
      {"ftp://h/", {{"HTTP_PROXY", kP}, {"HTTPS_PROXY", kP}}, "direct"},
      {"h", {{"HTTP_PROXY", kP}}, "direct"},
      {"", {{"HTTP_PROXY", kP}}, "direct"},
  });
}

TEST_CASE("proxy: values without a scheme, with credentials, and that do not parse") {
  const auto http = [](std::string value, std::string want) {
    return Row{"http://h/", {{"HTTP_PROXY", std::move(value)}}, std::move(want)};
  };
  CheckRows({
      http("p:3128", "http://p:3128"),
      http("127.0.0.1:3128", "http://127.0.0.1:3128"),
      http("[::1]:3128", "http://[::1]:3128"),
      http("p.example", "http://p.example"),
      http("u:pw@p:3128", "http://u:pw@p:3128"),
      http("http://u:p%40w@p:1/", "http://u:p%40w@p:1/"),
      http("https://p", "https://p"),
      http("socks5://p:1080", "socks5://p:1080"),
      http("socks5h://p", "socks5h://p"),
      http("HTTP://P:1", "HTTP://P:1"),
      http("http://", "direct"),
      http("http://:3128", "direct"),
      http("http://p:port", "direct"),
      http("http://p:70000", "direct"),
      http("http://a b", "direct"),
      http("http://[::1", "direct"),
      http("http://[zz]:1", "direct"),
      http("http://p:1\n", "direct"),
      http(":::", "direct"),
      // It parses, but nobody can use it: going direct is not what was asked for.
      http("ftp://p", "refused"),
      http("socks4://p:1", "refused"),
  });
  const ProxyChoice ignored =
      ChooseProxy("http://h/", "", LookupIn({{"http_proxy", "http://u:secret@p:port"}}));
  CHECK(ignored.warning == "http_proxy is no URL of a proxy and is ignored");
  const ProxyChoice refused =
      ChooseProxy("http://h/", "", LookupIn({{"HTTP_PROXY", "ftp://u:secret@p"}}));
  CHECK(refused.why.find("secret") == std::string::npos);
  CHECK(refused.why.find("HTTP_PROXY") != std::string::npos);
}

TEST_CASE("proxy: a CGI request cannot choose the proxy of http URLs") {
  const Env cgi = {{"REQUEST_METHOD", "GET"}, {"HTTP_PROXY", kP}};
  Env listed = cgi;
  listed["NO_PROXY"] = "h";
  CheckRows({
      {"http://h/", cgi, "refused"},
      {"http://h/", {{"REQUEST_METHOD", "GET"}, {"http_proxy", kP}}, "refused"},
      {"http://h/", listed, "refused"},       // before NO_PROXY is looked at
      {"http://127.0.0.1/", cgi, "refused"},  // and before the loopback exception
      {"http://h/", {{"REQUEST_METHOD", "GET"}}, "direct"},
      {"http://h/", {{"REQUEST_METHOD", "GET"}, {"HTTP_PROXY", "http://"}}, "direct"},
      {"http://h/", {{"REQUEST_METHOD", ""}, {"HTTP_PROXY", kP}}, kP},
      {"https://h/", {{"REQUEST_METHOD", "GET"}, {"HTTPS_PROXY", kP}}, kP},
      {"http://h/", cgi, "http://e:1", "http://e:1"},
  });
}

TEST_CASE("proxy: the environment never proxies this machine") {
  const Env env = {{"HTTP_PROXY", kP}, {"HTTPS_PROXY", kP}};
  CheckRows({
      {"http://localhost/", env, "direct"},
      {"https://localhost:8443/", env, "direct"},
      {"http://127.0.0.1:8080/", env, "direct"},
      {"http://127.255.0.9/", env, "direct"},
      {"http://[::1]/", env, "direct"},
      {"http://[::1]:80/", env, "direct"},
      {"http://[::ffff:127.0.0.1]/", env, "direct"},
      {"http://u:p@127.0.0.1/", env, "direct"},
      {"http://localhost.example/", env, kP},  // exactly localhost
      {"http://my.localhost/", env, kP},
      {"http://localhost./", env, kP},
      {"http://128.0.0.1/", env, kP},
      {"http://[::2]/", env, kP},
      {"http://127.1/", env, kP},  // no IP address in this grammar
      {"http://127.0.0.1.example/", env, kP},
      {"http://127.0.0.1@h/", env, kP},
  });
}

TEST_CASE("proxy: the grammar of NO_PROXY") {
  CheckRows({
      No("*", "http://h/", true),
      No("a, * ,b", "https://h/", true),
      No("**", "http://h/", false),
      No("", "http://h/", false),
      No(" , ,", "http://h/", false),
      // Domains: the host itself and what is below it.
      No("example.com", "http://example.com/", true),
      No("example.com", "http://a.b.example.com/", true),
      No("example.com", "http://notexample.com/", false),
      No("example.com", "http://example.com.evil/", false),
      No("EXAMPLE.com", "http://a.Example.COM/", true),
      No("x,example.com ,y", "http://example.com/", true),
      // Only what is below.
      No(".example.com", "http://example.com/", false),
      No(".example.com", "http://a.example.com/", true),
      No("*.example.com", "http://example.com/", false),
      No("*.example.com", "http://a.b.example.com/", true),
      No("*.example.com", "http://aexample.com/", false),
      No(".", "http://h/", false),
      No("*.", "http://h/", false),
      No("ex*.com", "http://example.com/", false),
      // Ports: the request's own, 80 and 443 unless it says another.
      No("example.com:8080", "https://example.com/", false),
      No("example.com:443", "https://example.com/", true),
      No("example.com:80", "http://example.com/", true),
      No("example.com:8080", "http://a.example.com:8080/x", true),
      No(".example.com:8080", "http://a.example.com/", false),
      No("*.example.com:80", "http://a.example.com/", true),
      No(":80", "http://h/", false),
      No("h:", "http://h/", true),
      // Addresses: the same one in any spelling; names are not resolved.
      No("10.1.2.3", "http://10.1.2.3/", true),
      No("10.1.2.3", "http://10.1.2.4/", false),
      No("10.1.2.3:81", "http://10.1.2.3/", false),
      No("10.1.2.3:81", "http://10.1.2.3:81/", true),
      No("10.1.2.3", "http://host-10-1-2-3/", false),
      No("10.1.2.3", "http://[::ffff:10.1.2.3]/", true),
      No("2001:db8::1", "http://[2001:db8::1]/", true),
      No("2001:db8:0:0::1", "http://[2001:db8::1]/", true),
      No("[2001:db8::1]:443", "https://[2001:db8::1]/", true),
      No("[2001:db8::1]:80", "https://[2001:db8::1]/", false),
      // Networks: any port.
      No("10.0.0.0/8", "http://10.1.2.3:8080/", true),
      No("10.0.0.0/8", "http://11.1.2.3/", false),
      No("10.1.2.3/31", "http://10.1.2.2/", true),
      No("10.1.2.3/31", "http://10.1.2.4/", false),
      No("0.0.0.0/0", "http://9.9.9.9/", true),
      No("0.0.0.0/0", "http://[2001:db8::1]/", false),
      No("2001:db8::/32", "http://[2001:db8:1::5]/", true),
      No("2001:db8::/32", "http://[2001:db9::5]/", false),
      No("10.0.0.0/33", "http://10.0.0.0/", false),
      No("10.0.0.0/8", "http://example.com/", false),
      No("10.0.0.0/", "http://10.0.0.0/", false),
  });
}

TEST_CASE("proxy: an explicit one serves every request") {
  Env all = {{"HTTP_PROXY", kP}, {"NO_PROXY", "*"}};
  CheckRows({
      {"http://127.0.0.1/", all, "http://e:1", "http://e:1"},
      {"https://localhost/", all, "https://e", "https://e"},
      {"http://h/", all, "socks5://u:pw@e:1", "socks5://u:pw@e:1"},
      {"http://h/", all, "HTTP://E:1", "HTTP://E:1"},
      {"http://h/", all, "refused", "ftp://p"},
      {"http://h/", all, "refused", "socks4://p"},
      {"http://h/", all, "refused", "socks5h://p"},
      {"http://h/", all, "refused", "p:8080"},
      {"http://h/", all, "refused", "p"},
      {"http://h/", all, "refused", "http://"},
      {"http://h/", all, "refused", "http://p:x"},
      {"http://h/", all, "refused", " http://p:1"},
  });
  const ProxyChoice refused = ChooseProxy("http://h/", "ftp://u:secret@p", LookupIn({}));
  CHECK(refused.why.find("secret") == std::string::npos);
}

TEST_CASE("proxy: credentials for the redactor") {
  CHECK(ProxyCredentials("http://u:p%40w@p:1/") == "u:p%40w");
  CHECK(ProxyCredentials("http://p:1") == "");
  CHECK(ProxyCredentials("garbage") == "");
}
