// The OpenAI encoders: golden requests, pairing, and what may and may not be in a body.
#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/llm/openai_chat_encode.h"
#include "lib/llm/openai_responses_encode.h"
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

ProviderConfig Plain() {
  ProviderConfig config;
  config.model = "m";
  return config;
}

ProviderConfig Full() {
  ProviderConfig config = Plain();
  config.thinking = "enabled";
  config.effort = "high";
  config.temperature = 0;
  config.stop = {"END"};
  config.max_token_key = "max_completion_tokens";
  config.extra_body = R"({ "seed": 7, "top_p": 1.50 })";
  return config;
}

ChatRequest Conversation() {
  ChatRequest request;
  request.system = {" Be brief. ", "", "Folder: /tmp"};
  request.tools = {{"Bash", "Runs \"sh\"", R"({ "type": "object" })"}, {"LS", "", "{"}};
  request.messages = {
      User({Text{"list\xff it ü"}}),
      Assistant({Thinking{"hm", "sig"}, Text{"I look."},
                 ToolCall{"t1", "Bash", R"({"command": "ls"})", R"({"command":"ls"})"},
                 ToolCall{"t2", "Bash", R"({"command": "l)", ""}}),
      User({Text{"and"}, ToolResult{"t1", "", false}, ToolResult{"t2", "bad", true}}),
      Assistant({ToolCall{"t3", "LS", "", "{}"}}),
      User({ToolResult{"t3", "a\nb", false}}),
  };
  request.max_tokens = 1024;
  return request;
}

template <class Encoder>
std::string List(const ProviderConfig& config, std::vector<MessagePtr> messages,
                 std::string_view key) {
  ChatRequest request;
  request.messages = std::move(messages);
  request.max_tokens = 0;
  Encoder encoder(config);
  const std::string body = encoder.Encode(request);
  const auto document = json::Document::Parse(body);
  REQUIRE(document.ok());
  const size_t from = body.find(key) + key.size();
  // The tail of an empty request is what follows the list.
  const std::string none = Encoder(config).Encode(ChatRequest{{}, 0, {}, {}, 0});
  const size_t tail = none.size() - none.find(key) - key.size() - 2;
  return body.substr(from, body.size() - tail - from);
}
std::string Chat(const ProviderConfig& config, std::vector<MessagePtr> messages) {
  return List<OpenAiChatEncoder>(config, std::move(messages), "\"messages\":");
}
std::string Input(std::vector<MessagePtr> messages) {
  return List<OpenAiResponsesEncoder>(Plain(), std::move(messages), "\"input\":");
}
std::string Call(const std::string& id) {
  return R"({"id":")" + id + R"(","type":"function","function":{"name":"n","arguments":"{}"}})";
}

}  // namespace

TEST_CASE("openai encoders: the golden requests") {
  ProviderConfig plain = Plain();
  plain.stream = false;
  struct Row {
    std::string name;
    ProviderConfig config;
  };
  for (const Row& row : std::vector<Row>{{"plain", plain}, {"full", Full()}}) {
    CAPTURE(row.name);
    OpenAiChatEncoder chat(row.config);
    CHECK(chat.Encode(Conversation()) ==
          LlmTestData("openai-chat/" + row.name + ".request.json", true));
    CHECK(chat.Encode(Conversation()) == chat.Encode(Conversation()));
    OpenAiResponsesEncoder responses(row.config);
    CHECK(responses.Encode(Conversation()) ==
          LlmTestData("openai-responses/" + row.name + ".request.json", true));
    CHECK(json::Document::Parse(chat.Encode(Conversation())).ok());
    CHECK(json::Document::Parse(responses.Encode(Conversation())).ok());
  }
}

TEST_CASE("openai encoders: request n+1 begins with the bytes of request n's history") {
  OpenAiChatEncoder chat(Plain());
  OpenAiResponsesEncoder responses(Plain());
  ChatRequest request = Conversation();
  std::string before_chat, before_responses;
  for (int n = 0; n < 5; ++n) {
    request.messages.push_back(User({Text{"q" + std::to_string(n)}}));
    request.max_tokens = 1000 - n;
    const std::string one = chat.Encode(request);
    CHECK(one.substr(0, before_chat.size()) == before_chat);
    before_chat = one.substr(0, one.rfind("],\"max_tokens\""));
    const std::string two = responses.Encode(request);
    CHECK(two.substr(0, before_responses.size()) == before_responses);
    before_responses = two.substr(0, two.rfind("],\"max_output_tokens\""));
    CHECK(one == OpenAiChatEncoder(Plain()).Encode(request));
    CHECK(two == OpenAiResponsesEncoder(Plain()).Encode(request));
    request.messages.push_back(Assistant({Text{"a" + std::to_string(n)}}));
  }
}

TEST_CASE("openai-chat encoder: histories that servers would refuse are made legal") {
  const ToolCall c1{"c1", "n", "", "{}"}, c2{"c2", "n", "", "{}"};
  const std::string empty = R"({"role":"assistant","content":"…"})";
  const std::string y = R"({"role":"tool","tool_call_id":"c1","content":"y"})";
  const std::string x = R"({"role":"user","content":"x"})";
  const std::string calls = R"({"role":"assistant","tool_calls":[)";
  struct Row {
    std::vector<MessagePtr> history;
    std::string want;
  };
  const std::vector<Row> rows = {
      {{}, "[]"},
      {{User({})}, "[]"},
      {{User({Text{"x"}}), Assistant({Thinking{"t", "s"}}), User({Text{"x"}})},
       "[" + x + R"(,{"role":"assistant","content":"…","reasoning_content":"t"},)" + x + "]"},
      {{Assistant({c1, c2}), User({ToolResult{"c1", "y", false}})},
       "[" + calls + Call("c1") + "]}," + y + "]"},
      {{Assistant({c2}), User({Text{"x"}})}, "[" + empty + "," + x + "]"},
      {{User({ToolResult{"c1", "y", false}, Text{"x"}})}, "[" + x + "]"},
      {{Assistant({c1}), User({Text{"x"}, ToolResult{"c1", "y", true}})},
       "[" + calls + Call("c1") + "]}," + y + "," + x + "]"},
      {{Assistant({c1}), User({ToolResult{"c1", " ", false}})},
       "[" + calls + Call("c1") +
           R"~(]},{"role":"tool","tool_call_id":"c1","content":"(no output)"}])~"},
      {{User({ToolResult{"", "y", false}})},
       R"([{"role":"tool","tool_call_id":"","content":"y"}])"},
      {{User({Text{"a"}, Text{"b"}}), User({Text{"x"}})},
       R"([{"role":"user","content":"ab"},)" + x + "]"},
      {{Assistant({Text{"a"}, Opaque{"anthropic", "{}"}})},
       R"([{"role":"assistant","content":"a"}])"},
  };
  for (const Row& row : rows) CHECK(Chat(Plain(), row.history) == row.want);

  // A thinking server wants the thoughts of a call, or at least some.
  const std::vector<MessagePtr> history = {Assistant({c1}), User({ToolResult{"c1", "y", false}})};
  for (const char* thinking : {"enabled", "disabled"}) {
    ProviderConfig config = Plain();
    config.thinking = thinking;
    CHECK(Chat(config, history).find("\"reasoning_content\":\"(") != std::string::npos);
  }
  ProviderConfig effort = Plain();
  effort.effort = "low";
  CHECK(Chat(effort, history).find("\"reasoning_content\"") != std::string::npos);
  CHECK(Chat(effort, {Assistant({c2})}) == "[" + empty + "]");
  CHECK(Chat(Plain(), history).find("\"reasoning_content\"") == std::string::npos);
}

TEST_CASE("openai-responses encoder: items keep the order of the blocks") {
  const std::string y = R"({"type":"function_call_output","call_id":"c1","output":"y"})";
  const std::string x = R"({"role":"user","content":"x"})";
  CHECK(Input({}) == "[]");
  CHECK(Input({User({}), Assistant({Thinking{"t", "s"}, Opaque{"openai-responses", "{}"}})}) ==
        "[]");
  CHECK(Input({User({Text{"x"}, ToolResult{"c1", "y", false}})}) == "[" + x + "," + y + "]");
  CHECK(Input({User({ToolResult{"c1", "y", false}, Text{"x"}})}) == "[" + y + "," + x + "]");
  CHECK(Input({Assistant({Text{"a"}, ToolCall{"c1", "n", "{", ""}, Text{"b"}})}) ==
        R"([{"role":"assistant","content":"a"},{"type":"function_call","call_id":"c1",)"
        R"("name":"n","arguments":"{}"},{"role":"assistant","content":"b"}])");
  CHECK(Input({User({ToolResult{"c1", "", false}})}) ==
        R"~([{"type":"function_call_output","call_id":"c1","output":"(no output)"}])~");
}

TEST_CASE("openai encoders: the varying tail") {
  const auto chat = [](const ProviderConfig& config, int64_t max_tokens) {
    const std::string body =
        OpenAiChatEncoder(config).Encode(ChatRequest{{}, 0, {}, {}, max_tokens});
    return body.substr(body.find("[]") + 2);
  };
  const auto responses = [](const ProviderConfig& config, int64_t max_tokens) {
    const std::string body =
        OpenAiResponsesEncoder(config).Encode(ChatRequest{{}, 0, {}, {}, max_tokens});
    return body.substr(body.find("[]") + 2);
  };
  ProviderConfig config = Plain();
  config.stream = false;
  CHECK(chat(config, 0) == R"(,"stream":false})");
  CHECK(responses(config, 0) == R"(,"store":false,"stream":false})");
  CHECK(chat(config, 7) == R"(,"max_tokens":7,"stream":false})");
  CHECK(responses(config, 7) == R"(,"max_output_tokens":7,"store":false,"stream":false})");
  config.max_token_key = "max_completion_tokens";
  CHECK(chat(config, 7) == R"(,"max_completion_tokens":7,"stream":false})");
  config.effort = "low";
  config.thinking = "disabled";
  CHECK(chat(config, 0) == R"(,"thinking":{"type":"disabled"},"stream":false})");
  CHECK(responses(config, 0) == R"(,"store":false,"stream":false})");
  config.thinking = "";
  config.stream = true;
  CHECK(chat(config, 0) ==
        R"(,"reasoning_effort":"low","stream_options":{"include_usage":true},"stream":true})");
  CHECK(responses(config, 0) == R"(,"reasoning":{"effort":"low"},"store":false,"stream":true})");
}

TEST_CASE("openai encoders: extra_body may add keys, not replace ours") {
  ProviderConfig config = Plain();
  config.extra_body = R"({"seed":1,"temperature":1,"reasoning":{"summary":"auto"}})";
  CHECK(CheckOpenAiChatBody(config).ok());
  CHECK(CheckOpenAiResponsesBody(config).ok());
  for (const char* bad :
       {R"({"model":"x"})", R"({"stream":false})", R"({"tools":[]})", "[]", "{"}) {
    config.extra_body = bad;
    CHECK(!CheckOpenAiChatBody(config).ok());
    CHECK(!CheckOpenAiResponsesBody(config).ok());
  }
  config.extra_body = R"({"store":true})";
  CHECK(!CheckOpenAiResponsesBody(config).ok());
  config.extra_body = R"({"reasoning_effort":"x"})";
  CHECK(CheckOpenAiChatBody(config).ok());
  config.effort = "low";
  CHECK(!CheckOpenAiChatBody(config).ok());
}
