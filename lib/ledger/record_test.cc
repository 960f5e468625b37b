#include "lib/ledger/record.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/base/json_schema.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/ledger/envelope.h"
#include "lib/ledger/ledger.h"
#include "lib/ledger/reader.h"
#include "lib/ledger/redactor.h"
#include "lib/ledger/schema.h"
#include "lib/testing/sample_records.h"

namespace norma::ledger {
namespace {

using testing::SampleRecords;

const Redactor kNoSecrets;

std::string Fields(const Record& record, const EncodeOptions& options = {},
                   const Redactor& redactor = kNoSecrets) {
  return "{" + EncodeFields(record, options, redactor) + "}";
}

std::string ContentJson(const std::string& text, const std::string& rest) {
  return "{\"sha256\":\"" + Sha256Hex(text) + "\",\"bytes\":" + std::to_string(text.size()) + rest +
         "}";
}

std::string ContentJson(const std::string& text) {
  return ContentJson(text, ",\"text\":" + json::Quote(text));
}

const std::string kUsageJson =
    R"("usage":{"input":120,"output":20,"cache_read":40,"cache_write_5m":30,"cache_write_1h":10,)"
    R"("reasoning":5},"usage_reported":true,"usage_raw":{"input_tokens":40,"output_tokens":20})";

std::string DetailJson() {
  return R"("effect":"process","method":"GET","host":"docs.example.com:443","path":"/a/b",)"
         R"("proxy":"http://proxy:3128","hop":1,"status":302,"exit":7,"signal":9,"bytes":512,)"
         R"("killed":2,"sha256_before":")" +
         std::string(64, 'e') + R"(","sha256_after":")" + std::string(64, 'f') + R"(","command":)" +
         ContentJson("ls -l\n") +
         R"(,"fallback":true,"timed_out":true,"cancelled":true,"truncated":true,)"
         R"("error":"killed after 120 s")";
}

// What each sample must look like, whole.
std::vector<std::string> WantedFields() {
  const std::string hash_a(64, 'a'), hash_b(64, 'b'), hash_c(64, 'c'), hash_d(64, 'd');
  const std::string input = R"({"command":"ls"})";
  return {
      R"({"version":"1.0.0","spec_path":"ci/review.yaml","spec_hash":")" + hash_a +
          R"(","policy_hash":")" + hash_b +
          R"(","model":"test-model","format":"anthropic",)"
          R"("endpoint":"https://api.example.com/v1/messages","mode":"dontAsk",)"
          R"("tools":["Read","Bash"],"budgets":{"turns":40,"cost_usd":"0.50"},)"
          R"("price_table":"prices.yaml","price_hash":")" +
          hash_c + R"(","host":"runner-7","cwd":"/srv/build","pid":4711,"prompt_sha256":")" +
          hash_d + R"(","prompt_bytes":17})",
      R"({"id":"r1","attempt":1,"endpoint":"https://api.example.com/v1/messages","bytes":1500,)"
      R"("estimated_tokens":400,"max_tokens":1024,"reserved":16560000})",
      R"({"id":"r1","attempt":1,"status":200,"class":"broken_stream",)"
      R"("message":"the connection broke after 3 events","retry_in_ms":500,"retry_after":"1",)"
      R"("duration_ms":812,)" +
          kUsageJson + R"(,"cost":660001,"estimated":true,"request_id":"req_1"})",
      R"({"id":"r1","attempt":1,"status":200,"first_byte_ms":210,"duration_ms":1300,)"
      R"("stop_reason":"tool_use","content":[{"type":"thinking",)" +
          ContentJson("hmm").substr(1) + R"(,{"type":"text",)" +
          ContentJson("I will look.").substr(1) +
          R"(,{"type":"call","call":"toolu_1","tool":"Bash","input":)" + ContentJson(input) +
          R"(},{"type":"opaque","wire":"anthropic",)" +
          ContentJson(R"({"type":"redacted_thinking","data":"xyz"})", "").substr(1) +
          R"(,{"type":"result","call":"toolu_0",)" + ContentJson("late").substr(1) + "]," +
          kUsageJson +
          R"(,"cost":700002,"estimated":true,"request_id":"req_2","proxy":"http://proxy:3128"})",
      R"({"call":"toolu_1","tool":"Bash","input":)" + ContentJson(input) +
          R"x(,"verdict":"allow","stage":5,"rule":"Bash(ls *)","line":12,)x"
          R"("reason":"a rule says so"})",
      R"({"id":"a1","call":"toolu_1","action":"bash: ls -l",)" + DetailJson() + "}",
      R"({"id":"a1","call":"toolu_1","action":"bash: ls -l",)" + DetailJson() +
          R"(,"duration_ms":35})",
      R"({"call":"toolu_1","tool":"Bash","result":)" + ContentJson("total 0\n") +
          R"(,"is_error":true,"truncated":true,"synthetic":true,"duration_ms":36})",
      R"({"event":"pre_tool_use","command":"./check.sh","decision":"block","exit":2,)"
      R"("duration_ms":14,"message":"no"})",
      R"({"reason":"next_turn"})",
      R"({"strategy":"compaction","trigger":"threshold","tokens_before":150000,)"
      R"("tokens_after":20000,"messages_folded":42})",
      R"({"from":"plan","to":"default","by":"ExitPlanMode"})",
      R"({"task":"t1","status":"exited","exit":0,"command":"make -j2"})",
      R"({"code":"prompt_utf8","message":"the prompt held invalid UTF-8"})",
      R"({"reason":"budget_exceeded","exit_code":3,"limit":{"name":"cost_usd","value":"0.5"},)"
      R"("message":"budgets.cost_usd (0.5) is used up","totals":{"requests":0,"replies":0,)"
      R"("calls":0,"actions":0,"input":0,"output":0,"cache_read":0,"cache_write":0,"cost":0,)"
      R"("unpriced":0},"denied":[],"killed_processes":1,"turns":2,"duration_ms":2200})"};
}

