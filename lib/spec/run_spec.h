// RunSpec: everything a run needs to be repeated, as plain nested structs, immutable after loading.
// Every default of PRODUCT §3 stands here and nowhere else. Values are resolved: files are read,
// variables replaced, paths made absolute where the page says what they are relative to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/money.h"
#include "lib/chat/script.h"
#include "lib/policy/budget.h"
#include "lib/policy/policy.h"
#include "lib/policy/prices.h"

namespace norma::spec {

struct RateLimit {
  double per_second = 0, per_minute = 0;
  int64_t burst = 0;
};

struct Model {
  std::string format;  // anthropic | openai-chat | openai-responses | script
  std::string name;
  std::string base_url;      // empty: *_BASE_URL, then the format's default
  std::string api_key_env;   // empty: the format's own variable
  std::string api_key_file;  // absolute
  int64_t max_tokens = 8192;
  std::optional<double> temperature;
  std::vector<std::string> stop;
  std::string thinking;
  int64_t thinking_budget = 0;
  std::string effort;
  std::string cache = "auto";
  std::string max_token_key = "max_tokens";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string extra_body;  // JSON object text, or empty
  bool stream = true;
  int64_t retries = 3;
  bool escalate = false;
  int64_t empty_retries = 2;
  std::optional<RateLimit> rate_limit;
  Millis timeout_connect{10'000}, timeout_idle{120'000}, timeout_total{600'000};
  std::string proxy;
  std::string ca_file;      // absolute
  std::string script_path;  // format script
  Script script;
};

struct Settlement {
  std::string prompt;
  int64_t turns = 2;
  std::vector<std::string> disabled_tools;
};

struct Tools {
  std::vector<std::string> enabled;  // in the contract's order
  std::vector<std::string> roots{"."};
  int64_t output_bytes = 30'000;
  Millis bash_timeout{120'000};
  std::string bash_on_timeout = "kill";
  std::string bash_on_exit = "kill";
  std::vector<std::pair<std::string, std::string>> bash_env;
  std::vector<std::string> bash_env_keep;
  std::string ripgrep = "auto";  // auto | never | install
  bool edit_require_read = false;
};

struct LedgerSpec {
  std::string path = "runs/{run}.jsonl";  // relative to --cwd
  std::string sync = "action";            // action | end
  std::string content = "excerpt";        // digest | excerpt | full
  int64_t excerpt_bytes = 2048;
};

struct Redact {
  std::vector<std::string> env;
  std::vector<std::string> patterns;
};

struct RunSpec {
  std::string path;  // as given
  std::string hash;  // SHA-256 of the effective spec (file, --set and files it names)
  Model model;
  std::vector<std::string> system;
  std::optional<std::string> prompt;  // {{stdin}} and {{env.NAME}} still in it
  Mode mode = Mode::kDefault;
  std::vector<Rule> allow, deny;
  RuleSyntax rules = RuleSyntax::kNames;
  bool fail_on_denied = false;
  BudgetLimits budgets;
  int64_t output_token_target = 0;
  std::optional<Settlement> settlement;
  PriceTable prices;  // empty rows: nothing is priced
  Tools tools;
  int64_t context_window = 200'000;
  std::string context_strategy = "none";
  LedgerSpec ledger;
  Redact redact;
};

}  // namespace norma::spec
