// The frame around every record, as bytes: what the writer puts and the reader expects, in one
// place.
//   {"v":1,"seq":N,"t":"…","run":"…","agent":"…","kind":"…",<fields>[,"check":"…"],"prev":"…"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace norma::ledger {

inline constexpr int64_t kFormatVersion = 1;
inline constexpr size_t kHashBytes = 64;  // SHA-256 in hex
// `prev` of a file's first record.
inline constexpr std::string_view kNoHash =
    "0000000000000000000000000000000000000000000000000000000000000000";
static_assert(kNoHash.size() == kHashBytes);
// Lines are written up to the first and read up to the second size.
inline constexpr size_t kLineWriteBytesMax = size_t{32} << 20;
inline constexpr size_t kLineReadBytesMax = size_t{64} << 20;

struct Envelope {
  uint64_t seq = 0;
  std::string_view t, run, agent, kind, prev;
};

// One line without newline. `check`: add the self-check that run.ended carries, because no later
// line protects it: SHA-256 of the line in which `check` is 64 zeros.
std::string MakeLine(const Envelope& envelope, std::string_view fields, bool check);

bool IsHash(std::string_view text);
// Seq of a line that has the frame's first and last bytes; nothing when it is no line of ours.
std::optional<uint64_t> SeqOf(std::string_view line);
// False when the line has no self-check at its place or it does not hold.
bool CheckHolds(std::string_view line);
// "2026-12-01T09:30:00.123456Z"
bool IsTimestamp(std::string_view text);

}  // namespace norma::ledger
