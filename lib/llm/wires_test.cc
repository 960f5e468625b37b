// The table of wires, and the recorded traffic of real providers where it is at hand.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/base/json.h"
#include "lib/llm/error_words.h"
#include "lib/llm/sse.h"
#include "lib/llm/wire.h"
#include "lib/testing/hand_clock.h"
#include "lib/testing/scripted_transport.h"

using namespace norma;
using namespace norma::llm;

namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

json::Document ReadJson(const std::filesystem::path& path) {
  auto document = json::Document::Parse(ReadAll(path));
  REQUIRE(document.ok());
  return document.value();
}

struct Decoded {
  Status status;
  Reply reply;
};

Decoded DecodeCase(const std::string& bytes, bool stream, size_t chunk) {
  ProviderConfig config;
  config.format = "anthropic";
  const auto decoder = NewAnthropicWire(config)->NewDecoder({});
  Decoded out;
  if (!stream) {
    out.status = decoder->OnBody(bytes);
  } else {
    SseReader reader(
        [&](std::string_view name, std::string_view data) { return decoder->OnEvent(name, data); });
    for (size_t at = 0; at < bytes.size() && out.status.ok(); at += chunk) {
      out.status = reader.Feed(std::string_view(bytes).substr(at, chunk));
    }
    if (out.status.ok()) out.status = reader.End();
  }
  const Status finish = decoder->Finish(&out.reply);
  if (out.status.ok()) out.status = finish;
  return out;
}

// A JSON value with its members sorted: two spellings of one value compare equal.
std::string Canonical(json::Value value) {
  switch (value.kind()) {
    case json::Kind::kObject: {
      std::vector<std::string> members;
      value.EachMember([&](std::string_view key, json::Value member) {
        members.push_back(json::Quote(key) + ":" + Canonical(member));
      });
      std::sort(members.begin(), members.end());
      std::string out = "{";
      for (const std::string& member : members) out += member + ",";
      return out + "}";
    }
    case json::Kind::kArray: {
      std::string out = "[";
      value.EachElement([&](json::Value element) { out += Canonical(element) + ","; });
      return out + "]";
    }
    case json::Kind::kString:
      return json::Quote(value.Str());
    case json::Kind::kBool:
      return value.Bool() ? "true" : "false";
    case json::Kind::kNull:
      return "null";
    case json::Kind::kInt:
    case json::Kind::kUint:
    case json::Kind::kDouble:
      return std::to_string(value.Double());
  }
  return {};
}

void CompareCalls(const Reply& reply, json::Value want) {
  std::vector<ToolCall> calls;
  for (const Block& block : reply.message.blocks) {
    if (const auto* call = std::get_if<ToolCall>(&block)) calls.push_back(*call);
  }
  REQUIRE(calls.size() == want.size());
  for (size_t n = 0; n < calls.size(); ++n) {
    CHECK(calls[n].id == want.At(n)["id"].Str());
    CHECK(calls[n].name == want.At(n)["name"].Str());
    if (!want.At(n)["arguments_valid"].Bool(true)) {
      CHECK(calls[n].valid_input.empty());
      CHECK(calls[n].input == want.At(n)["raw_arguments"].Str());
      continue;
    }
    const auto input = json::Document::Parse(calls[n].valid_input);
    REQUIRE(input.ok());
    CHECK(Canonical(input.value().root()) == Canonical(want.At(n)["input"]));
  }
}

void CompareReply(const Reply& reply, json::Value want) {
  std::string thinking, signatures, redacted;
  for (const Block& block : reply.message.blocks) {
    if (const auto* one = std::get_if<Thinking>(&block)) {
      thinking += one->text;
      if (!one->signature.empty()) signatures += one->signature + "\n";
    }
    if (const auto* one = std::get_if<Opaque>(&block)) redacted += one->json + "\n";
  }
  CHECK(TextOf(reply.message) == want["text"].Str());
  CHECK(thinking == want["thinking"].Str());
  CompareCalls(reply, want["tool_calls"]);
  std::string want_signatures;
  want["signatures"].EachElement([&](json::Value signature) {
    if (!signature.Str().empty()) want_signatures += std::string(signature.Str()) + "\n";
  });
  CHECK(signatures == want_signatures);
  want["redacted_thinking"].EachElement([&](json::Value data) {
    CHECK(redacted.find(std::string(data.Str())) != std::string::npos);
  });
  CHECK(reply.stop_reason == want["stop_reason"].Str());
  const json::Value usage = want["usage"];
  CHECK(reply.usage.cache_read == usage["cache_read"].Int());
  CHECK(reply.usage.cache_write() == usage["cache_write"].Int());
  CHECK(reply.usage.input ==
        usage["input"].Int() + reply.usage.cache_read + reply.usage.cache_write());
  CHECK(reply.usage.output == usage["output"].Int());
}

