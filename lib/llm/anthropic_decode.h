// Decoder of Anthropic replies: stream frames or one whole body. Blocks are kept by their content
// index, so that interleaved ones do not mix; block types of later API versions are skipped.
#pragma once

#include <memory>

#include "lib/llm/wire.h"

namespace norma::llm {

// A reply with more is refused: it would only fill memory.
inline constexpr size_t kReplyBytesMax = 64u << 20;
inline constexpr size_t kReplyBlocksMax = 4096;

std::unique_ptr<Decoder> NewAnthropicDecoder(DecodeEvents events);

}  // namespace norma::llm
