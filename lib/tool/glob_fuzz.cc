// Fuzz target: path globs. The input is "pattern NUL path"; matching ends whatever the pattern, a
// plain name matches itself, and `**` in front of a pattern never loses a match.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/tool/glob_match.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using norma::tool::PathGlob;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string_view pattern = input.substr(0, cut);
  const std::string_view path = cut == input.npos ? pattern : input.substr(cut + 1);
  const PathGlob glob = PathGlob::Compile(pattern);
  const bool matches = glob.Matches(path);
  if (!glob.problem().empty()) NORMA_CHECK(!matches);

  bool plain = !path.empty() && path.front() != '/' && path.back() != '/';
  for (const char c : path) {
    plain = plain &&
            (c == '/' || c == '.' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'));
  }
  if (plain && path.find("//") == path.npos && path.find("./") == path.npos) {
    NORMA_CHECK(PathGlob::Compile(path).Matches(path));
    NORMA_CHECK(
        PathGlob::Compile("**/" + std::string(path)).Matches("deep/er/" + std::string(path)));
  }
  return 0;
}
