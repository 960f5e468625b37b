// The mouth of a run: progress and errors to stderr, the answer to stdout, and nothing else there.
#pragma once

#include <string>
#include <string_view>

#include "cmd/norma/flags.h"
#include "lib/agent/observer.h"
#include "lib/agent/run.h"
#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/ledger/redactor.h"

namespace norma::cmd {

class Mouth : public agent::Observer {
 public:
  Mouth(const RunFlags& flags, const ledger::Redactor& redactor, Cancel& cancel,
        bool stdout_was_closed, MonoTime deadline);

  void OnRecord(const ledger::Record& record, std::string_view line) override;
  void OnTick(std::string_view doing) override;
  std::string Deliver(const agent::RunResult& result) override;

  // After the run: the result object (json formats) and what a person is told. Gives the exit code,
  // which differs from the result's only when the result could not be written.
  int Close(const agent::RunResult& result);

  bool is_live() const { return live_; }

 private:
  void Say(std::string_view line);  // one line to stderr, around the live line
  void ClearLive();
  bool WriteOut(std::string_view bytes);
  std::string DescribeRecord(const ledger::Record& record) const;

  const OutputFormat format_;
  const bool quiet_;
  const bool verbose_;
  const ledger::Redactor& redactor_;
  Cancel& cancel_;
  const bool live_;          // stderr is a terminal: one line that changes
  const MonoTime deadline_;  // of everything written to stdout
  std::string lost_;         // why stdout takes nothing any more, empty while it does
  bool live_shown_ = false;
  MonoTime started_;
};

// "2 requests · 1 call (1 denied) · 220 in, 40 out · $0.00126".
std::string Summary(const agent::RunResult& result);

}  // namespace norma::cmd
