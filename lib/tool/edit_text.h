// The text half of Edit and MultiEdit: finds, counts and replaces in a file's bytes. Pure.
// Everything outside the replaced places stays byte for byte: line endings, BOM, invalid UTF-8, a
// missing final newline.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace norma::tool {

struct TextEdit {
  std::string old_text;
  std::string new_text;
  bool replace_all = false;
};

struct EditedText {
  std::string text;
  size_t replacements = 0;
};

// Exact bytes are tried first; then, when old_text has LF breaks and no CR, a text whose breaks are
// CRLF at that place. New text without a CR takes over the file's breaks at each place; text that
// spells a CR is taken literally. kInvalid when nothing is to be done, found, or unique, or when
// the result would exceed `bytes_max`.
Result<EditedText> ApplyEdit(std::string_view text, const TextEdit& edit, size_t bytes_max);

}  // namespace norma::tool
