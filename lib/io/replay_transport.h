// Replay: answers come from a folder of cassettes, and from nowhere else. A request without a
// recording ends as HttpFailure::kReplayMiss with the difference to the nearest one; it is never
// sent. Time is not replayed: an answer is there at once.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/io/cassette.h"
#include "lib/io/http.h"

namespace norma {

// The cassettes of a folder; shared by all transports of a process. Several recordings of one
// request are played in the order in which they were recorded, each once.
class ReplayTape {
 public:
  // kIo when the folder cannot be read, kInvalid for a file that is no recording.
  static Result<std::unique_ptr<ReplayTape>> Open(const std::string& folder, Redact redact);

  struct Played {
    HttpHead head;
    std::optional<HttpError> error;
    std::string body;
  };
  // The next recording of this request; kReplayMiss when there is none. Any thread.
  Result<Played> Next(const HttpRequest& request);

 private:
  ReplayTape(std::string folder, Redact redact)
      : folder_(std::move(folder)), redact_(std::move(redact)) {}
  Error Miss(const HttpRequest& request, const std::string& canonical,
             const std::string& key) const;

  const std::string folder_;
  const Redact redact_;
  std::mutex mutex_;
  std::vector<CassetteHead> cassettes_;
  std::vector<bool> played_;
};

// `tape` and `clock` must outlive it.
std::unique_ptr<Transport> NewReplayTransport(ReplayTape& tape, Clock& clock);

}  // namespace norma