// A whole line around the fields of one record.
std::string LineOf(const Record& record, const EncodeOptions& options = {}) {
  const bool check = std::holds_alternative<RunEnded>(record);
  return MakeLine({1, "2025-12-01T00:00:00.000000Z", "run1", "main", KindOf(record), kNoHash},
                  EncodeFields(record, options, kNoSecrets), check);
}

TEST_CASE("record: every kind is written field by field, in a fixed order") {
  const std::vector<Record> records = SampleRecords();
  const std::vector<std::string> wanted = WantedFields();
  REQUIRE(records.size() == std::variant_size_v<Record>);
  for (size_t i = 0; i < records.size(); ++i) {
    CAPTURE(KindOf(records[i]));
    REQUIRE(records[i].index() == i);
    CHECK(Fields(records[i]) == wanted[i]);
  }
}

TEST_CASE("record: every kind fits the schema, full, empty and in every content mode") {
  const auto schema = JsonSchema::Compile(LedgerSchemaJson());
  REQUIRE(schema.ok());
  std::vector<Record> records = SampleRecords();
  for (const Record& empty :
       std::vector<Record>{RunStarted{}, RequestSent{}, RequestFailed{}, ReplyReceived{},
                           CallJudged{"c", "t", {}, "invalid", 0, "", 0, ""}, ActionStarted{},
                           ActionFinished{}, CallFinished{}, HookRan{}, LoopContinued{},
                           ContextCompacted{}, ModeChanged{}, TaskEnded{}, Warning{}}) {
    records.push_back(empty);
  }
  RunEnded ended;
  ended.reason = "completed";
  ended.totals.cost = std::nullopt;
  ended.denied = {{"Bash", "c1", "deny rule"}};
  records.push_back(ended);
  for (const Record& record : records) {
    for (const ContentMode mode :
         {ContentMode::kDigest, ContentMode::kExcerpt, ContentMode::kFull}) {
      const std::string line = LineOf(record, {mode, 10});
      CAPTURE(line);
      REQUIRE(json::Document::Parse(line).ok());
      const Status fits = schema.value().Validate(line, "record");
      CHECK_MESSAGE(fits.ok(), (fits.ok() ? "" : fits.error().message));
    }
  }
}

TEST_CASE("record: the schema refuses a field too many, one too few and a wrong type") {
  const auto schema = JsonSchema::Compile(LedgerSchemaJson());
  REQUIRE(schema.ok());
  const std::string line = LineOf(LoopContinued{"next_turn"});
  REQUIRE(schema.value().Validate(line).ok());
  for (const auto& swap : std::vector<std::pair<std::string, std::string>>{
           {"\"reason\":", "\"because\":"},
           {"\"reason\":\"next_turn\"", "\"reason\":1"},
           {"\"reason\":", "\"more\":1,\"reason\":"},
           {"loop.continued", "loop.stopped"},
           {"\"v\":1", "\"v\":2"},
           {"\"seq\":1", "\"seq\":0"},
           {"00:00:00.000000Z", "00:00:00Z"},
           {",\"prev\":\"0000", ",\"prev\":\"00"}}) {
    CAPTURE(swap.first);
    const std::string changed = ReplaceAll(line, swap.first, swap.second);
    REQUIRE(changed != line);
    CHECK_FALSE(schema.value().Validate(changed).ok());
  }
}

