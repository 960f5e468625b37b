// JSON in and out. The reader validates the whole document before it answers anything, refuses
// duplicate keys and excess depth, and is read-only; the writer is append-only and deterministic.
// simdjson lives behind json.cc alone (its header costs 1.7 s per translation unit).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"

namespace norma::json {

enum class Kind { kNull, kBool, kInt, kUint, kDouble, kString, kArray, kObject };

// A view into a parsed document: cheap to copy, valid while its Parser/Document lives and until
// the Parser parses again. A default-constructed Value is "absent": every accessor answers empty.
class Value {
 public:
  Value() = default;

  bool present() const { return present_; }
  explicit operator bool() const { return present_; }
  Kind kind() const;  // absent counts as kNull
  bool is_object() const { return present_ && kind() == Kind::kObject; }
  bool is_array() const { return present_ && kind() == Kind::kArray; }
  bool is_string() const { return present_ && kind() == Kind::kString; }
  bool is_null() const { return present_ && kind() == Kind::kNull; }

  // Member of an object; absent when there is none or this is no object.
  Value operator[](std::string_view key) const;
  // Element of an array by index; absent when out of range or no array. O(index).
  Value At(size_t index) const;
  size_t size() const;  // members or elements; 0 for the rest. O(size)

  // Typed reads; the fallback is returned when absent or of another type.
  std::string_view Str(std::string_view fallback = {}) const;
  int64_t Int(int64_t fallback = 0) const;     // kInt, kUint that fits, or an integral kDouble
  uint64_t Uint(uint64_t fallback = 0) const;  // the same, for 0 to 2^64-1
  double Double(double fallback = 0) const;    // any number
  bool Bool(bool fallback = false) const;

  // Walk in document order. The callbacks must not parse with the same Parser.
  void EachMember(const std::function<void(std::string_view key, Value value)>& visit) const;
  void EachElement(const std::function<void(Value value)>& visit) const;

 private:
  friend struct Access;
  std::array<uint64_t, 2> element_{};  // a simdjson::dom::element, kept opaque
  bool present_ = false;
};

struct ParseOptions {
  int depth_max = 256;            // levels of nesting
  bool refuse_duplicates = true;  // at any depth; only our own trusted frames may switch it off
};

// Reusable: keeps its buffers, so that parsing many small documents does not allocate.
class Parser {
 public:
  Parser();
  ~Parser();
  Parser(Parser&&) noexcept;
  Parser& operator=(Parser&&) noexcept;

  // kInvalid with a short reason and nothing of the text in it. Integers beyond 64 bits, bad
  // UTF-8, lone surrogates and trailing text are refused.
  Result<Value> Parse(std::string_view text, const ParseOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One document that owns itself; movable and shareable.
class Document {
 public:
  static Result<Document> Parse(std::string_view text, const ParseOptions& options = {});
  Value root() const { return root_; }

 private:
  std::shared_ptr<Parser> parser_;
  Value root_;
};

// The text without insignificant white space; the text must be valid JSON (it is checked). Numbers
// and strings keep their exact spelling.
Result<std::string> Minify(std::string_view text);

// `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD. Control characters are
// escaped, non-ASCII goes out as UTF-8.
std::string Quote(std::string_view text);
void AppendQuoted(std::string& out, std::string_view text);

// Append-only writer. Commas and colons are its business; order is the caller's.
class Writer {
 public:
  Writer& BeginObject();
  Writer& EndObject();
  Writer& BeginArray();
  Writer& EndArray();
  Writer& Key(std::string_view key);
  Writer& String(std::string_view text);
  Writer& Int(int64_t number);
  Writer& Uint(uint64_t number);
  Writer& Double(double number);  // shortest text that reads back; must be finite
  Writer& Bool(bool value);
  Writer& Null();
  // Already valid JSON, taken as it is.
  Writer& Raw(std::string_view valid_json);
  // Key and value in one.
  Writer& Field(std::string_view key, std::string_view text) { return Key(key).String(text); }
  Writer& Field(std::string_view key, const char* text) { return Key(key).String(text); }
  Writer& Field(std::string_view key, const std::string& text) { return Key(key).String(text); }
  Writer& Field(std::string_view key, int64_t number) { return Key(key).Int(number); }
  Writer& Field(std::string_view key, int number) { return Key(key).Int(number); }
  Writer& Field(std::string_view key, size_t number) { return Key(key).Uint(number); }
  Writer& Field(std::string_view key, bool value) { return Key(key).Bool(value); }

  const std::string& text() const { return out_; }
  // The text; the writer is empty afterwards and can write the next document.
  std::string Take() {
    std::string text = std::move(out_);
    *this = Writer();
    return text;
  }

 private:
  void Separate();

  std::string out_;
  std::vector<bool> first_{true};  // per open level: nothing written yet
  bool after_key_ = false;
};

}  // namespace norma::json
