#include "lib/io/replay_transport.h"

#include <fmt/core.h>

#include <algorithm>

#include "lib/base/sha256.h"

namespace norma {
namespace {

// As a socket would give them: no sink may depend on getting all at once.
constexpr size_t kPieceBytes = 16u << 10;

class ReplayTransport : public Transport {
 public:
  ReplayTransport(ReplayTape& tape, Clock& clock) : tape_(tape), clock_(clock) {}

  HttpOutcome Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                   const Wake&) override {
    HttpOutcome outcome;
    if (cancel.tripped()) {
      outcome.error = HttpError{HttpFailure::kCancelled, "cancelled"};
      return outcome;
    }
    if (clock_.Now() >= request.deadline) {
      outcome.error = HttpError{HttpFailure::kTotal, "the time limit of the request passed"};
      return outcome;
    }
    auto played = tape_.Next(request);
    if (!played.ok()) {
      outcome.error = HttpError{HttpFailure::kReplayMiss, played.error().message, true};
      return outcome;
    }
    outcome.head = played.value().head;
    if (outcome.head.status != 0) sink.OnHead(outcome.head);
    if (Feed(played.value().body, sink, outcome)) outcome.error = played.value().error;
    return outcome;
  }

 private:
  // False: the sink ended the exchange.
  static bool Feed(std::string_view body, HttpSink& sink, HttpOutcome& outcome) {
    while (!body.empty()) {
      const std::string_view piece = body.substr(0, kPieceBytes);
      body.remove_prefix(piece.size());
      outcome.body_bytes += piece.size();
      switch (sink.OnBytes(piece)) {
        case Progress::kNone:
        case Progress::kEvent:
          continue;
        case Progress::kComplete:
          return false;
        case Progress::kStop:
          outcome.error = HttpError{HttpFailure::kStopped, "the rest of the answer was refused"};
          return false;
      }
    }
    return true;
  }

  ReplayTape& tape_;
  Clock& clock_;
};

}  // namespace

Result<std::unique_ptr<ReplayTape>> ReplayTape::Open(const std::string& folder, Redact redact) {
  NORMA_ASSIGN(const std::vector<std::string> names, CassetteNames(folder));
  std::unique_ptr<ReplayTape> tape(new ReplayTape(folder, std::move(redact)));
  for (const std::string& name : names) {
    NORMA_ASSIGN(CassetteHead cassette, ReadCassetteHead(folder, name));
    tape->cassettes_.push_back(std::move(cassette));
  }
  tape->played_.resize(names.size(), false);
  return tape;
}

Result<ReplayTape::Played> ReplayTape::Next(const HttpRequest& request) {
  const std::string canonical = CanonicalRequest(request, redact_);
  const std::string key = Sha256Hex(canonical);
  const std::lock_guard lock(mutex_);
  for (size_t n = 0; n < cassettes_.size(); ++n) {
    if (played_[n] || cassettes_[n].key != key) continue;
    auto body = ReadCassetteBody(folder_, cassettes_[n].name);
    if (!body.ok()) return Error{Code::kReplayMiss, body.error().message};
    played_[n] = true;
    return Played{cassettes_[n].head, cassettes_[n].error, std::move(body).value()};
  }
  return Miss(request, canonical, key);
}

Error ReplayTape::Miss(const HttpRequest& request, const std::string& canonical,
                       const std::string& key) const {
  const auto count = std::ranges::count(cassettes_, key, &CassetteHead::key);
  std::string message = fmt::format("{} holds no recording of {} {}", folder_, request.method,
                                    EndpointOf(request.url));
  if (count > 0) {
    message += fmt::format(": all {} of this very request were played already", count);
    return {Code::kReplayMiss, std::move(message)};
  }
  const auto now = json::Document::Parse(canonical, {1000, false});
  const CassetteHead* nearest = nullptr;
  Difference best;
  for (const CassetteHead& cassette : cassettes_) {
    if (!now.ok()) break;
    Difference found = FirstDifference(cassette.request(), now.value().root());
    if (nearest != nullptr && found.matched <= best.matched) continue;
    nearest = &cassette;
    best = std::move(found);
  }
  if (nearest == nullptr) {
    message += cassettes_.empty() ? "; the folder holds none at all" : "";
  } else if (best.text.empty()) {
    message +=
        fmt::format("; {}.json has the same values in another spelling or order", nearest->name);
  } else {
    message += fmt::format("; the nearest is {}.json, which differs first in {}", nearest->name,
                           best.text);
  }
  return {Code::kReplayMiss, std::move(message)};
}

std::unique_ptr<Transport> NewReplayTransport(ReplayTape& tape, Clock& clock) {
  return std::make_unique<ReplayTransport>(tape, clock);
}

}  // namespace norma
