// Verify: the chain of a whole file and, run by run, the promises that RunCheck knows.
#include <memory>
#include <unordered_map>

#include <fmt/core.h>

#include "lib/base/sha256.h"
#include "lib/ledger/envelope.h"
#include "lib/ledger/reader.h"
#include "lib/ledger/run_check.h"

namespace norma::ledger {
namespace {

constexpr size_t kListedMax = 50;
// Bytes of a run id or a summary in a message: they come out of a file that anybody may have
// written.
constexpr size_t kShownBytesMax = 200;

std::string Shown(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kShownBytesMax)) {
    // No control character of a foreign file reaches a terminal.
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return shown;
}

class Verifier {
 public:
  void Take(const RawLine& line) {
    found_.lines = line.number;
    line_ = line.number;
    CheckFrame(line);
    previous_hash_ = Sha256Hex(line.text);
    last_text_ = line.text;
    if (line.value.present()) CheckRun(line.value);
  }

  Verification Finish(uint64_t torn_bytes) {
    found_.torn_bytes = torn_bytes;
    found_.head = previous_hash_;
    // No later line protects the last one: at least it must be spelled as we spell.
    if (found_.lines > 0) {
      const auto minified = json::Minify(last_text_);
      if (minified.ok() && minified.value() != last_text_) Fault("the line was rewritten");
    }
    for (const std::string& run : found_.runs) {
      const auto& check = runs_.at(run);
      if (check == nullptr) continue;
      found_.complete = false;
      AddOpen(fmt::format("run {} has no run.ended", Shown(run)));
      for (const std::string& open : check->Open()) {
        AddOpen(fmt::format("run {}: {}", Shown(run), Shown(open)));
      }
    }
    if (found_.lines == 0 || torn_bytes > 0) found_.complete = false;
    return std::move(found_);
  }

 private:
  void Fault(std::string what) {
    found_.intact = false;
    if (found_.faults.size() < kListedMax) {
      found_.faults.push_back({line_, Shown(what)});
    } else {
      ++found_.faults_left_out;
    }
  }

  void AddOpen(std::string what) {
    if (found_.open.size() < kListedMax) {
      found_.open.push_back(std::move(what));
    } else {
      ++found_.open_left_out;
    }
  }

  // Everything that holds for any record, whatever its kind.
  void CheckFrame(const RawLine& line) {
    if (!line.value.present()) {
      Fault(fmt::format("no strict JSON object: {}", line.fault));
      ++previous_seq_;
      return;
    }
    const json::Value record = line.value;
    const std::optional<uint64_t> seq = SeqOf(line.text);
    if (!seq.has_value()) {
      Fault("does not begin with v 1 and seq, or does not end with prev, as every record does");
      ++previous_seq_;
    } else {
      if (*seq != previous_seq_ + 1) {
        Fault(fmt::format("seq is {}, expected {}", *seq, previous_seq_ + 1));
      }
      previous_seq_ = *seq;
    }
    if (record["prev"].Str() != previous_hash_) {
      Fault(line.number == 1 ? "prev of the first record is not 64 zeros: lines before it are gone"
                             : "the chain breaks: prev is not the SHA-256 of the line before");
    }
    if (!IsTimestamp(record["t"].Str())) Fault("t is no UTC time with microseconds");
    for (const std::string_view key : {"run", "agent", "kind"}) {
      if (record[key].Str().empty()) Fault(fmt::format("no {}", key));
    }
    if (record["kind"].Str() == "run.ended" && !CheckHolds(line.text)) {
      Fault("the record's own check does not hold: it was changed");
    }
  }

  void CheckRun(json::Value record) {
    const std::string run(record["run"].Str());
    auto found = runs_.find(run);
    if (found == runs_.end()) {
      found = runs_.emplace(run, std::make_unique<RunCheck>()).first;
      found_.runs.push_back(run);
    }
    std::unique_ptr<RunCheck>& check = found->second;
    if (check == nullptr) {
      Fault(fmt::format("{} of run {} comes after its run.ended", record["kind"].Str(), run));
      return;
    }
    check->Take(record, [this](std::string what) { Fault(std::move(what)); });
    // Nothing but the id stays of a run that is over: shared files hold very many.
    if (check->ended()) check.reset();
  }

  Verification found_;
  uint64_t line_ = 0;
  uint64_t previous_seq_ = 0;
  std::string previous_hash_{kNoHash};
  std::string last_text_;
  std::unordered_map<std::string, std::unique_ptr<RunCheck>> runs_;  // null: ended
};

}  // namespace

Result<Verification> Verify(const std::string& path) {
  Verifier verifier;
  uint64_t torn_bytes = 0;
  NORMA_TRY(ReadLines(
      path,
      [&](const RawLine& line) {
        verifier.Take(line);
        return true;
      },
      &torn_bytes));
  return verifier.Finish(torn_bytes);
}

std::string Describe(const Verification& v) {
  std::string text;
  if (!v.intact) {
    text = v.complete ? "not intact, but complete" : "not intact, not complete";
  } else {
    text = v.complete ? "intact and complete" : "intact, not complete";
  }
  text += fmt::format(": {} line{}, {} run{}\n", v.lines, v.lines == 1 ? "" : "s", v.runs.size(),
                      v.runs.size() == 1 ? "" : "s");
  for (const Fault& fault : v.faults) {
    text += fmt::format("  line {}: {}\n", fault.line, fault.what);
  }
  if (v.faults_left_out > 0) text += fmt::format("  and {} more faults\n", v.faults_left_out);
  for (const std::string& open : v.open) text += fmt::format("  {}\n", open);
  if (v.open_left_out > 0) text += fmt::format("  and {} more open items\n", v.open_left_out);
  if (v.torn_bytes > 0) {
    text += fmt::format(
        "  {} bytes of a line that was cut stand at the end (a crash, or a write "
        "that is still under way)\n",
        v.torn_bytes);
  }
  return text + fmt::format("head {}\n", v.head);
}

}  // namespace norma::ledger
