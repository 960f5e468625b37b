#include <algorithm>
#include <functional>

#include <doctest/doctest.h>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/ledger/envelope.h"
#include "lib/ledger/ledger.h"
#include "lib/ledger/reader.h"
#include "lib/testing/hand_clock.h"
#include "lib/testing/memory_append_file.h"
#include "lib/testing/sample_records.h"
#include "lib/testing/temp_dir.h"

namespace norma::ledger {
namespace {

using testing::HandClock;
using testing::MemoryAppendFile;
using testing::MemoryDisk;
using testing::SampleRun;
using testing::TempDir;

const Redactor kNoSecrets;

// The file that these runs write, record by record in turn.
std::string FileOf(const std::vector<std::vector<Record>>& runs) {
  auto disk = std::make_shared<MemoryDisk>();
  HandClock clock;
  std::vector<std::unique_ptr<Ledger>> ledgers;
  size_t longest = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    LedgerOptions options;
    options.run = "run" + std::to_string(i + 1);
    ledgers.push_back(std::make_unique<Ledger>(std::make_unique<MemoryAppendFile>(disk), options,
                                               kNoSecrets, clock));
    longest = std::max(longest, runs[i].size());
  }
  for (size_t k = 0; k < longest; ++k) {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (k < runs[i].size()) REQUIRE(ledgers[i]->Append(runs[i][k]).ok());
    }
  }
  return disk->bytes;
}

Verification VerifyText(const std::string& bytes) {
  const TempDir dir;
  auto found = Verify(dir.Write("ledger.jsonl", bytes));
  REQUIRE(found.ok());
  return std::move(found).value();
}

std::string FaultsOf(const Verification& v) {
  std::string text;
  for (const Fault& fault : v.faults) text += std::to_string(fault.line) + ": " + fault.what + "\n";
  return text;
}

std::vector<std::string> LinesOf(const std::string& bytes) {
  std::vector<std::string> lines;
  for (const std::string_view line : SplitLines(bytes)) lines.emplace_back(line);
  return lines;
}

std::string BytesOf(const std::vector<std::string>& lines) {
  return lines.empty() ? "" : Join(lines, "\n") + "\n";
}

// Lines whose seq, prev and check were made good again after an edit: what a careful forger does.
std::string Rechain(std::vector<std::string> lines) {
  std::string previous(kNoHash);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string& line = lines[i];
    const size_t seq_at = line.find("\"seq\":") + 6;
    line.replace(seq_at, line.find(',', seq_at) - seq_at, std::to_string(i + 1));
    line.replace(line.size() - 2 - kHashBytes, kHashBytes, previous);
    const size_t check = line.find(",\"check\":\"");
    if (check != std::string::npos) {
      line.replace(check + 10, kHashBytes, kNoHash);
      line.replace(check + 10, kHashBytes, Sha256Hex(line));
    }
    previous = Sha256Hex(line);
  }
  return BytesOf(lines);
}

// Records as they are (run.ended with the caller's totals), well chained.
std::string RawFileOf(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  for (const Record& record : records) {
    lines.push_back(
        MakeLine({1, "2025-12-01T00:00:00.000000Z", "run1", "main", KindOf(record), kNoHash},
                 EncodeFields(record, {}, kNoSecrets), std::holds_alternative<RunEnded>(record)));
  }
  return Rechain(lines);
}

RunEnded Ended(const std::function<void(RunEnded&)>& change = {}) {
  RunEnded ended;
  ended.reason = "completed";
  if (change) change(ended);
  return ended;
}

TEST_CASE("verify: a whole run is intact and complete") {
  const std::string bytes = FileOf({SampleRun()});
  const Verification v = VerifyText(bytes);
  CHECK_MESSAGE(v.exit_code() == 0, Describe(v));
  CHECK(v.runs == std::vector<std::string>{"run1"});
  CHECK(v.lines == SampleRun().size());
  CHECK(v.head == Sha256Hex(LinesOf(bytes).back()));
  CHECK(Describe(v) == "intact and complete: 17 lines, 1 run\nhead " + v.head + "\n");
}

TEST_CASE("verify: interleaved runs of a shared file are judged one by one") {
  CHECK(VerifyText(FileOf({SampleRun(), SampleRun(), SampleRun()})).exit_code() == 0);
  std::vector<Record> open = SampleRun();
  open.resize(9);  // a1 is started
  const Verification v = VerifyText(FileOf({SampleRun(), open, SampleRun()}));
  CHECK(v.exit_code() == 3);
  CHECK(v.open ==
        std::vector<std::string>{"run run2 has no run.ended",
                                 "run run2: action a1 (bash: ls -l) started, never finished",
                                 "run run2: call toolu_1 (Bash) was judged, never finished"});
}

