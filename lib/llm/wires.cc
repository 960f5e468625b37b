// The table of wire formats: one row is what a newcomer adds.
#include <algorithm>
#include <array>

#include "lib/base/text.h"
#include "lib/llm/anthropic_encode.h"
#include "lib/llm/http_provider.h"
#include "lib/llm/openai_chat_encode.h"
#include "lib/llm/openai_responses_encode.h"
#include "lib/llm/script_provider.h"
#include "lib/llm/wire.h"

namespace norma::llm {
namespace {

constexpr std::string_view kScript = "script";

struct WireEntry {
  WireRow row;
  std::unique_ptr<Wire> (*make)(const ProviderConfig&);
  Status (*check)(const ProviderConfig&);
};

constexpr std::array kWires = {
    WireEntry{{"anthropic", "https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"},
              &NewAnthropicWire,
              &CheckAnthropicBody},
    WireEntry{{"openai-chat", "https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"},
              &NewOpenAiChatWire,
              &CheckOpenAiChatBody},
    WireEntry{
        {"openai-responses", "https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"},
        &NewOpenAiResponsesWire,
        &CheckOpenAiResponsesBody}};

const WireEntry* FindEntry(std::string_view name) {
  const auto* found =
      std::ranges::find(kWires, name, [](const auto& entry) { return entry.row.name; });
  return found == kWires.end() ? nullptr : found;
}

Error UnknownFormat(const std::string& format) {
  std::vector<std::string> known = WireNames();
  known.emplace_back(kScript);
  std::string message =
      "model.format \"" + format + "\" is unknown; known are " + Join(known, ", ");
  const std::string near = Nearest(format, known);
  if (!near.empty()) message += ". Did you mean \"" + near + "\"?";
  return Error{Code::kSpec, std::move(message)};
}

}  // namespace

const WireRow* FindWire(std::string_view name) {
  const WireEntry* entry = FindEntry(name);
  return entry == nullptr ? nullptr : &entry->row;
}

std::vector<std::string> WireNames() {
  std::vector<std::string> names;
  for (const WireEntry& entry : kWires) names.emplace_back(entry.row.name);
  return names;
}

Result<std::unique_ptr<Provider>> NewProvider(const ProviderConfig& config, Transport& transport,
                                              Clock& clock) {
  if (config.format == kScript) return NewScriptProvider(config, clock);
  const WireEntry* entry = FindEntry(config.format);
  if (entry == nullptr) return UnknownFormat(config.format);
  ProviderConfig resolved = config;
  if (resolved.base_url.empty()) resolved.base_url = entry->row.default_base_url;
  NORMA_TRY(entry->check(resolved));
  return NewHttpProvider(resolved, entry->make(resolved), transport, clock);
}

}  // namespace norma::llm
