// The walk along tree and table.
#include "lib/spec/check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

constexpr size_t kKeysListedMax = 12;

std::string Below(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

std::string PatternBelow(std::string_view pattern, std::string_view name) {
  return pattern.empty() ? std::string(name) : std::string(pattern) + "." + std::string(name);
}

std::string Quoted(std::string_view text) {
  return json::Quote(CutUtf8(text, 80));
}

// Keys people write a secret under. The value is never repeated.
bool LooksLikeCredential(std::string_view key) {
  std::string plain = ReplaceAll(ReplaceAll(ToLower(key), "-", ""), "_", "");
  for (const std::string_view word :
       {"apikey", "key", "token", "authtoken", "accesstoken", "apitoken", "secret", "secretkey",
        "password", "authorization", "bearer"}) {
    if (plain == word) return true;
  }
  return false;
}

// Where else in the table a key of this name stands: "max_tokens" -> "model.max_tokens".
std::string ElsewhereOf(KeyTable table, std::string_view name) {
  for (const KeyRow& row : table) {
    if (LastOf(row.path) == name && row.path.find_first_of("*[") == std::string_view::npos) {
      return std::string(row.path);
    }
  }
  return {};
}

std::string WordOf(const Node& node) {
  return node.kind == NodeKind::kScalar ? node.shown() : std::string();
}

// "a map", "a list of rules" …: what a container should have been.
std::string_view ContainerWord(Type type) {
  switch (type) {
    case Type::kList:
    case Type::kTexts:
    case Type::kVariables:
    case Type::kTools:
      return "a list, like [a, b]";
    case Type::kMap:
    case Type::kNamed:
    case Type::kTextMap:
    case Type::kJson:
      return "a map of keys to values";
    case Type::kText:
    case Type::kBool:
    case Type::kInt:
    case Type::kNumber:
    case Type::kUsd:
    case Type::kDuration:
    case Type::kSize:
    case Type::kChoice:
    case Type::kVariable:
    case Type::kFile:
    case Type::kRule:
    case Type::kSegment:
      break;
  }
  return {};
}

bool IsListType(Type type) {
  return ContainerWord(type).starts_with("a list");
}
bool IsContainer(Type type) {
  return !ContainerWord(type).empty();
}

// The bound of a number in the unit of its type.
std::string BoundText(Type type, int64_t bound) {
  if (type == Type::kDuration) return std::to_string(bound) + "ms";
  if (type == Type::kUsd) return FormatUsd(bound);
  return std::to_string(bound);
}

}  // namespace

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string near = Nearest(word, candidates);
  // "deny_rules" for "deny", "pre_tool" for "pre_tool_use": too far for a typo, yet plain.
  constexpr size_t kStemBytesMin = 4;
  for (size_t i = 0; near.empty() && i < candidates.size(); ++i) {
    const std::string& candidate = candidates[i];
    if (std::min(candidate.size(), word.size()) < kStemBytesMin) continue;
    if (word.starts_with(candidate) || candidate.starts_with(word)) near = candidate;
  }
  return near.empty() ? std::string() : "; did you mean " + json::Quote(near) + "?";
}

std::string RuleNameFault(const Rule& rule, const std::vector<std::string>& known) {
  const std::string& tool = rule.tool;
  if (tool == "*") return {};
  if (std::ranges::find(known, tool) != known.end()) return {};
  if (tool.starts_with("mcp__")) {
    const size_t split = tool.find("__", 5);
    const bool whole = split != std::string::npos && split > 5 && split + 2 < tool.size();
    const size_t star = tool.find('*');
    const bool star_fits =
        star == std::string::npos || (whole && star == split + 2 && star + 1 == tool.size());
    if (whole && star_fits) return {};
    return "can match nothing: an MCP rule is mcp__server__tool or mcp__server__*";
  }
  if (tool.find('*') != std::string::npos) {
    return "can match nothing: the only wildcards are * alone and mcp__server__*";
  }
  return "unknown tool " + Quoted(tool) + DidYouMean(tool, known);
}

void Checker::CheckMap(const Node& map, std::string_view pattern, const std::string& path) {
  for (size_t i = 0; i < map.items.size(); ++i) {
    const std::string& name = map.keys[i].text;
    const KeyRow* row = ChildRow(table_, pattern, name);
    if (row == nullptr) {
      CheckUnknown(map.keys[i], pattern, path);
    } else {
      CheckValue(map.items[i], *row, Below(path, name));
    }
  }
  for (const KeyRow& row : table_) {
    if (!row.required || ParentOf(row.path) != pattern) continue;
    const std::string_view name = LastOf(row.path);
    if (map.Find(name) == nullptr) {
      faults_.Add(map.place, Below(path, name), "this key is required and missing");
    }
  }
}

