#include "lib/base/cancel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "lib/base/result.h"

namespace norma {

Cancel::Cancel() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  NORMA_CHECK(fd_ >= 0);
}

Cancel::~Cancel() {
  close(fd_);
}

void Cancel::Trip(int cause) noexcept {
  const int saved_errno = errno;  // a signal handler must not disturb the interrupted code
  int expected = kNone;
  if (cause_.compare_exchange_strong(expected, cause, std::memory_order_acq_rel)) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
  }
  errno = saved_errno;
}

}  // namespace norma
