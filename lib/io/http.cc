// The parts of HTTP that need no library.
#include "lib/io/http.h"

namespace norma {

std::string_view HttpHead::Find(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string EndpointOf(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return std::string(url);
  const size_t authority = scheme_end + 3;
  const std::string_view host = url.substr(authority, url.find('/', authority) - authority);
  const size_t at = host.rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, authority)) + std::string(url.substr(authority + at + 1));
}

}  // namespace norma
