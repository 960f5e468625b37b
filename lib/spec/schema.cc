// The JSON Schema of the run spec, printed from the key table.
#include <fmt/core.h>

#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/money.h"
#include "lib/spec/check.h"
#include "lib/spec/key_table.h"
#include "lib/spec/load.h"
#include "lib/spec/tree.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

constexpr std::string_view kUsdPattern = R"(^[0-9]+(\.[0-9]{1,9})?$)";
constexpr std::string_view kDurationPattern = "^[0-9]+(ms|s|m|h)$";
constexpr std::string_view kSizePattern = "^[0-9]+(B|KiB|MiB|GiB)$";
constexpr std::string_view kVariablePattern = "^[A-Za-z_][A-Za-z0-9_]*$";

class SchemaWriter {
 public:
  explicit SchemaWriter(const std::vector<std::string>& tools) : tools_(tools) {}

  std::string Document() {
    out_.BeginObject();
    out_.Field("$schema", "http://json-schema.org/draft-07/schema#");
    out_.Field("title", "norma run spec");
    Properties("");
    out_.EndObject();
    return out_.Take();
  }

 private:
  void Strings(std::string_view key, const std::vector<std::string>& list) {
    out_.Key(key).BeginArray();
    for (const std::string& item : list) out_.String(item);
    out_.EndArray();
  }

  // type, properties, required and additionalProperties of a map of fixed keys.
  void Properties(std::string_view pattern) {
    out_.Field("type", "object").Field("additionalProperties", false);
    out_.Key("properties").BeginObject();
    std::vector<std::string> required;
    for (const KeyRow& row : SpecKeys()) {
      const std::string_view name = LastOf(row.path);
      if (ParentOf(row.path) != pattern || name == "*" || name == "[]") continue;
      out_.Key(name);
      Value(row);
      if (row.required) required.emplace_back(name);
    }
    out_.EndObject();
    if (!required.empty()) Strings("required", required);
  }

  void Value(const KeyRow& row) {
    out_.BeginObject();
    std::string about(row.about);
    if (row.built == Built::kNotYet) about += " Not supported yet: only the default is accepted.";
    if (!row.later.empty()) {
      for (const std::string& choice : ChoicesOf(row.later))
        about += " Not supported yet: " + choice + ".";
    }
    out_.Field("description", about);
    Shape(row);
    if (!row.fallback.empty()) out_.Key("default").Raw(DefaultOf(row));
    out_.EndObject();
  }

  static std::string DefaultOf(const KeyRow& row) {
    Faults faults;
    const auto node = ParseTree(row.fallback, faults.AddSource("default"), faults);
    NORMA_CHECK(node.has_value());
    const auto text = JsonOf(*node);
    NORMA_CHECK(text.ok());
    return text.value();
  }

  // A type, and null where null is the default.
  void TypeName(const KeyRow& row, const char* name) {
    if (row.fallback != "null") {
      out_.Field("type", name);
      return;
    }
    out_.Key("type").BeginArray().String(name).String("null").EndArray();
  }

  void Bounds(const KeyRow& row) {
    out_.Field("minimum", row.min);
    if (row.max != kNoMax) out_.Field("maximum", row.max);
  }

  // Text with a pattern, or a number.
  void TextOrNumber(const char* number, std::string_view pattern) {
    out_.Key("anyOf").BeginArray();
    out_.BeginObject().Field("type", "string").Field("pattern", pattern).EndObject();
    out_.BeginObject().Field("type", number).Field("minimum", 0).EndObject();
    out_.EndArray();
  }

  void ListOf(std::string_view pattern) {
    out_.Field("type", "array").Key("items").BeginObject().Field("type", "string");
    if (!pattern.empty()) out_.Field("pattern", pattern);
    out_.EndObject();
  }

  void Named(const KeyRow& row) {
    const std::string path(row.path);
    out_.Field("type", "object");
    if (row.choices == "TOOL") {
      out_.Key("propertyNames").BeginObject().Key("anyOf").BeginArray();
      out_.BeginObject();
      Strings("enum", tools_);
      out_.EndObject().BeginObject().Field("pattern", "^mcp__").EndObject();
      out_.EndArray().EndObject();
    } else if (!row.choices.empty()) {
      out_.Key("propertyNames").BeginObject();
      Strings("enum", ChoicesOf(row.choices));
      out_.EndObject();
    }
    bool open = false;
    for (const std::string& name : ChildNames(SpecKeys(), row.path)) {
      if (!open) out_.Key("properties").BeginObject();
      open = true;
      out_.Key(name);
      Value(*FindRow(SpecKeys(), path + "." + name));
    }
    if (open) out_.EndObject();
    out_.Key("additionalProperties");
    Value(*FindRow(SpecKeys(), path + ".*"));
  }

  void Shape(const KeyRow& row) {
    switch (row.type) {
      case Type::kMap:
        return Properties(row.path);
      case Type::kNamed:
        return Named(row);
      case Type::kList:
        out_.Field("type", "array").Key("items");
        return Value(*FindRow(SpecKeys(), std::string(row.path) + ".[]"));
      case Type::kText:
      case Type::kFile:
      case Type::kRule:
        return TypeName(row, "string");
      case Type::kTexts:
        return ListOf({});
      case Type::kVariables:
        return ListOf(kVariablePattern);
      case Type::kTextMap:
        out_.Field("type", "object").Key("additionalProperties").BeginObject();
        out_.Field("type", "string").EndObject();
        return;
      case Type::kBool:
        return TypeName(row, "boolean");
      case Type::kInt:
        TypeName(row, "integer");
        if (row.path == "norma") out_.Field("const", 1);
        return Bounds(row);
      case Type::kNumber:
        TypeName(row, "number");
        return Bounds(row);
      case Type::kUsd:
        return TextOrNumber("number", kUsdPattern);
      case Type::kSize:
        return TextOrNumber("integer", kSizePattern);
      case Type::kDuration:
        out_.Field("type", "string").Field("pattern", kDurationPattern);
        return;
      case Type::kChoice:
        return Strings("enum", ChoicesOf(row.choices));
      case Type::kVariable:
        out_.Field("type", "string").Field("pattern", kVariablePattern);
        return;
      case Type::kTools:
        out_.Field("type", "array").Key("items").BeginObject();
        Strings("enum", tools_);
        out_.EndObject();
        return;
      case Type::kSegment:
        out_.Key("anyOf").BeginArray().BeginObject().Field("type", "string").EndObject();
        out_.BeginObject().Field("type", "object").Field("additionalProperties", false);
        out_.Key("properties").BeginObject().Key("file").BeginObject();
        out_.Field("type", "string").EndObject().EndObject();
        Strings("required", {"file"});
        out_.EndObject().EndArray();
        return;
      case Type::kJson:
        out_.Field("type", "object");
        return;
    }
  }

  const std::vector<std::string>& tools_;
  json::Writer out_;
};

}  // namespace

std::string SpecSchemaJson(const std::vector<std::string>& known_tools) {
  return SchemaWriter(known_tools).Document();
}

}  // namespace norma::spec
