// Opening below a folder without ever following a symlink. Two ways with one meaning: openat2 does
// it in the kernel in one step; the walk opens one component after the other with O_NOFOLLOW.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/io/files.h"

namespace norma::below {

struct Opened {
  UniqueFd fd;
  int error = 0;  // errno when fd is not valid
};

// `path` is relative, clean and without `..` ("." is the folder itself). A symlink anywhere in it
// is ELOOP or ENOTDIR. `walk_only` keeps openat2 out.
Opened Open(int folder, const std::string& path, int flags, bool walk_only);

// Opens the folder `path`, making what is missing (0755).
Opened MakeFolders(int folder, const std::string& path);

// Temp file in `folder`, sync, rename to `name`. An existing regular file keeps its mode and, where
// we may, its owner; anything else is refused. `new_mode`: of a new file; < 0 means 0666 & ~umask.
// `replace_mode`: the existing file gets new_mode too. `shown` is the path for messages.
Status ReplaceFile(int folder, const std::string& name, std::string_view bytes, int new_mode,
                   bool replace_mode, const std::string& shown);

// Everything in an open regular file, at most `bytes_max`; kInvalid when there is more.
Result<std::string> ReadAll(int fd, uint64_t bytes_max, const std::string& shown);

// What a file is that is no regular one: "is a folder", "is a FIFO" …; "" for a regular one.
std::string NotRegular(mode_t mode);

}  // namespace norma::below
