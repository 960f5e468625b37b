// Fuzz target: a Chat Completions stream, from bytes to the reply. Nothing a server sends may do
// more than fail, and a call that is reported complete has arguments the loop can judge.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/llm/sse.h"
#include "lib/llm/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace norma;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::unique_ptr<llm::Wire> wire = llm::NewOpenAiChatWire({});
  size_t reported = 0;
  llm::DecodeEvents events;
  events.on_text = [](std::string_view) {};
  events.on_thinking = [](std::string_view) {};
  events.on_call = [&](const ToolCall&) { ++reported; };
  const std::unique_ptr<llm::Decoder> decoder = wire->NewDecoder(std::move(events));
  llm::SseReader reader(
      [&](std::string_view name, std::string_view event) { return decoder->OnEvent(name, event); });
  Status fed = reader.Feed(bytes);
  if (fed.ok()) fed = reader.End();
  Reply reply;
  const Status finished = decoder->Finish(&reply);
  size_t calls = 0;
  for (const Block& block : reply.message.blocks)
    calls += std::holds_alternative<ToolCall>(block) ? 1 : 0;
  NORMA_CHECK(calls == reported);
  // A finish reason ends a reply too, so that complete() says less here than in other formats.
  if (decoder->complete()) NORMA_CHECK(finished.ok());

  const std::unique_ptr<llm::Decoder> whole = wire->NewDecoder({});
  if (whole->OnBody(bytes).ok()) (void)whole->Finish(&reply);
  (void)wire->Classify(400, bytes);
  return 0;
}