TEST_CASE("record: the kinds of the schema are those of the variant") {
  const std::vector<Record> records = SampleRecords();
  REQUIRE(KindTable().size() == records.size());
  for (size_t i = 0; i < records.size(); ++i) CHECK(KindTable()[i].kind == KindOf(records[i]));
}

TEST_CASE("record: FORMAT.md names every kind and every field") {
  std::ifstream in(std::string(NORMA_SOURCE_DIR) + "/lib/ledger/FORMAT.md");
  std::ostringstream text;
  text << in.rdbuf();
  const std::string page = text.str();
  REQUIRE_FALSE(page.empty());
  size_t sections = 0;
  for (const KindRow& row : KindTable()) {
    CAPTURE(row.kind);
    // action.finished is described together with action.started.
    const size_t begin = page.find("### `" + std::string(row.kind) + "`");
    REQUIRE(begin != std::string::npos);
    const std::string section = page.substr(begin, page.find("\n### ", begin + 1) - begin);
    for (const FieldRow& field : row.fields) {
      CAPTURE(field.name);
      CHECK(section.find("| `" + std::string(field.name) + "` |") != std::string::npos);
    }
    ++sections;
  }
  CHECK(sections == KindTable().size());
}

TEST_CASE("content: digest, excerpt and full") {
  const std::string text = "0123456789";
  const CallFinished record{"c", "t", {text}, false, false, false, 0};
  const auto result = [&](ContentMode mode, size_t bytes) {
    const auto doc = json::Document::Parse(Fields(record, {mode, bytes}));
    REQUIRE(doc.ok());
    const json::Value content = doc.value().root()["result"];
    return std::string(content["text"].Str("absent")) + (content["truncated"].Bool() ? "…" : "");
  };
  CHECK(result(ContentMode::kDigest, 4) == "absent");
  CHECK(result(ContentMode::kExcerpt, 4) == "0123…");
  CHECK(result(ContentMode::kExcerpt, 10) == text);
  CHECK(result(ContentMode::kExcerpt, 0) == "…");
  CHECK(result(ContentMode::kFull, 4) == text);
}

TEST_CASE("content: an excerpt never splits a code point, whatever its length") {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z";
  for (size_t bytes = 0; bytes <= text.size(); ++bytes) {
    const std::string fields = Fields(CallFinished{"c", "t", {text}, false, false, false, 0},
                                      {ContentMode::kExcerpt, bytes});
    const auto doc = json::Document::Parse(fields);
    REQUIRE(doc.ok());
    const std::string_view excerpt = doc.value().root()["result"]["text"].Str();
    CHECK(excerpt.size() <= bytes);
    CHECK(IsValidUtf8(excerpt));
    CHECK(text.substr(0, excerpt.size()) == excerpt);
    CHECK(doc.value().root()["result"]["bytes"].Int() == static_cast<int64_t>(text.size()));
  }
}

TEST_CASE("content: any bytes make a strict JSON line") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const Record& record :
       std::vector<Record>{CallFinished{all, all, {all}, false, false, false, 0}, Warning{all, all},
                           HookRan{all, all, all, 0, 0, all}}) {
    const std::string fields = Fields(record);
    CHECK(json::Document::Parse(fields).ok());
    CHECK(fields.find('\n') == std::string::npos);
  }
}

TEST_CASE("content: digest mode keeps commands out of the one-line summary too") {
  const std::string fields = Fields(testing::SampleActionStarted(), {ContentMode::kDigest, 2048});
  CHECK(fields.find("ls -l") == std::string::npos);
  CHECK(fields.find(R"("action":"bash",)") != std::string::npos);
}

