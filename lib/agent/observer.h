// The mouth of a run: cmd implements it. All methods are called on the run thread.
#pragma once

#include <string>
#include <string_view>

#include "lib/ledger/record.h"

namespace norma::agent {

struct RunResult;

class Observer {
 public:
  virtual ~Observer() = default;
  // A record is in the ledger; `line` is how it stands there (already redacted).
  virtual void OnRecord(const ledger::Record& record, std::string_view line) = 0;
  // Once in a while the run waits: for a person who watches.
  virtual void OnTick(std::string_view doing) = 0;
  // The answer, before run.ended is written, so that an answer that reached nobody is not recorded
  // as delivered. Empty: it is out; else why it is not.
  virtual std::string Deliver(const RunResult& result) = 0;
};

}  // namespace norma::agent
