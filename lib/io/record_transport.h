// Recording: every exchange of a transport is also written down as a cassette. Failed statuses and
// broken streams too; only what was cancelled is not, since it says nothing about the peer.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "lib/io/cassette.h"
#include "lib/io/http.h"

namespace norma {

// A folder that takes cassettes; shared by all transports of a process.
class Recording {
 public:
  // Makes the folder (0700) and proves that it can be written: kIo when not. Cassettes that are
  // there stay, the new ones get the numbers behind them.
  static Result<std::unique_ptr<Recording>> Open(const std::string& folder, Redact redact);

  // Any thread.
  Status Add(const HttpRequest& request, const HttpHead& head,
             const std::optional<HttpError>& error, std::string body);

 private:
  Recording(std::string folder, Redact redact, int last)
      : folder_(std::move(folder)), redact_(std::move(redact)), last_(last) {}

  const std::string folder_;
  const Redact redact_;
  std::mutex mutex_;
  int last_;  // number of the newest cassette
};

// An exchange that cannot be written down ends as HttpFailure::kRecord. `inner` and `recording`
// must outlive it.
std::unique_ptr<Transport> NewRecordTransport(Transport& inner, Recording& recording);

}  // namespace norma
