// Price tables: rows inline, our file, or LiteLLM's model_prices JSON as it is. Of the last only
// the row of the run's model is read: the file has thousands, and nothing but that row can be asked
// for.
#include <fmt/core.h>

#include <array>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/policy/prices.h"
#include "lib/spec/loading.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

// --- ours
// -----------------------------------------------------------------------------------------

std::optional<Nano> PriceAt(const Node& row, std::string_view key) {
  const Node* node = row.Find(key);
  if (node == nullptr) return std::nullopt;
  const auto amount = UsdOf(*node);
  return amount.ok() ? std::optional(amount.value()) : std::nullopt;
}

void AddRow(const std::string& model, const Node& node, PriceTable& table, Faults& faults,
            const std::string& path) {
  if (node.kind != NodeKind::kMap || node.broken) return;
  const PriceInput given{PriceAt(node, "input"), PriceAt(node, "output"),
                         PriceAt(node, "cache_read"), PriceAt(node, "cache_write_5m"),
                         PriceAt(node, "cache_write_1h")};
  if (!given.input || !given.output) return;  // the Checker has said so
  const auto row = MakePriceRow(given);
  if (!row.ok()) {
    faults.Add(node.place, path, row.error().message);
  } else {
    table.rows[model] = row.value();
  }
}

void ReadOurTable(Loading& load, const NamedFile& file, PriceTable& table) {
  const int source = load.faults.AddSource(file.display);
  const auto root = ParseTree(file.text, source, load.faults);
  if (!root) return;
  if (root->kind != NodeKind::kMap) {
    load.faults.Add({source, 1, 1}, "",
                    "a price table is a map of models to prices, got " + Describe(*root));
    return;
  }
  const KeyRow* row = FindRow(SpecKeys(), "prices.*");
  NORMA_CHECK(row != nullptr);
  Checker checker(SpecKeys(), load.names, load.faults);
  for (size_t i = 0; i < root->items.size(); ++i) {
    const std::string& model = root->keys[i].text;
    checker.CheckValue(root->items[i], *row, model);
    AddRow(model, root->items[i], table, load.faults, model);
  }
}

// --- LiteLLM
// --------------------------------------------------------------------------------------

constexpr std::string_view kLiteLlmMark = "\"input_cost_per_token\"";
constexpr std::string_view kThousandTokens = "k_tokens";

// USD per token as LiteLLM writes it (3e-06) to nano-dollars per million tokens: times 10^15. What
// is finer than a nano-dollar is rounded up: a price is never made cheaper.
Result<Nano> PerMillion(std::string_view text) {
  const Error bad{Code::kInvalid,
                  fmt::format("{} is no price per token", json::Quote(CutUtf8(text, 40)))};
  constexpr int kScale = 15;
  constexpr int64_t kExponentMax = 400;  // beyond any double
  const size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  int64_t exponent = 0;
  if (exponent_at < text.size()) {
    std::string_view digits = text.substr(exponent_at + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || digits.empty())
      return bad;
    if (exponent < -kExponentMax || exponent > kExponentMax) return bad;
  }
  unsigned __int128 value = 0;
  int64_t decimals = 0;
  bool dot = false;
  bool any = false;
  for (const char c : text.substr(0, exponent_at)) {
    if (c == '.' && !dot) {
      dot = true;
      continue;
    }
    if (c < '0' || c > '9') return bad;
    if (value > (~static_cast<unsigned __int128>(0) - 9) / 10) return bad;
    value = value * 10 + static_cast<unsigned>(c - '0');
    decimals += dot ? 1 : 0;
    any = true;
  }
  if (!any) return bad;
  bool rest = false;
  for (int64_t shift = exponent - decimals + kScale; shift != 0 && value != 0;
       shift += shift < 0 ? 1 : -1) {
    if (shift < 0) {
      rest = rest || value % 10 != 0;
      value /= 10;
      if (value == 0) break;
    } else {
      if (value > static_cast<unsigned __int128>(INT64_MAX) / 10) return bad;
      value *= 10;
    }
  }
  if (rest) value += 1;
  if (value > static_cast<unsigned __int128>(INT64_MAX)) return bad;
  return static_cast<Nano>(value);
}

Result<Nano> PerMillion(json::Value value) {
  if (value.is_string()) return PerMillion(value.Str());
  if (value.kind() == json::Kind::kDouble || value.kind() == json::Kind::kInt ||
      value.kind() == json::Kind::kUint) {
    // The shortest text that reads back is the text that LiteLLM wrote.
    return PerMillion(fmt::format("{}", value.Double()));
  }
  return Error{Code::kInvalid, "a price per token is no number"};
}

struct LiteLlmKey {
  std::string_view name;
  std::optional<Nano> PriceInput::*field;
};
constexpr std::array<LiteLlmKey, 5> kLiteLlmKeys = {{
    {"input_cost_per_token", &PriceInput::input},
    {"output_cost_per_token", &PriceInput::output},
    {"cache_read_input_token_cost", &PriceInput::cache_read},
    {"cache_creation_input_token_cost", &PriceInput::cache_write_5m},
    {"cache_creation_input_token_cost_above_1hr", &PriceInput::cache_write_1h},
}};

