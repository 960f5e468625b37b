// The write-ahead ledger of one run: numbers, stamps, chains and appends records, one write(2) a
// line. Owned by the run thread; only the file's lock is shared with other runs. No line, no act:
// after the first failed write every later one fails too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/result.h"
#include "lib/io/append_file.h"
#include "lib/ledger/record.h"
#include "lib/ledger/redactor.h"

namespace norma::ledger {

struct LedgerOptions {
  std::string run;  // run id
  EncodeOptions encode;
  bool sync_actions = true;  // ledger.sync: action (false: only at the end)
};

class Ledger {
 public:
  // Sees each line as it stands in the file (without newline): the stream-json writer.
  using Tap = std::function<void(const Record& record, std::string_view line)>;

  Ledger(std::unique_ptr<AppendFile> file, LedgerOptions options, const Redactor& redactor,
         Clock& clock);

  // kLedger when the line could not be written whole; nothing half-written stays in the file. In a
  // run.ended, `totals` and `denied` are filled in here: they are the sums of what this run wrote,
  // whatever the caller put there. When a line that a crash had cut was removed from the end of the
  // file, a `warning` record (torn_tail) follows by itself.
  Status Append(const Record& record, std::string_view agent = "main");
  // fdatasync: before an effect and at the end.
  Status Sync();
  // Append + Sync as ledger.sync asks: for lines that announce an effect.
  Status Announce(const Record& record, std::string_view agent = "main");

  void SetTap(Tap tap) { tap_ = std::move(tap); }
  const std::string& run() const { return options_.run; }
  // SHA-256 of the last line this run wrote: `ledger_head`.
  const std::string& head() const { return head_; }
  bool failed() const { return failed_; }
  // Sums of what was appended: `totals` of run.ended is exactly this. `cost` is null when nothing
  // could be priced although something was billed.
  const Totals& totals() const { return totals_; }
  const std::vector<Denied>& denied() const { return denied_; }
  std::pair<uint64_t, uint64_t> FileIdentity() const { return file_->Identity(); }
  // Cost by model is derived by readers; this run has one model.

 private:
  Result<std::string> Encode(const Record& record) const;
  // Seq and hash of the line before ours; kLedger when the file's last line is none of ours.
  struct Link {
    uint64_t seq = 0;
    std::string hash;
  };
  Result<Link> LinkTo(const FileTail& tail) const;
  Status Fail(const Error& error);
  void Count(const Record& record);
  void CountCost(const std::optional<Nano>& cost);

  std::unique_ptr<AppendFile> file_;
  LedgerOptions options_;
  const Redactor& redactor_;
  Clock& clock_;
  Tap tap_;
  std::string head_;
  // Our own last line: while it is still the file's last one, neither parsing nor hashing is
  // needed.
  std::string last_line_;
  uint64_t last_seq_ = 0;
  bool priced_ = false;  // something had a price
  std::string failure_;
  bool failed_ = false;
  Totals totals_;
  std::vector<Denied> denied_;
};

}  // namespace norma::ledger
