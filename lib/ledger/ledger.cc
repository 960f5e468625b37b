#include "lib/ledger/ledger.h"

#include <algorithm>

#include <fmt/core.h>

#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/ledger/envelope.h"

namespace norma::ledger {
namespace {

// Used when a line in full mode would become too large to be read back.
constexpr size_t kFallbackExcerptBytes = 2048;

bool IsOfRun(const std::string& line, std::string_view run) {
  const auto record = json::Document::Parse(line);
  return record.ok() && record.value().root()["run"].Str() == run;
}

}  // namespace

Ledger::Ledger(std::unique_ptr<AppendFile> file, LedgerOptions options, const Redactor& redactor,
               Clock& clock)
    : file_(std::move(file)), options_(std::move(options)), redactor_(redactor), clock_(clock) {
  NORMA_CHECK(file_ != nullptr);
  NORMA_CHECK(!options_.run.empty());
}

Status Ledger::Append(const Record& record, std::string_view agent) {
  if (failed_) return Error{Code::kLedger, failure_};
  const auto* ended = std::get_if<RunEnded>(&record);
  Record closing;
  if (ended != nullptr) {
    RunEnded sums = *ended;
    sums.totals = totals_;
    sums.denied = denied_;
    closing = std::move(sums);
  }
  const Record& written = ended != nullptr ? closing : record;
  auto fields = Encode(written);
  if (!fields.ok()) return Fail(fields.error());

  const std::string clean_agent = redactor_.Clean(agent);
  uint64_t seq = 0;
  uint64_t torn_bytes = 0;
  std::string line;
  const Status status = file_->Append([&](const FileTail& tail) -> Result<std::string> {
    NORMA_ASSIGN(const Link link, LinkTo(tail));
    seq = link.seq + 1;
    torn_bytes = tail.torn_bytes;
    const std::string t = FormatUtc(clock_.Wall());
    line = MakeLine({seq, t, options_.run, clean_agent, KindOf(written), link.hash}, fields.value(),
                    ended != nullptr);
    return line;
  });
  if (!status.ok()) return Fail(status.error());

  head_ = Sha256Hex(line);
  last_line_ = std::move(line);
  last_seq_ = seq;
  Count(written);
  if (tap_) tap_(record, last_line_);
  if (torn_bytes > 0 && ended == nullptr) {
    return Append(Warning{"torn_tail", fmt::format("the ledger ended in {} bytes of a line that a "
                                                   "crash had cut; they were removed",
                                                   torn_bytes)});
  }
  return {};
}

Status Ledger::Sync() {
  if (failed_) return Error{Code::kLedger, failure_};
  const Status status = file_->Sync();
  // After a failed fdatasync the next one may succeed without the lost pages: never trust it again.
  if (!status.ok()) return Fail(status.error());
  return {};
}

Status Ledger::Announce(const Record& record, std::string_view agent) {
  NORMA_TRY(Append(record, agent));
  if (!options_.sync_actions) return {};
  return Sync();
}

// A line too large to be read back says less instead: excerpts, then digests.
Result<std::string> Ledger::Encode(const Record& record) const {
  std::string fields = EncodeFields(record, options_.encode, redactor_);
  if (fields.size() > kLineWriteBytesMax) {
    const size_t bytes = std::min(options_.encode.excerpt_bytes, kFallbackExcerptBytes);
    fields = EncodeFields(record, {ContentMode::kExcerpt, bytes}, redactor_);
  }
  if (fields.size() > kLineWriteBytesMax) {
    fields = EncodeFields(record, {ContentMode::kDigest, 0}, redactor_);
  }
  if (fields.size() > kLineWriteBytesMax) {
    return Error{Code::kLedger, fmt::format("a {} record of {} bytes is too large for the ledger",
                                            KindOf(record), fields.size())};
  }
  return fields;
}

Result<Ledger::Link> Ledger::LinkTo(const FileTail& tail) const {
  if (tail.size == 0) {
    // Bytes without any newline may be somebody's file: cutting them off would destroy it.
    if (tail.torn_bytes > 0) {
      return Error{Code::kLedger,
                   fmt::format("the ledger file holds {} bytes but no whole line, so it may be "
                               "something else; move it away or choose another ledger.path",
                               tail.torn_bytes)};
    }
    return Link{0, std::string(kNoHash)};
  }
  if (last_seq_ > 0 && tail.last_line == last_line_) return Link{last_seq_, head_};
  const std::optional<uint64_t> seq = SeqOf(tail.last_line);
  if (!seq.has_value() || *seq == UINT64_MAX) {
    return Error{Code::kLedger,
                 "the ledger file is not a ledger of norma (its last line is no record of one); "
                 "nothing was written to it, choose another ledger.path"};
  }
  if (last_seq_ > 0 && IsOfRun(tail.last_line, options_.run)) {
    return Error{Code::kLedger,
                 "a line in the name of this run stands in the ledger that this run did not write: "
                 "something else, perhaps a command of the model, writes to the file"};
  }
  return Link{*seq, Sha256Hex(tail.last_line)};
}

Status Ledger::Fail(const Error& error) {
  failed_ = true;
  failure_ = error.code == Code::kLedger ? error.message
                                         : "the ledger cannot be written: " + error.message;
  return Error{Code::kLedger, failure_};
}

void Ledger::CountCost(const std::optional<Nano>& cost) {
  if (cost.has_value()) {
    if (!priced_) totals_.cost = 0;
    priced_ = true;
    totals_.cost = SaturatingAdd(totals_.cost.value_or(0), *cost);
  } else if (!priced_) {
    totals_.cost = std::nullopt;
  }
}

void Ledger::Count(const Record& record) {
  const auto add = [this](const Usage& usage) {
    totals_.input = SaturatingAdd(totals_.input, usage.input);
    totals_.output = SaturatingAdd(totals_.output, usage.output);
    totals_.cache_read = SaturatingAdd(totals_.cache_read, usage.cache_read);
    const int64_t write = SaturatingAdd(usage.cache_write_5m, usage.cache_write_1h);
    totals_.cache_write = SaturatingAdd(totals_.cache_write, write);
  };
  if (std::holds_alternative<RequestSent>(record)) {
    ++totals_.requests;
  } else if (const auto* failed = std::get_if<RequestFailed>(&record)) {
    if (failed->usage.has_value()) add(*failed->usage);
    if (failed->usage.has_value() || failed->cost.has_value()) CountCost(failed->cost);
  } else if (const auto* reply = std::get_if<ReplyReceived>(&record)) {
    ++totals_.replies;
    add(reply->usage);
    if (!reply->cost.has_value()) ++totals_.unpriced;
    CountCost(reply->cost);
  } else if (const auto* judged = std::get_if<CallJudged>(&record)) {
    ++totals_.calls;
    if (judged->verdict == "deny") denied_.push_back({judged->tool, judged->call, judged->rule});
  } else if (std::holds_alternative<ActionStarted>(record)) {
    ++totals_.actions;
  }
}

}  // namespace norma::ledger