TEST_CASE("verify: a ledger cut at any byte is intact, and complete only when whole") {
  const std::string bytes = FileOf({SampleRun(), SampleRun()});
  const TempDir dir;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const auto found = Verify(dir.Write("ledger.jsonl", cut));
    REQUIRE(found.ok());
    const Verification& v = found.value();
    REQUIRE_MESSAGE(v.intact, size << " bytes: " << FaultsOf(v));
    REQUIRE(v.complete == (size == bytes.size()));
    const size_t whole = cut.rfind('\n') == std::string::npos ? 0 : cut.rfind('\n') + 1;
    REQUIRE(v.torn_bytes == size - whole);
    REQUIRE(v.lines == static_cast<uint64_t>(std::ranges::count(cut, '\n')));
    const std::string text = Describe(v);
    REQUIRE(text.find("intact") != std::string::npos);
    REQUIRE(text.find("complete") != std::string::npos);
  }
}

TEST_CASE("verify: any changed byte of a finished ledger is found") {
  const std::string bytes = FileOf({SampleRun()});
  const TempDir dir;
  size_t step = 0;
  for (size_t at = 0; at < bytes.size(); at += 1 + step++ % 3) {
    for (const int bit : {0, 5}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      const auto found = Verify(dir.Write("ledger.jsonl", changed));
      REQUIRE(found.ok());
      // A lost last newline is a cut, everything else is a change.
      const int want = at + 1 == bytes.size() ? 3 : 1;
      CHECK_MESSAGE(found.value().exit_code() == want, "byte " << at << " bit " << bit);
    }
  }
}

TEST_CASE("verify: lost, doubled, swapped, rewritten and appended lines are found") {
  const std::vector<std::string> lines = LinesOf(FileOf({SampleRun()}));
  const auto judge = [&](const std::function<void(std::vector<std::string>&)>& change) {
    std::vector<std::string> changed = lines;
    change(changed);
    return VerifyText(BytesOf(changed)).exit_code();
  };
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    CAPTURE(i);
    CHECK(judge([&](auto& l) { l.erase(l.begin() + static_cast<long>(i)); }) == 1);
    CHECK(judge([&](auto& l) { l.insert(l.begin() + static_cast<long>(i), l[i]); }) == 1);
    CHECK(judge([&](auto& l) { std::swap(l[i], l[i + 1]); }) == 1);
    CHECK(judge([&](auto& l) { l[i] = ReplaceAll(l[i], "\"v\":1", "\"v\": 1"); }) == 1);
    CHECK(judge([&](auto& l) { l[i] += " "; }) == 1);
  }
  CHECK(judge([](auto& l) { l.back() = ReplaceAll(l.back(), "\"turns\":2", "\"turns\": 2"); }) ==
        1);
  CHECK(judge([](auto& l) { l.back() = ReplaceAll(l.back(), "\"cost\":2060005", "\"cost\":1"); }) ==
        1);
  CHECK(judge([](auto& l) { l.back() += "\r"; }) == 1);
  CHECK(judge([](auto& l) { l.push_back(l.back()); }) == 1);
  CHECK(judge([](auto& l) { l.push_back("{}"); }) == 1);
  CHECK(judge([](auto& l) { l.push_back(""); }) == 1);
  // The cut of whole lines shows as an open run and a different head only.
  CHECK(judge([](auto& l) { l.pop_back(); }) == 3);
}

TEST_CASE("verify: a last line of an open run that was respelled is found") {
  std::vector<Record> open = SampleRun();
  open.resize(5);
  std::vector<std::string> lines = LinesOf(FileOf({open}));
  CHECK(VerifyText(BytesOf(lines)).exit_code() == 3);
  lines.back() = ReplaceAll(lines.back(), "\"attempt\":2", "\"attempt\" :2");
  CHECK(VerifyText(BytesOf(lines)).exit_code() == 1);
}

struct Broken {
  std::string name;
  std::vector<Record> records;
  std::string fault;  // part of the first one
};

