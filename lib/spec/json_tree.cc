// JSON with places: RFC 8259, nothing more, so that whatever is not JSON falls to the YAML reader.
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/spec/tree.h"

namespace norma::spec {

namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

class JsonReader {
 public:
  JsonReader(std::string_view text, int source) : text_(text), source_(source) {}

  bool Document(Node* root) {
    if (!Value(root, 1)) return false;
    Blank();
    return at_ == text_.size() || Stop("text after the end of the JSON document");
  }
  const JsonStop& stop() const { return stop_; }

 private:
  bool Stop(std::string reason) {
    stop_ = {at_, std::move(reason)};
    return false;
  }

  bool Next(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void Blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
      ++at_;
    }
  }

  Place Here() const { return {source_, line_, static_cast<int>(at_ - line_start_) + 1}; }

  bool Value(Node* node, int depth) {
    Blank();
    node->place = Here();
    if (depth > kDepthMax) return Stop("nested deeper than 64 levels");
    if (at_ >= text_.size()) return Stop("the JSON text ends too early");
    const char c = text_[at_];
    if (c == '{') return Object(node, depth);
    if (c == '[') return Array(node, depth);
    if (c == '"') {
      node->kind = NodeKind::kScalar;
      node->quoted = true;
      return String(&node->text);
    }
    return Literal(node);
  }

  bool Object(Node* node, int depth) {
    node->kind = NodeKind::kMap;
    ++at_;
    Blank();
    if (Next('}')) return true;
    while (true) {
      Blank();
      Node key;
      key.kind = NodeKind::kScalar;
      key.quoted = true;
      key.place = Here();
      if (at_ >= text_.size() || text_[at_] != '"') return Stop("expected a key in quotes");
      if (!String(&key.text)) return false;
      Blank();
      if (!Next(':')) return Stop("expected ':' after a key");
      Node item;
      if (!Value(&item, depth + 1)) return false;
      node->keys.push_back(std::move(key));
      node->items.push_back(std::move(item));
      Blank();
      if (Next('}')) return true;
      if (!Next(',')) return Stop("expected ',' or '}'");
    }
  }

  bool Array(Node* node, int depth) {
    node->kind = NodeKind::kList;
    ++at_;
    Blank();
    if (Next(']')) return true;
    while (true) {
      Node item;
      if (!Value(&item, depth + 1)) return false;
      node->items.push_back(std::move(item));
      Blank();
      if (Next(']')) return true;
      if (!Next(',')) return Stop("expected ',' or ']'");
    }
  }

  bool String(std::string* out) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20)
        return Stop("a line break or control character in a string");
      if (c != '\\') {
        *out += c;
        ++at_;
      } else if (!Escape(out)) {
        return false;
      }
    }
    return Stop("a string without its closing quote");
  }

  bool Escape(std::string* out) {
    ++at_;
    if (at_ >= text_.size()) return Stop("a string without its closing quote");
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char c = text_[at_];
    if (const size_t index = kLetters.find(c); index != std::string_view::npos) {
      *out += kMeanings[index];
      ++at_;
      return true;
    }
    if (c != 'u') return Stop("an escape that JSON does not know");
    ++at_;
    uint32_t code = 0;
    if (!FourHex(&code)) return false;
    if (code >= 0xDC00 && code <= 0xDFFF) return Stop("half of a surrogate pair");
    if (code >= 0xD800 && code <= 0xDBFF) {
      uint32_t low = 0;
      if (!Next('\\') || !Next('u')) return Stop("half of a surrogate pair");
      if (!FourHex(&low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return Stop("half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(*out, code);
    return true;
  }

  bool FourHex(uint32_t* code) {
    *code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ >= text_.size()) return Stop("an escape that is cut off");
      const char c = text_[at_];
      uint32_t digit = 0;
      if (IsDigit(c)) {
        digit = static_cast<uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<uint32_t>(c - 'a') + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<uint32_t>(c - 'A') + 10;
      } else {
        return Stop("an escape that is no hexadecimal number");
      }
      *code = *code * 16 + digit;
    }
    return true;
  }

  // true, false, null or a number; the text is kept as it stands.
  bool Literal(Node* node) {
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!rest.starts_with(word)) continue;
      at_ += word.size();
      if (word == "null") return true;
      node->kind = NodeKind::kScalar;
      node->text = word;
      return true;
    }
    const size_t begin = at_;
    if (!Number()) {
      at_ = begin;
      return Stop("expected a JSON value");
    }
    node->kind = NodeKind::kScalar;
    node->text = text_.substr(begin, at_ - begin);
    return true;
  }

  bool Digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return at_ > begin;
  }

  bool Number() {
    Next('-');
    if (!Next('0') && !Digits()) return false;
    if (Next('.') && !Digits()) return false;
    if (Next('e') || Next('E')) {
      if (!Next('+')) Next('-');
      if (!Digits()) return false;
    }
    return at_ >= text_.size() || text_.substr(at_, 1).find_first_of(" \t\r\n,]}") == 0;
  }

  std::string_view text_;
  int source_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
  JsonStop stop_;
};

}  // namespace

std::optional<Node> ParseJsonTree(std::string_view text, int source, JsonStop* stop) {
  JsonReader reader(text, source);
  Node root;
  if (reader.Document(&root)) return root;
  *stop = reader.stop();
  return std::nullopt;
}

}  // namespace norma::spec
