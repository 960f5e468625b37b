// Decoder of Chat Completions replies, as OpenAI and the many servers that speak its format send
// them: stream chunks or one whole body. Only choice 0 counts.
#pragma once

#include <memory>

#include "lib/llm/wire.h"

namespace norma::llm {

std::unique_ptr<Decoder> NewOpenAiChatDecoder(DecodeEvents events);

}  // namespace norma::llm
