// The reader, on simdjson's DOM: one pass checks the document and builds a tape, a second over the
// tape refuses duplicate keys. The only file that sees simdjson. The writer is in json_writer.cc.
#include "lib/base/json.h"

#include <fmt/core.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace norma::json {

namespace dom = simdjson::dom;

// Value's two words hold exactly a dom::element (a document pointer and a tape index).
static_assert(sizeof(dom::element) == sizeof(std::array<uint64_t, 2>));
static_assert(std::is_trivially_copyable_v<dom::element>);

struct Access {
  static dom::element Element(const Value& value) {
    return std::bit_cast<dom::element>(value.element_);
  }
  static Value Wrap(dom::element element) {
    Value value;
    value.element_ = std::bit_cast<std::array<uint64_t, 2>>(element);
    value.present_ = true;
    return value;
  }
};

namespace {

// No caller may ask for more: the walk below recurses once per level.
constexpr int kDepthLimit = 4096;
// simdjson's own bound is 4 GiB; nothing here has business with more than one.
constexpr size_t kDocumentBytesMax = size_t{1} << 30;
constexpr size_t kCapacityFirst = 4096;
// Up to here comparing each pair of keys beats sorting them.
constexpr size_t kPairwiseKeysMax = 12;
// A container's size on the tape has 24 bits and stays at the largest when there are more.
constexpr size_t kTapeCountMax = 0xFFFFFF;

Error Refuse(std::string_view reason) {
  return Error{Code::kInvalid, fmt::format("not valid JSON: {}", reason)};
}

Error DepthError(int depth_max) {
  return Refuse(fmt::format("nested deeper than {} levels", depth_max));
}

// Our words for simdjson's codes. None of the text is in them: it may be a secret.
Error ParseError(simdjson::error_code code, int depth_max) {
  switch (code) {
    case simdjson::DEPTH_ERROR:
      return DepthError(depth_max);
    case simdjson::EMPTY:
      return Refuse("the text is empty");
    case simdjson::UTF8_ERROR:
      return Refuse("bad UTF-8");
    case simdjson::STRING_ERROR:
      return Refuse("a string with a bad escape or a lone surrogate");
    case simdjson::UNCLOSED_STRING:
      return Refuse("a string is not closed");
    case simdjson::UNESCAPED_CHARS:
      return Refuse("a control character in a string");
    case simdjson::NUMBER_ERROR:
      return Refuse("a number that is malformed, beyond 64 bits or not finite");
    case simdjson::T_ATOM_ERROR:
    case simdjson::F_ATOM_ERROR:
    case simdjson::N_ATOM_ERROR:
      return Refuse("a word that is none of true, false, null");
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      return Refuse("too large");
    default:
      return Refuse("commas, colons, brackets or text after the end");  // TAPE_ERROR
  }
}

// Looks at every object once. `keys` is a stack shared by all levels, so that no level allocates.
class DuplicateWalk {
 public:
  DuplicateWalk(std::vector<std::string_view>& keys, int depth_max)
      : keys_(keys), depth_max_(depth_max) {
    keys_.clear();
  }

  Status Visit(dom::element element, int depth) {
    if (dom::object object; element.get(object) == simdjson::SUCCESS) {
      return VisitObject(object, depth);
    }
    if (dom::array array; element.get(array) == simdjson::SUCCESS) {
      if (depth > depth_max_) return DepthError(depth_max_);
      for (const dom::element child : array) {
        if (IsContainer(child)) NORMA_TRY(Visit(child, depth + 1));
      }
    }
    return {};
  }

 private:
  static bool IsContainer(dom::element element) {
    return element.type() == dom::element_type::OBJECT ||
           element.type() == dom::element_type::ARRAY;
  }

