// One record of every kind with every field set, and a whole small run made of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/ledger/ledger.h"
#include "lib/ledger/record.h"
#include "lib/testing/hand_clock.h"
#include "lib/testing/memory_append_file.h"

namespace norma::testing {

inline Usage SampleUsage() {
  Usage usage;
  usage.input = 120;
  usage.output = 20;
  usage.cache_read = 40;
  usage.cache_write_5m = 30;
  usage.cache_write_1h = 10;
  usage.reasoning = 5;
  usage.reported = true;
  usage.raw = R"({ "input_tokens": 40, "output_tokens": 20 })";
  return usage;
}

inline ledger::RunStarted SampleRunStarted() {
  ledger::RunStarted r;
  r.version = "1.0.0";
  r.spec_path = "ci/review.yaml";
  r.spec_hash = std::string(64, 'a');
  r.policy_hash = std::string(64, 'b');
  r.model = "test-model";
  r.format = "anthropic";
  r.endpoint = "https://api.example.com/v1/messages";
  r.mode = "dontAsk";
  r.tools = {"Read", "Bash"};
  r.budgets_json = R"({ "turns": 40, "cost_usd": "0.50" })";
  r.price_table = "prices.yaml";
  r.price_hash = std::string(64, 'c');
  r.host = "runner-7";
  r.cwd = "/srv/build";
  r.pid = 4711;
  r.prompt_sha256 = std::string(64, 'd');
  r.prompt_bytes = 17;
  return r;
}

inline ledger::RequestSent SampleRequestSent(std::string id = "r1", int64_t attempt = 1) {
  return {std::move(id), attempt,   "https://api.example.com/v1/messages", 1500, 400,
          1024,          16'560'000};
}

inline ledger::RequestFailed SampleRequestFailed(std::string id = "r1", int64_t attempt = 1) {
  ledger::RequestFailed r;
  r.id = std::move(id);
  r.attempt = attempt;
  r.status = 200;
  r.error_class = "broken_stream";
  r.message = "the connection broke after 3 events";
  r.retry_in_ms = 500;
  r.retry_after = "1";
  r.duration_ms = 812;
  r.usage = SampleUsage();
  r.cost = 660'001;
  r.estimated = true;
  r.request_id = "req_1";
  return r;
}

inline ledger::ReplyReceived SampleReply(std::string id = "r1", int64_t attempt = 1) {
  ledger::ReplyReceived r;
  r.id = std::move(id);
  r.attempt = attempt;
  r.first_byte_ms = 210;
  r.duration_ms = 1300;
  r.stop_reason = "tool_use";
  r.content = {Thinking{"hmm", "sig"}, Text{"I will look."},
               ToolCall{"toolu_1", "Bash", R"({"command":"ls"})", R"({"command":"ls"})"},
               Opaque{"anthropic", R"({"type":"redacted_thinking","data":"xyz"})"},
               ToolResult{"toolu_0", "late", false}};
  r.usage = SampleUsage();
  r.cost = 700'002;
  r.estimated = true;
  r.request_id = "req_2";
  r.proxy = "http://proxy:3128";
  return r;
}

inline ledger::CallJudged SampleJudged(std::string call = "toolu_1",
                                       std::string verdict = "allow") {
  return {std::move(call), "Bash", {R"({"command":"ls"})"}, std::move(verdict), 5,
          "Bash(ls *)",    12,     "a rule says so"};
}

inline ledger::ActionDetail SampleDetail() {
  ledger::ActionDetail d;
  d.effect = "process";
  d.method = "GET";
  d.host = "docs.example.com:443";
  d.path = "/a/b";
  d.proxy = "http://proxy:3128";
  d.hop = 1;
  d.status = 302;
  d.exit = 7;
  d.signal = 9;
  d.bytes = 512;
  d.killed = 2;
  d.sha256_before = std::string(64, 'e');
  d.sha256_after = std::string(64, 'f');
  d.command = {"ls -l\n"};
  d.fallback = d.timed_out = d.cancelled = d.truncated = true;
  d.error = "killed after 120 s";
  return d;
}

inline ledger::ActionStarted SampleActionStarted(std::string id = "a1",
                                                 std::string call = "toolu_1") {
  return {std::move(id), std::move(call), "bash: ls -l", SampleDetail()};
}

inline ledger::ActionFinished SampleActionFinished(std::string id = "a1",
                                                   std::string call = "toolu_1") {
  return {std::move(id), std::move(call), "bash: ls -l", SampleDetail(), 35};
}

inline ledger::CallFinished SampleCallFinished(std::string call = "toolu_1") {
  return {std::move(call), "Bash", {"total 0\n"}, true, true, true, 36};
}

inline ledger::RunEnded SampleRunEnded() {
  ledger::RunEnded r;
  r.reason = "budget_exceeded";
  r.exit_code = 3;
  r.limit_name = "cost_usd";
  r.limit_value = "0.5";
  r.message = "budgets.cost_usd (0.5) is used up";
  r.killed_processes = 1;
  r.turns = 2;
  r.duration_ms = 2200;
  return r;
}

// One of each alternative, in the variant's order.
inline std::vector<ledger::Record> SampleRecords() {
  return {SampleRunStarted(),
          SampleRequestSent(),
          SampleRequestFailed(),
          SampleReply(),
          SampleJudged(),
          SampleActionStarted(),
          SampleActionFinished(),
          SampleCallFinished(),
          ledger::HookRan{"pre_tool_use", "./check.sh", "block", 2, 14, "no"},
          ledger::LoopContinued{"next_turn"},
          ledger::ContextCompacted{"compaction", "threshold", 150'000, 20'000, 42},
          ledger::ModeChanged{"plan", "default", "ExitPlanMode"},
          ledger::TaskEnded{"t1", "exited", 0, "make -j2"},
          ledger::Warning{"prompt_utf8", "the prompt held invalid UTF-8"},
          SampleRunEnded()};
}

// The records of a run as they really follow each other, all promises kept.
inline std::vector<ledger::Record> SampleRun() {
  return {SampleRunStarted(),
          ledger::Warning{"prompt_utf8", "the prompt held invalid UTF-8"},
          SampleRequestSent("r1", 1),
          SampleRequestFailed("r1", 1),
          SampleRequestSent("r1", 2),
          SampleReply("r1", 2),
          SampleJudged("toolu_1", "allow"),
          ledger::HookRan{"pre_tool_use", "./check.sh", "allow", 0, 14, ""},
          SampleActionStarted("a1", "toolu_1"),
          SampleJudged("toolu_2", "deny"),
          SampleCallFinished("toolu_2"),
          SampleActionFinished("a1", "toolu_1"),
          SampleCallFinished("toolu_1"),
          ledger::LoopContinued{"next_turn"},
          SampleRequestSent("r2", 1),
          SampleReply("r2", 1),
          SampleRunEnded()};
}

}  // namespace norma::testing
