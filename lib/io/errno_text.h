// What the operating system calls an error, for messages. Thread-safe, unlike strerror(3).
#pragma once

#include <string>
#include <system_error>

namespace norma {

inline std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

}  // namespace norma
