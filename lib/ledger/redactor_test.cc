#include "lib/ledger/redactor.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::ledger {
namespace {

const std::string kKey = "sk-test/canary+\"q\\x 0123%";

Redactor Of(const std::string& value, const std::vector<std::string>& patterns = {}) {
  auto made = Redactor::Make({{"KEY", value}}, patterns);
  REQUIRE(made.ok());
  return std::move(made).value();
}

std::string JsonOf(const std::string& text) {
  const std::string quoted = json::Quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string UrlSafe(std::string base64) {
  base64 = ReplaceAll(base64, "+", "-");
  return ReplaceAll(base64, "/", "_");
}

std::string UnicodeEscaped(const std::string& text, bool upper) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    out += "\\u00";
    out += digits[u >> 4];
    out += digits[u & 15];
  }
  return out;
}

TEST_CASE("redactor: every spelling of a key is found, with text around it kept") {
  const Redactor redactor = Of(kKey);
  const std::string url = UrlEncode(kKey);
  const std::vector<std::string> forms = {
      kKey,
      JsonOf(kKey),
      JsonOf(JsonOf(kKey)),
      JsonOf(JsonOf(JsonOf(kKey))),
      R"(sk-test\/canary+\"q\\x 0123%)",
      R"(sk-test/canary\u002b\u0022q\u005cx\u00200123\u0025)",
      R"(sk-test\u002Fcanary+\u0022q\u005Cx 0123%)",
      R"(sk-test/canary+\x22q\x5cx 0123%)",
      R"(sk-test/canary+\"q\\x\ 0123%)",
      UnicodeEscaped(kKey, true),
      UnicodeEscaped(kKey, false),
      url,
      ToLower(url),
      ReplaceAll(url, "%20", "+"),
      "sk-test/canary%2b%22q%5cx+0123%25",
      "sk%2Dtest%2Fcanary%2B%22q%5Cx%200123%25",
      ReplaceAll(url, "%", "%25"),
      "%73%6B-test%2Fcanary%2B%22q%5Cx%200123%25",
  };
  for (const std::string& form : forms) {
    CAPTURE(form);
    CHECK(redactor.Touches(form));
    CHECK(redactor.Clean(form) == "[redacted:KEY]");
    CHECK(redactor.Clean("a " + form + " b") == "a [redacted:KEY] b");
    CHECK(redactor.Clean("x=" + form + "&" + form) == "x=[redacted:KEY]&[redacted:KEY]");
  }
}

TEST_CASE("redactor: base64 is found at every alignment, in both alphabets, to its last bits") {
  for (const std::string& key :
       {kKey, std::string("hunter2-password"), std::string("???") + ">>>~~~", std::string("sixbyt"),
        std::string("seven77")}) {
    const Redactor redactor = Of(key);
    for (const std::string before : {"", "a", "ab", "abc", "user:"}) {
      for (const std::string after : {"", "z", "zz", "zzz"}) {
        const std::string whole = Base64(before + key + after);
        if (before.empty() && after.empty()) CHECK(redactor.Clean(whole) == "[redacted:KEY]");
        for (const std::string& form :
             {whole, UrlSafe(whole), JsonOf(whole), ReplaceAll(whole, "/", "\\/"), UrlEncode(whole),
              ReplaceAll(UrlEncode(whole), "%", "%25")}) {
          CAPTURE(form);
          const std::string clean = redactor.Clean("Basic " + form + " .");
          CHECK(clean.find("[redacted:KEY]") != std::string::npos);
          CHECK(clean.substr(0, 6) == "Basic ");
          CHECK(clean.substr(clean.size() - 2) == " .");
          // What is left holds only the neighbours' own characters.
          CHECK(clean.size() <= 8 + 14 + (before.size() + after.size()) * 4 / 3 * 5 + 16);
        }
      }
    }
  }
}

TEST_CASE("redactor: base64 that tools wrap at 76 columns is found across the breaks") {
  std::string key = "secret-";
  for (int i = 0; i < 30; ++i) key += std::to_string(i * 7919);
  const Redactor redactor = Of(key);
  const std::string flat = Base64("prefix " + key);
  for (const std::string line_break : {"\n", "\r\n", "\\n", "\\r\\n", "\n    ", "%0A"}) {
    std::string wrapped;
    for (size_t i = 0; i < flat.size(); i += 76) wrapped += flat.substr(i, 76) + line_break;
    CAPTURE(wrapped);
    const std::string clean = redactor.Clean(wrapped);
    CHECK(clean.find("[redacted:KEY]") != std::string::npos);
    CHECK(clean.find(flat.substr(80, 20)) == std::string::npos);
    CHECK(clean.size() < 60);
  }
}

TEST_CASE("redactor: non-ASCII keys are found as UTF-8, as \\u and as surrogate pairs") {
  const Redactor redactor = Of("p\xC3\xA4ss-\xF0\x9F\x98\x80-w\xE2\x82\xACrd");
  CHECK(redactor.Clean("p\xC3\xA4ss-\xF0\x9F\x98\x80-w\xE2\x82\xACrd") == "[redacted:KEY]");
  CHECK(redactor.Clean(R"("p\u00e4ss-\ud83d\ude00-w\u20acrd")") == R"("[redacted:KEY]")");
  CHECK(redactor.Clean(R"({\"k\":\"p\\u00E4ss-\\uD83D\\uDE00-w\\u20ACrd\"})") ==
        R"({\"k\":\"[redacted:KEY]\"})");
  CHECK(redactor.Clean("p%C3%A4ss-%f0%9f%98%80-w%E2%82%ACrd") == "[redacted:KEY]");
}