std::vector<Broken> BrokenRuns() {
  using testing::SampleActionFinished;
  using testing::SampleActionStarted;
  using testing::SampleCallFinished;
  using testing::SampleJudged;
  using testing::SampleReply;
  using testing::SampleRequestFailed;
  using testing::SampleRequestSent;
  const RunStarted start = testing::SampleRunStarted();
  const auto one_request = [](RunEnded& e) { e.totals.requests = 1; };
  const auto one_call = [](RunEnded& e) { e.totals.calls = 1; };
  const auto one_action = [](RunEnded& e) { e.totals.actions = 1; };
  return {
      {"no start", {Warning{"a", "b"}, Ended()}, "first record is warning, not run.started"},
      {"two starts", {start, start, Ended()}, "a second run.started"},
      {"after the end", {start, Ended(), Warning{"a", "b"}}, "warning of run run1 comes after"},
      {"two ends", {start, Ended(), Ended()}, "run.ended of run run1 comes after"},
      {"request without answer",
       {start, SampleRequestSent(), Ended(one_request)},
       "request r1 attempt 1 was sent, no answer recorded, although the run ended"},
      {"request sent twice", {start, SampleRequestSent(), SampleRequestSent()}, "is sent twice"},
      {"two answers",
       {start, SampleRequestSent(), SampleReply(), SampleRequestFailed()},
       "request r1 attempt 1 is answered before it is sent, or twice"},
      {"answer to another attempt",
       {start, SampleRequestSent("r1", 1), SampleReply("r1", 2)},
       "request r1 attempt 2 is answered before"},
      {"call without finish",
       {start, SampleJudged(), Ended(one_call)},
       "call toolu_1 (Bash) was judged, never finished, although the run ended"},
      {"finish without call",
       {start, SampleCallFinished()},
       "call toolu_1 is finished before it is judged, or twice"},
      {"unknown verdict", {start, SampleJudged("c", "maybe")}, "verdict \"maybe\""},
      {"action without finish",
       {start, SampleActionStarted("a1", ""), Ended(one_action)},
       "action a1 (bash: ls -l) started, never finished, although the run ended"},
      {"finish without action", {start, SampleActionFinished()}, "finished before it is started"},
      {"action started twice",
       {start, SampleActionStarted("a1", ""), SampleActionStarted("a1", "")},
       "action a1 is started twice"},
      {"effect of a denied call",
       {start, SampleJudged("c", "deny"), SampleActionStarted("a1", "c")},
       "action a1 belongs to call c, which was not allowed"},
      {"wrong exit code",
       {start, Ended([](RunEnded& e) { e.exit_code = 1; })},
       "reason completed with exit_code 1"},
      {"unknown reason",
       {start, Ended([](RunEnded& e) { e.reason = "fine"; })},
       "reason \"fine\" is not in the closed list"},
      {"signal without its number",
       {start, Ended([](RunEnded& e) { e.reason = "aborted_tools"; })},
       "reason aborted_tools with exit_code 0"},
      {"budget without its name",
       {start, Ended([](RunEnded& e) { e.reason = "timeout", e.exit_code = 3; })},
       "reason timeout without the limit"},
      {"denied call not listed",
       {start, SampleJudged("c", "deny"), SampleCallFinished("c"), Ended(one_call)},
       "denied lists 0 calls that are not the 1 of the records"},
      {"denied call invented",
       {start, Ended([](RunEnded& e) {
          e.denied = {{"a", "b", "c"}};
        })},
       "denied lists 1 calls"},
      {"requests", {start, Ended(one_request)}, "totals.requests is 1, the records sum to 0"},
      {"replies", {start, Ended([](RunEnded& e) { e.totals.replies = 1; })}, "totals.replies is 1"},
      {"calls", {start, Ended(one_call)}, "totals.calls is 1"},
      {"actions", {start, Ended(one_action)}, "totals.actions is 1"},
      {"input", {start, Ended([](RunEnded& e) { e.totals.input = 1; })}, "totals.input is 1"},
      {"output", {start, Ended([](RunEnded& e) { e.totals.output = 1; })}, "totals.output is 1"},
      {"cache_read",
       {start, Ended([](RunEnded& e) { e.totals.cache_read = 1; })},
       "totals.cache_read is 1"},
      {"cache_write",
       {start, Ended([](RunEnded& e) { e.totals.cache_write = 1; })},
       "totals.cache_write is 1"},
      {"unpriced",
       {start, Ended([](RunEnded& e) { e.totals.unpriced = 1; })},
       "totals.unpriced is 1"},
      {"cost by one nano",
       {start, Ended([](RunEnded& e) { e.totals.cost = 1; })},
       "totals.cost is 1, the records sum to 0"},
      {"cost null",
       {start, Ended([](RunEnded& e) { e.totals.cost = std::nullopt; })},
       "totals.cost is no integer, the records sum to 0"},
  };
}