void Checker::CheckUnknown(const Node& key, std::string_view pattern, const std::string& path) {
  const std::string full = Below(path, std::string(CutUtf8(key.text, 80)));
  if (LooksLikeCredential(key.text)) {
    faults_.Add(
        key.place, full,
        "unknown key; a key or token itself must not stand in a spec: name the variable that "
        "holds it (model.api_key_env) or the file (model.api_key_file)");
    return;
  }
  const std::vector<std::string> siblings = ChildNames(table_, pattern);
  std::string message = "unknown key";
  const std::string elsewhere = ElsewhereOf(table_, key.text);
  const std::string near = DidYouMean(key.text, siblings);
  if (!elsewhere.empty()) {
    message += "; did you mean " + json::Quote(elsewhere) + "?";
  } else if (!near.empty()) {
    message += near;
  } else if (siblings.size() <= kKeysListedMax) {
    message += "; known here: " + Join(siblings, ", ");
  }
  faults_.Add(key.place, full, std::move(message));
}

bool Checker::IsDefault(const Node& node, const KeyRow& row) const {
  if (row.fallback.empty()) return false;
  if (node.kind == NodeKind::kNull) return row.fallback == "null";
  return Canonical(node, row) == CanonicalDefault(row);
}

void Checker::CheckValue(const Node& node, const KeyRow& row, const std::string& path) {
  if (node.broken) return;
  if (node.kind == NodeKind::kNull && row.fallback == "null") return;
  const size_t faults_before = faults_.size();
  const bool says_not_yet = row.built == Built::kNotYet && not_yet_above_ == 0;
  if (row.built == Built::kNotYet) ++not_yet_above_;
  if (IsContainer(row.type)) {
    CheckContainer(node, row, path);
  } else {
    CheckScalar(node, row, path);
  }
  if (row.built == Built::kNotYet) --not_yet_above_;
  if (!says_not_yet || faults_.size() > faults_before || IsDefault(node, row)) return;
  faults_.Add(node.place, path,
              row.fallback.empty() ? "not supported yet; leave the key out"
                                   : "not supported yet; leave the key out, or at its default " +
                                         std::string(row.fallback));
}

void Checker::CheckContainer(const Node& node, const KeyRow& row, const std::string& path) {
  const NodeKind wanted = IsListType(row.type) ? NodeKind::kList : NodeKind::kMap;
  if (node.kind != wanted) {
    faults_.Add(node.place, path,
                "expected " + std::string(ContainerWord(row.type)) + ", got " + Describe(node));
    return;
  }
  switch (row.type) {
    case Type::kMap:
      return CheckMap(node, row.path, path);
    case Type::kNamed:
      return CheckNamed(node, row, path);
    case Type::kList:
      return CheckList(node, row, path);
    case Type::kTools:
      return CheckTools(node, row, path);
    case Type::kTexts:
    case Type::kVariables:
    case Type::kTextMap:
      for (size_t i = 0; i < node.items.size(); ++i) {
        const std::string part =
            row.type == Type::kTextMap ? "." + node.keys[i].text : "[" + std::to_string(i) + "]";
        CheckText(node.items[i], row, path + part);
      }
      return;
    case Type::kJson:
      if (const auto text = JsonOf(node); !text.ok()) {
        faults_.Add(node.place, path, text.error().message);
      } else if (const auto parsed = json::Document::Parse(text.value()); !parsed.ok()) {
        faults_.Add(node.place, path, "cannot be sent as JSON: " + parsed.error().message);
      }
      return;
    case Type::kText:
    case Type::kBool:
    case Type::kInt:
    case Type::kNumber:
    case Type::kUsd:
    case Type::kDuration:
    case Type::kSize:
    case Type::kChoice:
    case Type::kVariable:
    case Type::kFile:
    case Type::kRule:
    case Type::kSegment:
      break;
  }
  NORMA_CHECK(false);
}

