// OpenSSL's EVP is the only implementation here: it uses the SHA instructions of the machine.
#include "lib/base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <span>

#include "lib/base/result.h"
#include "lib/base/text.h"

namespace norma {
namespace {

constexpr size_t kDigestBytes = 32;

// Looked up once: EVP_sha256() would search the providers again for every ledger line.
const EVP_MD* Algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  NORMA_CHECK(algorithm != nullptr);
  return algorithm;
}

}  // namespace

struct Sha256::Impl {
  Impl() : context(EVP_MD_CTX_new()) {
    NORMA_CHECK(context != nullptr);
    NORMA_CHECK(EVP_DigestInit_ex2(context.get(), Algorithm(), nullptr) == 1);
  }

  struct Free {
    void operator()(EVP_MD_CTX* dead) const { EVP_MD_CTX_free(dead); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context;
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  NORMA_CHECK(impl_ != nullptr);
  NORMA_CHECK(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::FinishHex() {
  NORMA_CHECK(impl_ != nullptr);
  std::array<unsigned char, kDigestBytes> digest{};
  unsigned int length = 0;
  NORMA_CHECK(EVP_DigestFinal_ex(impl_->context.get(), digest.data(), &length) == 1);
  NORMA_CHECK(length == kDigestBytes);
  impl_.reset();  // a second call is a bug of the caller, not the digest of nothing
  return Hex(digest);
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 sha;
  sha.Update(bytes);
  return sha.FinishHex();
}

}  // namespace norma
