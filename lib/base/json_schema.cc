// Compiles a draft-07 schema. Schemas come from MCP servers too, hence from strangers: every
// keyword is checked for its shape here, and valijson, whose parser follows a $ref by recursion
// without a bound, takes strings for numbers and cuts names at NUL, only gets trees that cannot
// hurt it. Each $ref target becomes a tree of its own; json_schema_check.cc follows the links.
#include "lib/base/json_schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/json_schema_check.h"
#include "lib/base/json_schema_value.h"
#include "lib/base/text.h"

// After the header above, which sets valijson's configuration.
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema_parser.hpp>

namespace norma {
namespace {

using Node = nlohmann::json;

// Ten times the largest schema seen in practice. The bounds below keep a hostile one cheap.
constexpr size_t kSchemaBytesMax = 512 * 1024;
constexpr int kSchemaDepthMax = 128;       // levels of JSON
constexpr size_t kTargetsMax = 2000;       // different $ref targets
constexpr size_t kSubschemasMax = 50'000;  // over all targets
constexpr int kRefChainMax = 32;           // a $ref to a $ref to …

constexpr std::string_view kTypeNames[] = {"array",  "boolean", "integer", "null",
                                           "number", "object",  "string"};

// What the value of a keyword must look like, and how it goes to valijson.
enum class Shape {
  kSchema,
  kSchemaList,
  kSchemaMap,
  kItems,         // a schema or a list of them
  kDependencies,  // a map of schemas or lists of names
  kPatternMap,    // a map from patterns to schemas
  kTypes,
  kNames,
  kEnum,
  kConst,
  kPattern,
  kFormat,
  kNumber,
  kPositive,
  kCount,
  kFlag,
  kDefinitions,  // checked, reached only by $ref
  kDropped,      // says nothing about validity, but valijson would look at it
};

struct Keyword {
  std::string_view name;
  Shape shape;
};

constexpr Keyword kKeywords[] = {
    {"additionalItems", Shape::kSchema},
    {"additionalProperties", Shape::kSchema},
    {"allOf", Shape::kSchemaList},
    {"anyOf", Shape::kSchemaList},
    {"const", Shape::kConst},
    {"contains", Shape::kSchema},
    {"definitions", Shape::kDefinitions},
    {"$defs", Shape::kDefinitions},  // the name since 2019-09; most generators write it
    {"dependencies", Shape::kDependencies},
    {"else", Shape::kSchema},
    {"enum", Shape::kEnum},
    {"exclusiveMaximum", Shape::kNumber},
    {"exclusiveMinimum", Shape::kNumber},
    {"format", Shape::kFormat},
    {"if", Shape::kSchema},
    {"items", Shape::kItems},
    {"maxItems", Shape::kCount},
    {"maxLength", Shape::kCount},
    {"maxProperties", Shape::kCount},
    {"maximum", Shape::kNumber},
    {"minItems", Shape::kCount},
    {"minLength", Shape::kCount},
    {"minProperties", Shape::kCount},
    {"minimum", Shape::kNumber},
    {"multipleOf", Shape::kPositive},
    {"not", Shape::kSchema},
    {"oneOf", Shape::kSchemaList},
    {"pattern", Shape::kPattern},
    {"patternProperties", Shape::kPatternMap},
    {"properties", Shape::kSchemaMap},
    {"propertyNames", Shape::kSchema},
    {"required", Shape::kNames},
    {"then", Shape::kSchema},
    {"type", Shape::kTypes},
    {"uniqueItems", Shape::kFlag},
    {"$id", Shape::kDropped},
    {"description", Shape::kDropped},
    {"disallow", Shape::kDropped},  // of older drafts, no keywords any more
    {"divisibleBy", Shape::kDropped},
    {"extends", Shape::kDropped},
    {"id", Shape::kDropped},
    {"title", Shape::kDropped},
};

Error Refuse(std::string_view where, std::string_view why) {
  return Error{Code::kInvalid, fmt::format("bad JSON schema at {}: {}", CutUtf8(where, 300), why)};
}

std::string Below(std::string_view where, std::string_view token) {
  return fmt::format("{}/{}", where, ReplaceAll(ReplaceAll(token, "~", "~0"), "/", "~1"));
}

std::optional<unsigned> HexValue(std::string_view digits) {
  unsigned value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// ECMA 262 spellings that RE2 has under another name: \uHHHH, \u{H…}, (?<name>…).
std::string ToRe2(std::string_view pattern) {
  std::string out;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.substr(at).starts_with("(?<") && at + 3 < pattern.size() &&
        pattern[at + 3] != '=' && pattern[at + 3] != '!') {
      out += "(?P<";
      at += 2;
      continue;
    }
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      out += pattern[at];
      continue;
    }
    if (pattern[at + 1] == 'u' && pattern.substr(at + 2).starts_with('{')) {
      out += "\\x";
      ++at;
      continue;
    }
    const auto unit = pattern[at + 1] == 'u' && at + 6 <= pattern.size()
                          ? HexValue(pattern.substr(at + 2, 4))
                          : std::nullopt;
    if (!unit) {
      out.append(pattern.substr(at, 2));
      ++at;
      continue;
    }
    at += 5;
    unsigned code_point = *unit;
    if ((code_point & 0xFC00U) == 0xD800U && pattern.substr(at + 1).starts_with("\\u") &&
        at + 7 <= pattern.size()) {
      const auto low = HexValue(pattern.substr(at + 3, 4));
      if (low && (*low & 0xFC00U) == 0xDC00U) {
        code_point = 0x10000U + ((code_point & 0x3FFU) << 10U) + (*low & 0x3FFU);
        at += 6;
      }
    }
    out += fmt::format("\\x{{{:x}}}", code_point);
  }
  return out;
}

