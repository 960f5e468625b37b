#include "lib/chat/message.h"

namespace norma {

std::string TextOf(const Message& message) {
  std::string out;
  for (const Block& block : message.blocks) {
    if (const auto* text = std::get_if<Text>(&block)) out += text->text;
  }
  return out;
}

}  // namespace norma
