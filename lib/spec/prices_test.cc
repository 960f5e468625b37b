#include "lib/policy/prices.h"

#include <doctest/doctest.h>

#include "lib/testing/spec_input.h"

namespace norma::spec {
namespace {

using testing::FaultOf;
using testing::kSpecHead;
using testing::SpecFolder;

constexpr Nano kDollar = 1'000'000'000;

PriceTable TableOf(const std::string& prices_line, const std::string& file_text,
                   const std::string& file = "p.yaml") {
  SpecFolder folder(kSpecHead + prices_line);
  if (!file_text.empty()) folder.dir().Write(file, file_text);
  const auto loaded = folder.Load();
  REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
  return loaded.value().spec.prices;
}

std::string FileFault(const std::string& file_text, const std::string& rest = "") {
  SpecFolder folder(std::string(kSpecHead) + "prices: {file: p.yaml}\n" + rest);
  folder.dir().Write("p.yaml", file_text);
  return FaultOf(folder.Load());
}

TEST_CASE("spec prices: rows stand inline, quoted or not, and missing classes are derived") {
  const PriceTable table = TableOf(
      "prices:\n  test-model: {input: \"3\", output: 15.00}\n"
      "  gpt-4.1: {input: 2, output: 8, cache_read: 0.50, cache_write_5m: 0, cache_write_1h: 0}\n",
      "");
  CHECK(table.name == "inline");
  CHECK(table.hash.size() == 64);
  PriceRow want;
  want.input = 3 * kDollar;
  want.output = 15 * kDollar;
  want.cache_read = 3 * kDollar;
  want.cache_write_5m = 3'750'000'000;
  want.cache_write_1h = 6 * kDollar;
  REQUIRE(table.Find("test-model") != nullptr);
  CHECK(*table.Find("test-model") == want);
  REQUIRE(table.Find("gpt-4.1") != nullptr);
  CHECK(table.Find("gpt-4.1")->cache_read == 500'000'000);
  CHECK(table.Find("gpt-4.1")->cache_write_1h == 0);
}

TEST_CASE("spec prices: our file holds the same rows, as YAML or JSON") {
  for (const char* text : {"test-model: {input: \"3\", output: \"15\"}\n",
                           "{\"test-model\": {\"input\": \"3\", \"output\": 15}}"}) {
    const PriceTable table = TableOf("prices: {file: p.yaml}\n", text);
    CHECK(table.name == "p.yaml");
    REQUIRE(table.Find("test-model") != nullptr);
    CHECK(table.Find("test-model")->output == 15 * kDollar);
  }
}

TEST_CASE("spec prices: faults of a price file name the file and the line") {
  CHECK(FileFault("test-model:\n  input: 3\n  ouput: 15\n") ==
        "p.yaml:1:1: test-model.output: this key is required and missing\n"
        "p.yaml:3:3: test-model.ouput: unknown key; did you mean \"output\"?");
  CHECK(testing::Holds(FileFault("m: {input: -1, output: 1e-3}\n"), "p.yaml:1:12: m.input: "));
  CHECK(testing::Holds(FileFault("- a\n"), "p.yaml:1:1: a price table is a map"));
  CHECK(testing::Holds(FileFault("a: {input: 1, output: 1}\na: {input: 2, output: 2}\n"),
                       "p.yaml:2:1: duplicate key"));
  CHECK(testing::Holds(FaultOf("prices: {file: nowhere.yaml}\n"),
                       "spec.yaml:7:16: prices.file: cannot read nowhere.yaml"));
  CHECK(testing::Holds(FaultOf("prices: {file: p.yaml, m: {input: 1, output: 1}}\n"), "not both"));
}

TEST_CASE("spec prices: LiteLLM's table is read as it is") {
  const std::string text = R"({
  "sample_spec": {"max_tokens": "LEGACY parameter", "input_cost_per_token": 0},
  "test-model": {
    "cache_creation_input_token_cost": 3.75e-06,
    "cache_creation_input_token_cost_above_1hr": 6e-06,
    "cache_read_input_token_cost": 3e-07,
    "input_cost_per_token": 3e-06,
    "input_cost_per_token_above_200k_tokens": 6e-06,
    "output_cost_per_token": 1.5e-05,
    "output_cost_per_token_above_200k_tokens": 2.25e-05,
    "litellm_provider": "anthropic",
    "supports_vision": true
  },
  "other": {"input_cost_per_token": 1e-06}
})";
  const PriceTable table = TableOf("prices: {file: p.yaml}\n", text);
  PriceRow want;
  want.input = 3 * kDollar;
  want.output = 15 * kDollar;
  want.cache_read = 300'000'000;
  want.cache_write_5m = 3'750'000'000;
  want.cache_write_1h = 6 * kDollar;
  want.tier_above_input = 200'000;
  want.tier_input = 6 * kDollar;
  want.tier_output = 22'500'000'000;
  want.tier_cache_read = 600'000'000;
  want.tier_cache_write_5m = 7'500'000'000;
  want.tier_cache_write_1h = 12 * kDollar;
  CHECK(table.rows == std::map<std::string, PriceRow, std::less<>>{{"test-model", want}});
}