// The tokens of "#/a/b~1c"; kInvalid when the reference leaves the document.
Result<std::vector<std::string>> PointerTokens(std::string_view where, std::string_view reference) {
  if (!reference.starts_with('#')) {
    return Refuse(where,
                  "$ref to another document; only references inside the schema are "
                  "followed (\"#/definitions/…\")");
  }
  std::string pointer;
  for (size_t at = 1; at < reference.size(); ++at) {
    const auto byte = reference[at] == '%' && at + 3 <= reference.size()
                          ? HexValue(reference.substr(at + 1, 2))
                          : std::nullopt;
    pointer += byte ? static_cast<char>(*byte) : reference[at];
    if (byte) at += 2;
  }
  std::vector<std::string> tokens;
  if (pointer.empty()) return tokens;
  if (pointer[0] != '/') return Refuse(where, "$ref by a name; write it as a path (\"#/…\")");
  for (const std::string_view token : Split(std::string_view(pointer).substr(1), '/')) {
    tokens.push_back(ReplaceAll(ReplaceAll(token, "~1", "/"), "~0", "~"));
  }
  return tokens;
}

const Node* Step(const Node& node, const std::string& token) {
  if (node.is_object()) {
    const auto found = node.find(token);
    return found == node.end() ? nullptr : &*found;
  }
  if (!node.is_array() || token.empty() || token.size() > 6) return nullptr;
  size_t index = 0;
  const char* const end = token.data() + token.size();
  if (std::from_chars(token.data(), end, index).ptr != end) return nullptr;
  return index < node.size() ? &node[index] : nullptr;
}

class Builder : public valijson::ConstraintBuilder {
 public:
  explicit Builder(schema::OwnKind kind) : kind_(kind) {}
  valijson::constraints::Constraint* make(const valijson::adapters::Adapter& value) const override {
    return new schema::OwnConstraint(kind_, static_cast<size_t>(value.asInteger()));
  }

 private:
  schema::OwnKind kind_;
};

class Compiler {
 public:
  explicit Compiler(const Node& document) : document_(document) {}

  Result<std::shared_ptr<const schema::Compiled>> Run() {
    if (const auto root = Target("#", "#"); !root.ok()) return root.error();
    // The list grows while it is worked off: targets refer to further targets.
    for (size_t i = 0; i < queue_.size(); ++i) {
      const Queued target = queue_[i];
      Node tree = *target.node;
      NORMA_TRY(Rewrite(tree, target.where));
      NORMA_TRY(Populate(tree, target.where));
    }
    return std::shared_ptr<const schema::Compiled>(std::move(out_));
  }

 private:
  struct Queued {
    const Node* node;
    std::string where;
  };

  // Index of the tree that `reference` means, noted for compilation when it is new.
  Result<size_t> Target(std::string_view where, std::string reference) {
    for (int hops = 0; hops < kRefChainMax; ++hops) {
      NORMA_ASSIGN(const auto tokens, PointerTokens(where, reference));
      const Node* node = &document_;
      std::string path = "#";
      for (const std::string& token : tokens) {
        node = Step(*node, token);
        if (node == nullptr) return Refuse(where, "$ref to nothing: " + CutForMessage(reference));
        path = Below(path, token);
      }
      if (node->is_object() && node->contains("$ref") && (*node)["$ref"].is_string()) {
        reference = (*node)["$ref"].get<std::string>();
        continue;
      }
      const auto [entry, added] = target_index_.emplace(path, queue_.size());
      if (added && queue_.size() == kTargetsMax) return Refuse(where, "too many $ref targets");
      if (added) queue_.push_back({node, path});
      return entry->second;
    }
    return Refuse(where, "a chain of $ref that only leads to other $ref");
  }

