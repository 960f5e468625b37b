// Where each effective value comes from, and the hash over all of them. Both walk the key table, so
// that a key cannot be forgotten.
#include <fmt/core.h>

#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/spec/check.h"
#include "lib/spec/key_table.h"
#include "lib/spec/loading.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

constexpr size_t kShownBytesMax = 200;

bool IsFixed(std::string_view path) {
  return path.find_first_of("*[") == std::string_view::npos;
}

// Maps of fixed keys and of anything are shown key by key below them.
bool HasFixedChildren(const KeyRow& row) {
  return row.type == Type::kMap;
}

const Node* Find(const Node& root, std::string_view path) {
  const Node* node = &root;
  for (const std::string_view name : Split(path, '.')) {
    if (node->kind != NodeKind::kMap) return nullptr;
    node = node->Find(name);
    if (node == nullptr) return nullptr;
  }
  return node;
}

// As a person writes it, on one line; `${NAME}` stays what it is.
std::string Flow(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return "null";
    case NodeKind::kScalar:
      if (!node.quoted && !node.replaced) return node.text;
      return json::Quote(node.shown());
    case NodeKind::kList:
    case NodeKind::kMap:
      break;
  }
  const bool is_map = node.kind == NodeKind::kMap;
  std::string out = is_map ? "{" : "[";
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) out += ", ";
    if (is_map) out += node.keys[i].text + ": ";
    out += Flow(node.items[i]);
  }
  return out + (is_map ? "}" : "]");
}

std::string Shown(const Node& node) {
  // A scalar is shown bare: `model.name = claude`, not `"claude"`.
  std::string text = node.kind == NodeKind::kScalar ? node.shown() : Flow(node);
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else {
      line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  const std::string_view cut = CutUtf8(line, kShownBytesMax);
  return cut.size() < line.size() ? std::string(cut) + "…" : line;
}

// What `norma check` prints is pasted into tickets: no password of a proxy goes along.
std::string WithoutUser(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t start = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t at = url.substr(0, url.find('/', start)).rfind('@');
  return at == std::string::npos || at < start ? url
                                               : url.substr(0, start) + "***" + url.substr(at);
}

std::string From(const Loading& load, const Node& node) {
  const std::string where = load.faults.Where(node.place);
  // "--set budgets.turns": the key is said beside it.
  return node.place.line == 0 ? where.substr(0, where.find(' ')) : where;
}

std::string DefaultTools(const Loading& load) {
  return "[" + Join(load.input.default_tools, ", ") + "]";
}

}  // namespace

std::vector<Origin> OriginsOf(const Loading& load) {
  std::vector<Origin> origins;
  for (const KeyRow& row : SpecKeys()) {
    if (!IsFixed(row.path) || HasFixedChildren(row)) continue;
    const Node* node = Find(load.root, row.path);
    const std::string key(row.path);
    if (row.path == "prices.file" && node == nullptr) continue;
    if (row.type == Type::kNamed || row.type == Type::kTextMap) {
      // One line an entry, since each has its own place; `prices.file` has a row of its own.
      if (node == nullptr || node->kind != NodeKind::kMap) continue;
      for (size_t i = 0; i < node->items.size(); ++i) {
        if (FindRow(SpecKeys(), key + "." + node->keys[i].text) != nullptr) continue;
        const Node& item = node->items[i];
        origins.push_back({key + "." + node->keys[i].text, Shown(item), From(load, item)});
      }
      continue;
    }
    if (node != nullptr) {
      const std::string shown = Shown(*node);
      const bool is_proxy = row.path == "model.proxy" || row.path == "web.proxy";
      origins.push_back({key, is_proxy ? WithoutUser(shown) : shown, From(load, *node)});
    } else if (row.path == "tools.enabled") {
      origins.push_back({key, DefaultTools(load), "default"});
    } else if (!row.fallback.empty()) {
      origins.push_back({key, std::string(row.fallback), "default"});
    }
  }
  return origins;
}

std::string HashOf(const Loading& load) {
  Sha256 hash;
  const auto add = [&hash](std::string_view key, std::string_view value) {
    // Lengths keep two different lists of pairs from being one text.
    hash.Update(fmt::format("{}:{}={}:", key.size(), key, value.size()));
    hash.Update(value);
  };
  for (const KeyRow& row : SpecKeys()) {
    if (!IsFixed(row.path) || HasFixedChildren(row)) continue;
    const Node* node = Find(load.root, row.path);
    if (node != nullptr) {
      add(row.path, Canonical(*node, row));
    } else if (row.path == "tools.enabled") {
      add(row.path, DefaultTools(load));
    } else {
      add(row.path, CanonicalDefault(row));
    }
  }
  for (const auto& [key, file] : load.file_hashes) add("file:" + key, file);
  return hash.FinishHex();
}

}  // namespace norma::spec