void Checker::CheckNamed(const Node& node, const KeyRow& row, const std::string& path) {
  const std::string pattern = PatternBelow(row.path, "*");
  for (size_t i = 0; i < node.items.size(); ++i) {
    const Node& key = node.keys[i];
    const std::string full = Below(path, key.text);
    if (const KeyRow* fixed = FindRow(table_, PatternBelow(row.path, key.text));
        fixed != nullptr && key.text != "*") {
      CheckValue(node.items[i], *fixed, full);
      continue;
    }
    if (row.choices == "TOOL") {
      Rule rule;
      rule.tool = key.text;
      const std::string fault =
          key.text == "*" ? "name one tool" : RuleNameFault(rule, names_.tools);
      if (!fault.empty()) faults_.Add(key.place, full, fault);
    } else if (!row.choices.empty()) {
      const auto choices = ChoicesOf(row.choices);
      if (std::ranges::find(choices, key.text) == choices.end()) {
        faults_.Add(key.place, full, "unknown key" + DidYouMean(key.text, choices));
        continue;
      }
    } else if (IsBlank(key.text)) {
      faults_.Add(key.place, full, "a blank name");
      continue;
    }
    const KeyRow* any = FindRow(table_, pattern);
    NORMA_CHECK(any != nullptr);
    CheckValue(node.items[i], *any, full);
  }
}

void Checker::CheckList(const Node& node, const KeyRow& row, const std::string& path) {
  const KeyRow* element = FindRow(table_, PatternBelow(row.path, "[]"));
  NORMA_CHECK(element != nullptr);
  for (size_t i = 0; i < node.items.size(); ++i) {
    CheckValue(node.items[i], *element, path + "[" + std::to_string(i) + "]");
  }
}

void Checker::CheckTools(const Node& node, const KeyRow& row, const std::string& path) {
  std::set<std::string, std::less<>> seen;
  for (size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    const std::string full = path + "[" + std::to_string(i) + "]";
    const auto name = TextOf(item);
    if (item.broken) continue;
    if (!name.ok()) {
      faults_.Add(item.place, full, name.error().message);
    } else if (std::ranges::find(names_.tools, name.value()) == names_.tools.end()) {
      faults_.Add(item.place, full,
                  "unknown tool " + Quoted(WordOf(item)) + DidYouMean(name.value(), names_.tools));
    } else if (row.path == "tools.enabled" &&
               std::ranges::find(names_.builtin, name.value()) == names_.builtin.end()) {
      faults_.Add(item.place, full, "the tool " + name.value() + " is not supported yet");
    } else if (!seen.insert(name.value()).second) {
      faults_.Add(item.place, full, "the tool " + name.value() + " is named twice");
    }
  }
}

void Checker::CheckRule(const Node& node, const std::string& path) {
  if (node.kind == NodeKind::kMap) {
    faults_.Add(node.place, path,
                "rules with match: examples are not supported yet; write the rule as text");
    return;
  }
  const auto text = TextOf(node);
  if (!text.ok()) {
    faults_.Add(node.place, path, text.error().message);
    return;
  }
  const auto rule = ParseRule(text.value());
  std::string fault = rule.ok() ? RuleNameFault(rule.value(), names_.tools) : rule.error().message;
  // The reason repeats the rule, and the value of a variable may be a secret.
  if (!fault.empty() && node.replaced)
    fault = "the rule " + Quoted(node.written) + " names no tool";
  if (!fault.empty()) faults_.Add(node.place, path, fault);
}

void Checker::CheckSegment(const Node& node, const std::string& path) {
  if (node.kind != NodeKind::kMap) {
    if (const auto text = TextOf(node); !text.ok()) {
      faults_.Add(node.place, path, text.error().message + " (or a file: {file: path})");
    }
    return;
  }
  for (const Node& key : node.keys) {
    if (key.text != "file") {
      faults_.Add(key.place, Below(path, key.text), "unknown key" + DidYouMean(key.text, {"file"}));
    }
  }
  const Node* file = node.Find("file");
  if (file == nullptr) {
    faults_.Add(node.place, Below(path, "file"), "this key is required and missing");
  } else if (const auto text = TextOf(*file); !file->broken && !text.ok()) {
    faults_.Add(file->place, Below(path, "file"), text.error().message);
  }
}

void Checker::CheckText(const Node& node, const KeyRow& row, const std::string& path) {
  if (node.broken) return;
  const auto text = TextOf(node);
  const bool variable = row.type == Type::kVariable || row.type == Type::kVariables;
  if (!text.ok()) {
    faults_.Add(node.place, path, text.error().message);
  } else if (variable && !IsVariableName(text.value())) {
    // Not repeated: people paste the key itself here.
    faults_.Add(node.place, path,
                "this is not the name of an environment variable (letters, digits, _)");
  } else if (row.type == Type::kFile && IsBlank(text.value())) {
    faults_.Add(node.place, path, "a blank file name");
  }
}