  static std::string CutForMessage(std::string_view text) {
    return json::Quote(CutUtf8(text, 100));
  }

  Status Populate(const Node& tree, std::string_view where) {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    for (const auto& keyword : schema::kOwnKeywords) {
      parser.addConstraintBuilder(keyword.name, new Builder(keyword.kind));  // the parser's own
    }
    auto tree_out = std::make_unique<valijson::Schema>();
    try {
      parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(tree), *tree_out);
    } catch (const std::exception& fault) {
      return Refuse(where, fault.what());
    }
    out_->targets.push_back(std::move(tree_out));
    return {};
  }

  // Checks the schema and turns it into what valijson may see. Recursion is bounded by the depth
  // that the JSON parser allows.
  Status Rewrite(Node& node, const std::string& where) {
    if (++subschemas_ > kSubschemasMax) return Refuse(where, "too many sub-schemas");
    if (node.is_boolean()) return {};
    if (!node.is_object()) return Refuse(where, "a schema must be an object, true or false");
    for (const auto& keyword : schema::kOwnKeywords) node.erase(keyword.name);
    if (const auto ref = node.find("$ref"); ref != node.end()) {
      if (!ref->is_string()) return Refuse(where, "$ref must be a string");
      NORMA_ASSIGN(const size_t index, Target(where, ref->get<std::string>()));
      node = Node::object({{"$norma-ref", index}});  // draft-07 ignores the neighbours of a $ref
      return {};
    }
    for (const Keyword& keyword : kKeywords) {
      const auto found = node.find(keyword.name);
      if (found == node.end()) continue;
      NORMA_TRY(RewriteKeyword(node, *found, keyword, Below(where, keyword.name)));
    }
    return {};
  }

  Status RewriteKeyword(Node& node, Node& value, const Keyword& keyword, const std::string& where) {
    switch (keyword.shape) {
      case Shape::kSchema:
        return Rewrite(value, where);
      case Shape::kSchemaList:
        return RewriteList(value, where);
      case Shape::kItems:
        return value.is_array() ? RewriteList(value, where) : Rewrite(value, where);
      case Shape::kSchemaMap:
      case Shape::kDefinitions:
      case Shape::kDependencies:
      case Shape::kPatternMap:
        return RewriteMap(value, keyword.shape, where);
      case Shape::kTypes:
        return CheckTypes(value, where);
      case Shape::kNumber:
        return value.is_number() ? Status() : Refuse(where, "must be a number");
      case Shape::kPositive:
        if (value.is_number() && value.get<double>() > 0) return {};
        return Refuse(where, "must be a number above 0");
      case Shape::kFlag:
        return value.is_boolean() ? Status() : Refuse(where, "must be true or false");
      case Shape::kCount:
        return RewriteCount(value, where);
      case Shape::kNames:
      case Shape::kEnum:
      case Shape::kConst:
      case Shape::kPattern:
      case Shape::kFormat:
        return RewriteOwn(node, value, keyword, where);
      case Shape::kDropped:
        node.erase(std::string(keyword.name));
        return {};
    }
    return Refuse(where, "unknown keyword");
  }

  Status RewriteList(Node& list, const std::string& where) {
    if (!list.is_array() || list.empty()) return Refuse(where, "must be a list of schemas");
    for (size_t i = 0; i < list.size(); ++i) {
      NORMA_TRY(Rewrite(list[i], Below(where, std::to_string(i))));
    }
    return {};
  }

  Status RewriteMap(Node& map, Shape shape, const std::string& where) {
    if (!map.is_object()) return Refuse(where, "must be an object");
    for (auto& [name, value] : map.items()) {
      if (name.find('\0') != std::string::npos) return Refuse(where, "a name with a NUL");
      const std::string below = Below(where, name);
      if (shape == Shape::kPatternMap) {
        if (const auto index = Pattern(name, below); !index.ok()) return index.error();
      }
      if (shape == Shape::kDependencies && value.is_array()) {
        NORMA_TRY(CheckNames(value, below));
      } else {
        NORMA_TRY(Rewrite(value, below));
      }
    }
    return {};
  }

  static Status CheckTypes(const Node& value, const std::string& where) {
    if (value.is_array() && value.empty()) return Refuse(where, "must name at least one type");
    for (const Node& name : value.is_array() ? value : Node::array({value})) {
      const std::string text = name.is_string() ? name.get<std::string>() : name.type_name();
      if (name.is_string() && std::ranges::find(kTypeNames, text) != std::end(kTypeNames)) continue;
      return Refuse(where, fmt::format("unknown type {} (array, boolean, integer, null, number, "
                                       "object or string)",
                                       CutForMessage(text)));
    }
    return {};
  }

  static Status CheckNames(const Node& value, const std::string& where) {
    if (!value.is_array()) return Refuse(where, "must be a list of property names");
    for (const Node& name : value) {
      if (!name.is_string()) return Refuse(where, "must be a list of property names");
      if (name.get_ref<const std::string&>().find('\0') != std::string::npos) {
        return Refuse(where, "a name with a NUL");
      }
    }
    return {};
  }

  // 3.0 is the integer 3, here too.
  static Status RewriteCount(Node& value, const std::string& where) {
    constexpr double kCountMax = 9e15;
    const double count = value.is_number() ? value.get<double>() : -1;
    if (count < 0 || count > kCountMax || count != std::trunc(count)) {
      return Refuse(where, "must be a whole number, 0 or more");
    }
    value = static_cast<uint64_t>(count);
    return {};
  }

  // Keywords that go through OwnConstraint: the value moves to a list, its index to valijson.
  Status RewriteOwn(Node& node, const Node& value, const Keyword& keyword,
                    const std::string& where) {
    schema::Compiled& out = *out_;
    // An enum and a const may stand side by side, and each must hold.
    if (keyword.shape == Shape::kConst || keyword.shape == Shape::kEnum) {
      if (keyword.shape == Shape::kEnum && (!value.is_array() || value.empty())) {
        return Refuse(where, "must be a list of values");
      }
      std::vector<std::string> allowed;
      for (const Node& one : keyword.shape == Shape::kEnum ? value : Node::array({value})) {
        NORMA_ASSIGN(const auto document, json::Document::Parse(one.dump()));
        allowed.push_back(schema::CanonicalText(document.root()));
      }
      if (const auto other = node.find("$norma-enum"); other != node.end()) {
        auto& both = out.enums[other->get<size_t>()];
        std::erase_if(both, [&](const auto& text) {
          return std::ranges::find(allowed, text) == allowed.end();
        });
      } else {
        out.enums.push_back(std::move(allowed));
        node["$norma-enum"] = out.enums.size() - 1;
      }
    } else if (keyword.shape == Shape::kNames) {
      NORMA_TRY(CheckNames(value, where));
      out.required.push_back(value.get<std::vector<std::string>>());
      node["$norma-required"] = out.required.size() - 1;
    } else {
      if (!value.is_string()) return Refuse(where, "must be a string");
      const auto text = value.get<std::string>();
      if (keyword.shape == Shape::kPattern) {
        NORMA_ASSIGN(node["$norma-pattern"], Pattern(text, where));
      } else {
        out.formats.push_back(text);
        node["$norma-format"] = out.formats.size() - 1;
      }
    }
    node.erase(std::string(keyword.name));
    return {};
  }

  Result<size_t> Pattern(const std::string& pattern, const std::string& where) {
    const auto [entry, added] = out_->pattern_index.emplace(pattern, out_->patterns.size());
    if (!added) return entry->second;
    if (pattern.find('\0') != std::string::npos) return Refuse(where, "a pattern with a NUL");
    auto regex = Regex::Compile(ToRe2(pattern));
    if (!regex.ok()) return Refuse(where, regex.error().message);
    out_->patterns.push_back(std::move(regex).value());
    return entry->second;
  }

  const Node& document_;
  std::shared_ptr<schema::Compiled> out_ = std::make_shared<schema::Compiled>();
  std::map<std::string, size_t> target_index_;
  std::vector<Queued> queue_;
  size_t subschemas_ = 0;
};

}  // namespace

