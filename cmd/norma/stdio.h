// The three standard descriptors: whole writes whatever the reader's speed, reads that a signal or
// a deadline can end. No iostream: a failed write must be seen at once.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/base/result.h"

namespace norma::cmd {

enum class WriteOutcome { kDone, kReaderGone, kFailed, kInterrupted };

// Short writes, EINTR and a non-blocking descriptor are waited for, however slow the reader is, but
// not longer than `deadline` and not for a reader that takes nothing for kStalledMax. After
// `cancel` tripped the rest gets `grace` more, so that a stopped run still tells its result to a
// reader that reads. With kFailed errno says why.
constexpr Millis kStalledMax{600'000};
WriteOutcome WriteAll(int fd, std::string_view bytes, const Cancel& cancel, Millis grace,
                      MonoTime deadline = kNever);

// To stderr; never fails. A stderr that takes nothing for a second gets nothing more: progress must
// not hold up a run.
void Complain(std::string_view text);

// Reads `fd` to its end. kUsage when more than `bytes_max` came, kCancelled, kTimeout.
Result<std::string> ReadAll(int fd, size_t bytes_max, MonoTime deadline, const Cancel& cancel);

// The reader of a pipe or socket has closed it.
bool ReaderIsGone(int fd);

}  // namespace norma::cmd
