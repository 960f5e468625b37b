// Every kind of line a ledger can hold, as a closed variant. The envelope (v, seq, t, run, agent,
// kind … prev) is Ledger's business. FORMAT.md is the page for people; keep both in step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/money.h"
#include "lib/base/result.h"
#include "lib/chat/message.h"

namespace norma::ledger {

// Text that is written as digest, excerpt or whole, as ledger.content says. Always SHA-256 + bytes.
struct Content {
  std::string text;
  friend bool operator==(const Content&, const Content&) = default;
};

struct RunStarted {
  std::string version;
  std::string spec_path, spec_hash, policy_hash;
  std::string model, format, endpoint;  // endpoint without credentials or query
  std::string mode;
  std::vector<std::string> tools;       // offered
  std::string budgets_json;             // object of the limits that are set
  std::string price_table, price_hash;  // empty: unpriced
  std::string host, cwd;
  int64_t pid = 0;
  std::string prompt_sha256;
  int64_t prompt_bytes = 0;
};

struct RequestSent {
  std::string id;       // one per logical request: "r1", "r2", …
  int64_t attempt = 1;  // from 1
  std::string endpoint;
  int64_t bytes = 0;
  int64_t estimated_tokens = 0;
  int64_t max_tokens = 0;
  std::optional<Nano> reserved;  // null when unpriced
};

struct RequestFailed {
  std::string id;
  int64_t attempt = 1;
  int64_t status = 0;       // 0: no answer
  std::string error_class;  // connect, dns, tls, proxy, timeout, idle, broken_stream, status, …
  std::string message;
  std::optional<int64_t> retry_in_ms;      // absent: not retried
  std::optional<std::string> retry_after;  // the header as it came
  int64_t duration_ms = 0;
  std::optional<Usage> usage;  // of a stream that broke, or of a billed reply that made no sense
  std::optional<Nano> cost;    // of that usage
  bool estimated = false;
  std::string request_id;
};

struct ReplyReceived {
  std::string id;
  int64_t attempt = 1;
  int64_t status = 200;
  int64_t first_byte_ms = 0, duration_ms = 0;
  std::string stop_reason;
  std::vector<Block> content;
  Usage usage;
  std::optional<Nano> cost;  // null when unpriced
  bool estimated = false;
  std::string request_id;
  std::string proxy;  // without credentials; empty: direct
};

struct CallJudged {
  std::string call, tool;
  Content input;
  std::string verdict;  // allow, deny, invalid
  int64_t stage = 0;    // row of spec/40 §1.2; 0 for invalid
  std::string rule;
  int64_t line = 0;
  std::string reason;
};

// Fields that only some effects have, in a fixed order after the common ones.
struct ActionDetail {
  std::string effect;  // process, file, http, mcp, search, install
  std::string method, host, path, proxy;
  std::optional<int64_t> hop, status, exit, signal, bytes, killed;
  std::string sha256_before, sha256_after;
  Content command;  // process
  bool fallback = false;
  bool timed_out = false, cancelled = false, truncated = false;
  std::string error;  // why it failed, empty when it did not
  friend bool operator==(const ActionDetail&, const ActionDetail&) = default;
};

struct ActionStarted {
  std::string id;  // "a1", "a2", … unique in the run
  std::string call;
  std::string action;  // one line for people: "bash: ls -l", "write src/x.c"
  ActionDetail detail;
};

struct ActionFinished {
  std::string id, call, action;
  ActionDetail detail;
  int64_t duration_ms = 0;
};

struct CallFinished {
  std::string call, tool;
  Content result;
  bool is_error = false;
  bool truncated = false;
  bool synthetic = false;  // the tool did not answer: interrupted, cancelled, never started
  int64_t duration_ms = 0;
};

struct HookRan {
  std::string event, command, decision;
  int64_t exit = 0;
  int64_t duration_ms = 0;
  std::string message;
};

struct LoopContinued {
  std::string reason;  // one of spec/40 §4.10, or empty_answer_retry, settlement
};

struct ContextCompacted {
  std::string strategy, trigger;
  int64_t tokens_before = 0, tokens_after = 0, messages_folded = 0;
};

struct ModeChanged {
  std::string from, to, by;
};

struct TaskEnded {
  std::string task, status;
  std::optional<int64_t> exit;
  std::string command;
};

struct Warning {
  std::string code;  // short, stable: prompt_utf8, duplicate_call_id, …
  std::string message;
};

struct Denied {
  std::string tool, call, rule;
  friend bool operator==(const Denied&, const Denied&) = default;
};

struct Totals {
  int64_t requests = 0, replies = 0, calls = 0, actions = 0;
  int64_t input = 0, output = 0, cache_read = 0, cache_write = 0;
  std::optional<Nano> cost = 0;  // null when nothing could be priced although something was billed
  int64_t unpriced = 0;          // replies without a price
  friend bool operator==(const Totals&, const Totals&) = default;
};

struct RunEnded {
  std::string reason;
  int64_t exit_code = 0;
  std::string limit_name, limit_value;  // empty: no budget ended it
  std::string message;                  // what a person is told on stderr
  Totals totals;
  std::vector<Denied> denied;
  int64_t killed_processes = 0;
  int64_t turns = 0;
  int64_t duration_ms = 0;
};

using Record = std::variant<RunStarted, RequestSent, RequestFailed, ReplyReceived, CallJudged,
                            ActionStarted, ActionFinished, CallFinished, HookRan, LoopContinued,
                            ContextCompacted, ModeChanged, TaskEnded, Warning, RunEnded>;

// "run.started" … by variant index.
std::string_view KindOf(const Record& record);

enum class ContentMode { kDigest, kExcerpt, kFull };

struct EncodeOptions {
  ContentMode content = ContentMode::kExcerpt;
  size_t excerpt_bytes = 2048;
};

// The record's own fields as `"k":v,"k2":v2` (no braces, no envelope). Every string in it went
// through `redact` before it is cut to an excerpt, so that no half of a secret survives.
class Redactor;
std::string EncodeFields(const Record& record, const EncodeOptions& options,
                         const Redactor& redactor);

}  // namespace norma::ledger