void Checker::CheckChoice(const Node& node, const KeyRow& row, const std::string& path) {
  const auto choices = ChoicesOf(row.choices);
  const auto text = TextOf(node);
  if (node.kind != NodeKind::kScalar || !text.ok()) {
    faults_.Add(node.place, path,
                "expected one of " + Join(choices, ", ") + ", got " + Describe(node));
    return;
  }
  if (std::ranges::find(choices, text.value()) == choices.end()) {
    std::string message =
        "unknown value " + Quoted(WordOf(node)) + "; one of " + Join(choices, ", ");
    faults_.Add(node.place, path, message + DidYouMean(text.value(), choices));
    return;
  }
  const auto later = ChoicesOf(row.later);
  if (not_yet_above_ == 0 && std::ranges::find(later, text.value()) != later.end()) {
    faults_.Add(
        node.place, path,
        text.value() + " is not supported yet; the default is " + std::string(row.fallback));
  }
}

void Checker::CheckRange(const Node& node, const KeyRow& row, const std::string& path,
                         int64_t number) {
  if (number < row.min) {
    faults_.Add(node.place, path,
                "must be at least " + BoundText(row.type, row.min) + ", got " + WordOf(node));
  } else if (number > row.max) {
    faults_.Add(node.place, path,
                "must be at most " + BoundText(row.type, row.max) + ", got " + WordOf(node));
  }
}

void Checker::CheckScalar(const Node& node, const KeyRow& row, const std::string& path) {
  const auto report = [&](const Error& error) { faults_.Add(node.place, path, error.message); };
  switch (row.type) {
    case Type::kBool:
      if (const auto value = BoolOf(node); !value.ok()) report(value.error());
      return;
    case Type::kInt: {
      const auto value = IntOf(node);
      return value.ok() ? CheckRange(node, row, path, value.value()) : report(value.error());
    }
    case Type::kSize: {
      const auto value = SizeOf(node);
      return value.ok() ? CheckRange(node, row, path, value.value()) : report(value.error());
    }
    case Type::kUsd: {
      const auto value = UsdOf(node);
      return value.ok() ? CheckRange(node, row, path, value.value()) : report(value.error());
    }
    case Type::kDuration: {
      const auto value = DurationOf(node);
      return value.ok() ? CheckRange(node, row, path, value.value().count())
                        : report(value.error());
    }
    case Type::kNumber: {
      const auto value = NumberOf(node);
      if (!value.ok()) return report(value.error());
      if (value.value() < static_cast<double>(row.min))
        return CheckRange(node, row, path, row.min - 1);
      if (row.max != kNoMax && value.value() > static_cast<double>(row.max)) {
        return CheckRange(node, row, path, row.max + 1);
      }
      return;
    }
    case Type::kChoice:
      return CheckChoice(node, row, path);
    case Type::kText:
    case Type::kVariable:
    case Type::kFile:
      return CheckText(node, row, path);
    case Type::kRule:
      return CheckRule(node, path);
    case Type::kSegment:
      return CheckSegment(node, path);
    case Type::kMap:
    case Type::kNamed:
    case Type::kList:
    case Type::kTexts:
    case Type::kTextMap:
    case Type::kVariables:
    case Type::kTools:
    case Type::kJson:
      break;
  }
  NORMA_CHECK(false);
}

std::string Canonical(const Node& node, const KeyRow& row) {
  switch (row.type) {
    case Type::kSize:
      if (const auto value = SizeOf(node); value.ok()) return std::to_string(value.value());
      break;
    case Type::kUsd:
      if (const auto value = UsdOf(node); value.ok()) return json::Quote(FormatUsd(value.value()));
      break;
    case Type::kDuration:
      if (const auto value = DurationOf(node); value.ok()) {
        return json::Quote(std::to_string(value.value().count()) + "ms");
      }
      break;
    case Type::kMap:
    case Type::kNamed:
    case Type::kList:
    case Type::kText:
    case Type::kTexts:
    case Type::kTextMap:
    case Type::kBool:
    case Type::kInt:
    case Type::kNumber:
    case Type::kChoice:
    case Type::kVariable:
    case Type::kVariables:
    case Type::kFile:
    case Type::kRule:
    case Type::kTools:
    case Type::kSegment:
    case Type::kJson:
      break;
  }
  const auto text = JsonOf(node);
  return text.ok() ? text.value() : std::string();
}

std::string CanonicalDefault(const KeyRow& row) {
  if (row.fallback.empty()) return "null";
  Faults faults;
  const auto node = ParseTree(row.fallback, faults.AddSource("default"), faults);
  NORMA_CHECK(node.has_value() && faults.empty());
  return Canonical(*node, row);
}

}  // namespace norma::spec
