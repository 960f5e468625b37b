// Speed of the codecs: Anthropic text deltas from bytes to the reply, against simdjson over the
// same frames (the floor: nobody can decode what was not parsed), and turn n of a 1 MB history
// against a memcpy of its body.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/llm/sse.h"
#include "lib/llm/wire.h"

namespace norma::llm {
namespace {

std::vector<std::string> Frames(size_t text_bytes) {
  std::vector<std::string> frames;
  for (int n = 0; n < 2000; ++n) {
    std::string text;
    while (text.size() < text_bytes) text += "lorem ipsum " + std::to_string(n) + " ";
    text.resize(text_bytes);
    frames.push_back(R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta",)"
                     R"("text":")" +
                     text + "\"}}");
  }
  return frames;
}

void BM_AnthropicTextDeltas(benchmark::State& state) {
  std::string stream =
      "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
      "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
  for (const std::string& frame : Frames(static_cast<size_t>(state.range(0)))) {
    stream += "event: content_block_delta\ndata: " + frame + "\n\n";
  }
  const auto wire = NewAnthropicWire({});
  for (auto _ : state) {
    const auto decoder = wire->NewDecoder({});
    SseReader reader(
        [&](std::string_view name, std::string_view data) { return decoder->OnEvent(name, data); });
    constexpr size_t kRead = 16384;  // what a transport hands over at once
    for (size_t at = 0; at < stream.size(); at += kRead) {
      benchmark::DoNotOptimize(reader.Feed(std::string_view(stream).substr(at, kRead)).ok());
    }
    benchmark::DoNotOptimize(decoder->content_bytes());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(stream.size()));
}
BENCHMARK(BM_AnthropicTextDeltas)->Arg(4)->Arg(20)->Arg(200)->Arg(2000);

void BM_ParseFloor(benchmark::State& state) {
  const std::vector<std::string> frames = Frames(static_cast<size_t>(state.range(0)));
  size_t bytes = 0;
  for (const std::string& frame : frames) {
    bytes += std::strlen("event: content_block_delta\ndata: \n\n") + frame.size();
  }
  json::Parser parser;
  json::ParseOptions options;
  options.refuse_duplicates = false;
  for (auto _ : state) {
    for (const std::string& frame : frames) {
      const auto value = parser.Parse(frame, options);
      benchmark::DoNotOptimize(value.ok());
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}
BENCHMARK(BM_ParseFloor)->Arg(4)->Arg(20)->Arg(200)->Arg(2000);

using MakeWire = std::unique_ptr<Wire> (*)(const ProviderConfig&);
constexpr MakeWire kMakers[] = {&NewAnthropicWire, &NewOpenAiChatWire, &NewOpenAiResponsesWire};

ChatRequest History() {
  ChatRequest request;
  for (int n = 0; n < 128; ++n) {
    const std::string id = "call_" + std::to_string(n);
    request.messages.push_back(std::make_shared<const Message>(
        Message{Role::kAssistant, {Text{"I look."}, ToolCall{id, "Bash", "{}", "{}"}}}));
    request.messages.push_back(std::make_shared<const Message>(
        Message{Role::kUser, {ToolResult{id, std::string(8000, 'x'), false}}}));
  }
  return request;
}

void BM_EncodeTurn(benchmark::State& state) {
  const auto wire = kMakers[state.range(0)]({});
  const ChatRequest request = History();
  size_t bytes = wire->Encode(request).size();
  for (auto _ : state) benchmark::DoNotOptimize(wire->Encode(request).data());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}
BENCHMARK(BM_EncodeTurn)->DenseRange(0, 2);

// Into fresh memory, as a body is.
void BM_CopyBody(benchmark::State& state) {
  const std::string body = NewAnthropicWire({})->Encode(History());
  for (auto _ : state) {
    const std::unique_ptr<char[]> copy(new char[body.size()]);
    std::memcpy(copy.get(), body.data(), body.size());
    benchmark::DoNotOptimize(copy[body.size() / 2]);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(body.size()));
}
BENCHMARK(BM_CopyBody);

}  // namespace
}  // namespace norma::llm
