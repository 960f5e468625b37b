#include "lib/ledger/ledger.h"

#include <chrono>
#include <functional>
#include <thread>

#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/ledger/envelope.h"
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
using testing::TempDir;

const Redactor kNoSecrets;
constexpr int kThreads = 8, kRuns = 5;

struct Desk {
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  HandClock clock;

  Ledger Open(const std::string& run = "run1", LedgerOptions options = {}) {
    options.run = run;
    return Ledger(std::make_unique<MemoryAppendFile>(disk), options, kNoSecrets, clock);
  }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const std::string_view line : SplitLines(disk->bytes)) lines.emplace_back(line);
    return lines;
  }
};

TEST_CASE("ledger: the envelope stands around the record, prev last") {
  Desk desk;
  Ledger ledger = desk.Open();
  REQUIRE(ledger.Append(LoopContinued{"next_turn"}).ok());
  desk.clock.Advance(Millis(1500));
  REQUIRE(ledger.Append(Warning{"c", "m"}, "child \"1\"").ok());
  const std::string first =
      R"({"v":1,"seq":1,"t":"2025-12-01T01:00:00.000000Z","run":"run1","agent":"main",)"
      R"("kind":"loop.continued","reason":"next_turn","prev":")" +
      std::string(64, '0') + "\"}";
  const std::string second =
      R"({"v":1,"seq":2,"t":"2025-12-01T01:00:01.500000Z","run":"run1","agent":"child \"1\"",)"
      R"("kind":"warning","code":"c","message":"m","prev":")" +
      Sha256Hex(first) + "\"}";
  CHECK(desk.disk->bytes == first + "\n" + second + "\n");
  CHECK(ledger.head() == Sha256Hex(second));
  CHECK(desk.disk->appends == 2);
}

TEST_CASE("ledger: run.ended carries its own check and the true sums, whatever the caller says") {
  Desk desk;
  Ledger ledger = desk.Open();
  for (const Record& record : testing::SampleRun()) REQUIRE(ledger.Append(record).ok());
  const std::string line = desk.Lines().back();
  CHECK(CheckHolds(line));
  const auto doc = json::Document::Parse(line);
  REQUIRE(doc.ok());
  Totals want;
  want.requests = 3;
  want.replies = 2;
  want.calls = 2;
  want.actions = 1;
  want.input = 360;
  want.output = 60;
  want.cache_read = 120;
  want.cache_write = 120;
  want.cost = 660'001 + 2 * 700'002;
  CHECK(ledger.totals() == want);
  CHECK(ledger.denied() == std::vector<Denied>{{"Bash", "toolu_2", "Bash(ls *)"}});
  CHECK(line.find(R"("totals":{"requests":3,"replies":2,"calls":2,"actions":1,"input":360,)"
                  R"("output":60,"cache_read":120,"cache_write":120,"cost":2060005,"unpriced":0},)"
                  R"x("denied":[{"tool":"Bash","call":"toolu_2","rule":"Bash(ls *)"}])x") !=
        std::string::npos);
}

TEST_CASE("ledger: cost is null only when something was billed and nothing had a price") {
  ReplyReceived priced, unpriced;
  priced.cost = 5;
  RequestFailed failed;  // no usage: nobody billed anything
  RequestFailed billed;
  billed.usage = Usage{};
  struct Row {
    std::vector<Record> records;
    std::optional<Nano> cost;
    int64_t unpriced;
  };
  for (const Row& row : std::vector<Row>{{{}, 0, 0},
                                         {{failed}, 0, 0},
                                         {{unpriced}, std::nullopt, 1},
                                         {{billed}, std::nullopt, 0},
                                         {{priced}, 5, 0},
                                         {{unpriced, priced}, 5, 1},
                                         {{priced, unpriced, unpriced}, 5, 2},
                                         {{priced, priced, failed}, 10, 0}}) {
    Desk desk;
    Ledger ledger = desk.Open();
    for (const Record& record : row.records) REQUIRE(ledger.Append(record).ok());
    CHECK(ledger.totals().cost == row.cost);
    CHECK(ledger.totals().unpriced == row.unpriced);
  }
}

