// Flags into the tree, and ${NAME} into its text. Both happen before the check, so that what comes
// from outside is judged like the file.
#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/spec/key_table.h"
#include "lib/spec/loading.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

// --- where a --set goes
// ---------------------------------------------------------------------------

std::string JoinParts(const std::vector<std::string_view>& parts, size_t begin, size_t end) {
  std::string name;
  for (size_t i = begin; i < end; ++i) {
    if (i > begin) name += '.';
    name += parts[i];
  }
  return name;
}

// How many of the parts from `at` on make up one name: names of models and headers may hold dots.
size_t PartsOfName(const std::vector<std::string_view>& parts, size_t at,
                   const std::string& pattern, const Node* here) {
  const size_t left = parts.size() - at;
  const KeyRow* row = FindRow(SpecKeys(), pattern);
  if (row == nullptr || left == 1) return 1;
  if (row->type == Type::kTextMap) return left;
  if (row->type != Type::kNamed) return 1;
  if (FindRow(SpecKeys(), pattern + "." + std::string(parts[at])) != nullptr) return 1;
  if (here != nullptr && here->kind == NodeKind::kMap) {
    for (size_t count = left; count > 0; --count) {
      if (here->Find(JoinParts(parts, at, at + count)) != nullptr) return count;
    }
  }
  const bool last_is_key =
      FindRow(SpecKeys(), pattern + ".*." + std::string(parts.back())) != nullptr;
  return last_is_key ? left - 1 : left;
}

Node NamedAt(const Place& place, std::string name) {
  Node key;
  key.kind = NodeKind::kScalar;
  key.quoted = true;
  key.place = place;
  key.text = std::move(name);
  return key;
}

// Puts `value` at `path`, making maps on the way. False when something there is no map.
bool Insert(Loading& load, const std::string& path, Node value) {
  const std::vector<std::string_view> parts = Split(path, '.');
  const Place place = value.place;
  Node* here = &load.root;
  std::string pattern;
  for (size_t at = 0; at < parts.size();) {
    const size_t count = PartsOfName(parts, at, pattern, here);
    std::string name = JoinParts(parts, at, at + count);
    at += count;
    const bool last = at == parts.size();
    Node* next = here->Find(name);
    if (next == nullptr) {
      Node map;
      map.kind = NodeKind::kMap;
      map.place = place;
      here->keys.push_back(NamedAt(place, name));
      here->items.push_back(std::move(map));
      next = &here->items.back();
    }
    if (last) {
      *next = std::move(value);
      return true;
    }
    if (next->kind != NodeKind::kMap) {
      load.faults.Add(place, path,
                      JoinParts(parts, 0, at) + " is no map: it holds " + Describe(*next));
      return false;
    }
    const KeyRow* row = ChildRow(SpecKeys(), pattern, name);
    pattern = row != nullptr ? std::string(row->path) : pattern + "." + name;
    here = next;
  }
  return true;
}

void MoveTo(Node& node, const Place& place) {
  node.place = place;
  for (Node& key : node.keys) key.place = place;
  for (Node& item : node.items) MoveTo(item, place);
}

void ApplySet(Loading& load, const std::string& set) {
  const size_t equals = set.find('=');
  const std::string path(Trim(std::string_view(set).substr(0, equals)));
  if (equals == std::string::npos) {
    const int source = load.faults.AddSource("--set " + std::string(CutUtf8(path, 80)), path);
    load.faults.Add({source, 0, 0}, path, "write path.to.key=VALUE");
    return;
  }
  const int source = load.faults.AddSource("--set " + std::string(CutUtf8(path, 80)), path);
  const Place place{source, 0, 0};
  for (const std::string_view part : Split(path, '.')) {
    if (IsBlank(part) || part.find('\0') != std::string_view::npos || !IsValidUtf8(part)) {
      load.faults.Add(place, path, "an empty or broken name in the path; write path.to.key=VALUE");
      return;
    }
  }
  auto value = ParseTree(std::string_view(set).substr(equals + 1), source, load.faults);
  if (!value) return;
  MoveTo(*value, place);
  Insert(load, path, std::move(*value));
}

