#include "lib/ledger/schema.h"

#include <array>
#include <string>

#include "lib/base/json.h"
#include "lib/chat/end_reason.h"
#include "lib/ledger/reader.h"

namespace norma::ledger {
namespace {

using enum FieldType;

constexpr std::array kRunStarted = {
    FieldRow{"version", kString, true, "version of norma"},
    FieldRow{"spec_path", kString, true, "the run spec's file"},
    FieldRow{"spec_hash", kString, true, "SHA-256 of its bytes"},
    FieldRow{"policy_hash", kString, true, "SHA-256 of the frozen policy"},
    FieldRow{"model", kString, true, "model name; empty for the script model"},
    FieldRow{"format", kString, true, "wire format"},
    FieldRow{"endpoint", kString, true, "URL without credentials and query"},
    FieldRow{"mode", kString, true, "permission mode at the start"},
    FieldRow{"tools", kStrings, true, "names of the tools offered to the model"},
    FieldRow{"budgets", kObject, true, "the limits that are set"},
    FieldRow{"price_table", kString, true, "where prices come from; empty: unpriced"},
    FieldRow{"price_hash", kString, true, "SHA-256 of the price table"},
    FieldRow{"host", kString, true, "host name"},
    FieldRow{"cwd", kString, true, "working folder of the tools"},
    FieldRow{"pid", kInt, true, "process id"},
    FieldRow{"prompt_sha256", kString, true, "SHA-256 of the prompt"},
    FieldRow{"prompt_bytes", kInt, true, "size of the prompt in bytes"}};

constexpr std::array kRequestSent = {
    FieldRow{"id", kString, true, "one per request: r1, r2, …"},
    FieldRow{"attempt", kInt, true, "from 1"},
    FieldRow{"endpoint", kString, true, "URL without credentials and query"},
    FieldRow{"bytes", kInt, true, "size of the body in bytes"},
    FieldRow{"estimated_tokens", kInt, true, "input tokens as estimated beforehand"},
    FieldRow{"max_tokens", kInt, true, "output tokens asked for at most"},
    FieldRow{"reserved", kIntOrNull, true, "worst case in nano-dollars; null: no price"}};

constexpr std::array kRequestFailed = {
    FieldRow{"id", kString, true, "of the request.sent"},
    FieldRow{"attempt", kInt, true, "of the request.sent"},
    FieldRow{"status", kInt, true, "HTTP status; 0: no answer"},
    FieldRow{"class", kString, true, "connect, dns, tls, proxy, timeout, idle, broken_stream, …"},
    FieldRow{"message", kString, true, "what happened, for people"},
    FieldRow{"retry_in_ms", kIntOrNull, true, "wait before the next attempt; null: no retry"},
    FieldRow{"retry_after", kString, false, "the provider's Retry-After header"},
    FieldRow{"duration_ms", kInt, true, "from sending to the failure"},
    FieldRow{"usage", kUsage, false, "of a stream that broke, or of a billed answer"},
    FieldRow{"usage_reported", kBool, false, "the provider sent numbers"},
    FieldRow{"usage_raw", kAnyJson, false, "the provider's own usage object"},
    FieldRow{"cost", kIntOrNull, false, "nano-dollars of that usage; null: no price"},
    FieldRow{"estimated", kBool, false, "some of the usage is norma's estimate"},
    FieldRow{"request_id", kString, false, "the provider's id, for its support"}};

constexpr std::array kReplyReceived = {
    FieldRow{"id", kString, true, "of the request.sent"},
    FieldRow{"attempt", kInt, true, "of the request.sent"},
    FieldRow{"status", kInt, true, "HTTP status"},
    FieldRow{"first_byte_ms", kInt, true, "from sending to the first byte"},
    FieldRow{"duration_ms", kInt, true, "from sending to the last byte"},
    FieldRow{"stop_reason", kString, true, "as the provider's, in common terms"},
    FieldRow{"content", kBlocks, true, "the reply's blocks in order"},
    FieldRow{"content_omitted", kInt, false, "blocks beyond the 32nd that are not in `content`"},
    FieldRow{"usage", kUsage, true, "tokens"},
    FieldRow{"usage_reported", kBool, true, "the provider sent numbers"},
    FieldRow{"usage_raw", kAnyJson, false, "the provider's own usage object"},
    FieldRow{"cost", kIntOrNull, true, "nano-dollars, rounded up; null: no price"},
    FieldRow{"estimated", kBool, true, "some of the usage is norma's estimate"},
    FieldRow{"request_id", kString, false, "the provider's id, for its support"},
    FieldRow{"proxy", kString, false, "proxy used, without credentials; absent: direct"}};

constexpr std::array kCallJudged = {
    FieldRow{"call", kString, true, "the model's id of the call"},
    FieldRow{"tool", kString, true, "tool name as the model wrote it"},
    FieldRow{"input", kContent, true, "arguments as the model wrote them"},
    FieldRow{"verdict", kVerdict, true, "allow, deny, or invalid (unknown tool, bad arguments)"},
    FieldRow{"stage", kInt, true, "stage that decided, 1 to 12; 0 for invalid"},
    FieldRow{"rule", kString, true, "rule that decided; empty: none did"},
    FieldRow{"line", kInt, true, "the rule's line in the spec; 0: from no file"},
    FieldRow{"reason", kString, false, "what the model was told"}};

constexpr std::array kActionStarted = {
    FieldRow{"id", kString, true, "one per effect, unique in the run: a1, a2, …"},
    FieldRow{"call", kString, true, "the call it belongs to; empty: none"},
    FieldRow{"action", kString, true, "one line for people; digest mode hides commands"},
    FieldRow{"effect", kString, true, "process, file, http, mcp, search, install"},
    FieldRow{"method", kString, false, "HTTP or MCP method, kind of file access"},
    FieldRow{"host", kString, false, "host and port, or MCP server"},
    FieldRow{"path", kString, false, "file, or URL path without query"},
    FieldRow{"proxy", kString, false, "proxy used, without credentials"},
    FieldRow{"hop", kInt, false, "redirect hop, from 0"},
    FieldRow{"status", kInt, false, "HTTP status"},
    FieldRow{"exit", kInt, false, "exit code of the process"},
    FieldRow{"signal", kInt, false, "signal that ended the process"},
    FieldRow{"bytes", kInt, false, "bytes written or received"},
    FieldRow{"killed", kInt, false, "processes killed with it"},
    FieldRow{"sha256_before", kString, false, "of the file before"},
    FieldRow{"sha256_after", kString, false, "of the file after"},
    FieldRow{"command", kContent, false, "command line of the process"},
    FieldRow{"fallback", kTrue, false, "sent directly past a proxy that failed"},
    FieldRow{"timed_out", kTrue, false, "its time limit passed"},
    FieldRow{"cancelled", kTrue, false, "ended because the run ended"},
    FieldRow{"truncated", kTrue, false, "its output was cut"},
    FieldRow{"error", kString, false, "why it failed"}};

// What action.started has, and how long it took.
constexpr auto kActionFinished = [] {
  std::array<FieldRow, kActionStarted.size() + 1> fields{};
  for (size_t i = 0; i < kActionStarted.size(); ++i) fields[i] = kActionStarted[i];
  fields.back() = FieldRow{"duration_ms", kInt, true, "how long it took"};
  return fields;
}();

constexpr std::array kCallFinished = {
    FieldRow{"call", kString, true, "the model's id of the call"},
    FieldRow{"tool", kString, true, "tool name"},
    FieldRow{"result", kContent, true, "what the model gets to see"},
    FieldRow{"is_error", kBool, true, "an error for the model"},
    FieldRow{"truncated", kBool, true, "the result is not all there was"},
    FieldRow{"synthetic", kBool, true, "the tool never answered: denied, cancelled, interrupted"},
    FieldRow{"duration_ms", kInt, true, "from start to result"}};

constexpr std::array kHookRan = {FieldRow{"event", kString, true, "pre_tool_use, stop, …"},
                                 FieldRow{"command", kString, true, "what ran"},
                                 FieldRow{"decision", kString, true, "what it decided"},
                                 FieldRow{"exit", kInt, true, "exit code"},
                                 FieldRow{"duration_ms", kInt, true, "how long it took"},
                                 FieldRow{"message", kString, false, "what it said"}};

constexpr std::array kLoopContinued = {
    FieldRow{"reason", kString, true, "why the loop went on: next_turn, …"}};

constexpr std::array kContextCompacted = {
    FieldRow{"strategy", kString, true, "compaction or noa"},
    FieldRow{"trigger", kString, true, "why"}, FieldRow{"tokens_before", kInt, true, "estimated"},
    FieldRow{"tokens_after", kInt, true, "estimated"},
    FieldRow{"messages_folded", kInt, true, "messages that the summary replaced"}};

constexpr std::array kModeChanged = {FieldRow{"from", kString, true, "mode before"},
                                     FieldRow{"to", kString, true, "mode now"},
                                     FieldRow{"by", kString, true, "who changed it"}};

constexpr std::array kTaskEnded = {FieldRow{"task", kString, true, "id of the background task"},
                                   FieldRow{"status", kString, true, "how it ended"},
                                   FieldRow{"exit", kInt, false, "exit code"},
                                   FieldRow{"command", kString, true, "what ran"}};

constexpr std::array kWarning = {
    FieldRow{"code", kString, true, "short and stable: torn_tail, prompt_utf8, …"},
    FieldRow{"message", kString, true, "for people"}};

constexpr std::array kRunEnded = {
    FieldRow{"reason", kReason, true, "one of the closed list of end reasons"},
    FieldRow{"exit_code", kInt, true, "of the process"},
    FieldRow{"limit", kLimit, true, "the budget that ended it, or null"},
    FieldRow{"message", kString, false, "what stderr said"},
    FieldRow{"totals", kTotals, true, "sums of the records above"},
    FieldRow{"denied", kDenied, true, "the calls that were denied, in order"},
    FieldRow{"killed_processes", kInt, true, "left-over processes killed"},
    FieldRow{"turns", kInt, true, "tool turns"},
    FieldRow{"duration_ms", kInt, true, "of the whole run"},
    FieldRow{"check", kHash, true, "SHA-256 of this line with 64 zeros in check"}};

constexpr std::array kTable = {
    KindRow{"run.started", "A run begins.", kRunStarted},
    KindRow{"request.sent", "An HTTP attempt is about to be made.", kRequestSent},
    KindRow{"request.failed", "It failed; closes its request.sent.", kRequestFailed},
    KindRow{"reply.received", "It was answered; closes its request.sent.", kReplyReceived},
    KindRow{"call.judged", "A tool call of the model was allowed or not.", kCallJudged},
    KindRow{"action.started", "An outside effect is about to happen.", kActionStarted},
    KindRow{"action.finished", "It is over; closes its action.started.", kActionFinished},
    KindRow{"call.finished", "The call has its result; closes its call.judged.", kCallFinished},
    KindRow{"hook.ran", "A hook of the operator ran.", kHookRan},
    KindRow{"loop.continued", "The loop goes on.", kLoopContinued},
    KindRow{"context.compacted", "Old messages were folded.", kContextCompacted},
    KindRow{"mode.changed", "The permission mode changed.", kModeChanged},
    KindRow{"task.ended", "A background task ended.", kTaskEnded},
    KindRow{"warning", "Something a reader should know; the run went on.", kWarning},
    KindRow{"run.ended", "The run is over; its last record.", kRunEnded}};

void WriteRef(json::Writer& w, std::string_view definition) {
  w.Field("$ref", "#/definitions/" + std::string(definition));
}

// The keywords that say what type a field has, without braces.
void WriteType(json::Writer& w, FieldType type) {
  switch (type) {
    case kString:
      w.Field("type", "string");
      return;
    case kInt:
      w.Field("type", "integer");
      return;
    case kIntOrNull:
      w.Key("type").Raw(R"(["integer","null"])");
      return;
    case kBool:
      w.Field("type", "boolean");
      return;
    case kTrue:
      w.Key("enum").Raw("[true]");
      return;
    case kHash:
      w.Field("type", "string").Field("pattern", "^[0-9a-f]{64}$");
      return;
    case kStrings:
      w.Field("type", "array").Key("items").Raw(R"({"type":"string"})");
      return;
    case kObject:
      w.Field("type", "object");
      return;
    case kContent:
      return WriteRef(w, "content");
    case kBlocks:
      w.Field("type", "array").Key("items").Raw(R"({"$ref":"#/definitions/block"})");
      return;
    case kUsage:
      return WriteRef(w, "usage");
    case kAnyJson:
      w.Key("type").Raw(R"(["object","array","string"])");
      return;
    case kVerdict:
      w.Key("enum").Raw(R"(["allow","deny","invalid"])");
      return;
    case kReason:
      w.Key("enum").BeginArray();
      for (const EndReasonRow& row : kEndReasons) w.String(row.name);
      w.EndArray();
      return;
    case kLimit:
      w.Key("oneOf").Raw(R"([{"type":"null"},{"$ref":"#/definitions/limit"}])");
      return;
    case kTotals:
      return WriteRef(w, "totals");
    case kDenied:
      w.Field("type", "array").Key("items").Raw(R"({"$ref":"#/definitions/denied"})");
      return;
  }
}

void WriteKind(json::Writer& w, const KindRow& row) {
  w.BeginObject().Field("title", row.kind).Field("description", row.meaning);
  w.Field("type", "object").Key("properties").BeginObject();
  w.Key("v").Raw(R"({"const":1})");
  w.Key("seq").Raw(R"({"type":"integer","minimum":1})");
  w.Key("t").Raw(
      R"({"type":"string","pattern":"^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$"})");
  w.Key("run").Raw(R"({"type":"string","minLength":1})");
  w.Key("agent").Raw(R"({"type":"string","minLength":1})");
  w.Key("kind").BeginObject().Field("const", row.kind).EndObject();
  for (const FieldRow& field : row.fields) {
    w.Key(field.name).BeginObject();
    WriteType(w, field.type);
    // Draft-07 ignores what stands beside a $ref, so this is for people only.
    w.Field("description", field.meaning).EndObject();
  }
  w.Key("prev").Raw(R"({"type":"string","pattern":"^[0-9a-f]{64}$"})").EndObject();
  w.Key("required").BeginArray();
  for (const std::string_view key : {"v", "seq", "t", "run", "agent", "kind"}) w.String(key);
  for (const FieldRow& field : row.fields) {
    if (field.required) w.String(field.name);
  }
  w.String("prev").EndArray().Field("additionalProperties", false).EndObject();
}

constexpr std::string_view kDefinitions = R"({
"content":{"type":"object","properties":{
  "sha256":{"type":"string","pattern":"^[0-9a-f]{64}$"},"bytes":{"type":"integer","minimum":0},
  "text":{"type":"string"},"truncated":{"enum":[true]}},
  "required":["sha256","bytes"],"additionalProperties":false},
"block":{"type":"object","properties":{
  "type":{"enum":["text","thinking","call","result","opaque"]},
  "sha256":{"type":"string","pattern":"^[0-9a-f]{64}$"},"bytes":{"type":"integer","minimum":0},
  "text":{"type":"string"},"truncated":{"enum":[true]},
  "call":{"type":"string"},"tool":{"type":"string"},"wire":{"type":"string"},
  "input":{"$ref":"#/definitions/content"}},
  "required":["type"],"additionalProperties":false},
"usage":{"type":"object","properties":{
  "input":{"type":"integer"},"output":{"type":"integer"},"cache_read":{"type":"integer"},
  "cache_write_5m":{"type":"integer"},"cache_write_1h":{"type":"integer"},
  "reasoning":{"type":"integer"}},
  "required":["input","output","cache_read","cache_write_5m","cache_write_1h","reasoning"],
  "additionalProperties":false},
"limit":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}},
  "required":["name","value"],"additionalProperties":false},
"totals":{"type":"object","properties":{
  "requests":{"type":"integer"},"replies":{"type":"integer"},"calls":{"type":"integer"},
  "actions":{"type":"integer"},"input":{"type":"integer"},"output":{"type":"integer"},
  "cache_read":{"type":"integer"},"cache_write":{"type":"integer"},
  "cost":{"type":["integer","null"]},"unpriced":{"type":"integer"}},
  "required":["requests","replies","calls","actions","input","output","cache_read","cache_write",
    "cost","unpriced"],
  "additionalProperties":false},
"denied":{"type":"object","properties":{
  "tool":{"type":"string"},"call":{"type":"string"},"rule":{"type":"string"}},
  "required":["tool","call","rule"],"additionalProperties":false}})";

}  // namespace

std::span<const KindRow> KindTable() {
  return kTable;
}

std::string LedgerSchemaJson() {
  json::Writer w;
  w.BeginObject().Field("$schema", "http://json-schema.org/draft-07/schema#");
  w.Field("title", "norma ledger record, one line of the file");
  const auto definitions = json::Minify(kDefinitions);
  NORMA_CHECK(definitions.ok());
  w.Key("definitions").Raw(definitions.value());
  w.Key("oneOf").BeginArray();
  for (const KindRow& row : kTable) WriteKind(w, row);
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace norma::ledger