void RunCase(const std::filesystem::path& folder) {
  const json::Document meta = ReadJson(folder / "meta.json");
  const json::Document expected = ReadJson(folder / "expected.json");
  const json::Value want = expected.root();
  const bool stream = meta.root()["stream"].Bool();
  const std::string bytes = ReadAll(folder / (stream ? "response.sse" : "response.json"));
  const int status = static_cast<int>(meta.root()["status"].Int(200));
  if (status != 200) {
    ProviderConfig config;
    const ErrorClass said = NewAnthropicWire(config)->Classify(status, bytes);
    CHECK(said.message == want["error_message"].Str(said.message));
    CHECK(!said.message.empty());
    return;
  }
  for (const size_t chunk : {bytes.size(), size_t{1}, size_t{7}, size_t{1000}}) {
    const Decoded got = DecodeCase(bytes, stream, std::max<size_t>(chunk, 1));
    // Where the official client gives up over the order of events, the message is whole for us.
    const std::string_view sdk = want["error"].Str();
    const bool only_the_sdk = sdk.substr(0, 14) == "AnthropicError" &&
                              bytes.find("\"message_stop\"") != std::string::npos;
    CHECK(got.status.ok() == (want["error"].is_null() || only_the_sdk));
    if (got.status.ok() && want["error"].is_null()) CompareReply(got.reply, want);
    if (!want["error"].is_null()) CHECK(TextOf(got.reply.message) == want["text"].Str());
  }
}

}  // namespace

TEST_CASE("wires: the table knows all formats, and says which ones work") {
  CHECK(FindWire("anthropic")->default_base_url == "https://api.anthropic.com");
  CHECK(FindWire("anthropic")->key_variable == "ANTHROPIC_API_KEY");
  CHECK(FindWire("openai-chat")->base_url_variable == "OPENAI_BASE_URL");
  CHECK(FindWire("openai-responses")->default_base_url == "https://api.openai.com/v1");
  CHECK(FindWire("script") == nullptr);
  CHECK(FindWire("") == nullptr);
  CHECK(WireNames() == std::vector<std::string>{"anthropic"});
}

TEST_CASE("wires: formats that are unknown or not built are named") {
  testing::HandClock clock;
  testing::ScriptedTransport transport(clock, {});
  ProviderConfig config;
  config.format = "antropic";
  CHECK(NewProvider(config, transport, clock).error().message ==
        "model.format \"antropic\" is unknown; known are anthropic, script. Did you mean "
        "\"anthropic\"?");
  config.format = "openai-chat";
  CHECK(NewProvider(config, transport, clock).error() ==
        Error{Code::kSpec, "model.format \"openai-chat\" is not supported yet"});
  config.format = "script";
  REQUIRE(NewProvider(config, transport, clock).ok());
  CHECK(NewProvider(config, transport, clock).value()->Endpoint() == "script");
}

TEST_CASE("wires: recorded traffic of the Anthropic API reads as its own clients read it") {
  namespace fs = std::filesystem;
  size_t cases = 0;
  for (const char* set : {"cases", "cases-derived"}) {
    const fs::path folder = fs::path(NORMA_SOURCE_DIR) / ".." / "shared" / "wire" / set;
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("anthropic", 0) != 0) continue;
      CAPTURE(name);
      RunCase(entry.path());
      ++cases;
    }
  }
  if (cases == 0) MESSAGE("skipped: no recorded traffic beside the source tree");
}