void ApplyFlag(Loading& load, const char* flag, const char* path,
               const std::optional<std::string>& value) {
  if (!value) return;
  const Place place{load.faults.AddSource(flag, path), 0, 0};
  Node node = NamedAt(place, *value);
  if (!IsValidUtf8(*value) || value->find('\0') != std::string::npos) {
    load.faults.Add(place, path, "bytes that are not valid UTF-8 text");
    node.broken = true;
  }
  Insert(load, path, std::move(node));
}

// --- ${NAME}
// --------------------------------------------------------------------------------------

// What one reference stands for; nothing and a fault when it stands for nothing.
std::optional<std::string> ValueOfReference(Loading& load, const Node& node,
                                            const std::string& path, std::string_view inside) {
  const size_t split = inside.find(":-");
  const std::string name(inside.substr(0, split));
  if (!IsVariableName(name)) {
    load.faults.Add(
        node.place, path,
        "${" + std::string(CutUtf8(inside, 60)) +
            "} is no reference to a variable: write ${NAME} or ${NAME:-default}; text that "
            "needs a literal ${ goes into a file");
    return std::nullopt;
  }
  auto value = load.input.env ? load.input.env(name) : std::nullopt;
  if (split != std::string_view::npos && (!value || value->empty())) {
    return std::string(inside.substr(split + 2));
  }
  if (!value) {
    load.faults.Add(node.place, path,
                    "the environment variable " + name + " is not set; set it, or write ${" + name +
                        ":-default}");
    return std::nullopt;
  }
  if (!IsValidUtf8(*value)) {
    load.faults.Add(node.place, path, "the environment variable " + name + " holds no valid UTF-8");
    return std::nullopt;
  }
  return value;
}

void ReplaceIn(Loading& load, Node& node, const std::string& path) {
  const std::string_view text = node.text;
  std::string out;
  size_t at = 0;
  bool replaced = false;
  while (at < text.size()) {
    // {{…}} belongs to the prompt's own template, whatever stands in it.
    const bool is_template = text.substr(at).starts_with("{{");
    if (!is_template && !text.substr(at).starts_with("${")) {
      out += text[at++];
      continue;
    }
    const size_t end = text.find(is_template ? "}}" : "}", at + 2);
    if (is_template) {
      const size_t next = end == std::string_view::npos ? at + 2 : end + 2;
      out += text.substr(at, next - at);
      at = next;
      continue;
    }
    if (end == std::string_view::npos) {
      load.faults.Add(node.place, path, "${ without its }; write ${NAME} or ${NAME:-default}");
      node.broken = true;
      return;
    }
    const auto value = ValueOfReference(load, node, path, text.substr(at + 2, end - at - 2));
    if (!value) node.broken = true;
    if (value) out += *value;
    replaced = true;
    at = end + 1;
  }
  if (!replaced) return;
  node.written = std::move(node.text);
  node.text = std::move(out);
  node.replaced = true;
}

void ReplaceBelow(Loading& load, Node& node, const std::string& path) {
  if (node.kind == NodeKind::kScalar && !node.broken && node.text.find("${") != std::string::npos) {
    ReplaceIn(load, node, path);
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const bool is_map = node.kind == NodeKind::kMap;
    std::string part = is_map ? node.keys[i].text : "[" + std::to_string(i) + "]";
    if (is_map && !path.empty()) part.insert(0, 1, '.');
    ReplaceBelow(load, node.items[i], path + part);
  }
}

}  // namespace

void ApplySets(Loading& load) {
  for (const std::string& set : load.input.sets) ApplySet(load, set);
}

void ReplaceVariables(Loading& load) {
  ReplaceBelow(load, load.root, "");
}

void ApplyFlags(Loading& load) {
  ApplyFlag(load, "--model", "model.name", load.input.model_name);
  ApplyFlag(load, "--deadline", "budgets.wall", load.input.deadline);
  ApplyFlag(load, "--ledger", "ledger.path", load.input.ledger_path);
}

}  // namespace norma::spec
