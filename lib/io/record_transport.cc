#include "lib/io/record_transport.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/sha256.h"
#include "lib/io/files.h"

namespace norma {
namespace {

constexpr size_t kBodyBytesMax = 256u << 20;
constexpr mode_t kFolderMode = 0700;

Error CannotWrite(const std::string& folder, const char* why) {
  return {Code::kIo, fmt::format("cannot write recordings to {}: {}", folder, why)};
}

// mkdir -p.
Status MakeFolder(const std::string& folder) {
  for (size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    const std::string part = folder.substr(0, slash);
    if (mkdir(part.c_str(), kFolderMode) != 0 && errno != EEXIST) {
      return CannotWrite(folder, std::strerror(errno));
    }
    if (slash == std::string::npos) return {};
  }
}

// Passes everything on and keeps the bytes.
class TeeSink : public HttpSink {
 public:
  explicit TeeSink(HttpSink& inner) : inner_(inner) {}

  void OnHead(const HttpHead& head) override { inner_.OnHead(head); }
  Progress OnBytes(std::string_view bytes) override {
    if (body.size() + bytes.size() > kBodyBytesMax) {
      too_large = true;
      return Progress::kStop;
    }
    body += bytes;
    return inner_.OnBytes(bytes);
  }

  std::string body;
  bool too_large = false;

 private:
  HttpSink& inner_;
};

class RecordTransport : public Transport {
 public:
  RecordTransport(Transport& inner, Recording& recording) : inner_(inner), recording_(recording) {}

  HttpOutcome Send(const HttpRequest& request, HttpSink& sink, const Cancel& cancel,
                   const Wake& wake) override {
    TeeSink tee(sink);
    HttpOutcome outcome = inner_.Send(request, tee, cancel, wake);
    if (outcome.error && outcome.error->failure == HttpFailure::kCancelled) return outcome;
    Status written =
        tee.too_large ? Error{Code::kIo, "the answer is too large for a recording"}
                      : recording_.Add(request, outcome.head, outcome.error, std::move(tee.body));
    if (!written.ok())
      outcome.error = HttpError{HttpFailure::kRecord, written.error().message, true};
    return outcome;
  }

 private:
  Transport& inner_;
  Recording& recording_;
};

}  // namespace

Result<std::unique_ptr<Recording>> Recording::Open(const std::string& folder, Redact redact) {
  NORMA_TRY(MakeFolder(folder));
  // The permission bits alone do not tell: read-only mounts, quotas, a full disk.
  const std::string probe = JoinPath(folder, fmt::format(".probe-{}", getpid()));
  const UniqueFd file(open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return CannotWrite(folder, std::strerror(errno));
  const bool written = write(file.get(), "x", 1) == 1;
  const int why = errno;
  unlink(probe.c_str());
  if (!written) return CannotWrite(folder, std::strerror(why));
  NORMA_ASSIGN(const std::vector<std::string> names, CassetteNames(folder));
  const int last = names.empty() ? 0 : CassetteNumber(names.back());
  return std::unique_ptr<Recording>(new Recording(folder, std::move(redact), last));
}

Status Recording::Add(const HttpRequest& request, const HttpHead& head,
                      const std::optional<HttpError>& error, std::string body) {
  Cassette cassette;
  cassette.request = CanonicalRequest(request, redact_);
  cassette.key = Sha256Hex(cassette.request);
  cassette.head = head;
  cassette.error = error;
  cassette.body = std::move(body);
  const std::lock_guard lock(mutex_);
  cassette.name = CassetteName(last_ + 1, request.method, redact_(EndpointOf(request.url)));
  const Status written = WriteCassette(folder_, cassette, redact_);
  if (!written.ok()) return CannotWrite(folder_, written.error().message.c_str());
  ++last_;
  return {};
}

std::unique_ptr<Transport> NewRecordTransport(Transport& inner, Recording& recording) {
  return std::make_unique<RecordTransport>(inner, recording);
}

}  // namespace norma
