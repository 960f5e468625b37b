#include "lib/ledger/envelope.h"

#include <charconv>

#include "lib/base/json.h"
#include "lib/base/sha256.h"

namespace norma::ledger {
namespace {

constexpr std::string_view kHead = "{\"v\":1,\"seq\":";
constexpr std::string_view kPrevKey = ",\"prev\":\"";
constexpr std::string_view kCheckKey = ",\"check\":\"";
constexpr std::string_view kTail = "\"}";
constexpr size_t kPrevBytes = kPrevKey.size() + kHashBytes + kTail.size();
// `check` from its comma to its closing quote.
constexpr size_t kCheckBytes = kCheckKey.size() + kHashBytes + 1;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string MakeLine(const Envelope& envelope, std::string_view fields, bool check) {
  std::string line;
  line.reserve(fields.size() + 320);
  line.append(kHead).append(std::to_string(envelope.seq));
  line.append(",\"t\":\"").append(envelope.t).append("\",\"run\":");
  json::AppendQuoted(line, envelope.run);
  line.append(",\"agent\":");
  json::AppendQuoted(line, envelope.agent);
  line.append(",\"kind\":\"").append(envelope.kind).append("\",");
  line.append(fields);
  const size_t check_at = line.size() + kCheckKey.size();
  if (check) line.append(kCheckKey).append(kNoHash).append("\"");
  line.append(kPrevKey).append(envelope.prev).append(kTail);
  if (check) line.replace(check_at, kHashBytes, Sha256Hex(line));
  return line;
}

bool IsHash(std::string_view text) {
  if (text.size() != kHashBytes) return false;
  for (const char c : text) {
    if (!IsDigit(c) && !(c >= 'a' && c <= 'f')) return false;
  }
  return true;
}

std::optional<uint64_t> SeqOf(std::string_view line) {
  if (line.size() < kHead.size() + kPrevBytes || line.substr(0, kHead.size()) != kHead) {
    return std::nullopt;
  }
  uint64_t seq = 0;
  const char* begin = line.data() + kHead.size();
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), seq);
  const size_t digits = static_cast<size_t>(end - begin);
  if (error != std::errc{} || seq == 0 || *begin == '0') return std::nullopt;
  if (line.substr(kHead.size() + digits, 6) != ",\"t\":\"") return std::nullopt;
  const std::string_view tail = line.substr(line.size() - kPrevBytes);
  if (tail.substr(0, kPrevKey.size()) != kPrevKey) return std::nullopt;
  if (!IsHash(tail.substr(kPrevKey.size(), kHashBytes))) return std::nullopt;
  if (tail.substr(kPrevBytes - kTail.size()) != kTail) return std::nullopt;
  return seq;
}

bool CheckHolds(std::string_view line) {
  if (line.size() < kPrevBytes + kCheckBytes) return false;
  const size_t at = line.size() - kPrevBytes - kCheckBytes;
  if (line.substr(at, kCheckKey.size()) != kCheckKey) return false;
  const std::string_view claimed = line.substr(at + kCheckKey.size(), kHashBytes);
  std::string blank(line);
  blank.replace(at + kCheckKey.size(), kHashBytes, kNoHash);
  return Sha256Hex(blank) == claimed;
}

bool IsTimestamp(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000000Z";
  if (text.size() != kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == '0' ? !IsDigit(text[i]) : text[i] != kShape[i]) return false;
  }
  return true;
}

}  // namespace norma::ledger