TEST_CASE("spec prices: a price per token is exact, and never made cheaper") {
  struct Case {
    const char* number;
    Nano nano;
  };
  for (const Case& c : {Case{"3e-06", 3 * kDollar}, Case{"0.000003", 3 * kDollar},
                        Case{"1.25e-07", 125'000'000}, Case{"0", 0}, Case{"0.0", 0},
                        Case{"7.5e-08", 75'000'000}, Case{"4.7999999999999996e-07", 480'000'000},
                        Case{"1e-16", 1}, Case{"1e-30", 1}, Case{"\"3e-06\"", 3 * kDollar}}) {
    CAPTURE(std::string(c.number));
    const PriceTable table =
        TableOf("prices: {file: p.yaml}\n",
                "{\"test-model\": {\"input_cost_per_token\": " + std::string(c.number) +
                    ", \"output_cost_per_token\": 1e-06}}");
    REQUIRE(table.Find("test-model") != nullptr);
    CHECK(table.Find("test-model")->input == c.nano);
  }
  for (const char* number : {"-1e-06", "true", "\"abc\"", "1e30", "[1]"}) {
    CAPTURE(std::string(number));
    CHECK(testing::Holds(FileFault("{\"test-model\": {\"input_cost_per_token\": " +
                                   std::string(number) + ", \"output_cost_per_token\": 1e-06}}"),
                         "p.yaml:1:2: test-model: input_cost_per_token: "));
  }
}

TEST_CASE("spec prices: the same model twice is a fault only when the prices differ") {
  const std::string row =
      R"("test-model": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06})";
  const std::string dearer =
      R"("test-model": {"input_cost_per_token": 2e-06, "output_cost_per_token": 1e-06})";
  CHECK(TableOf("prices: {file: p.yaml}\n", "{" + row + ", " + row + "}").rows.size() == 1);
  CHECK(testing::Holds(FileFault("{" + row + ", " + dearer + "}"), "twice with two prices"));
  CHECK(testing::Holds(FileFault("{\"input_cost_per_token\": "),
                       "p.yaml:1:1: this is no valid JSON"));
}

TEST_CASE("spec prices: a cost budget needs the model's price") {
  const std::string fault = FaultOf("budgets: {cost_usd: \"0.50\"}\n");
  CHECK(
      fault ==
      "spec.yaml:7:21: budgets.cost_usd: the model \"test-model\" has no price, so its cost cannot "
      "be limited: add its row to prices");
  CHECK(testing::Holds(
      FaultOf("budgets: {cost_usd: 1}\nprices: {test-modell: {input: 1, output: 1}}\n"),
      "did you mean \"test-modell\"?"));
  CHECK(testing::Holds(FileFault(R"({"test-model": {"input_cost_per_pixel": 1, "mode": "x"}, )"
                                 R"("o": {"input_cost_per_token": 1}})",
                                 "budgets: {cost_usd: 1}\n"),
                       "the model \"test-model\" has no price"));
  // A table that cannot be read is one fault, not two.
  CHECK_FALSE(
      testing::Holds(FaultOf("budgets: {cost_usd: 1}\nprices: {file: none}\n"), "no price"));
}

TEST_CASE("spec prices: a large LiteLLM table costs milliseconds") {
  std::string text = "{\"sample_spec\": {}";
  for (int i = 0; i < 3000; ++i) {
    text +=
        ",\n  \"provider/model-" + std::to_string(i) +
        R"(": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, )"
        R"("litellm_provider": "p", "max_tokens": 8192, "mode": "chat", "supports_vision": true,)"
        R"( "source": "https://example.com/a/long/address/of/the/page/that/lists/prices"})";
  }
  text += R"(, "test-model": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}})";
  const PriceTable table = TableOf("prices: {file: p.yaml}\n", text);
  REQUIRE(table.Find("test-model") != nullptr);
  CHECK(table.Find("test-model")->output == 2 * kDollar);
  CHECK(table.rows.size() == 1);
}

}  // namespace
}  // namespace norma::spec
