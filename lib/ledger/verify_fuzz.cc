// Fuzz target: ledgers from anywhere. Reading never fails by more than a fault, and no file is both
// intact and contradicted by the sum of its costs.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/ledger/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace norma;
  // One file in memory for all inputs: opening a path is part of what is tested.
  static const int fd = memfd_create("ledger", MFD_CLOEXEC);
  NORMA_CHECK(fd >= 0);
  NORMA_CHECK(ftruncate(fd, 0) == 0);
  NORMA_CHECK(pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const auto found = ledger::Verify(path);
  NORMA_CHECK(found.ok());
  NORMA_CHECK(found.value().intact == found.value().faults.empty());
  (void)ledger::Describe(found.value());
  const auto cost = ledger::Cost({path});
  if (found.value().intact) NORMA_CHECK(cost.ok());
  return 0;
}