struct JsonSchema::Impl {
  std::shared_ptr<const schema::Compiled> compiled;
};

Result<JsonSchema> JsonSchema::Compile(std::string_view schema_text) {
  if (schema_text.size() > kSchemaBytesMax) {
    return Refuse("#", fmt::format("larger than {} bytes", kSchemaBytesMax));
  }
  // Our parser first: nlohmann's takes duplicate keys and turns large integers into floats.
  if (auto strict = json::Parser().Parse(schema_text, {.depth_max = kSchemaDepthMax});
      !strict.ok()) {
    return Refuse("#", strict.error().message);
  }
  constexpr bool kThrow = false;
  const Node document = Node::parse(schema_text, nullptr, kThrow);
  if (document.is_discarded()) return Refuse("#", "not valid JSON");
  NORMA_ASSIGN(auto compiled, Compiler(document).Run());
  JsonSchema schema;
  schema.impl_ = std::make_shared<const Impl>(Impl{std::move(compiled)});
  return schema;
}

Status JsonSchema::Validate(std::string_view json_text, std::string_view root) const {
  NORMA_CHECK(impl_ != nullptr);
  json::Parser parser;
  auto document = parser.Parse(json_text);
  if (!document.ok()) {
    return Error{Code::kInvalid, fmt::format("{}: {}", root, document.error().message)};
  }
  return schema::Check(*impl_->compiled, document.value(), root);
}

}  // namespace norma
