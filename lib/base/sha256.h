// SHA-256 in lower-case hex. OpenSSL's EVP lives behind sha256.cc alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace norma {

std::string Sha256Hex(std::string_view bytes);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void Update(std::string_view bytes);
  std::string FinishHex();  // once

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace norma
