// Anthropic request bodies: goldens, prefix stability, cache markers, what is never sent.
#include "lib/llm/anthropic_encode.h"

#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/testing/reply_text.h"

using namespace norma;
using namespace norma::llm;
using norma::testing::LlmTestData;

namespace {

MessagePtr User(std::vector<Block> blocks) {
  return std::make_shared<const Message>(Message{Role::kUser, std::move(blocks)});
}
MessagePtr Assistant(std::vector<Block> blocks) {
  return std::make_shared<const Message>(Message{Role::kAssistant, std::move(blocks)});
}

ProviderConfig Plain(const std::string& cache = "off") {
  ProviderConfig config;
  config.format = "anthropic";
  config.model = "m";
  config.cache = cache;
  return config;
}

ChatRequest Conversation() {
  ChatRequest request;
  request.system = {" Be brief. ", "", "Folder: /tmp"};
  request.system_static = 1;
  request.tools = {{"Bash", "Runs \"sh\"",
                    R"({ "type": "object", "properties": {"command": {"type": "string"}} })"},
                   {"LS", "", R"({"type":"object"})"}};
  request.messages = {
      User({Text{"list\xff it ü"}}),
      Assistant({Thinking{"hm \"x\"", "sig+/="},
                 Opaque{"anthropic", R"({"type":"redacted_thinking", "data":"\u0041"})"},
                 Text{"I look."},
                 ToolCall{"t1", "Bash", R"({"command": "ls"})", R"({"command":"ls"})"},
                 ToolCall{"t2", "Bash", R"({"command": "l)", ""}}),
      User({ToolResult{"t1", "", false}, ToolResult{"t2", "bad arguments", true}}),
      User({Text{"go on"}}),
  };
  request.max_tokens = 1024;
  return request;
}

// The messages part of a body, for the short cases.
std::string Messages(const ProviderConfig& config, std::vector<MessagePtr> messages) {
  ChatRequest request;
  request.messages = std::move(messages);
  AnthropicEncoder encoder(config);
  const std::string body = encoder.Encode(request);
  const size_t from = body.find("\"messages\":") + 11;
  return body.substr(from, body.rfind(",\"max_tokens\"") - from);
}

size_t Count(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string Msg(const std::string& role, const std::string& blocks) {
  return R"({"role":")" + role + R"(","content":[)" + blocks + "]}";
}
std::string Txt(const std::string& text) {
  return R"({"type":"text","text":")" + text + "\"}";
}

}  // namespace

TEST_CASE("anthropic encoder: the golden requests") {
  ProviderConfig full = Plain("auto");
  full.thinking = "enabled";
  full.thinking_budget = 2048;
  full.effort = "high";
  full.temperature = 0;
  full.stop = {"END", "\n\n"};
  full.extra_body = R"({ "metadata": {"user_id": "u\u0031"}, "top_k": 1.50 })";
  struct Row {
    std::string name;
    ProviderConfig config;
  };
  ProviderConfig system_only = Plain("system");
  system_only.stream = false;
  for (const Row& row :
       std::vector<Row>{{"plain", Plain()}, {"full", full}, {"system", system_only}}) {
    CAPTURE(row.name);
    AnthropicEncoder encoder(row.config);
    const std::string body = encoder.Encode(Conversation());
    CHECK(body == LlmTestData("anthropic/" + row.name + ".request.json", true));
    CHECK(json::Document::Parse(body).ok());
    CHECK(encoder.Encode(Conversation()) == body);
  }
}

TEST_CASE("anthropic encoder: request n+1 begins with the bytes of request n") {
  for (const std::string cache : {"off", "system"}) {
    AnthropicEncoder encoder(Plain(cache));
    ChatRequest request = Conversation();
    request.messages.clear();
    std::string before;
    for (int n = 0; n < 6; ++n) {
      request.messages.push_back(User({Text{"q" + std::to_string(n)}}));
      request.max_tokens = 1000 - n;
      const std::string body = encoder.Encode(request);
      const size_t end = body.rfind("],\"max_tokens\"");
      CHECK(body.substr(0, before.size()) == before);
      before = body.substr(0, end);
      request.messages.push_back(Assistant({Text{"a" + std::to_string(n)}}));
    }
  }
}

TEST_CASE("anthropic encoder: a kept message gives the same bytes as a fresh one") {
  AnthropicEncoder kept(Plain("auto"));
  ChatRequest request = Conversation();
  kept.Encode(request);
  const auto first = request.messages;
  request.messages.push_back(Assistant({Text{"done"}}));
  request.messages.push_back(User({Text{"more"}}));
  CHECK(kept.Encode(request) == AnthropicEncoder(Plain("auto")).Encode(request));
  request.messages = {first[0]};  // compacted
  CHECK(kept.Encode(request) == AnthropicEncoder(Plain("auto")).Encode(request));
  request.messages = {User({Text{"new at an old address, perhaps"}})};
  CHECK(kept.Encode(request) == AnthropicEncoder(Plain("auto")).Encode(request));
}

TEST_CASE("anthropic encoder: thinking that may not be replayed leaves no trace") {
  const std::vector<MessagePtr> history = {
      User({Text{"a"}}), Assistant({Thinking{"t", "s"}, Opaque{"anthropic", "{}"}}),
      User({Text{"b"}})};
  const std::string merged = "[" + Msg("user", Txt("a") + "," + Txt("b")) + "]";
  ProviderConfig config = Plain();
  CHECK(Messages(config, history) == merged);
  config.thinking = "disabled";
  CHECK(Messages(config, history) == merged);
  for (const char* on : {"enabled", "adaptive"}) {
    config.thinking = on;
    CHECK(Messages(config, history) ==
          "[" + Msg("user", Txt("a")) + "," +
              Msg("assistant", R"({"type":"thinking","thinking":"t","signature":"s"},{})") + "," +
              Msg("user", Txt("b")) + "]");
  }
}

TEST_CASE("anthropic encoder: messages that the API would refuse are made legal") {
  const ProviderConfig config = Plain();
  struct Row {
    std::vector<MessagePtr> history;
    std::string want;
  };
  const std::vector<Row> rows = {
      {{}, "[]"},
      {{User({})}, "[]"},
      {{User({Text{"a"}}), Assistant({Text{" \n"}}), User({Text{"b"}})},
       "[" + Msg("user", Txt("a")) + "," + Msg("assistant", Txt("…")) + "," +
           Msg("user", Txt("b")) + "]"},
      {{User({Text{"a"}, Text{""}, Text{"b"}})},
       "[" + Msg("user", Txt("a") + "," + Txt("b")) + "]"},
      {{User({Text{"x"}, ToolResult{"t", "y", false}})},
       "[" +
           Msg("user", R"({"type":"tool_result","tool_use_id":"t","content":[)" + Txt("y") + "]}," +
                           Txt("x")) +
           "]"},
      {{User({ToolResult{"t", "\n", true}})},
       "[" +
           Msg("user", R"({"type":"tool_result","tool_use_id":"t","content":[)" +
                           Txt("(no output)") + R"(],"is_error":true})") +
           "]"},
      {{Assistant({ToolCall{"t", "n", "{\"a\":", ""}})},
       "[" + Msg("assistant", R"({"type":"tool_use","id":"t","name":"n","input":{}})") + "]"},
      {{Assistant({Opaque{"openai-responses", R"({"x":1})"}, Text{"a"}})},
       "[" + Msg("assistant", Txt("a")) + "]"},
      {{User({Text{"\xED\xA0\x80 \xFF"}})}, "[" + Msg("user", Txt("��� �")) + "]"},
      {{User({Text{std::string("a\0b\x1f", 4)}})},
       "[" + Msg("user", Txt("a\\u0000b\\u001f")) + "]"},
  };
  for (const Row& row : rows) {
    CHECK(Messages(config, row.history) == row.want);
  }
}

TEST_CASE("anthropic encoder: the system prompt is split at the static boundary") {
  const auto system = [](const std::string& cache, std::vector<std::string> segments,
                         size_t boundary) {
    ChatRequest request;
    request.system = std::move(segments);
    request.system_static = boundary;
    AnthropicEncoder encoder(Plain(cache));
    const std::string body = encoder.Encode(request);
    const size_t from = body.find(",\"system\":");
    if (from == std::string::npos) return std::string();
    return body.substr(from + 10, body.find(",\"messages\"") - from - 10);
  };
  const std::string mark = R"(,"cache_control":{"type":"ephemeral"}})";
  const auto cached = [&](std::string block) { return block.substr(0, block.size() - 1) + mark; };
  CHECK(system("system", {"a", " ", "b"}, 1) == "[" + cached(Txt("a")) + "," + Txt("b") + "]");
  CHECK(system("system", {"a", " ", "b"}, 5) == "[" + cached(Txt("a\\n\\nb")) + "]");
  CHECK(system("system", {"a", "b"}, 0) == "[" + Txt("a\\n\\nb") + "]");
  CHECK(system("auto", {"a", "b"}, 1) == "[" + cached(Txt("a")) + "," + Txt("b") + "]");
  CHECK(system("off", {"a", "b"}, 1) == "[" + Txt("a") + "," + Txt("b") + "]");
  CHECK(system("system", {" ", "b"}, 1) == "[" + Txt("b") + "]");
  CHECK(system("system", {"a", "\n"}, 1) == "[" + cached(Txt("a")) + "]");
  CHECK(system("system", {" ", "\t"}, 1).empty());
  CHECK(system("system", {}, 0).empty());
}

TEST_CASE("anthropic encoder: at most four cache markers, never on a thinking block") {
  ProviderConfig config = Plain("auto");
  config.thinking = "enabled";
  ChatRequest request = Conversation();
  AnthropicEncoder encoder(config);
  for (int turn = 0; turn < 5; ++turn) {
    const std::string body = encoder.Encode(request);
    CHECK(Count(body, "\"cache_control\"") == (turn == 0 ? 4u : 4u));
    CHECK(json::Document::Parse(body).ok());
    request.messages.push_back(Assistant({Thinking{"t", "s"}}));
    const std::string ends_in_thinking = encoder.Encode(request);
    CHECK(ends_in_thinking.find(R"("signature":"s","cache_control")") == std::string::npos);
    CHECK(Count(ends_in_thinking, "\"cache_control\"") <= 4);
    CHECK(json::Document::Parse(ends_in_thinking).ok());
    request.messages.push_back(User({Text{"again"}}));
  }
  for (const std::string cache : {"off", "system"}) {
    AnthropicEncoder other(Plain(cache));
    CHECK(Count(other.Encode(request), "\"cache_control\"") == (cache == "off" ? 0u : 1u));
  }
  ChatRequest bare;
  bare.messages = {User({Text{"a"}})};
  CHECK(Count(AnthropicEncoder(config).Encode(bare), "\"cache_control\"") == 1);
}

TEST_CASE("anthropic encoder: the varying tail") {
  const auto tail = [](const ProviderConfig& config, int64_t max_tokens) {
    ChatRequest request;
    request.max_tokens = max_tokens;
    AnthropicEncoder encoder(config);
    const std::string body = encoder.Encode(request);
    return body.substr(body.find("\"max_tokens\""));
  };
  ProviderConfig config = Plain();
  CHECK(tail(config, 7) == R"("max_tokens":7,"stream":true})");
  CHECK(tail(config, 0) == R"("max_tokens":8192,"stream":true})");
  config.effort = "low";
  config.thinking = "disabled";
  config.thinking_budget = 1024;
  CHECK(tail(config, 7) == R"("max_tokens":7,"thinking":{"type":"disabled"},"stream":true})");
  config.thinking = "enabled";
  CHECK(tail(config, 4096) ==
        R"("max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":1024},)"
        R"("output_config":{"effort":"low"},"stream":true})");
  CHECK(tail(config, 500) ==
        R"("max_tokens":500,"thinking":{"type":"enabled","budget_tokens":499},)"
        R"("output_config":{"effort":"low"},"stream":true})");
  config = Plain();
  config.extra_body = " {} ";
  CHECK(tail(config, 7) == R"("max_tokens":7,"stream":true})");
}

TEST_CASE("anthropic encoder: extra_body may add keys, not replace ours") {
  ProviderConfig config = Plain();
  const auto check = [&](const std::string& extra) {
    config.extra_body = extra;
    return CheckAnthropicBody(config);
  };
  CHECK(check("").ok());
  CHECK(check(R"({"metadata":{"model":"x"},"temperature":1})").ok());
  for (const char* bad : {R"({"model":"x"})", R"({"a":1,"max_tokens":1})", R"({"stream":false})",
                          R"({"messages":[]})", "[]", "{", "1", R"({"a":1,"a":2})"}) {
    CAPTURE(bad);
    const Status status = check(bad);
    REQUIRE(!status.ok());
    CHECK(status.error().code == Code::kSpec);
  }
  config.temperature = 0.5;
  CHECK(!check(R"({"temperature":1})").ok());
  CHECK(check(R"({"thinking":{"type":"adaptive"}})").ok());
}
