#include "lib/llm/base_url.h"

#include <vector>

#include "lib/base/text.h"

namespace norma::llm {

std::string BaseUrlWarning(std::string_view endpoint) {
  const size_t scheme = endpoint.find("://");
  const size_t path = endpoint.find('/', scheme == std::string_view::npos ? 0 : scheme + 3);
  if (path == std::string_view::npos) return "";
  const std::vector<std::string_view> parts = Split(endpoint.substr(path + 1), '/');
  for (size_t size = 1; 2 * size <= parts.size(); ++size) {
    for (size_t at = 0; at + 2 * size <= parts.size(); ++at) {
      bool is_twice = true;
      std::string shown;
      for (size_t n = 0; n < size; ++n) {
        is_twice = is_twice && !parts[at + n].empty() && parts[at + n] == parts[at + size + n];
        shown += "/" + std::string(parts[at + n]);
      }
      if (!is_twice) continue;
      return "requests go to " + std::string(endpoint) + ", which holds " + shown +
             " twice; the base URL should end before it";
    }
  }
  return "";
}

}  // namespace norma::llm
