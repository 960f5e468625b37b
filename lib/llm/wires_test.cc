// The table of wires, and what every row of it must do.
#include <doctest/doctest.h>

#include "lib/llm/wire.h"
#include "lib/testing/hand_clock.h"
#include "lib/testing/scripted_transport.h"

using namespace norma;
using namespace norma::llm;

TEST_CASE("wires: the table knows all formats, and says which ones work") {
  CHECK(FindWire("anthropic")->default_base_url == "https://api.anthropic.com");
  CHECK(FindWire("anthropic")->key_variable == "ANTHROPIC_API_KEY");
  CHECK(FindWire("openai-chat")->base_url_variable == "OPENAI_BASE_URL");
  CHECK(FindWire("openai-responses")->default_base_url == "https://api.openai.com/v1");
  CHECK(FindWire("script") == nullptr);
  CHECK(FindWire("") == nullptr);
  CHECK(WireNames() == std::vector<std::string>{"anthropic", "openai-chat", "openai-responses"});
}

TEST_CASE("wires: an unknown format is named") {
  testing::HandClock clock;
  testing::ScriptedTransport transport(clock, {});
  ProviderConfig config;
  config.format = "antropic";
  CHECK(NewProvider(config, transport, clock).error().message ==
        "model.format \"antropic\" is unknown; known are anthropic, openai-chat, "
        "openai-responses, script. Did you mean \"anthropic\"?");
  config.format = "script";
  REQUIRE(NewProvider(config, transport, clock).ok());
  CHECK(NewProvider(config, transport, clock).value()->Endpoint() == "script");
}
