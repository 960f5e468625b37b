#include "lib/ledger/record.h"

#include <algorithm>
#include <array>

#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/ledger/redactor.h"

namespace norma::ledger {
namespace {

// Blocks of one reply that a record shows: bounds its size to some 70 KiB of excerpts.
constexpr size_t kReplyBlocksMax = 32;
constexpr std::array<std::string_view, 15> kKinds = {
    "run.started",       "request.sent",    "request.failed", "reply.received", "call.judged",
    "action.started",    "action.finished", "call.finished",  "hook.ran",       "loop.continued",
    "context.compacted", "mode.changed",    "task.ended",     "warning",        "run.ended"};
static_assert(kKinds.size() == std::variant_size_v<Record>);

// Plain strings (messages, paths, one-line summaries) are cut beyond this, with a mark.
constexpr size_t kStringBytesMax = 8192;
constexpr std::string_view kCutMark = " [cut]";
// One text in `full` mode; what is larger is cut and marked, so that a line stays readable.
constexpr size_t kFullBytesMax = size_t{16} << 20;
// The provider's own usage object; anything larger is no usage.
constexpr size_t kSplicedBytesMax = size_t{64} << 10;

// The text as it may be written: no secret in it, valid UTF-8.
std::string Publishable(std::string_view text, const Redactor& redactor) {
  std::string clean = redactor.Clean(text);
  return IsValidUtf8(clean) ? clean : RepairUtf8(clean);
}

class Encoder {
 public:
  Encoder(const EncodeOptions& options, const Redactor& redactor)
      : options_(options), redactor_(redactor) {
    writer_.BeginObject();
  }

  std::string Take() {
    writer_.EndObject();
    const std::string& text = writer_.text();
    return text.substr(1, text.size() - 2);
  }

  void operator()(const RunStarted& r);
  void operator()(const RequestSent& r);
  void operator()(const RequestFailed& r);
  void operator()(const ReplyReceived& r);
  void operator()(const CallJudged& r);
  void operator()(const ActionStarted& r);
  void operator()(const ActionFinished& r);
  void operator()(const CallFinished& r);
  void operator()(const HookRan& r);
  void operator()(const LoopContinued& r);
  void operator()(const ContextCompacted& r);
  void operator()(const ModeChanged& r);
  void operator()(const TaskEnded& r);
  void operator()(const Warning& r);
  void operator()(const RunEnded& r);

 private:
  void StringValue(std::string_view text);
  void String(std::string_view key, std::string_view text);
  void OptionalString(std::string_view key, std::string_view text);
  void Int(std::string_view key, int64_t number) { writer_.Key(key).Int(number); }
  void OptionalInt(std::string_view key, const std::optional<int64_t>& number);
  void IntOrNull(std::string_view key, const std::optional<int64_t>& number);
  void Bool(std::string_view key, bool value) { writer_.Key(key).Bool(value); }
  void Flag(std::string_view key, bool value);
  void Spliced(std::string_view key, std::string_view json_text);
  void ContentFields(std::string_view text, bool never_text);
  void ContentField(std::string_view key, const Content& content);
  void UsageFields(const Usage& usage);
  void BlockElement(const Block& block);
  void Detail(const ActionDetail& d);
  void ActionHead(const std::string& id, const std::string& call, const std::string& action,
                  const ActionDetail& detail);