TEST_CASE("ledger: sums stop at the limits of 64 bits") {
  Desk desk;
  Ledger ledger = desk.Open();
  ReplyReceived reply;
  reply.usage.input = INT64_MAX - 1;
  reply.cost = INT64_MAX - 1;
  REQUIRE(ledger.Append(reply).ok());
  REQUIRE(ledger.Append(reply).ok());
  CHECK(ledger.totals().input == INT64_MAX);
  CHECK(ledger.totals().cost == INT64_MAX);
}

TEST_CASE("ledger: runs in one file share seq and chain") {
  Desk desk;
  Ledger one = desk.Open("one"), two = desk.Open("two");
  for (int i = 0; i < 3; ++i) {
    REQUIRE(one.Append(Warning{"a", "1"}).ok());
    REQUIRE(two.Append(Warning{"b", "2"}).ok());
    REQUIRE(two.Append(Warning{"b", "3"}).ok());
  }
  const std::vector<std::string> lines = desk.Lines();
  REQUIRE(lines.size() == 9);
  std::string previous(64, '0');
  for (size_t i = 0; i < lines.size(); ++i) {
    CHECK(SeqOf(lines[i]) == i + 1);
    CHECK(lines[i].find("\"prev\":\"" + previous + "\"}") != std::string::npos);
    previous = Sha256Hex(lines[i]);
  }
  CHECK(one.head() == Sha256Hex(lines[6]));
  CHECK(two.head() == Sha256Hex(lines[8]));
}

TEST_CASE("ledger: after the first failure everything fails, and the file stays a whole prefix") {
  Desk desk;
  Ledger ledger = desk.Open();
  REQUIRE(ledger.Append(Warning{"a", "1"}).ok());
  const std::string before = desk.disk->bytes;
  desk.disk->bytes_max = before.size() + 10;
  int seen = 0;
  ledger.SetTap([&](const Record&, std::string_view) { ++seen; });
  const Status full = ledger.Append(LoopContinued{"next_turn"});
  REQUIRE_FALSE(full.ok());
  CHECK(full.error() ==
        Error{Code::kLedger, "the ledger cannot be written: No space left on device"});
  desk.disk->bytes_max.reset();
  CHECK_FALSE(ledger.Append(LoopContinued{"next_turn"}).ok());
  CHECK_FALSE(ledger.Sync().ok());
  CHECK_FALSE(ledger.Announce(LoopContinued{"next_turn"}).ok());
  CHECK(ledger.failed());
  CHECK(desk.disk->bytes == before);
  CHECK(seen == 0);
}

TEST_CASE("ledger: a failed append counts nothing") {
  Desk desk;
  Ledger ledger = desk.Open();
  desk.disk->bytes_max = 5;
  CHECK_FALSE(ledger.Append(testing::SampleReply()).ok());
  CHECK(ledger.totals() == Totals{});
  CHECK(ledger.head().empty());
}

TEST_CASE("ledger: a failed sync and a lock that is never free are failures for good") {
  Desk desk;
  Ledger ledger = desk.Open();
  desk.disk->fail_sync = true;
  const Status status = ledger.Announce(testing::SampleActionStarted());
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Code::kLedger);
  desk.disk->fail_sync = false;
  CHECK_FALSE(ledger.Append(Warning{}).ok());

  Ledger other = desk.Open();
  desk.disk->fail_lock = true;
  CHECK_FALSE(other.Append(Warning{}).ok());
  desk.disk->fail_lock = false;
  CHECK_FALSE(other.Append(Warning{}).ok());
}

TEST_CASE(
    "ledger: an announcement is on disk when Announce returns, unless sync is only at the end") {
  Desk desk;
  Ledger ledger = desk.Open();
  REQUIRE(ledger.Append(Warning{}).ok());
  CHECK(desk.disk->syncs == 0);
  REQUIRE(ledger.Announce(testing::SampleActionStarted()).ok());
  CHECK(desk.disk->syncs == 1);
  CHECK(desk.disk->synced_bytes == desk.disk->bytes.size());
  LedgerOptions options;
  options.sync_actions = false;
  Ledger lazy = desk.Open("lazy", options);
  REQUIRE(lazy.Announce(testing::SampleActionStarted()).ok());
  CHECK(desk.disk->syncs == 1);
  REQUIRE(lazy.Sync().ok());
  CHECK(desk.disk->syncs == 2);
}

