// The table itself. Order: PRODUCT §3.
#include "lib/spec/key_table.h"

#include <algorithm>

#include "lib/base/text.h"

namespace norma::spec {

namespace {

constexpr int64_t kTokensMax = 100'000'000;
constexpr int64_t kCountMax = 1'000'000'000;
constexpr int64_t kTokenSumMax = 1'000'000'000'000;
constexpr int64_t kOutputBytesMax = int64_t{64} << 20;
constexpr int64_t kWindowMax = 1'000'000'000;
constexpr Built kNotYet = Built::kNotYet;

// Two lines a row, which clang-format would make four.
// clang-format off
constexpr KeyRow kSpecRows[] = {
    {.path = "norma", .type = Type::kInt, .about = "Version of the spec format: 1.",
     .required = true},
    {.path = "model", .type = Type::kMap, .about = "The model and how to reach it.",
     .required = true},
    {.path = "model.format", .type = Type::kChoice, .about = "Wire format of the provider.",
     .choices = "anthropic|openai-chat|openai-responses|script", .required = true},
    {.path = "model.name", .type = Type::kText,
     .about = "Model name as the provider spells it; required unless format is script."},
    {.path = "model.script", .type = Type::kFile,
     .about = "Replies of the script model; required with format: script."},
    {.path = "model.base_url", .type = Type::kText,
     .about = "Where requests go; default: *_BASE_URL of the environment, then the provider's "
              "own."},
    {.path = "model.api_key_env", .type = Type::kVariable,
     .about = "Name of the variable that holds the key; default by format."},
    {.path = "model.api_key_file", .type = Type::kFile,
     .about = "File that holds the key, instead of api_key_env."},
    {.path = "model.max_tokens", .type = Type::kInt, .about = "Most tokens of one reply.",
     .fallback = "8192", .min = 1, .max = kTokensMax},
    {.path = "model.temperature", .type = Type::kNumber,
     .about = "Sampling temperature; absent = not sent.", .min = 0, .max = 2},
    {.path = "model.stop", .type = Type::kTexts, .about = "Stop sequences.", .fallback = "[]"},
    {.path = "model.thinking", .type = Type::kText,
     .about = "Thinking as the provider names it (enabled, disabled, adaptive …); absent = not "
              "sent."},
    {.path = "model.thinking_budget", .type = Type::kInt,
     .about = "Above 0: budget_tokens beside thinking.", .fallback = "0", .max = kTokensMax},
    {.path = "model.effort", .type = Type::kText,
     .about = "Effort as the provider names it; absent = not sent."},
    {.path = "model.cache", .type = Type::kChoice, .about = "Anthropic cache breakpoints.",
     .fallback = "auto", .choices = "auto|system|off"},
    {.path = "model.max_token_key", .type = Type::kChoice,
     .about = "openai-chat: the name of the limit in the request.", .fallback = "max_tokens",
     .choices = "max_tokens|max_completion_tokens"},
    {.path = "model.headers", .type = Type::kTextMap,
     .about = "Extra request headers; a credential header is refused.", .fallback = "{}"},
    {.path = "model.extra_body", .type = Type::kJson,
     .about = "Merged into the request body at top level; may not replace norma's own keys.",
     .fallback = "{}"},
    {.path = "model.stream", .type = Type::kBool, .about = "Ask for a streamed reply.",
     .fallback = "true"},
    {.path = "model.retries", .type = Type::kInt,
     .about = "Further attempts after a failure worth retrying; 0 or -1 = none.", .fallback = "3",
     .min = -1, .max = 100},
    {.path = "model.escalate", .type = Type::kBool,
     .about = "A reply cut by max_tokens is asked for once more with 64000.", .fallback = "false"},
    {.path = "model.empty_retries", .type = Type::kInt,
     .about = "openai-chat: an empty reply is asked for again this often.", .fallback = "2",
     .max = 100},
    {.path = "model.rate_limit", .type = Type::kMap, .about = "Client-side limit of requests.",
     .fallback = "{}"},
    {.path = "model.rate_limit.per_second", .type = Type::kNumber, .about = "Requests a second.",
     .max = kCountMax},
    {.path = "model.rate_limit.per_minute", .type = Type::kNumber, .about = "Requests a minute.",
     .max = kCountMax},
    {.path = "model.rate_limit.burst", .type = Type::kInt,
     .about = "Requests that may go out at once; 0 or absent = per_second.", .max = kCountMax},
    {.path = "model.timeout", .type = Type::kMap, .about = "Time limits of one request."},
    {.path = "model.timeout.connect", .type = Type::kDuration,
     .about = "Until the connection stands.", .fallback = "10s", .min = 1},
    {.path = "model.timeout.idle", .type = Type::kDuration,
     .about = "Between two data events of a stream.", .fallback = "120s", .min = 1},
    {.path = "model.timeout.total", .type = Type::kDuration, .about = "For the whole reply.",
     .fallback = "10m", .min = 1},
    {.path = "model.proxy", .type = Type::kText,
     .about = "Proxy URL (http, https, socks5); absent = the rules of the environment."},
    {.path = "model.ca_file", .type = Type::kFile,
     .about = "PEM file of the authorities to trust."},
    {.path = "system", .type = Type::kList, .about = "Segments of the system prompt.",
     .fallback = "[]"},
    {.path = "system.[]", .type = Type::kSegment, .about = "Text, or {file: path}."},
    {.path = "prompt", .type = Type::kText,
     .about = "The prompt when no flag gives one; may hold {{stdin}} and {{env.NAME}}."},
    {.path = "mode", .type = Type::kChoice, .about = "What holds for a call that no rule names.",
     .fallback = "default", .choices = "default|acceptEdits|bypassPermissions|plan|dontAsk|auto"},
    {.path = "allow", .type = Type::kList, .about = "Rules that allow.", .fallback = "[]"},
    {.path = "allow.[]", .type = Type::kRule,
     .about = "A tool name, mcp__server__*, or *; with rules: arguments also Tool(argument)."},
    {.path = "deny", .type = Type::kList, .about = "Rules that deny; they beat everything.",
     .fallback = "[]"},
    {.path = "deny.[]", .type = Type::kRule, .about = "As in allow."},
    {.path = "rules", .type = Type::kChoice,
     .about = "What the part in parentheses of a rule means: nothing (names), or what it says "
              "(arguments).", .fallback = "names", .choices = "names|arguments",
     .later = "arguments"},
    {.path = "on_denied", .type = Type::kChoice, .about = "What a denied call does to the run.",
     .fallback = "continue", .choices = "continue|fail"},
    {.path = "budgets", .type = Type::kMap,
     .about = "Hard stops; a budget that is absent is no limit."},
    {.path = "budgets.turns", .type = Type::kInt, .about = "Turns with tool calls.",
     .max = kCountMax},
    {.path = "budgets.wall", .type = Type::kDuration, .about = "Time of the whole run.", .min = 1},
    {.path = "budgets.grace", .type = Type::kDuration,
     .about = "After wall, until the run is cut off.", .fallback = "30s"},
    {.path = "budgets.cost_usd", .type = Type::kUsd, .about = "Money."},
    {.path = "budgets.requests", .type = Type::kInt,
     .about = "HTTP attempts to the model, retries included.", .max = kCountMax},
    {.path = "budgets.input_tokens", .type = Type::kInt,
     .about = "Input tokens, cached ones included.", .max = kTokenSumMax},
    {.path = "budgets.output_tokens", .type = Type::kInt, .about = "Output tokens.",
     .max = kTokenSumMax},
    {.path = "budgets.calls", .type = Type::kInt, .about = "Tool calls.", .max = kCountMax},
    {.path = "budgets.actions", .type = Type::kInt, .about = "Outside effects.", .max = kCountMax},
    {.path = "budgets.per_tool", .type = Type::kNamed, .about = "Limits of single tools.",
     .fallback = "{}", .choices = "TOOL"},
    {.path = "budgets.per_tool.*", .type = Type::kMap, .about = "Limits of this tool."},
    {.path = "budgets.per_tool.*.calls", .type = Type::kInt, .about = "Calls of this tool.",
     .max = kCountMax},
    {.path = "budgets.per_tool.*.wall", .type = Type::kDuration,
     .about = "Time spent in this tool.", .min = 1},
    {.path = "budgets.output_token_target", .type = Type::kInt,
     .about = "Above 0: the model is nudged to go on until it wrote that much.", .fallback = "0",
     .max = kTokenSumMax, .built = kNotYet},
    {.path = "budgets.announce", .type = Type::kBool,
     .about = "Tell the model what is left of its budgets.", .fallback = "false", .built = kNotYet},
    {.path = "settlement", .type = Type::kMap, .about = "A last word when a budget ends the run."},
    {.path = "settlement.prompt", .type = Type::kText, .about = "What the model is asked then.",
     .required = true},
    {.path = "settlement.turns", .type = Type::kInt, .about = "Most turns of the settlement.",
     .fallback = "2", .min = 1, .max = 1000},
    {.path = "settlement.disabled_tools", .type = Type::kTools,
     .about = "Tools that are taken away.", .fallback = "[]"},
    {.path = "settlement.reserve_usd", .type = Type::kUsd,
     .about = "Part of budgets.cost_usd that is kept for the settlement.", .fallback = "\"0\""},
    {.path = "prices", .type = Type::kNamed,
     .about = "USD per million tokens by model, or {file: path} of a price table (ours or "
              "LiteLLM's).", .fallback = "{}"},
    {.path = "prices.file", .type = Type::kFile,
     .about = "Price table: rows like these under model names, or LiteLLM's model_prices JSON."},
    {.path = "prices.*", .type = Type::kMap, .about = "Prices of this model."},
    {.path = "prices.*.input", .type = Type::kUsd, .about = "USD per million input tokens.",
     .required = true},
    {.path = "prices.*.output", .type = Type::kUsd, .about = "USD per million output tokens.",
     .required = true},
    {.path = "prices.*.cache_read", .type = Type::kUsd, .about = "Cached input; absent = input."},
    {.path = "prices.*.cache_write_5m", .type = Type::kUsd,
     .about = "Cache write for 5 minutes; absent = 1.25 x input."},
    {.path = "prices.*.cache_write_1h", .type = Type::kUsd,
     .about = "Cache write for an hour; absent = 2 x input."},
    {.path = "tools", .type = Type::kMap,
     .about = "What is offered to the model, and how it behaves."},
    {.path = "tools.enabled", .type = Type::kTools,
     .about = "Tools by name; absent = the default set."},
    {.path = "tools.roots", .type = Type::kTexts,
     .about = "File tools stay below these; relative to --cwd.", .fallback = "[.]"},
    {.path = "tools.output_bytes", .type = Type::kSize,
     .about = "Most bytes of a tool's output that the model sees.", .fallback = "30000", .min = 1,
     .max = kOutputBytesMax},
    {.path = "tools.bash", .type = Type::kMap, .about = "The Bash tool."},
    {.path = "tools.bash.timeout", .type = Type::kDuration,
     .about = "Time limit of a command that names none.", .fallback = "120s", .min = 1},
    {.path = "tools.bash.on_timeout", .type = Type::kChoice,
     .about = "What then happens to the command.", .fallback = "kill", .choices = "kill|background",
     .later = "background"},
    {.path = "tools.bash.on_exit", .type = Type::kChoice,
     .about = "What happens to background work when the run ends.", .fallback = "kill",
     .choices = "kill|wait", .later = "wait"},
    {.path = "tools.bash.env", .type = Type::kTextMap,
     .about = "Variables added to the environment of commands.", .fallback = "{}"},
    {.path = "tools.bash.env_keep", .type = Type::kVariables,
     .about = "Variables that commands inherit; [] = all but secrets.", .fallback = "[]"},
    {.path = "tools.edit", .type = Type::kMap, .about = "The Edit tool."},
    {.path = "tools.edit.require_read", .type = Type::kBool,
     .about = "Refuse an edit of a file that was not read before.", .fallback = "false"},
    {.path = "tools.grep", .type = Type::kMap, .about = "The Grep tool."},
    {.path = "tools.grep.ripgrep", .type = Type::kChoice,
     .about = "Use of rg; install may fetch it.", .fallback = "auto",
     .choices = "auto|never|install", .later = "install"},
    {.path = "web", .type = Type::kMap, .about = "The WebFetch tool."},
    {.path = "web.hosts", .type = Type::kMap, .about = "Hosts by name."},
    {.path = "web.hosts.allow", .type = Type::kTexts, .about = "[] = any public host.",
     .fallback = "[]", .built = kNotYet},
    {.path = "web.hosts.deny", .type = Type::kTexts, .about = "Beats allow.", .fallback = "[]",
     .built = kNotYet},
    {.path = "web.private_networks", .type = Type::kChoice,
     .about = "Addresses that are not public.", .fallback = "deny", .choices = "deny|allow",
     .built = kNotYet},
    {.path = "web.proxy", .type = Type::kText, .about = "Proxy URL.", .fallback = "null",
     .built = kNotYet},
    {.path = "web.ca_file", .type = Type::kFile, .about = "PEM file of the authorities to trust.",
     .fallback = "null", .built = kNotYet},
    {.path = "web.insecure_tls", .type = Type::kBool, .about = "Do not check certificates.",
     .fallback = "false", .built = kNotYet},
    {.path = "web.proxy_fallback", .type = Type::kChoice,
     .about = "What happens when the proxy fails.", .fallback = "none", .choices = "none|direct",
     .built = kNotYet},
    {.path = "search", .type = Type::kMap, .about = "The web_search tool."},
    {.path = "search.backend", .type = Type::kChoice, .about = "Who is asked.",
     .choices = "ddgs|brave|brave-free|tavily|deepseek", .built = kNotYet},
    {.path = "search.key_env", .type = Type::kVariable,
     .about = "Name of the variable that holds the key.", .built = kNotYet},
    {.path = "search.base_url", .type = Type::kText, .about = "Replaces scheme, host and port.",
     .fallback = "null", .built = kNotYet},
    {.path = "search.model", .type = Type::kText, .about = "deepseek needs one.",
     .fallback = "null", .built = kNotYet},
    {.path = "mcp", .type = Type::kNamed, .about = "MCP servers by name.", .fallback = "{}",
     .built = kNotYet},
    {.path = "mcp.*", .type = Type::kMap, .about = "A server: command, or url."},
    {.path = "mcp.*.command", .type = Type::kText, .about = "Program to start."},
    {.path = "mcp.*.args", .type = Type::kTexts, .about = "Its arguments.", .fallback = "[]"},
    {.path = "mcp.*.env", .type = Type::kTextMap, .about = "Variables added to its environment.",
     .fallback = "{}"},
    {.path = "mcp.*.url", .type = Type::kText, .about = "Streamable HTTP."},
    {.path = "mcp.*.token_env", .type = Type::kVariable,
     .about = "Name of the variable that holds the bearer token."},
    {.path = "mcp.*.required", .type = Type::kBool,
     .about = "The run fails when the server does not start.", .fallback = "true"},
    {.path = "mcp.*.timeout", .type = Type::kDuration, .about = "For start and list.",
     .fallback = "30s", .min = 1},
    {.path = "mcp.*.call_timeout", .type = Type::kDuration, .about = "For one call.",
     .fallback = "120s", .min = 1},
    {.path = "hooks", .type = Type::kNamed, .about = "Programs that are run at events.",
     .fallback = "{}",
     .choices = "pre_tool_use|post_tool_use|post_tool_use_failure|user_prompt_submit|session_start|"
                "session_end|stop|subagent_start", .built = kNotYet},
    {.path = "hooks.*", .type = Type::kList, .about = "Hooks of this event."},
    {.path = "hooks.*.[]", .type = Type::kMap, .about = "One hook."},
    {.path = "hooks.*.[].match", .type = Type::kText, .about = "Tool name; absent = all."},
    {.path = "hooks.*.[].run", .type = Type::kTexts, .about = "Program and arguments.",
     .required = true},
    {.path = "hooks.*.[].timeout", .type = Type::kDuration, .about = "Time limit.",
     .fallback = "10s", .min = 1},
    {.path = "hooks.*.[].on_error", .type = Type::kChoice, .about = "What a hook that fails does.",
     .fallback = "block", .choices = "block|continue"},
    {.path = "context", .type = Type::kMap, .about = "What the model sees of the history."},
    {.path = "context.window", .type = Type::kInt,
     .about = "Context window of the model, in tokens.", .fallback = "200000", .min = 1,
     .max = kWindowMax},
    {.path = "context.strategy", .type = Type::kChoice,
     .about = "What happens when it is full; compaction is not built yet and acts as none.",
     .fallback = "compaction", .choices = "compaction|noa|none", .later = "noa"},
    {.path = "context.noa", .type = Type::kMap, .about = "The noa strategy."},
    {.path = "context.noa.dir", .type = Type::kText, .about = "Default: <transcript.dir>/noa.",
     .fallback = "null", .built = kNotYet},
    {.path = "sandbox", .type = Type::kChoice, .about = "Landlock for Bash, hooks and MCP servers.",
     .fallback = "none", .choices = "none|auto|required", .later = "auto|required"},
    {.path = "plan", .type = Type::kMap, .about = "Plan mode."},
    {.path = "plan.approval", .type = Type::kChoice, .about = "Nobody is there to approve a plan.",
     .fallback = "deny", .choices = "deny|auto", .later = "auto"},
    {.path = "agents", .type = Type::kNamed, .about = "Subagent definitions.", .fallback = "{}",
     .built = kNotYet},
    {.path = "agents.*", .type = Type::kJson, .about = "One subagent."},
    {.path = "skills", .type = Type::kMap, .about = "Skills."},
    {.path = "skills.dir", .type = Type::kText, .about = "Their folder; relative to the spec.",
     .fallback = ".norma/skills", .built = kNotYet},
    {.path = "memory", .type = Type::kMap, .about = "Memory."},
    {.path = "memory.dir", .type = Type::kText, .about = "Its folder; relative to --cwd.",
     .fallback = ".norma/memory", .built = kNotYet},
    {.path = "memory.write", .type = Type::kBool, .about = "May the run write it.",
     .fallback = "false", .built = kNotYet},
    {.path = "output", .type = Type::kMap, .about = "Structured answers."},
    {.path = "output.schema", .type = Type::kFile, .about = "JSON Schema of the answer.",
     .built = kNotYet},
    {.path = "output.reasks", .type = Type::kInt,
     .about = "How often a bad answer is asked for again.", .fallback = "2", .max = 100,
     .built = kNotYet},
    {.path = "ledger", .type = Type::kMap, .about = "The ledger."},
    {.path = "ledger.path", .type = Type::kText,
     .about = "File; {run} is the run's id; relative to --cwd.", .fallback = "runs/{run}.jsonl"},
    {.path = "ledger.sync", .type = Type::kChoice,
     .about = "When it is flushed to disk: before each effect, or at the end only.",
     .fallback = "action", .choices = "action|end"},
    {.path = "ledger.content", .type = Type::kChoice, .about = "How much of contents it holds.",
     .fallback = "excerpt", .choices = "digest|excerpt|full"},
    {.path = "ledger.excerpt_bytes", .type = Type::kSize, .about = "Size of an excerpt.",
     .fallback = "2048", .max = kOutputBytesMax},
    {.path = "transcript", .type = Type::kMap, .about = "The transcript, for --resume."},
    {.path = "transcript.dir", .type = Type::kText, .about = "Its folder; absent = none.",
     .built = kNotYet},
    {.path = "redact", .type = Type::kMap, .about = "What norma replaces in everything it writes."},
    {.path = "redact.env", .type = Type::kVariables, .about = "Variables whose values are secret.",
     .fallback = "[]"},
    {.path = "redact.patterns", .type = Type::kTexts,
     .about = "Regular expressions (RE2) of secrets.", .fallback = "[]"},
};

constexpr KeyRow kScriptRows[] = {
    {.path = "replies", .type = Type::kList, .about = "One per request, in order.",
     .required = true},
    {.path = "replies.[]", .type = Type::kMap, .about = "One reply."},
    {.path = "replies.[].text", .type = Type::kText, .about = "What the model says."},
    {.path = "replies.[].thinking", .type = Type::kText, .about = "What it thinks."},
    {.path = "replies.[].calls", .type = Type::kList, .about = "Tool calls.", .fallback = "[]"},
    {.path = "replies.[].calls.[]", .type = Type::kMap, .about = "One call."},
    {.path = "replies.[].calls.[].id", .type = Type::kText, .about = "Absent = made up."},
    {.path = "replies.[].calls.[].name", .type = Type::kText, .about = "Tool.", .required = true},
    {.path = "replies.[].calls.[].input", .type = Type::kJson, .about = "Its arguments.",
     .fallback = "{}"},
    {.path = "replies.[].usage", .type = Type::kMap,
     .about = "Tokens; input includes the cached ones."},
    {.path = "replies.[].usage.input", .type = Type::kInt, .about = "Input tokens.",
     .fallback = "0", .max = kTokenSumMax},
    {.path = "replies.[].usage.output", .type = Type::kInt, .about = "Output tokens.",
     .fallback = "0", .max = kTokenSumMax},
    {.path = "replies.[].usage.cache_read", .type = Type::kInt,
     .about = "Input read from the cache.", .fallback = "0", .max = kTokenSumMax},
    {.path = "replies.[].usage.cache_write", .type = Type::kInt,
     .about = "Input written to the cache.", .fallback = "0", .max = kTokenSumMax},
    {.path = "replies.[].stop", .type = Type::kText,
     .about = "Stop reason; absent = tool_use with calls, else end_turn."},
    {.path = "replies.[].delay", .type = Type::kDuration, .about = "Wait before the reply.",
     .fallback = "0s"},
    {.path = "replies.[].expect", .type = Type::kText,
     .about = "Must be in the newest user message."},
    {.path = "replies.[].error", .type = Type::kMap, .about = "A failure instead of a reply."},
    {.path = "replies.[].error.status", .type = Type::kInt,
     .about = "HTTP status; 0 or absent = a network error.", .fallback = "0", .max = 599},
    {.path = "replies.[].error.message", .type = Type::kText, .about = "The provider's words."},
    {.path = "repeat", .type = Type::kBool, .about = "The last reply goes on for ever.",
     .fallback = "false"},
};
// clang-format on

}  // namespace

KeyTable SpecKeys() {
  return kSpecRows;
}
KeyTable ScriptKeys() {
  return kScriptRows;
}

const KeyRow* FindRow(KeyTable table, std::string_view path) {
  const auto at = std::ranges::find(table, path, &KeyRow::path);
  return at == table.end() ? nullptr : &*at;
}

std::string_view ParentOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view LastOf(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 == 0
}

const KeyRow* ChildRow(KeyTable table, std::string_view parent, std::string_view name) {
  const KeyRow* any = nullptr;
  for (const KeyRow& row : table) {
    if (ParentOf(row.path) != parent || row.path == parent) continue;
    const std::string_view last = LastOf(row.path);
    if (last == "*") any = &row;
    // A name in a file is never the placeholder.
    if (last == name && last != "*" && last != "[]") return &row;
  }
  return any;
}

std::vector<std::string> ChildNames(KeyTable table, std::string_view parent) {
  std::vector<std::string> names;
  for (const KeyRow& row : table) {
    const std::string_view last = LastOf(row.path);
    if (ParentOf(row.path) == parent && last != "*" && last != "[]") names.emplace_back(last);
  }
  return names;
}

std::vector<std::string> ChoicesOf(std::string_view choices) {
  std::vector<std::string> list;
  if (choices.empty()) return list;
  for (const std::string_view choice : Split(choices, '|')) list.emplace_back(choice);
  return list;
}

}  // namespace norma::spec