  const EncodeOptions& options_;
  const Redactor& redactor_;
  json::Writer writer_;
};

void Encoder::StringValue(std::string_view text) {
  const std::string clean = Publishable(text, redactor_);
  if (clean.size() <= kStringBytesMax) {
    writer_.String(clean);
    return;
  }
  writer_.String(std::string(CutUtf8(clean, kStringBytesMax)).append(kCutMark));
}

void Encoder::String(std::string_view key, std::string_view text) {
  writer_.Key(key);
  StringValue(text);
}

void Encoder::OptionalString(std::string_view key, std::string_view text) {
  if (!text.empty()) String(key, text);
}

void Encoder::OptionalInt(std::string_view key, const std::optional<int64_t>& number) {
  if (number.has_value()) Int(key, *number);
}

void Encoder::IntOrNull(std::string_view key, const std::optional<int64_t>& number) {
  if (number.has_value()) {
    Int(key, *number);
  } else {
    writer_.Key(key).Null();
  }
}

void Encoder::Flag(std::string_view key, bool value) {
  if (value) Bool(key, true);
}

// Somebody else's JSON becomes part of our line only if it is strict; else it is kept as a string,
// so that nothing is lost and no line is spoiled.
void Encoder::Spliced(std::string_view key, std::string_view json_text) {
  const std::string clean = redactor_.Clean(json_text);
  if (clean.size() <= kSplicedBytesMax && json::Document::Parse(clean).ok()) {
    const auto minified = json::Minify(clean);
    if (minified.ok()) {
      writer_.Key(key).Raw(minified.value());
      return;
    }
  }
  String(key, clean);
}

// Digest and size are those of the redacted text: a digest of the original would let anybody try
// out a weak password. So in full mode they can be recomputed from `text`.
void Encoder::ContentFields(std::string_view text, bool never_text) {
  const std::string clean = Publishable(text, redactor_);
  writer_.Field("sha256", Sha256Hex(clean)).Field("bytes", clean.size());
  if (never_text || options_.content == ContentMode::kDigest) return;
  const size_t bytes_max = options_.content == ContentMode::kFull
                               ? kFullBytesMax
                               : std::min(options_.excerpt_bytes, kFullBytesMax);
  const std::string_view excerpt = CutUtf8(clean, bytes_max);
  writer_.Field("text", excerpt);
  Flag("truncated", excerpt.size() < clean.size());
}

void Encoder::ContentField(std::string_view key, const Content& content) {
  writer_.Key(key).BeginObject();
  ContentFields(content.text, false);
  writer_.EndObject();
}

void Encoder::UsageFields(const Usage& usage) {
  writer_.Key("usage").BeginObject();
  Int("input", usage.input);
  Int("output", usage.output);
  Int("cache_read", usage.cache_read);
  Int("cache_write_5m", usage.cache_write_5m);
  Int("cache_write_1h", usage.cache_write_1h);
  Int("reasoning", usage.reasoning);
  writer_.EndObject();
  Bool("usage_reported", usage.reported);
  if (!usage.raw.empty()) Spliced("usage_raw", usage.raw);
}

void Encoder::BlockElement(const Block& block) {
  writer_.BeginObject();
  if (const auto* text = std::get_if<Text>(&block)) {
    String("type", "text");
    ContentFields(text->text, false);
  } else if (const auto* thinking = std::get_if<Thinking>(&block)) {
    String("type", "thinking");
    ContentFields(thinking->text, false);
  } else if (const auto* call = std::get_if<ToolCall>(&block)) {
    String("type", "call");
    String("call", call->id);
    String("tool", call->name);
    ContentField("input", Content{call->input});
  } else if (const auto* result = std::get_if<ToolResult>(&block)) {
    String("type", "result");
    String("call", result->call_id);
    ContentFields(result->text, false);
  } else if (const auto* opaque = std::get_if<Opaque>(&block)) {
    // Encrypted by the provider: of no use to a reader.
    String("type", "opaque");
    String("wire", opaque->wire);
    ContentFields(opaque->json, true);
  }
  writer_.EndObject();
}

void Encoder::Detail(const ActionDetail& d) {
  String("effect", d.effect);
  OptionalString("method", d.method);
  OptionalString("host", d.host);
  OptionalString("path", d.path);
  OptionalString("proxy", d.proxy);
  OptionalInt("hop", d.hop);
  OptionalInt("status", d.status);
  OptionalInt("exit", d.exit);
  OptionalInt("signal", d.signal);
  OptionalInt("bytes", d.bytes);
  OptionalInt("killed", d.killed);
  OptionalString("sha256_before", d.sha256_before);
  OptionalString("sha256_after", d.sha256_after);
  if (!d.command.text.empty()) ContentField("command", d.command);
  Flag("fallback", d.fallback);
  Flag("timed_out", d.timed_out);
  Flag("cancelled", d.cancelled);
  Flag("truncated", d.truncated);
  OptionalString("error", d.error);
}

// The one-line summary of a process quotes its command: in digest mode only the label stays.
void Encoder::ActionHead(const std::string& id, const std::string& call, const std::string& action,
                         const ActionDetail& detail) {
  String("id", id);
  String("call", call);
  std::string_view summary = action;
  if (options_.content == ContentMode::kDigest && !detail.command.text.empty()) {
    summary = summary.substr(0, summary.find(':'));
  }
  String("action", summary);
}

void Encoder::operator()(const RunStarted& r) {
  String("version", r.version);
  String("spec_path", r.spec_path);
  String("spec_hash", r.spec_hash);
  String("policy_hash", r.policy_hash);
  String("model", r.model);
  String("format", r.format);
  String("endpoint", r.endpoint);
  String("mode", r.mode);
  writer_.Key("tools").BeginArray();
  for (const std::string& tool : r.tools) StringValue(tool);
  writer_.EndArray();
  Spliced("budgets", r.budgets_json.empty() ? "{}" : r.budgets_json);
  String("price_table", r.price_table);
  String("price_hash", r.price_hash);
  String("host", r.host);
  String("cwd", r.cwd);
  Int("pid", r.pid);
  String("prompt_sha256", r.prompt_sha256);
  Int("prompt_bytes", r.prompt_bytes);
}

void Encoder::operator()(const RequestSent& r) {
  String("id", r.id);
  Int("attempt", r.attempt);
  String("endpoint", r.endpoint);
  Int("bytes", r.bytes);
  Int("estimated_tokens", r.estimated_tokens);
  Int("max_tokens", r.max_tokens);
  IntOrNull("reserved", r.reserved);
}

void Encoder::operator()(const RequestFailed& r) {
  String("id", r.id);
  Int("attempt", r.attempt);
  Int("status", r.status);
  String("class", r.error_class);
  String("message", r.message);
  IntOrNull("retry_in_ms", r.retry_in_ms);
  if (r.retry_after.has_value()) String("retry_after", *r.retry_after);
  Int("duration_ms", r.duration_ms);
  if (r.usage.has_value()) {
    UsageFields(*r.usage);
    IntOrNull("cost", r.cost);
    Bool("estimated", r.estimated);
  } else {
    OptionalInt("cost", r.cost);
    Flag("estimated", r.estimated);
  }
  OptionalString("request_id", r.request_id);
}

void Encoder::operator()(const ReplyReceived& r) {
  String("id", r.id);
  Int("attempt", r.attempt);
  Int("status", r.status);
  Int("first_byte_ms", r.first_byte_ms);
  Int("duration_ms", r.duration_ms);
  String("stop_reason", r.stop_reason);
  writer_.Key("content").BeginArray();
  // A reply may hold hundreds of calls, and each has a call.judged of its own: no record grows with
  // them unless whole content was asked for.
  const size_t shown = options_.content == ContentMode::kFull
                           ? r.content.size()
                           : std::min(r.content.size(), kReplyBlocksMax);
  for (size_t i = 0; i < shown; ++i) BlockElement(r.content[i]);
  writer_.EndArray();
  if (shown < r.content.size()) writer_.Field("content_omitted", r.content.size() - shown);
  UsageFields(r.usage);
  IntOrNull("cost", r.cost);
  Bool("estimated", r.estimated);
  OptionalString("request_id", r.request_id);
  OptionalString("proxy", r.proxy);
}

void Encoder::operator()(const CallJudged& r) {
  String("call", r.call);
  String("tool", r.tool);
  ContentField("input", r.input);
  String("verdict", r.verdict);
  Int("stage", r.stage);
  String("rule", r.rule);
  Int("line", r.line);
  OptionalString("reason", r.reason);
}

void Encoder::operator()(const ActionStarted& r) {
  ActionHead(r.id, r.call, r.action, r.detail);
  Detail(r.detail);
}

void Encoder::operator()(const ActionFinished& r) {
  ActionHead(r.id, r.call, r.action, r.detail);
  Detail(r.detail);
  Int("duration_ms", r.duration_ms);
}

void Encoder::operator()(const CallFinished& r) {
  String("call", r.call);
  String("tool", r.tool);
  ContentField("result", r.result);
  Bool("is_error", r.is_error);
  Bool("truncated", r.truncated);
  Bool("synthetic", r.synthetic);
  Int("duration_ms", r.duration_ms);
}

void Encoder::operator()(const HookRan& r) {
  String("event", r.event);
  String("command", r.command);
  String("decision", r.decision);
  Int("exit", r.exit);
  Int("duration_ms", r.duration_ms);
  OptionalString("message", r.message);
}

void Encoder::operator()(const LoopContinued& r) {
  String("reason", r.reason);
}

void Encoder::operator()(const ContextCompacted& r) {
  String("strategy", r.strategy);
  String("trigger", r.trigger);
  Int("tokens_before", r.tokens_before);
  Int("tokens_after", r.tokens_after);
  Int("messages_folded", r.messages_folded);
}

void Encoder::operator()(const ModeChanged& r) {
  String("from", r.from);
  String("to", r.to);
  String("by", r.by);
}

void Encoder::operator()(const TaskEnded& r) {
  String("task", r.task);
  String("status", r.status);
  OptionalInt("exit", r.exit);
  String("command", r.command);
}

void Encoder::operator()(const Warning& r) {
  String("code", r.code);
  String("message", r.message);
}

void Encoder::operator()(const RunEnded& r) {
  String("reason", r.reason);
  Int("exit_code", r.exit_code);
  if (r.limit_name.empty()) {
    writer_.Key("limit").Null();
  } else {
    writer_.Key("limit").BeginObject();
    String("name", r.limit_name);
    String("value", r.limit_value);
    writer_.EndObject();
  }
  OptionalString("message", r.message);
  writer_.Key("totals").BeginObject();
  Int("requests", r.totals.requests);
  Int("replies", r.totals.replies);
  Int("calls", r.totals.calls);
  Int("actions", r.totals.actions);
  Int("input", r.totals.input);
  Int("output", r.totals.output);
  Int("cache_read", r.totals.cache_read);
  Int("cache_write", r.totals.cache_write);
  IntOrNull("cost", r.totals.cost);
  Int("unpriced", r.totals.unpriced);
  writer_.EndObject();
  writer_.Key("denied").BeginArray();
  for (const Denied& denied : r.denied) {
    writer_.BeginObject();
    String("tool", denied.tool);
    String("call", denied.call);
    String("rule", denied.rule);
    writer_.EndObject();
  }
  writer_.EndArray();
  Int("killed_processes", r.killed_processes);
  Int("turns", r.turns);
  Int("duration_ms", r.duration_ms);
}

}  // namespace

std::string_view KindOf(const Record& record) {
  return kKinds[record.index()];
}

std::string EncodeFields(const Record& record, const EncodeOptions& options,
                         const Redactor& redactor) {
  Encoder encoder(options, redactor);
  std::visit(encoder, record);
  return encoder.Take();
}

}  // namespace norma::ledger