  Status VisitObject(dom::object object, int depth) {
    // simdjson counts an empty container as no level, so the exact check is here.
    if (depth > depth_max_) return DepthError(depth_max_);
    const size_t base = keys_.size();
    for (const dom::key_value_pair member : object) {
      keys_.push_back(member.key);
      if (IsContainer(member.value)) NORMA_TRY(Visit(member.value, depth + 1));
    }
    const bool repeated = HasRepeat(std::span(keys_).subspan(base));
    keys_.resize(base);
    if (repeated) return Refuse("an object has the same key twice");
    return {};
  }

  static bool HasRepeat(std::span<std::string_view> keys) {
    if (keys.size() <= kPairwiseKeysMax) {
      for (size_t i = 1; i < keys.size(); ++i) {
        if (std::find(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(i), keys[i]) !=
            keys.begin() + static_cast<std::ptrdiff_t>(i)) {
          return true;
        }
      }
      return false;
    }
    std::ranges::sort(keys);
    return std::ranges::adjacent_find(keys) != keys.end();
  }

  std::vector<std::string_view>& keys_;
  const int depth_max_;
};

}  // namespace

Kind Value::kind() const {
  if (!present_) return Kind::kNull;
  switch (Access::Element(*this).type()) {
    case dom::element_type::ARRAY:
      return Kind::kArray;
    case dom::element_type::OBJECT:
      return Kind::kObject;
    case dom::element_type::INT64:
      return Kind::kInt;
    case dom::element_type::UINT64:
      return Kind::kUint;
    case dom::element_type::DOUBLE:
      return Kind::kDouble;
    case dom::element_type::STRING:
      return Kind::kString;
    case dom::element_type::BOOL:
      return Kind::kBool;
    case dom::element_type::NULL_VALUE:
      return Kind::kNull;
  }
  return Kind::kNull;
}

Value Value::operator[](std::string_view key) const {
  dom::object object;
  dom::element member;
  if (!present_ || Access::Element(*this).get(object) != simdjson::SUCCESS) return {};
  if (object.at_key(key).get(member) != simdjson::SUCCESS) return {};
  return Access::Wrap(member);
}

Value Value::At(size_t index) const {
  dom::array array;
  dom::element element;
  if (!present_ || Access::Element(*this).get(array) != simdjson::SUCCESS) return {};
  if (array.at(index).get(element) != simdjson::SUCCESS) return {};
  return Access::Wrap(element);
}

size_t Value::size() const {
  if (!present_) return 0;
  size_t count = 0;
  if (dom::array array; Access::Element(*this).get(array) == simdjson::SUCCESS) {
    if (array.size() < kTapeCountMax) return array.size();
    for ([[maybe_unused]] const dom::element element : array) ++count;
  }
  if (dom::object object; Access::Element(*this).get(object) == simdjson::SUCCESS) {
    if (object.size() < kTapeCountMax) return object.size();
    for ([[maybe_unused]] const dom::key_value_pair member : object) ++count;
  }
  return count;
}

std::string_view Value::Str(std::string_view fallback) const {
  std::string_view text;
  if (!present_ || Access::Element(*this).get(text) != simdjson::SUCCESS) return fallback;
  return text;
}

int64_t Value::Int(int64_t fallback) const {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!present_) return fallback;
  const dom::element element = Access::Element(*this);
  if (int64_t whole = 0; element.get(whole) == simdjson::SUCCESS) return whole;
  double number = 0;
  if (!element.is_double() || element.get(number) != simdjson::SUCCESS) return fallback;
  const bool fits = number >= -kTwoTo63 && number < kTwoTo63 && std::trunc(number) == number;
  return fits ? static_cast<int64_t>(number) : fallback;
}

uint64_t Value::Uint(uint64_t fallback) const {
  constexpr double kTwoTo64 = 18446744073709551616.0;
  if (!present_) return fallback;
  const dom::element element = Access::Element(*this);
  if (uint64_t whole = 0; element.get(whole) == simdjson::SUCCESS) return whole;
  double number = 0;
  if (!element.is_double() || element.get(number) != simdjson::SUCCESS) return fallback;
  const bool fits = number >= 0 && number < kTwoTo64 && std::trunc(number) == number;
  return fits ? static_cast<uint64_t>(number) : fallback;
}

