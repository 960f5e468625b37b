// norma: the command line. For now it only tells its version.
#include <fmt/core.h>

int main() {
  fmt::print("norma {}\n", NORMA_VERSION);
  return 0;
}
