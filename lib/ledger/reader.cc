#include "lib/ledger/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "lib/io/files.h"
#include "lib/ledger/envelope.h"

namespace norma::ledger {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;

Error FileError(const std::string& path, std::string_view verb, int error) {
  return {error == ENOENT ? Code::kNotFound : Code::kIo,
          fmt::format("cannot {} the ledger {}: {}", verb, path, std::strerror(error))};
}

Result<UniqueFd> OpenForReading(const std::string& path) {
  // O_NONBLOCK: opening a FIFO that nobody writes to must not hang.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return FileError(path, "open", errno);
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return FileError(path, "look at", errno);
  if (!S_ISREG(facts.st_mode) && !S_ISFIFO(facts.st_mode)) {
    return Error{Code::kInvalid, path + " is neither a file nor a pipe, so it is no ledger"};
  }
  // A pipe is read like `cat` does: until its writer closes it.
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return FileError(path, "open", errno);
  }
  return fd;
}

// Cuts a stream of chunks into lines; keeps no more than one line.
class LineCutter {
 public:
  explicit LineCutter(const std::function<bool(const RawLine&)>& visit) : visit_(visit) {}

  // False when the visitor has seen enough.
  Result<bool> Take(std::string_view chunk, const std::string& path) {
    while (!chunk.empty()) {
      const size_t newline = chunk.find('\n');
      const std::string_view part = chunk.substr(0, newline);
      if (pending_.size() + part.size() > kLineReadBytesMax) {
        return Error{Code::kInvalid,
                     fmt::format("{}: line {} is longer than 64 MiB: this is no ledger of norma",
                                 path, number_ + 1)};
      }
      if (newline == std::string_view::npos) {
        pending_.append(part);
        return true;
      }
      chunk.remove_prefix(newline + 1);
      if (pending_.empty()) {
        if (!Visit(part)) return false;
      } else {
        pending_.append(part);
        if (!Visit(pending_)) return false;
        pending_.clear();
      }
    }
    return true;
  }

  uint64_t pending_bytes() const { return pending_.size(); }

 private:
  bool Visit(std::string_view text) {
    RawLine line;
    line.number = ++number_;
    line.text = text;
    const auto parsed = parser_.Parse(text);
    if (!parsed.ok()) {
      line.fault = parsed.error().message;
    } else if (!parsed.value().is_object()) {
      line.fault = "not a JSON object";
    } else {
      line.value = parsed.value();
    }
    return visit_(line);
  }

  const std::function<bool(const RawLine&)>& visit_;
  json::Parser parser_;
  std::string pending_;
  uint64_t number_ = 0;
};

}  // namespace

Status ReadLines(const std::string& path, const std::function<bool(const RawLine&)>& visit,
                 uint64_t* torn_bytes) {
  if (torn_bytes != nullptr) *torn_bytes = 0;
  NORMA_ASSIGN(const UniqueFd fd, OpenForReading(path));
  LineCutter cutter(visit);
  std::string buffer(kChunkBytes, '\0');
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      return FileError(path, "read", errno);
    }
    if (got == 0) break;
    NORMA_ASSIGN(const bool more,
                 cutter.Take(std::string_view(buffer).substr(0, static_cast<size_t>(got)), path));
    if (!more) return {};
  }
  if (torn_bytes != nullptr) *torn_bytes = cutter.pending_bytes();
  return {};
}

}  // namespace norma::ledger