double Value::Double(double fallback) const {
  double number = 0;
  if (!present_ || Access::Element(*this).get(number) != simdjson::SUCCESS) return fallback;
  return number;
}

bool Value::Bool(bool fallback) const {
  bool truth = false;
  if (!present_ || Access::Element(*this).get(truth) != simdjson::SUCCESS) return fallback;
  return truth;
}

void Value::EachMember(const std::function<void(std::string_view key, Value value)>& visit) const {
  dom::object object;
  if (!present_ || Access::Element(*this).get(object) != simdjson::SUCCESS) return;
  for (const dom::key_value_pair member : object) visit(member.key, Access::Wrap(member.value));
}

void Value::EachElement(const std::function<void(Value value)>& visit) const {
  dom::array array;
  if (!present_ || Access::Element(*this).get(array) != simdjson::SUCCESS) return;
  for (const dom::element element : array) visit(Access::Wrap(element));
}

struct Parser::Impl {
  // Grows by powers of two: simdjson alone grows to the byte, which costs one allocation for each
  // event of a stream whose events get longer.
  simdjson::error_code Reserve(size_t bytes, int depth_max) {
    const size_t capacity = std::bit_ceil(std::max(bytes, kCapacityFirst));
    // Its depth counts the scalars below the last container as one more level.
    const size_t depth = static_cast<size_t>(depth_max) + 1;
    if (parser.capacity() < bytes || parser.max_depth() != depth) {
      const auto error = parser.allocate(std::max(capacity, parser.capacity()), depth);
      if (error != simdjson::SUCCESS) return error;
    }
    if (parser.doc.capacity() < bytes) {
      const auto error = parser.doc.allocate(capacity);
      if (error != simdjson::SUCCESS) return error;
    }
    if (padded.size() < bytes + simdjson::SIMDJSON_PADDING) {
      padded.resize(capacity + simdjson::SIMDJSON_PADDING);
    }
    return simdjson::SUCCESS;
  }

  dom::parser parser;
  std::string padded;  // simdjson reads some bytes past the end, which must be ours
  std::vector<std::string_view> keys;
};

Parser::Parser() : impl_(std::make_unique<Impl>()) {}
Parser::~Parser() = default;
Parser::Parser(Parser&&) noexcept = default;
Parser& Parser::operator=(Parser&&) noexcept = default;

Result<Value> Parser::Parse(std::string_view text, const ParseOptions& options) {
  NORMA_CHECK(impl_ != nullptr);
  NORMA_CHECK(options.depth_max >= 1 && options.depth_max <= kDepthLimit);
  if (text.empty()) return ParseError(simdjson::EMPTY, options.depth_max);
  if (text.size() > kDocumentBytesMax) return ParseError(simdjson::CAPACITY, options.depth_max);
  if (text.starts_with("\xEF\xBB\xBF")) return Refuse("a byte order mark before the text");
  const auto reserved = impl_->Reserve(text.size(), options.depth_max);
  if (reserved != simdjson::SUCCESS) return ParseError(reserved, options.depth_max);
  text.copy(impl_->padded.data(), text.size());
  dom::element root;
  constexpr bool kCopyAgain = false;
  const auto error = impl_->parser.parse(impl_->padded.data(), text.size(), kCopyAgain).get(root);
  if (error != simdjson::SUCCESS) return ParseError(error, options.depth_max);
  if (options.refuse_duplicates) {
    NORMA_TRY(DuplicateWalk(impl_->keys, options.depth_max).Visit(root, 1));
  }
  return Access::Wrap(root);
}

Result<Document> Document::Parse(std::string_view text, const ParseOptions& options) {
  Document document;
  document.parser_ = std::make_shared<Parser>();
  NORMA_ASSIGN(document.root_, document.parser_->Parse(text, options));
  return document;
}

}  // namespace norma::json
