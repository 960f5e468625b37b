// The `script` model: plays replies that the spec wrote down, without key or network, through the
// same callbacks and the same retry policy as a real provider (PRODUCT: "The script model").
#pragma once

#include <memory>

#include "lib/llm/provider.h"

namespace norma::llm {

std::unique_ptr<Provider> NewScriptProvider(const ProviderConfig& config, Clock& clock);

}  // namespace norma::llm
