// Fuzz target: JSON in and out. What parses keeps its meaning through Minify; what Quote writes is
// JSON whatever the bytes were.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/json.h"
#include "lib/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace norma;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto document = json::Document::Parse(text); document.ok()) {
    const auto once = json::Minify(text);
    NORMA_CHECK(once.ok());
    const auto twice = json::Minify(once.value());
    NORMA_CHECK(twice.ok() && twice.value() == once.value());
  }
  const auto quoted = json::Document::Parse(json::Quote(text));
  NORMA_CHECK(quoted.ok() && quoted.value().root().is_string());
  if (IsValidUtf8(text)) NORMA_CHECK(quoted.value().root().Str() == text);
  return 0;
}