TEST_CASE("ledger: a file that is no ledger is refused and stays as it was") {
  for (const std::string text :
       {"notes\n", "norma: 1\nmodel: {}\n", "{}\n", "{\"v\":1,\"seq\":1}\n", "\n",
        "no newline at all", "{\"v\":1,\"seq\":0,\"t\":\"\",\"prev\":\"\"}\n",
        "{\"v\":1,\"seq\":18446744073709551615,\"t\":\"x\",\"prev\":\""
        "0000000000000000000000000000000000000000000000000000000000000000\"}\n",
        "{\"v\":1,\"seq\":99999999999999999999,\"t\":\"x\",\"prev\":\""
        "0000000000000000000000000000000000000000000000000000000000000000\"}\n"}) {
    CAPTURE(text);
    Desk desk;
    desk.disk->bytes = text;
    Ledger ledger = desk.Open();
    const Status status = ledger.Append(testing::SampleRunStarted());
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Code::kLedger);
    CHECK(status.error().message.find("ledger.path") != std::string::npos);
    CHECK(desk.disk->bytes == text);
  }
}

TEST_CASE("ledger: a line in its own name that it did not write ends the run's writing") {
  for (const bool forged : {false, true}) {
    CAPTURE(forged);
    const auto disk = std::make_shared<MemoryDisk>();
    const Redactor redactor;
    HandClock clock;
    const auto open = [&](const std::string& run) {
      LedgerOptions options;
      options.run = run;
      return Ledger(std::make_unique<MemoryAppendFile>(disk), options, redactor, clock);
    };
    Ledger ours = open("run1");
    REQUIRE(ours.Append(Warning{"a", "true"}).ok());
    Ledger other = open(forged ? "run1" : "run2");
    REQUIRE(other.Append(Warning{"a", "from elsewhere"}).ok());
    const Status next = ours.Append(Warning{"a", "true again"});
    CHECK(next.ok() == !forged);
    if (forged) CHECK(next.error().message.find("did not write") != std::string::npos);
  }
}

TEST_CASE("ledger: a torn tail is cut on reopen and a warning says so") {
  Desk desk;
  {
    Ledger ledger = desk.Open("one");
    REQUIRE(ledger.Append(testing::SampleRunStarted()).ok());
    desk.disk->crash_at = desk.disk->bytes.size() + 40;
    CHECK_FALSE(ledger.Append(LoopContinued{"next_turn"}).ok());
    desk.disk->crash_at.reset();
  }
  const size_t whole = desk.Lines().front().size() + 1;
  REQUIRE(desk.disk->bytes.size() == whole + 40);
  Ledger ledger = desk.Open("two");
  REQUIRE(ledger.Append(testing::SampleRunStarted()).ok());
  const std::vector<std::string> lines = desk.Lines();
  REQUIRE(lines.size() == 3);
  CHECK(SeqOf(lines[1]) == 2);
  CHECK(lines[2].find("\"code\":\"torn_tail\"") != std::string::npos);
  CHECK(lines[2].find("40 bytes") != std::string::npos);
}

TEST_CASE("ledger: the tap sees each line as it stands in the file") {
  Desk desk;
  Ledger ledger = desk.Open();
  std::string seen;
  ledger.SetTap([&](const Record&, std::string_view line) { seen.append(line).append("\n"); });
  for (const Record& record : testing::SampleRun()) REQUIRE(ledger.Append(record).ok());
  CHECK(seen == desk.disk->bytes);
}

