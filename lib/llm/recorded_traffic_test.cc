// The recorded traffic of real providers, where it is at hand, through every decoder: whole, in
// small chunks, with other line ends, and cut.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/llm/sse.h"
#include "lib/llm/wire.h"

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

std::unique_ptr<Wire> WireOf(std::string_view format) {
  ProviderConfig config;
  config.format = format;
  if (format == "openai-chat") return NewOpenAiChatWire(config);
  if (format == "openai-responses") return NewOpenAiResponsesWire(config);
  return NewAnthropicWire(config);
}

Decoded DecodeCase(std::string_view format, std::string_view bytes, bool stream, size_t chunk) {
  const auto decoder = WireOf(format)->NewDecoder({});
  Decoded out;
  if (!stream) {
    out.status = decoder->OnBody(bytes);
  } else {
    SseReader reader(
        [&](std::string_view name, std::string_view data) { return decoder->OnEvent(name, data); });
    for (size_t at = 0; at < bytes.size() && out.status.ok(); at += chunk) {
      out.status = reader.Feed(bytes.substr(at, chunk));
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

// The stop reason of norma for what the provider said.
std::string StopOf(std::string_view format, json::Value want) {
  const std::string_view said = want["stop_reason"].Str();
  if (!want["refusal"].Str().empty()) return "refusal";
  if (format == "openai-chat") {
    if (said == "stop") return "end_turn";
    if (said == "tool_calls") return "tool_use";
    if (said == "length") return "max_tokens";
  }
  if (format == "openai-responses") {
    const std::string_view reason = want["incomplete_reason"].Str();
    if (reason == "max_output_tokens") return "max_tokens";
    return reason.empty() ? "end_turn" : std::string(reason);
  }
  return std::string(said);
}

void CompareUsage(std::string_view format, const Usage& usage, json::Value want) {
  CHECK(usage.reported == !want["input"].is_null());
  CHECK(usage.cache_read == want["cache_read"].Int());
  CHECK(usage.cache_write() == want["cache_write"].Int());
  const int64_t beside =
      format == "anthropic" ? usage.cache_read + usage.cache_write() : 0;  // others include them
  CHECK(usage.input == want["input"].Int() + beside);
  CHECK(usage.output == want["output"].Int());
}

void CompareReply(std::string_view format, const Reply& reply, json::Value want, bool stream) {
  std::string thinking, signatures, redacted;
  for (const Block& block : reply.message.blocks) {
    if (const auto* one = std::get_if<Thinking>(&block)) {
      thinking += one->text;
      if (!one->signature.empty()) signatures += one->signature + "\n";
    }
    if (const auto* one = std::get_if<Opaque>(&block)) redacted += one->json + "\n";
  }
  CHECK(TextOf(reply.message) ==
        std::string(want["text"].Str()) + std::string(want["refusal"].Str()));
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
  std::string stop = StopOf(format, want);
  if (format == "openai-responses" && !stream && stop == "end_turn" &&
      want["tool_calls"].size() > 0) {
    stop = "tool_use";
  }
  CHECK(reply.stop_reason == stop);
  CompareUsage(format, reply.usage, want["usage"]);
}

// Whether norma reads a case as an error where the official clients do not, or the other way round.
// Each row is a decision.
bool WantError(const std::string& name, json::Value want, const std::string& bytes) {
  // A stream without its terminal event is cut, whatever the clients say (their snapshot is then
  // still "in_progress").
  for (const char* cut : {"d12-eof-inside-arguments", "d17-eof-no-terminal-event",
                          "d18-eof-inside-arguments", "057-openai-gpt-4o-text-json"}) {
    if (name.find(cut) != std::string::npos) return true;
  }
  if (want["error"].is_null()) return false;
  // Where the Anthropic client gives up over the order of events, the message is whole for us.
  return want["error"].Str().substr(0, 14) != "AnthropicError" ||
         bytes.find("\"message_stop\"") == std::string::npos;
}

// A cut may come behind the terminal marker; the reply is then the same one.
void CheckCuts(std::string_view format, const std::string& bytes, const Reply& whole) {
  uint64_t seed = bytes.size();
  size_t wrong = 0;
  for (int n = 0; n < 50; ++n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const size_t cut = 1 + (seed >> 33) % (bytes.size() - 1);
    const Decoded got = DecodeCase(format, std::string_view(bytes).substr(0, cut), true, 4096);
    if (got.status.ok() &&
        (got.reply.message != whole.message || got.reply.stop_reason != whole.stop_reason)) {
      ++wrong;
    }
  }
  CHECK(wrong == 0);
}

void RunCase(std::string_view format, const std::filesystem::path& folder) {
  const json::Document meta = ReadJson(folder / "meta.json");
  const json::Document expected = ReadJson(folder / "expected.json");
  const json::Value want = expected.root();
  const bool stream = meta.root()["stream"].Bool();
  const std::string bytes = ReadAll(folder / (stream ? "response.sse" : "response.json"));
  const int status = static_cast<int>(meta.root()["status"].Int(200));
  if (status != 200) {
    const ErrorClass said = WireOf(format)->Classify(status, bytes);
    CHECK(said.message == want["error_message"].Str(said.message));
    CHECK(!said.message.empty());
    CHECK(said.context_full == (bytes.find("prompt is too long") != std::string::npos));
    return;
  }
  const bool want_error = WantError(folder.filename().string(), want, bytes);
  const std::string crlf = ReplaceAll(ReplaceAll(bytes, "\r\n", "\n"), "\n", "\r\n");
  for (const std::string& form : {bytes, crlf}) {
    for (const size_t chunk : {form.size(), size_t{1}, size_t{7}, size_t{1000}}) {
      const Decoded got = DecodeCase(format, form, stream, std::max<size_t>(chunk, 1));
      CHECK(got.status.ok() == !want_error);
      if (got.status.ok() && want["error"].is_null()) {
        CompareReply(format, got.reply, want, stream);
      }
      if (!want["error"].is_null()) CHECK(TextOf(got.reply.message) == want["text"].Str());
      if (stream && got.status.ok() && chunk == form.size()) {
        CheckCuts(format, form, got.reply);
      }
    }
    if (!stream) break;
  }
}

}  // namespace

TEST_CASE("recorded traffic reads as the providers' own clients read it") {
  namespace fs = std::filesystem;
  size_t cases = 0;
  for (const char* set : {"cases", "cases-derived"}) {
    const fs::path folder = fs::path(NORMA_SOURCE_DIR) / ".." / "shared" / "wire" / set;
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      for (const std::string& format : WireNames()) {
        if (name.rfind(format + "-", 0) != 0) continue;
        CAPTURE(name);
        RunCase(format, entry.path());
        ++cases;
      }
    }
  }
  if (cases == 0) MESSAGE("skipped: no recorded traffic beside the source tree");
}
