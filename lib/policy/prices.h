// What a token costs. Exact: nano-dollars per million tokens, summed in 128 bits, rounded up to one
// nano-dollar per reply (PRODUCT: "Money").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/money.h"
#include "lib/base/result.h"

namespace norma {

// Prices in nano-dollars per million tokens.
struct PriceRow {
  Nano input = 0;
  Nano output = 0;
  Nano cache_read = 0;
  Nano cache_write_5m = 0;
  Nano cache_write_1h = 0;
  // LiteLLM's second tier: applies to every class of a request whose input exceeds the limit. A
  // class whose tier price is 0 keeps its price from above.
  int64_t tier_above_input = 0;  // 0 = no tier
  Nano tier_input = 0, tier_output = 0, tier_cache_read = 0, tier_cache_write_5m = 0,
       tier_cache_write_1h = 0;

  friend bool operator==(const PriceRow&, const PriceRow&) = default;
};

// Far above any real price. A larger one is a mistake in the unit (per token, per thousand).
inline constexpr Nano kPriceMax = 1'000'000 * Nano{1'000'000'000};

// Fills what a row leaves out: cache_read = input, 5m = 1.25 × input, 1h = 2 × input. Input and
// output are required; a negative price or one above kPriceMax is kInvalid.
struct PriceInput {
  std::optional<Nano> input, output, cache_read, cache_write_5m, cache_write_1h;
};
Result<PriceRow> MakePriceRow(const PriceInput& given);
// Adds the tier above `above_input` tokens to a row. What `given` leaves out grows as input does
// (cache classes: providers publish them as multiples of input) or stays (input, output).
Result<PriceRow> WithTier(PriceRow row, int64_t above_input, const PriceInput& given);

struct PriceTable {
  std::string name;  // file name or "inline"
  std::string hash;  // SHA-256 of the text it came from
  std::map<std::string, PriceRow, std::less<>> rows;
  const PriceRow* Find(std::string_view model) const;
};

// Tokens by class; input includes the cached ones.
struct TokenCounts {
  int64_t input = 0, output = 0, cache_read = 0, cache_write_5m = 0, cache_write_1h = 0;
};

// Cost of one reply, rounded up. A provider's nonsense (cached > input, negative) never lowers it:
// each class counts at least zero.
Nano CostOf(const PriceRow& row, const TokenCounts& tokens);

// Upper bound for a request: every input token in the dearest class it can be billed in, in either
// tier that up to `input_tokens` can fall into. With caching on that is a write for five minutes:
// norma never asks for the hour.
Nano WorstCaseCost(const PriceRow& row, int64_t input_tokens, int64_t output_tokens,
                   bool may_cache);
// The largest max_tokens whose worst case fits into `available`; 0 when not even one does. Exact:
// one token more would not fit.
int64_t OutputTokensThatFit(const PriceRow& row, int64_t input_tokens, Nano available,
                            bool may_cache);

}  // namespace norma
