// See edit_text.h. All searching is memmem (linear), also for hostile texts.
#include "lib/tool/edit_text.h"

#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "lib/base/regex.h"
#include "lib/base/text.h"

namespace norma::tool {
namespace {

constexpr size_t kNone = std::string_view::npos;

size_t FindText(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return kNone;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? kNone
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

// Non-overlapping, from the left. `part` is not empty.
std::vector<Span> FindAll(std::string_view text, std::string_view part) {
  std::vector<Span> found;
  for (size_t at = FindText(text, part, 0); at != kNone;
       at = FindText(text, part, at + part.size())) {
    found.push_back({at, at + part.size()});
  }
  return found;
}

bool BeginsCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

// An empty old_string stands before every character and at the end. A byte that is no UTF-8 counts
// with the character before it.
std::vector<Span> FindGaps(std::string_view text) {
  std::vector<Span> found;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == 0 || BeginsCharacter(text[i])) found.push_back({i, i});
  }
  found.push_back({text.size(), text.size()});
  return found;
}

// Places in `text` where `part` stands if each CRLF is read as LF.
std::vector<Span> FindAcrossBreaks(std::string_view text, std::string_view part) {
  if (text.find("\r\n") == kNone) return {};
  const std::string plain = ReplaceAll(text, "\r\n", "\n");
  std::vector<Span> found = FindAll(plain, part);
  // Back to places in `text`: one walk, since both lists ascend. A break begins at its CR.
  size_t at = 0, plain_at = 0;
  const auto advance = [&](size_t to) {
    while (plain_at < to) {
      at += text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
      ++plain_at;
    }
    return at;
  };
  for (Span& span : found) {
    span.begin = advance(span.begin);
    span.end = advance(span.end);
  }
  return found;
}

// Which break the file uses at this place: inside what is replaced, else at the end of that line,
// else at the end of the line before.
bool UsesCrlf(std::string_view text, const Span& place) {
  size_t lf = text.find('\n', place.begin);
  if (lf == kNone && place.begin > 0) lf = text.rfind('\n', place.begin - 1);
  return lf != kNone && lf > 0 && text[lf - 1] == '\r';
}

}  // namespace

Result<EditedText> ApplyEdit(std::string_view text, const TextEdit& edit, size_t bytes_max) {
  if (edit.old_text == edit.new_text) {
    return Error{Code::kInvalid, "old_string and new_string are the same: nothing to do"};
  }
  const bool spells_cr = edit.old_text.find('\r') != kNone || edit.new_text.find('\r') != kNone;
  std::vector<Span> places = edit.old_text.empty() ? FindGaps(text) : FindAll(text, edit.old_text);
  if (places.empty() && edit.old_text.find('\n') != kNone && edit.old_text.find('\r') == kNone) {
    places = FindAcrossBreaks(text, edit.old_text);
  }
  if (places.empty()) {
    return Error{Code::kInvalid,
                 "old_string was not found in the file: it must match exactly, blanks and tabs "
                 "included (without the line numbers that Read shows)"};
  }
  if (places.size() > 1 && !edit.replace_all) {
    return Error{
        Code::kInvalid,
        fmt::format("old_string is not unique: {} matches; add surrounding lines to it, or "
                    "set replace_all",
                    places.size())};
  }
  // An LF that begins old_text may be the second half of a CRLF: the whole break is meant, or CR CR
  // LF would come out. Cannot reach into the place before, which holds no CR.
  if (!spells_cr && edit.old_text.substr(0, 1) == "\n") {
    for (Span& place : places) {
      if (text[place.begin] == '\n' && place.begin > 0 && text[place.begin - 1] == '\r') {
        --place.begin;
      }
    }
  }
  const bool has_break = edit.new_text.find('\n') != kNone;
  const std::string with_crlf =
      has_break && !spells_cr ? ReplaceAll(edit.new_text, "\n", "\r\n") : edit.new_text;

  EditedText result;
  size_t done = 0;
  for (const Span& place : places) {
    const bool crlf = has_break && !spells_cr && UsesCrlf(text, place);
    result.text += text.substr(done, place.begin - done);
    result.text += crlf ? with_crlf : edit.new_text;
    done = place.end;
    if (result.text.size() > bytes_max) break;
  }
  if (result.text.size() + (text.size() - done) > bytes_max) {
    return Error{Code::kInvalid,
                 fmt::format("the edited file would be larger than {}", FormatBytes(bytes_max))};
  }
  result.text += text.substr(done);
  result.replacements = places.size();
  return result;
}

}  // namespace norma::tool
