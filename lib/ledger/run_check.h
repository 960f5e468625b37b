// The promises of PRODUCT §5 about the records of one run, checked as they come by: pairs, order,
// sums, the end. Knows nothing of files, chains or other runs. Keeps open items only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/ledger/record.h"

namespace norma::ledger {

class RunCheck {
 public:
  // Called for each broken promise.
  using Report = std::function<void(std::string what)>;

  // One record, in file order.
  void Take(json::Value record, const Report& fault);
  bool ended() const { return ended_; }
  // What was begun and not finished, as sentences: "action a3 (bash: make) started, never
  // finished".
  std::vector<std::string> Open() const;

 private:
  struct OpenCall {
    int64_t count = 0;  // a model may use an id twice
    bool allowed = false;
    std::string tool;
  };

  void TakeRequest(std::string_view kind, json::Value record, const Report& fault);
  void TakeCall(std::string_view kind, json::Value record, const Report& fault);
  void TakeAction(std::string_view kind, json::Value record, const Report& fault);
  void TakeEnd(json::Value record, const Report& fault);
  void Bill(json::Value record, bool is_reply, const Report& fault);
  void CompareTotals(json::Value totals, const Report& fault) const;
  void CompareDenied(json::Value denied, const Report& fault) const;

  bool started_ = false;
  bool ended_ = false;
  bool priced_ = false;
  Totals sums_;
  std::vector<Denied> denied_;
  std::map<std::string, std::string, std::less<>> requests_, actions_;  // key → for people
  std::map<std::string, OpenCall, std::less<>> calls_;                  // agent and call id
};

}  // namespace norma::ledger
