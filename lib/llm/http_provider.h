// Provider over HTTP: any Wire, a Transport and the retry ladder. Decides what an answer is (a
// stream, a body, an error, a page of some proxy) and what a failure means.
#pragma once

#include <memory>

#include "lib/llm/provider.h"
#include "lib/llm/wire.h"

namespace norma::llm {

// kSpec when URL, proxy, headers or key cannot be used. `transport` and `clock` must outlive it.
Result<std::unique_ptr<Provider>> NewHttpProvider(const ProviderConfig& config,
                                                  std::unique_ptr<Wire> wire, Transport& transport,
                                                  Clock& clock);

}  // namespace norma::llm