TEST_CASE("verify: every broken promise is found even when the chain was made good again") {
  for (const Broken& broken : BrokenRuns()) {
    CAPTURE(broken.name);
    const Verification v = VerifyText(RawFileOf(broken.records));
    CHECK(v.exit_code() == 1);
    REQUIRE_FALSE(v.faults.empty());
    CHECK_MESSAGE(v.faults.front().what.find(broken.fault) != std::string::npos, FaultsOf(v));
  }
}

TEST_CASE("verify: all good ends are accepted") {
  const RunStarted start = testing::SampleRunStarted();
  for (const auto& end : std::vector<std::pair<std::string, int64_t>>{{"completed", 0},
                                                                      {"aborted_tools", 143},
                                                                      {"aborted_streaming", 130},
                                                                      {"aborted_output", 141},
                                                                      {"internal", 1},
                                                                      {"replay_miss", 10}}) {
    const Verification v = VerifyText(RawFileOf({start, Ended([&](RunEnded& e) {
                                                   e.reason = end.first;
                                                   e.exit_code = end.second;
                                                 })}));
    CHECK_MESSAGE(v.exit_code() == 0, FaultsOf(v));
  }
}

TEST_CASE("verify: a call id that the model uses twice is no fault when both are finished") {
  const auto judged = testing::SampleJudged();
  const auto finished = testing::SampleCallFinished();
  const std::vector<Record> run = {
      testing::SampleRunStarted(), judged, judged, finished, finished, judged, finished, Ended()};
  CHECK(VerifyText(FileOf({run})).exit_code() == 0);
}

TEST_CASE("verify: the same call id of two agents is two calls") {
  auto disk = std::make_shared<MemoryDisk>();
  HandClock clock;
  Ledger ledger(std::make_unique<MemoryAppendFile>(disk), {"run1", {}, true}, kNoSecrets, clock);
  REQUIRE(ledger.Append(testing::SampleRunStarted()).ok());
  REQUIRE(ledger.Append(testing::SampleJudged("c", "allow")).ok());
  REQUIRE(ledger.Append(testing::SampleJudged("c", "deny"), "child").ok());
  REQUIRE(ledger.Append(testing::SampleCallFinished("c"), "child").ok());
  REQUIRE(ledger.Append(testing::SampleActionStarted("a1", "c")).ok());
  REQUIRE(ledger.Append(testing::SampleActionFinished("a1", "c")).ok());
  REQUIRE(ledger.Append(testing::SampleCallFinished("c")).ok());
  REQUIRE(ledger.Append(Ended()).ok());
  const Verification v = VerifyText(disk->bytes);
  CHECK_MESSAGE(v.exit_code() == 0, FaultsOf(v));
}

TEST_CASE("verify: lines that are no strict JSON are faults, not crashes") {
  std::vector<Record> open = SampleRun();
  open.resize(3);
  const std::vector<std::string> lines = LinesOf(FileOf({open}));
  for (const std::string bad : {"", "null", "[]", "{", "{\"a\":1,\"a\":2}", "\xff\xfe", "{\"v\":1}",
                                "{\"v\":1,\"seq\":1,\"t\":\"",
                                "{\"kind\":5,\"run\":7,\"agent\":[]}", "{\"v\":1} {\"v\":1}"}) {
    CAPTURE(bad);
    std::vector<std::string> changed = lines;
    changed[1] = bad;
    CHECK(VerifyText(BytesOf(changed)).exit_code() == 1);
    changed = lines;
    changed.push_back(bad);
    CHECK(VerifyText(BytesOf(changed)).exit_code() == 1);
  }
  std::string nested = lines[1];
  nested.insert(nested.size() - 1, ",\"x\":" + std::string(5000, '['));
  CHECK(VerifyText(nested + "\n").exit_code() == 1);
}

TEST_CASE(
    "verify: at most fifty faults are listed, the rest is counted, nothing hostile is shown") {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += "{\"run\":\"\\u001b[31m" + std::to_string(i) + "\"}\n";
  const Verification v = VerifyText(bytes);
  CHECK(v.faults.size() == 50);
  CHECK(v.faults_left_out > 100);
  CHECK(v.open.size() == 50);
  CHECK(v.open_left_out == 150);
  CHECK(Describe(v).find('\x1b') == std::string::npos);
}