// "…_above_200k_tokens" -> 200000 and the name before it; 0 without a tier.
int64_t TierOf(std::string_view& key) {
  constexpr std::string_view kAbove = "_above_";
  if (!key.ends_with(kThousandTokens)) return 0;
  const size_t at = key.rfind(kAbove);
  if (at == std::string_view::npos) return 0;
  const std::string_view digits =
      key.substr(at + kAbove.size(), key.size() - kThousandTokens.size() - at - kAbove.size());
  int64_t thousands = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), thousands);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return 0;
  if (thousands <= 0 || thousands > 1'000'000) return 0;
  key = key.substr(0, at);
  return thousands * 1000;
}

// The row of one model; nothing when it is not priced by tokens (images, seconds).
Result<std::optional<PriceRow>> LiteLlmRow(json::Value model) {
  PriceInput base;
  std::map<int64_t, PriceInput> tiers;
  Status bad;
  model.EachMember([&](std::string_view key, json::Value value) {
    if (value.is_null()) return;
    const std::string full(key);
    const int64_t tier = TierOf(key);
    for (const LiteLlmKey& known : kLiteLlmKeys) {
      if (key != known.name) continue;
      const auto price = PerMillion(value);
      if (!price.ok()) {
        if (bad.ok()) bad = Error{Code::kInvalid, full + ": " + price.error().message};
        return;
      }
      PriceInput& given = tier > 0 ? tiers[tier] : base;
      std::optional<Nano>& slot = given.*known.field;
      // Two readers would take two different prices.
      if (slot && *slot != price.value() && bad.ok()) {
        bad = Error{Code::kInvalid, full + " stands here twice with two prices"};
      }
      slot = price.value();
    }
  });
  NORMA_TRY(bad);
  if (!base.input && !base.output) return std::optional<PriceRow>();
  NORMA_ASSIGN(PriceRow row, MakePriceRow(base));
  if (tiers.size() > 1) {
    return Error{Code::kInvalid,
                 "more than one price tier by input size; write this model's row inline"};
  }
  for (const auto& [above, of_tier] : tiers) {
    NORMA_ASSIGN(row, WithTier(row, above, of_tier));
  }
  return std::optional<PriceRow>(row);
}

void ReadLiteLlm(Loading& load, const NamedFile& file, const std::string& model,
                 PriceTable& table) {
  const int source = load.faults.AddSource(file.display);
  // Duplicates elsewhere in the file (it had some) are none of this run's business; those of the
  // model in question are looked for below.
  const auto document = json::Document::Parse(file.text, {.refuse_duplicates = false});
  if (!document.ok()) {
    load.faults.Add({source, 1, 1}, "", "this is no valid JSON: " + document.error().message);
    return;
  }
  document.value().root().EachMember([&](std::string_view name, json::Value value) {
    if (name != model || !value.is_object()) return;
    const Place place = PlaceOf(file.text, file.text.find(json::Quote(name)), source);
    const auto row = LiteLlmRow(value);
    if (!row.ok()) {
      load.faults.Add(place, model, row.error().message);
    } else if (row.value()) {
      const auto [at, added] = table.rows.emplace(model, *row.value());
      if (!added && at->second != *row.value()) {
        load.faults.Add(place, model, "this model stands here twice with two prices");
      }
    }
  });
}

}  // namespace

void BuildPrices(Loading& load, const std::string& model) {
  const Node* prices = load.At("prices");
  if (prices == nullptr || prices->kind != NodeKind::kMap) return;
  PriceTable table;
  const Node* name = prices->Find("file");
  if (name == nullptr) {
    table.name = prices->items.empty() ? "" : "inline";
    for (size_t i = 0; i < prices->items.size(); ++i) {
      AddRow(prices->keys[i].text, prices->items[i], table, load.faults,
             "prices." + prices->keys[i].text);
    }
    table.hash =
        prices->items.empty() ? "" : Sha256Hex(JsonOf(*prices).ok() ? JsonOf(*prices).value() : "");
    load.out.spec.prices = std::move(table);
    return;
  }
  if (prices->items.size() > 1) {
    load.faults.Add(name->place, "prices.file", "prices come from a file or stand here, not both");
    return;
  }
  if (name->broken || !TextOf(*name).ok() || IsBlank(name->text)) return;
  const auto file = load.ReadNamed(*name, "prices.file");
  if (!file) return;
  table.name = name->shown();
  table.hash = load.file_hashes["prices.file"];
  const size_t faults_before = load.faults.size();
  if (file->text.find(kLiteLlmMark) != std::string::npos) {
    ReadLiteLlm(load, *file, model, table);
  } else {
    ReadOurTable(load, *file, table);
  }
  if (load.faults.size() == faults_before) load.out.spec.prices = std::move(table);
}

}  // namespace norma::spec
