// Decoder of Responses API replies: stream events or one whole body. Items are kept by id and
// output index; events that say it all again at the end of an item count where the deltas did not.
#pragma once

#include <memory>

#include "lib/llm/wire.h"

namespace norma::llm {

std::unique_ptr<Decoder> NewOpenAiResponsesDecoder(DecodeEvents events);

}  // namespace norma::llm
