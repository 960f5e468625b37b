// Decoder of Anthropic replies: stream frames or one whole body. Blocks are kept by their content
// index, so that interleaved ones do not mix; block types of later API versions are skipped.
#pragma once

#include <memory>

#include "lib/llm/wire.h"

namespace norma::llm {

std::unique_ptr<Decoder> NewAnthropicDecoder(DecodeEvents events);

}  // namespace norma::llm