TEST_CASE("verify: a missing file, a folder and a device are errors of their own") {
  const TempDir dir;
  const auto missing = Verify(dir / "none.jsonl");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == Code::kNotFound);
  CHECK(missing.error().message.find("none.jsonl") != std::string::npos);
  CHECK_FALSE(Verify(dir.path()).ok());
  CHECK_FALSE(Verify("/dev/null").ok());
}

TEST_CASE("reader: lines come one by one, the visitor may stop, the torn rest is told") {
  const TempDir dir;
  const std::string path = dir.Write("x.jsonl", "{\"a\":1}\nno\n{\"a\":3}\ntorn");
  std::string seen;
  uint64_t torn = 0;
  REQUIRE(ReadLines(
              path,
              [&](const RawLine& line) {
                seen += std::to_string(line.number) + "=" + std::string(line.text) + ":" +
                        std::to_string(line.value["a"].Int(-1)) + (line.fault.empty() ? ";" : "!;");
                return true;
              },
              &torn)
              .ok());
  CHECK(seen == "1={\"a\":1}:1;2=no:-1!;3={\"a\":3}:3;");
  CHECK(torn == 4);
  int visits = 0;
  REQUIRE(ReadLines(
              path, [&](const RawLine&) { return ++visits < 2; }, &torn)
              .ok());
  CHECK(visits == 2);
}

TEST_CASE("reader: lines of any length around the buffer's size come whole") {
  const TempDir dir;
  for (const size_t size : {262'143U, 262'144U, 262'145U, 600'000U}) {
    const std::string line = "\"" + std::string(size, 'x') + "\"";
    size_t seen = 0;
    REQUIRE(ReadLines(
                dir.Write("x.jsonl", line + "\n" + line + "\n"),
                [&](const RawLine& raw) {
                  CHECK(raw.text == line);
                  ++seen;
                  return true;
                },
                nullptr)
                .ok());
    CHECK(seen == 2);
  }
}

TEST_CASE("cost: sums equal run.ended to the nano, by model, day, tool and agent") {
  const TempDir dir;
  const std::string one = dir.Write("one.jsonl", FileOf({SampleRun(), SampleRun()}));
  std::vector<Record> open = SampleRun();
  std::get<RunStarted>(open[0]).model = "other-model";
  open.resize(5);
  const std::string two = dir.Write("two.jsonl", FileOf({open}) + "{\"torn");
  const auto found = Cost({one, two});
  REQUIRE(found.ok());
  const CostReport& report = found.value();
  CHECK(report.runs == 3);
  CHECK(report.total.cost == 2 * 2'060'005 + 660'001);
  CHECK(report.total.requests == 8);
  CHECK(report.total.replies == 4);
  CHECK(report.total.calls == 4);
  CHECK(report.total.denied == 2);
  CHECK(report.total.actions == 2);
  CHECK(report.total.input == 7 * 120);
  CHECK(report.total.cache_write == 7 * 40);
  CHECK(report.open_requests == 1);
  CHECK(report.open_reserved == 16'560'000);
  REQUIRE(report.by_model.size() == 2);
  CHECK(report.by_model.at("test-model").cost == 2 * 2'060'005);
  CHECK(report.by_model.at("other-model").cost == 660'001);
  CHECK(report.by_tool.at("Bash").calls == 4);
  CHECK(report.by_tool.at("Bash").actions == 2);
  CHECK(report.by_tool.at("Bash").denied == 2);
  CHECK(report.by_day.at("2025-12-01").cost == report.total.cost);
  CHECK(report.by_agent.at("main").cost == report.total.cost);
}

TEST_CASE("cost: an unpriced reply is counted, never priced at zero silently") {
  ReplyReceived reply = testing::SampleReply();
  reply.cost = std::nullopt;
  RequestSent sent = testing::SampleRequestSent();
  sent.reserved = std::nullopt;
  const TempDir dir;
  const std::string path =
      dir.Write("x.jsonl", FileOf({{testing::SampleRunStarted(), sent, reply, Ended()}}));
  const auto found = Cost({path});
  REQUIRE(found.ok());
  CHECK(found.value().total.unpriced == 1);
  CHECK(found.value().total.cost == 0);
  CHECK(Verify(path).value().exit_code() == 0);
  CHECK(dir.Read("x.jsonl").find("\"cost\":null,\"unpriced\":1}") != std::string::npos);
}

TEST_CASE("cost: a broken line is an error that names file and line") {
  const TempDir dir;
  const auto found = Cost({dir.Write("x.jsonl", FileOf({SampleRun()}) + "oops\n")});
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().message.find("x.jsonl:18") != std::string::npos);
}

}  // namespace
}  // namespace norma::ledger
