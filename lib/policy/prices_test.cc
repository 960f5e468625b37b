#include "lib/policy/prices.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>

namespace norma {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Nano Usd(std::string_view text) {
  return ParseUsd(text).value();
}

PriceInput Given(std::string_view input, std::string_view output) {
  PriceInput given;
  given.input = Usd(input);
  given.output = Usd(output);
  return given;
}

// 3 / 15 / 0.30 / 3.75 / 6 USD per million tokens.
PriceRow Sonnet() {
  PriceInput given = Given("3", "15");
  given.cache_read = Usd("0.30");
  given.cache_write_5m = Usd("3.75");
  given.cache_write_1h = Usd("6");
  return MakePriceRow(given).value();
}

// The same with LiteLLM's prices above 200k tokens.
PriceRow TieredSonnet() {
  PriceInput tier = Given("6", "22.50");
  tier.cache_read = Usd("0.60");
  tier.cache_write_5m = Usd("7.50");
  tier.cache_write_1h = Usd("12");
  return WithTier(Sonnet(), 200'000, tier).value();
}

TEST_CASE("prices: a row fills what it leaves out from the input price") {
  PriceRow want;
  want.input = 3'000'000'000;
  want.output = 15'000'000'000;
  want.cache_read = 3'000'000'000;
  want.cache_write_5m = 3'750'000'000;
  want.cache_write_1h = 6'000'000'000;
  CHECK(MakePriceRow(Given("3", "15")).value() == want);
  want.cache_read = 300'000'000;
  CHECK(Sonnet() == want);
  // A given zero is a price, not a gap.
  PriceInput free_cache = Given("3", "15");
  free_cache.cache_read = free_cache.cache_write_5m = free_cache.cache_write_1h = 0;
  want.cache_read = want.cache_write_5m = want.cache_write_1h = 0;
  CHECK(MakePriceRow(free_cache).value() == want);
  // 1.25 × an odd number is rounded up, never down.
  CHECK(MakePriceRow(Given("0.000000001", "0")).value().cache_write_5m == 2);
}

TEST_CASE("prices: a row without input or output, below zero or beyond reason is refused") {
  PriceInput none;
  CHECK(MakePriceRow(none).error().message ==
        "the input price is missing; input and output are required");
  none.input = 1;
  CHECK(MakePriceRow(none).error().message ==
        "the output price is missing; input and output are required");
  none.output = -1;
  CHECK(MakePriceRow(none).error() == Error{Code::kInvalid, "the output price is negative"});
  none.output = 1;
  none.cache_write_1h = -5;
  CHECK(MakePriceRow(none).error().message == "the cache_write_1h price is negative");
  none.cache_write_1h = kPriceMax;
  CHECK(MakePriceRow(none).ok());
  none.cache_write_1h = kPriceMax + 1;
  CHECK(MakePriceRow(none).error().message ==
        "the cache_write_1h price of 1000000.000000001 USD per million tokens is no real price; "
        "check its unit");
}

TEST_CASE("prices: a tier fills its cache classes in the proportion of its input price") {
  // 3 → 6: what the tier leaves out doubles; that is what the provider publishes too.
  CHECK(WithTier(Sonnet(), 200'000, Given("6", "22.50")).value() == TieredSonnet());
  PriceRow row = WithTier(Sonnet(), 200'000, PriceInput{}).value();
  CHECK(row.tier_input == row.input);
  CHECK(row.tier_output == row.output);
  CHECK(row.tier_cache_read == row.cache_read);
  // A cheaper tier makes no class cheaper that it does not name.
  row = WithTier(Sonnet(), 200'000, Given("1", "5")).value();
  CHECK(row.tier_cache_read == row.cache_read);
  // From a free input there is no proportion: the tier's input price holds.
  row = WithTier(MakePriceRow(Given("0", "0")).value(), 100, Given("2", "4")).value();
  CHECK(row.tier_cache_read == Usd("2"));
  CHECK_FALSE(WithTier(Sonnet(), 0, Given("6", "22.5")).ok());
  CHECK_FALSE(WithTier(Sonnet(), -1, Given("6", "22.5")).ok());
  PriceInput bad;
  bad.output = -1;
  CHECK_FALSE(WithTier(Sonnet(), 200'000, bad).ok());
}

struct Golden {
  const char* what;
  PriceRow row;
  TokenCounts tokens;
  Nano cost;
};

PriceRow Row(std::string_view input, std::string_view output, std::string_view cache_read) {
  PriceInput given = Given(input, output);
  given.cache_read = Usd(cache_read);
  return MakePriceRow(given).value();
}

// Computed by hand, in nano-dollars: one token at 3 USD per million costs 3,000.
std::vector<Golden> GoldenTable() {
  const PriceRow sonnet = Sonnet();
  const PriceRow tiered = TieredSonnet();
  const PriceRow mini = Row("0.15", "0.60", "0.075");  // gpt-4o-mini
  const PriceRow flash = Row("0.075", "0.30", "0.0375");
  const PriceRow tiny = Row("0.0375", "0.15", "0.0125");  // 1.25e-8 USD for a token from the cache
  return {
      {"nothing", sonnet, {}, 0},
      {"one token in", sonnet, {.input = 1}, 3'000},
      {"one token out", sonnet, {.output = 1}, 15'000},
      {"700 in, 50 out", sonnet, {.input = 700, .output = 50}, 2'850'000},
      {"each class once",
       sonnet,
       {.input = 4, .output = 1, .cache_read = 1, .cache_write_5m = 1, .cache_write_1h = 1},
       3'000 + 15'000 + 300 + 3'750 + 6'000},
      // 1234 uncached, and the cached ones inside the input.
      {"each class",
       sonnet,
       {.input = 1234 + 8910 + 1112 + 1314,
        .output = 567,
        .cache_read = 8910,
        .cache_write_5m = 1112,
        .cache_write_1h = 1314},
       3'702'000 + 8'505'000 + 2'673'000 + 4'170'000 + 7'884'000},
      {"all from the cache", sonnet, {.input = 1000, .cache_read = 1000}, 300'000},
      // OpenAI's shape: cached tokens inside the input.
      {"mini",
       mini,
       {.input = 2006, .output = 300, .cache_read = 1920},
       12'900 + 180'000 + 144'000},
      {"flash", flash, {.input = 1, .output = 1}, 75 + 300},
      // 37.5 + 0 → 38: half a nano-dollar is rounded up, once.
      {"half a nano", tiny, {.input = 1}, 38},
      {"two halves", tiny, {.input = 2}, 75},
      {"12.5", tiny, {.input = 1, .cache_read = 1}, 13},
      {"37.5 + 12.5 exactly", tiny, {.input = 2, .cache_read = 1}, 50},
      {"1.25e-8 USD, 1001 times", tiny, {.input = 1001, .cache_read = 1001}, 12'513},
      // The tier begins above 200,000 and then holds for the whole request.
      {"at the tier", tiered, {.input = 200'000, .output = 1}, 600'000'000 + 15'000},
      {"above the tier", tiered, {.input = 200'001, .output = 1}, 1'200'006'000 + 22'500},
      {"above the tier by its cached tokens",
       tiered,
       {.input = 200'001, .output = 2, .cache_read = 150'000, .cache_write_5m = 50'000},
       6'000 + 45'000 + 90'000'000 + 375'000'000},
      {"one million each", sonnet, {.input = 1'000'000, .output = 1'000'000}, 18'000'000'000},
  };
}

TEST_CASE("prices: the golden table") {
  for (const Golden& golden : GoldenTable()) {
    CHECK_MESSAGE(CostOf(golden.row, golden.tokens) == golden.cost, golden.what);
  }
}

TEST_CASE("prices: a provider's nonsense never lowers a cost") {
  const PriceRow row = Sonnet();
  // More from the cache than went in: the cached ones are billed, the rest is not below zero.
  CHECK(CostOf(row, {.input = 10, .cache_read = 1000}) == 300'000);
  CHECK(CostOf(row, {.input = -5, .output = 2}) == 30'000);
  CHECK(CostOf(row, {.input = 2, .output = -1}) == 6'000);
  CHECK(CostOf(row, {.input = 2, .cache_read = -100}) == 6'000);
  CHECK(CostOf(row, {.input = 2, .cache_write_5m = -100, .cache_write_1h = -100}) == 6'000);
  // The cached tokens alone say that the tier was passed.
  CHECK(CostOf(TieredSonnet(), {.input = 1, .cache_read = 200'001}) == 120'000'600);
}

TEST_CASE("prices: amounts beyond 64 bits are the largest amount") {
  PriceRow row;
  row.input = row.output = row.cache_read = row.cache_write_5m = row.cache_write_1h = kMax;
  CHECK(CostOf(row, {.input = kMax, .output = kMax}) == kMax);
  CHECK(CostOf(row, {.input = kMax,
                     .output = kMax,
                     .cache_read = kMax,
                     .cache_write_5m = kMax,
                     .cache_write_1h = kMax}) == kMax);
  CHECK(WorstCaseCost(row, kMax, kMax, true) == kMax);
  row.tier_above_input = 1;
  row.tier_input = row.tier_output = kMax;
  CHECK(WorstCaseCost(row, kMax, kMax, true) == kMax);
  CHECK(OutputTokensThatFit(row, kMax, kMax - 1, true) == 0);
  // A row that nobody checked: a price below zero counts as zero, it earns nothing.
  PriceRow negative;
  negative.input = negative.output = -1'000'000;
  CHECK(CostOf(negative, {.input = 10, .output = 10}) == 0);
  CHECK(WorstCaseCost(negative, 10, 10, true) == 0);
}

TEST_CASE("prices: the worst case takes the dearest class and both tiers") {
  const PriceRow row = Sonnet();
  CHECK(WorstCaseCost(row, 1000, 100, false) == 3'000'000 + 1'500'000);
  CHECK(WorstCaseCost(row, 1000, 100, true) == 3'750'000 + 1'500'000);
  CHECK(WorstCaseCost(row, 0, 0, true) == 0);
  CHECK(WorstCaseCost(row, -7, -7, true) == 0);
  // Reading from a cache that costs more than the input.
  CHECK(WorstCaseCost(Row("1", "1", "2"), 1000, 0, false) == 2'000'000);
  const PriceRow tiered = TieredSonnet();
  CHECK(WorstCaseCost(tiered, 200'000, 10, false) == 600'000'000 + 150'000);
  CHECK(WorstCaseCost(tiered, 200'001, 10, false) == 1'200'006'000 + 225'000);
  // Where the tier is cheaper, a request that stays just below it costs more.
  const PriceRow cheap = WithTier(Row("3", "15", "3"), 1000, Given("1", "5")).value();
  CHECK(WorstCaseCost(cheap, 1001, 10, false) == 3'000'000 + 150'000);
}

TEST_CASE("prices: the output that fits") {
  const PriceRow row = Sonnet();
  CHECK(OutputTokensThatFit(row, 1000, 3'000'000 + 150'000, false) == 10);
  CHECK(OutputTokensThatFit(row, 1000, 3'000'000 + 149'999, false) == 9);
  CHECK(OutputTokensThatFit(row, 1000, 3'000'000, false) == 0);
  CHECK(OutputTokensThatFit(row, 1000, 2'999'999, false) == 0);
  CHECK(OutputTokensThatFit(row, 1000, 3'000'000 + 150'000, true) == 0);
  CHECK(OutputTokensThatFit(row, 1000, 0, false) == 0);
  CHECK(OutputTokensThatFit(row, 0, -1, false) == 0);
  CHECK(OutputTokensThatFit(row, 1000, kMax, true) == kMax);
  PriceRow free_output = row;
  free_output.output = 0;
  CHECK(OutputTokensThatFit(free_output, 1000, 3'000'000, false) == kMax);
  CHECK(OutputTokensThatFit(free_output, 1000, 2'999'999, false) == 0);
}

// Orders of magnitude from nothing to far beyond a real price or count.
int64_t Wide(std::mt19937_64& random, int bits_max) {
  const auto bits = random() % static_cast<unsigned>(bits_max + 1);
  return static_cast<int64_t>(bits == 0 ? 0 : random() >> (64 - bits));
}

PriceRow RandomRow(std::mt19937_64& random) {
  PriceRow row;
  for (Nano* price : {&row.input, &row.output, &row.cache_read, &row.cache_write_5m,
                      &row.cache_write_1h, &row.tier_input, &row.tier_output, &row.tier_cache_read,
                      &row.tier_cache_write_5m, &row.tier_cache_write_1h}) {
    *price = Wide(random, 40);
  }
  row.tier_above_input = random() % 2 == 0 ? 0 : Wide(random, 20);
  return row;
}

TEST_CASE("prices: what fits is the exact inverse of the worst case, 20,000 seeds") {
  std::mt19937_64 random(44);
  int faults = 0;
  for (int i = 0; i < 20'000; ++i) {
    const PriceRow row = RandomRow(random);
    const int64_t input = Wide(random, 24);
    const bool may_cache = random() % 2 == 0;
    const Nano available = Wide(random, 60);
    const int64_t fit = OutputTokensThatFit(row, input, available, may_cache);
    if (fit > 0) faults += WorstCaseCost(row, input, fit, may_cache) > available;
    if (fit < kMax) faults += WorstCaseCost(row, input, fit + 1, may_cache) <= available;
  }
  CHECK(faults == 0);
}

TEST_CASE("prices: no reply within the reservation's tokens costs more than it, 20,000 seeds") {
  std::mt19937_64 random(45);
  int faults = 0;
  for (int i = 0; i < 20'000; ++i) {
    const PriceRow row = RandomRow(random);
    const int64_t input = Wide(random, 24);
    const int64_t output = Wide(random, 24);
    const bool may_cache = random() % 2 == 0;
    TokenCounts used;
    used.input = static_cast<int64_t>(random() % static_cast<uint64_t>(input + 1));
    used.output = static_cast<int64_t>(random() % static_cast<uint64_t>(output + 1));
    used.cache_read = static_cast<int64_t>(random() % static_cast<uint64_t>(used.input + 1));
    const int64_t rest = used.input - used.cache_read;
    if (may_cache) {
      used.cache_write_5m = static_cast<int64_t>(random() % static_cast<uint64_t>(rest + 1));
    }
    faults += CostOf(row, used) > WorstCaseCost(row, input, output, may_cache);
  }
  CHECK(faults == 0);
}

TEST_CASE("prices: a model is found by its exact name alone") {
  PriceTable table;
  table.rows["claude-sonnet-4-5"] = Sonnet();
  REQUIRE(table.Find("claude-sonnet-4-5") != nullptr);
  CHECK(*table.Find("claude-sonnet-4-5") == Sonnet());
  for (const char* name : {"", "claude", "claude-sonnet-4-5-20250929", "Claude-Sonnet-4-5",
                           "anthropic/claude-sonnet-4-5", "toString"}) {
    CHECK(table.Find(name) == nullptr);
  }
}

}  // namespace
}  // namespace norma