TEST_CASE("record: long strings are cut with a mark") {
  const std::string fields = Fields(Warning{"big", std::string(100'000, 'x')});
  CHECK(fields.size() < 8500);
  CHECK(fields.find("x [cut]\"") != std::string::npos);
}

TEST_CASE("record: usage_raw is spliced only when it is strict JSON") {
  ReplyReceived reply;
  for (const auto& [raw, want] : std::vector<std::pair<std::string, std::string>>{
           {R"({"a": 1, "b": [1.50, 2e3]})", R"({"a":1,"b":[1.50,2e3]})"},
           {R"({"a":1,"a":2})", R"("{\"a\":1,\"a\":2}")"},
           {R"({"a":1}},"prev":"x")", R"("{\"a\":1}},\"prev\":\"x\"")"},
           {R"({"a":NaN})", R"("{\"a\":NaN}")"},
           {R"({"a":1e400})", R"("{\"a\":1e400}")"},
           {"{\"a\":\n1}", R"({"a":1})"}}) {
    reply.usage.raw = raw;
    const std::string fields = Fields(reply);
    CAPTURE(fields);
    CHECK(json::Document::Parse(fields).ok());
    CHECK(fields.find("\"usage_raw\":" + want + ",") != std::string::npos);
  }
}

TEST_CASE("redaction: no half of a secret stays at the end of an excerpt") {
  const std::string key = "sk-test/canary+\"q\\x 0123%";
  const auto made = Redactor::Make({{"KEY", key}}, {});
  REQUIRE(made.ok());
  for (size_t bytes = 0; bytes <= 60; ++bytes) {
    const std::string fields =
        Fields(CallFinished{"c", "t", {"0123456789" + key + " tail"}, false, false, false, 0},
               {ContentMode::kExcerpt, bytes}, made.value());
    CHECK(fields.find("sk-t") == std::string::npos);
  }
}

TEST_CASE("redaction: digest and size are those of the redacted text") {
  const auto made = Redactor::Make({{"PW", "hunter2-password"}}, {});
  REQUIRE(made.ok());
  const std::string fields =
      Fields(CallFinished{"c", "t", {"hunter2-password"}, false, false, false, 0},
             {ContentMode::kFull, 0}, made.value());
  CHECK(fields.find(ContentJson("[redacted:PW]")) != std::string::npos);
  CHECK(fields.find(Sha256Hex("hunter2-password")) == std::string::npos);
}

TEST_CASE("redaction: a secret in any field of any record does not reach the line") {
  const std::string key = "sk-test/canary+\"q\\x 0123%";
  const auto made = Redactor::Make({{"KEY", key}}, {});
  REQUIRE(made.ok());
  std::vector<Record> records;
  RunStarted started = testing::SampleRunStarted();
  started.spec_path = started.model = started.endpoint = started.cwd = started.host = key;
  started.tools = {key};
  started.budgets_json = "{\"x\":" + json::Quote(key) + "}";
  records.emplace_back(started);
  RequestFailed failed = testing::SampleRequestFailed();
  failed.message = "invalid x-api-key " + key;
  failed.retry_after = failed.request_id = failed.error_class = key;
  failed.usage->raw = "{" + json::Quote(key) + ":" + json::Quote(key) + "}";
  records.emplace_back(failed);
  ReplyReceived reply = testing::SampleReply();
  reply.content = {Text{key}, Thinking{key, key}, Opaque{key, key}, ToolResult{key, key, false},
                   ToolCall{key, key, "{\"command\":" + json::Quote("echo " + key) + "}", ""}};
  reply.proxy = reply.stop_reason = key;
  records.emplace_back(reply);
  records.emplace_back(CallJudged{key, key, {json::Quote(key)}, "deny", 1, key, 1, key});
  ActionDetail detail;
  detail.effect = detail.method = detail.host = detail.path = detail.error = key;
  detail.path = "/" + UrlEncode(key);
  detail.command = {"curl -u " + Base64("user:" + key)};
  records.emplace_back(ActionStarted{key, key, "bash: " + key, detail});
  records.emplace_back(ActionFinished{key, key, "bash: " + key, detail, 1});
  records.emplace_back(CallFinished{key, key, {key}, true, false, false, 1});
  records.emplace_back(HookRan{key, key, key, 0, 0, key});
  records.emplace_back(TaskEnded{key, key, 0, key});
  records.emplace_back(Warning{key, key});
  RunEnded ended = testing::SampleRunEnded();
  ended.limit_name = ended.limit_value = ended.message = key;
  ended.denied = {{key, key, key}};
  records.emplace_back(ended);
  for (const Record& record : records) {
    const std::string fields = Fields(record, {ContentMode::kFull, 0}, made.value());
    CAPTURE(fields);
    CHECK(json::Document::Parse(fields).ok());
    CHECK_FALSE(made.value().Touches(fields));
    CHECK(fields.find("canary") == std::string::npos);
    CHECK(fields.find("[redacted:KEY]") != std::string::npos);
  }
}

}  // namespace
}  // namespace norma::ledger