TEST_CASE("ledger: a line never grows too large to be read back") {
  Desk desk;
  LedgerOptions options;
  options.encode = {ContentMode::kFull, 2048};
  Ledger ledger = desk.Open("run1", options);
  REQUIRE(ledger.Append(testing::SampleRunStarted()).ok());
  // Control characters grow six times in JSON.
  const std::string big(size_t{14} << 20, '\x01');
  REQUIRE(ledger.Append(CallFinished{"c", "t", {big}, false, false, false, 0}).ok());
  CHECK(desk.Lines().back().size() < 20'000);
  ReplyReceived reply;
  for (int i = 0; i < 300'000; ++i) reply.content.emplace_back(Text{"x"});
  REQUIRE(ledger.Append(reply).ok());
  CHECK(desk.Lines().back().size() < kLineWriteBytesMax + 1000);
}

// Every thread opens the file anew for each of its runs, as separate processes would.
void WriteRuns(const std::function<std::unique_ptr<AppendFile>()>& open) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&open, i] {
      HandClock clock;
      for (int k = 0; k < kRuns; ++k) {
        LedgerOptions options;
        options.run = "run-" + std::to_string(i) + "-" + std::to_string(k);
        Ledger ledger(open(), options, kNoSecrets, clock);
        for (const Record& record : testing::SampleRun()) {
          if (!ledger.Append(record).ok()) return;
        }
      }
    });
  }
}

void CheckRuns(const std::string& path) {
  const auto found = Verify(path);
  REQUIRE(found.ok());
  CHECK_MESSAGE(found.value().exit_code() == 0, Describe(found.value()));
  CHECK(found.value().runs.size() == kThreads * kRuns);
  CHECK(found.value().lines == kThreads * kRuns * testing::SampleRun().size());
}

TEST_CASE("ledger: eight threads with their own Ledger on one file give one intact chain") {
  const TempDir dir;
  const auto disk = std::make_shared<MemoryDisk>();
  WriteRuns([&] { return std::make_unique<MemoryAppendFile>(disk); });
  CheckRuns(dir.Write("memory.jsonl", disk->bytes));

  const std::string path = dir / "real.jsonl";
  WriteRuns([&] {
    auto file = OpenAppendFile(path);
    return file.ok() ? std::move(file).value() : nullptr;
  });
  CheckRuns(path);
}

TEST_CASE("ledger: a real file cut anywhere in its last line is continued") {
  const TempDir dir;
  HandClock clock;
  const auto write = [&](const std::string& path, const std::string& run) {
    auto file = OpenAppendFile(path);
    REQUIRE(file.ok());
    LedgerOptions options;
    options.run = run;
    Ledger ledger(std::move(file).value(), options, kNoSecrets, clock);
    for (const Record& record : testing::SampleRun()) REQUIRE(ledger.Announce(record).ok());
  };
  write(dir / "whole.jsonl", "one");
  const std::string bytes = dir.Read("whole.jsonl");
  const size_t last = bytes.rfind('\n', bytes.size() - 2) + 1;
  for (size_t size = last; size <= bytes.size(); size += 101) {
    CAPTURE(size);
    const std::string path = dir.Write("cut.jsonl", bytes.substr(0, size));
    write(path, "two");
    const auto found = Verify(path);
    REQUIRE(found.ok());
    CHECK_MESSAGE(found.value().exit_code() == 3, Describe(found.value()));
    CHECK(found.value().open == std::vector<std::string>{"run one has no run.ended"});
    CHECK((dir.Read("cut.jsonl").find("torn_tail") != std::string::npos) == (size > last));
  }
}

TEST_CASE("ledger: a small record costs microseconds beyond the write") {
  Desk desk;
  const auto redactor =
      Redactor::Make({{"KEY", "sk-test-canary-0123456789"}}, {"ghp_[A-Za-z0-9]{36}"});
  REQUIRE(redactor.ok());
  Ledger ledger(std::make_unique<MemoryAppendFile>(desk.disk), {"run1", {}, true}, redactor.value(),
                desk.clock);
  constexpr int kRecords = 20'000;
  desk.disk->bytes.reserve(kRecords * 600);
  const Record record = testing::SampleJudged();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRecords; ++i) REQUIRE(ledger.Append(record).ok());
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  MESSAGE("microseconds for one record: " << took.count() / kRecords);
  // A bound that also holds on a busy machine with a sanitizer; the real figure is far below.
  CHECK(took.count() / kRecords < 2000);
}

}  // namespace
}  // namespace norma::ledger
