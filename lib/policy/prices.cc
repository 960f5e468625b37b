// Prices times tokens in 128 bits, so that no product of two 64-bit numbers is lost; what does not
// fit into 64 bits of nano-dollars in the end is the largest amount, never a small one.
#include "lib/policy/prices.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

namespace norma {
namespace {

// Nano-dollars × tokens: a millionth of a nano-dollar, the unit in which sums are exact.
using Exact = unsigned __int128;

constexpr int64_t kTokensPerPrice = 1'000'000;
constexpr Nano kNanoMax = std::numeric_limits<Nano>::max();
constexpr Exact kExactMax = ~Exact{0};

int64_t AtLeastZero(int64_t number) {
  return std::max<int64_t>(number, 0);
}

Exact Product(int64_t tokens, Nano price) {
  return static_cast<Exact>(AtLeastZero(tokens)) * static_cast<Exact>(AtLeastZero(price));
}

// Five products of 63 bits may pass 128 bits: they saturate.
Exact Sum(Exact a, Exact b) {
  return a > kExactMax - b ? kExactMax : a + b;
}

Nano RoundedUp(Exact amount) {
  const Exact whole = amount / kTokensPerPrice + (amount % kTokensPerPrice == 0 ? 0 : 1);
  return whole > static_cast<Exact>(kNanoMax) ? kNanoMax : static_cast<Nano>(whole);
}

// price × factor / divisor, rounded up; all three at least zero, the divisor above it.
Nano Scaled(Nano price, Nano factor, Nano divisor) {
  const auto by = static_cast<Exact>(divisor);
  const Exact scaled = (Product(price, factor) + by - 1) / by;
  return scaled > static_cast<Exact>(kNanoMax) ? kNanoMax : static_cast<Nano>(scaled);
}

struct Prices {
  Nano input, output, cache_read, cache_write_5m, cache_write_1h;
};

Prices BaseOf(const PriceRow& row) {
  return {row.input, row.output, row.cache_read, row.cache_write_5m, row.cache_write_1h};
}

Prices TierOf(const PriceRow& row) {
  const auto or_base = [](Nano tier, Nano base) { return tier > 0 ? tier : base; };
  return {or_base(row.tier_input, row.input), or_base(row.tier_output, row.output),
          or_base(row.tier_cache_read, row.cache_read),
          or_base(row.tier_cache_write_5m, row.cache_write_5m),
          or_base(row.tier_cache_write_1h, row.cache_write_1h)};
}

// One way in which a request may be billed: the input in full, and the price of an output token.
struct Bill {
  Exact input;
  Nano output_price;
};

struct Bills {
  std::array<Bill, 2> of_tier;
  size_t count;
};

Nano Dearest(const Prices& prices, bool may_cache) {
  const Nano read = std::max(prices.input, prices.cache_read);
  return may_cache ? std::max(read, prices.cache_write_5m) : read;
}

Bills WorstBills(const PriceRow& row, int64_t input_tokens, bool may_cache) {
  const int64_t input = AtLeastZero(input_tokens);
  const bool may_reach_tier = row.tier_above_input > 0 && input > row.tier_above_input;
  const Prices base = BaseOf(row);
  const int64_t base_input = may_reach_tier ? row.tier_above_input : input;
  Bills bills{{{{Product(base_input, Dearest(base, may_cache)), AtLeastZero(base.output)}, {}}}, 1};
  if (may_reach_tier) {
    const Prices tier = TierOf(row);
    bills.of_tier[bills.count++] = {Product(input, Dearest(tier, may_cache)),
                                    AtLeastZero(tier.output)};
  }
  return bills;
}

int64_t OutputThatFits(const Bill& bill, Nano available) {
  const Exact budget = static_cast<Exact>(available) * kTokensPerPrice;
  if (bill.input > budget) return 0;
  if (bill.output_price == 0) return std::numeric_limits<int64_t>::max();
  const Exact tokens = (budget - bill.input) / static_cast<Exact>(bill.output_price);
  return static_cast<int64_t>(
      std::min(tokens, static_cast<Exact>(std::numeric_limits<int64_t>::max())));
}

Status CheckPrices(const PriceInput& given) {
  const std::array<std::pair<std::string_view, const std::optional<Nano>*>, 5> fields = {
      {{"input", &given.input},
       {"output", &given.output},
       {"cache_read", &given.cache_read},
       {"cache_write_5m", &given.cache_write_5m},
       {"cache_write_1h", &given.cache_write_1h}}};
  for (const auto& [name, price] : fields) {
    if (!price->has_value()) continue;
    if (**price < 0) return Error{Code::kInvalid, fmt::format("the {} price is negative", name)};
    if (**price > kPriceMax) {
      return Error{Code::kInvalid,
                   fmt::format("the {} price of {} USD per million tokens is no real price; check "
                               "its unit",
                               name, FormatUsd(**price))};
    }
  }
  return {};
}

}  // namespace

Result<PriceRow> MakePriceRow(const PriceInput& given) {
  if (!given.input.has_value() || !given.output.has_value()) {
    return Error{Code::kInvalid,
                 fmt::format("the {} price is missing; input and output are required",
                             given.input.has_value() ? "output" : "input")};
  }
  NORMA_TRY(CheckPrices(given));
  PriceRow row;
  row.input = *given.input;
  row.output = *given.output;
  row.cache_read = given.cache_read.value_or(row.input);
  row.cache_write_5m = given.cache_write_5m.value_or(Scaled(row.input, 5, 4));
  row.cache_write_1h = given.cache_write_1h.value_or(Scaled(row.input, 2, 1));
  return row;
}

Result<PriceRow> WithTier(PriceRow row, int64_t above_input, const PriceInput& given) {
  if (above_input <= 0) {
    return Error{Code::kInvalid, "a price tier must begin above a positive number of tokens"};
  }
  NORMA_TRY(CheckPrices(given));
  row.tier_above_input = above_input;
  row.tier_input = given.input.value_or(row.input);
  row.tier_output = given.output.value_or(row.output);
  const auto grown = [&](Nano base) {
    return row.input > 0 ? std::max(base, Scaled(base, row.tier_input, row.input))
                         : std::max(base, row.tier_input);
  };
  row.tier_cache_read = given.cache_read.value_or(grown(row.cache_read));
  row.tier_cache_write_5m = given.cache_write_5m.value_or(grown(row.cache_write_5m));
  row.tier_cache_write_1h = given.cache_write_1h.value_or(grown(row.cache_write_1h));
  return row;
}

const PriceRow* PriceTable::Find(std::string_view model) const {
  // Exact names only: a guessed price is worse than none (a budget would be held against it).
  const auto found = rows.find(model);
  return found == rows.end() ? nullptr : &found->second;
}

Nano CostOf(const PriceRow& row, const TokenCounts& tokens) {
  const int64_t read = AtLeastZero(tokens.cache_read);
  const int64_t write_5m = AtLeastZero(tokens.cache_write_5m);
  const int64_t write_1h = AtLeastZero(tokens.cache_write_1h);
  const int64_t cached = SaturatingAdd(read, SaturatingAdd(write_5m, write_1h));
  // Cached tokens are part of the input; a report that says otherwise is billed for both numbers.
  const int64_t input = std::max(AtLeastZero(tokens.input), cached);
  const bool in_tier = row.tier_above_input > 0 && input > row.tier_above_input;
  const Prices prices = in_tier ? TierOf(row) : BaseOf(row);
  Exact sum = Product(input - cached, prices.input);
  sum = Sum(sum, Product(read, prices.cache_read));
  sum = Sum(sum, Product(write_5m, prices.cache_write_5m));
  sum = Sum(sum, Product(write_1h, prices.cache_write_1h));
  sum = Sum(sum, Product(tokens.output, prices.output));
  return RoundedUp(sum);
}

Nano WorstCaseCost(const PriceRow& row, int64_t input_tokens, int64_t output_tokens,
                   bool may_cache) {
  const Bills bills = WorstBills(row, input_tokens, may_cache);
  Exact worst = 0;
  for (size_t i = 0; i < bills.count; ++i) {
    const Bill& bill = bills.of_tier[i];
    worst = std::max(worst, Sum(bill.input, Product(output_tokens, bill.output_price)));
  }
  return RoundedUp(worst);
}

int64_t OutputTokensThatFit(const PriceRow& row, int64_t input_tokens, Nano available,
                            bool may_cache) {
  if (available < 0) return 0;
  // WorstCaseCost says "the largest amount" for everything beyond it too.
  if (available == kNanoMax) return std::numeric_limits<int64_t>::max();
  const Bills bills = WorstBills(row, input_tokens, may_cache);
  int64_t fit = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < bills.count; ++i) {
    fit = std::min(fit, OutputThatFits(bills.of_tier[i], available));
  }
  return fit;
}

}  // namespace norma
