// Reads ledgers that other processes wrote, perhaps until a crash: line by line in bounded memory,
// independent of the writer. Verify checks the chain and the promises; Cost sums what was paid.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/ledger/record.h"

namespace norma::ledger {

// Calls `visit` for each whole line with its parsed object, until it returns false; stops at the
// first error of the file itself. `torn_bytes` gets the bytes after the last newline. A line over
// 64 MiB is kInvalid. Text and value are valid during the visit only. Reads a regular file or a
// pipe.
struct RawLine {
  uint64_t number = 0;     // from 1
  std::string_view text;   // without newline
  json::Value value;       // absent when it is no strict JSON object
  std::string_view fault;  // then: why
};
Status ReadLines(const std::string& path, const std::function<bool(const RawLine&)>& visit,
                 uint64_t* torn_bytes);

struct Fault {
  uint64_t line = 0;
  std::string what;
};

// What verify found. `intact`: the chain holds, numbers are gap-free, the pairs of records obey
// PRODUCT §5, and every run.ended equals the sums of its records. `complete`: each run ended.
struct Verification {
  bool intact = true;
  bool complete = true;
  std::vector<Fault> faults;      // at most 50, in order; intact is false when not empty
  std::vector<std::string> open;  // "run 7f…: action a3 (bash: make) started, never finished"
                                  // at most 50
  uint64_t faults_left_out = 0, open_left_out = 0;  // beyond the 50
  uint64_t lines = 0;
  uint64_t torn_bytes = 0;
  std::vector<std::string> runs;  // run ids in order of their first line
  std::string head;               // SHA-256 of the last whole line; 64 zeros without one
  int exit_code() const { return !intact ? 1 : complete ? 0 : 3; }
};
Result<Verification> Verify(const std::string& path);
// For people, several lines: "intact, not complete: 41 lines, 1 run", then what is open or wrong,
// last "head 3f…". Always says both words, intact and complete.
std::string Describe(const Verification& verification);

// Sums over any number of files. Keys: model, agent, day (UTC), tool (calls and actions only).
struct CostLine {
  int64_t requests = 0, replies = 0, calls = 0, actions = 0, denied = 0, unpriced = 0;
  int64_t input = 0, output = 0, cache_read = 0, cache_write = 0;
  Nano cost = 0;
};
struct CostReport {
  CostLine total;
  std::map<std::string, CostLine> by_model, by_day, by_tool, by_agent;
  int64_t runs = 0;
  int64_t open_requests = 0;  // sent, no answer recorded (a crash): their reservations
  Nano open_reserved = 0;
};
// kInvalid when a whole line is no record: money is not summed over a broken ledger.
Result<CostReport> Cost(const std::vector<std::string>& paths);

// JSON Schema of the records, for `norma schema ledger`.
std::string LedgerSchemaJson();

}  // namespace norma::ledger
