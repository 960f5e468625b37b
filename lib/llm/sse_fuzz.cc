// Fuzz target: the event reader. However the bytes are cut, the same events come out.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/llm/sse.h"

namespace {

std::string EventsOf(std::string_view bytes, size_t piece) {
  std::string events;
  norma::llm::SseReader reader([&](std::string_view name, std::string_view data) {
    events += std::to_string(name.size()) + ":" + std::string(name) + " " +
              std::to_string(data.size()) + ":" + std::string(data) + "\n";
    return norma::Status();
  });
  while (!bytes.empty()) {
    const size_t now = std::min(piece, bytes.size());
    if (!reader.Feed(bytes.substr(0, now)).ok()) return events + "error";
    bytes.remove_prefix(now);
  }
  return reader.End().ok() ? events : events + "error";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + data[0] % 16;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = EventsOf(bytes, bytes.size() + 1);
  NORMA_CHECK(EventsOf(bytes, piece) == whole);
  NORMA_CHECK(EventsOf(bytes, 1) == whole);
  return 0;
}