TEST_CASE("redactor: a key of several lines is found whole, escaped and line by line") {
  const std::string pem =
      "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQ\n-----END "
      "KEY-----\n";
  const Redactor redactor = Of(pem);
  CHECK(redactor.Clean("<" + pem + ">") == "<[redacted:KEY]\n>");
  CHECK(redactor.Clean(JsonOf(pem)) == "[redacted:KEY]\\n");
  CHECK(redactor.Clean("2\tMIIEvQIBADANBgkqhkiG9w0BAQ\n3\tEFAASCBKcwggSjAgEAAoIBAQ\n") ==
        "2\t[redacted:KEY]\n3\t[redacted:KEY]\n");
  CHECK(redactor.Clean("-----BEGIN KEY-----") == "-----BEGIN KEY-----");
}

TEST_CASE("redactor: overlapping secrets leave no half, the longest gives the name") {
  auto made = Redactor::Make({{"SHORT", "abcdef"}, {"LONG", "abcdefghij"}, {"LATE", "hijklmnop"}},
                             {"[k-q]{3,}"});
  REQUIRE(made.ok());
  const Redactor& redactor = made.value();
  CHECK(redactor.Clean("abcdef!") == "[redacted:SHORT]!");
  CHECK(redactor.Clean("abcdefghij!") == "[redacted:LONG]!");
  CHECK(redactor.Clean("abcdefghijklmnop!") == "[redacted:LONG]!");
  CHECK(redactor.Clean("abcdefabcdef") == "[redacted:SHORT][redacted:SHORT]");
  CHECK(redactor.Clean("klm hijklmnopq") == "[redacted:pattern] [redacted:LATE]");
}

TEST_CASE("redactor: patterns are RE2, every match goes") {
  auto made = Redactor::Make({}, {"ghp_[A-Za-z0-9]{36}", "(?i)token=\\S+"});
  REQUIRE(made.ok());
  const std::string token = "ghp_" + std::string(36, 'A');
  CHECK(made.value().Clean(token + " " + token + "x Token=1") ==
        "[redacted:pattern] [redacted:pattern]x [redacted:pattern]");
  CHECK(made.value().Touches("TOKEN=1"));
  CHECK_FALSE(made.value().Touches("token"));
}

TEST_CASE("redactor: a bad pattern is refused by name") {
  const auto bad = Redactor::Make({}, {"ok", "(x"});
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().code == Code::kInvalid);
  CHECK(bad.error().message.find("`(x`") != std::string::npos);
  const auto empty = Redactor::Make({}, {"a*"});
  REQUIRE_FALSE(empty.ok());
  CHECK(empty.error().message.find("matches the empty text") != std::string::npos);
}

TEST_CASE("redactor: ordinary text stays as it is") {
  const Redactor redactor = Of(kKey, {"ghp_[A-Za-z0-9]{36}"});
  for (const std::string text :
       {"", "s", "sk-test", "sk-test/canary+\"q\\x 0123", "100% sure\\n", "%73%6B", "\\u0073",
        "\\\\\\\\\\\\\\\\", "%%%%25%25%2525", "\xff\xfe", "sk-test/canary+\"q\\x 0124%"}) {
    CAPTURE(text);
    CHECK(redactor.Clean(text) == text);
    CHECK_FALSE(redactor.Touches(text));
  }
  const std::string nul("a\0b", 3);
  CHECK(redactor.Clean(nul) == nul);
}

TEST_CASE("redactor: short values are not secrets, blanks around a value are not part of it") {
  auto made =
      Redactor::Make({{"A", "12345"}, {"B", "  \n"}, {"C", ""}, {"D", " padded-key\r\n"}}, {});
  REQUIRE(made.ok());
  CHECK(made.value().Clean("12345 padded-key") == "12345 [redacted:D]");
  CHECK(Redactor().Clean("x") == "x");
  CHECK(Redactor().LongestForm() == 0);
}

TEST_CASE("redactor: a name is made safe for JSON and terminals") {
  auto made = Redactor::Make({{"A\"\n\x1b", "padded-key"}, {"", "other-key"}}, {});
  REQUIRE(made.ok());
  CHECK(made.value().Clean("padded-key other-key") == "[redacted:A___] [redacted:secret]");
}

TEST_CASE("redactor: the longest form covers every escape of one level") {
  const Redactor redactor = Of(kKey);
  CHECK(redactor.LongestForm() >= UnicodeEscaped(kKey, true).size());
  CHECK(redactor.LongestForm() >= ReplaceAll(UrlEncode(kKey), "%", "%25").size());
}

TEST_CASE("redactor: hostile text costs no more than linear time") {
  const Redactor redactor = Of("\\\\\\\\\\\\aaaaaaaaaaaa");
  std::string backslashes(1 << 20, '\\');
  std::string letters(1 << 20, 'a');
  std::string percents;
  for (int i = 0; i < (1 << 18); ++i) percents += "%25";
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(redactor.Touches(letters));
  CHECK_FALSE(redactor.Touches(backslashes));
  CHECK_FALSE(redactor.Touches(percents));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

}  // namespace
}  // namespace norma::ledger
