// YAML or JSON text as a plain tree of our own, each node with its place. Strict where YAML is not:
// duplicate keys, anchors, aliases, merge keys, tags, second documents, keys that are no text,
// control characters, bad UTF-8 and deep nesting are faults. yaml-cpp lives in tree.cc alone.
//
// JSON goes through a small reader of its own (json_tree.cc), because yaml-cpp 0.7 refuses
// surrogate pairs ("\ud83d\ude00") and keys over 1024 bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/spec/fault.h"

namespace norma::spec {

enum class NodeKind { kNull, kScalar, kList, kMap };

struct Node {
  NodeKind kind = NodeKind::kNull;
  bool quoted = false;    // scalar: quoted or a block scalar, hence text whatever it looks like
  bool replaced = false;  // scalar: ${NAME} was replaced; `written` holds what stands in the file
  bool broken = false;    // a fault was already reported for this node: nothing more to say
  Place place;
  std::string text;
  std::string written;
  std::vector<Node> keys;   // map: always scalars, unique; keys[i] names items[i]
  std::vector<Node> items;  // map and list

  const Node* Find(std::string_view key) const;
  Node* Find(std::string_view key);
  // What a person wrote: never the value of a variable.
  const std::string& shown() const { return replaced ? written : text; }
};

// Nesting deeper than this is refused (PRODUCT's deepest path has six levels).
inline constexpr int kDepthMax = 64;

// The tree of a text; an empty text is a null node. Nothing when the text cannot be read at all;
// then, and for smaller faults too, `faults` has grown.
std::optional<Node> ParseTree(std::string_view text, int source, Faults& faults);

// Part of ParseTree: the text as JSON with places, or nothing and where it stopped being JSON.
struct JsonStop {
  size_t offset = 0;
  std::string reason;
};
std::optional<Node> ParseJsonTree(std::string_view text, int source, JsonStop* stop);

// Line and column of a byte offset, from 1.
Place PlaceOf(std::string_view text, size_t offset, int source);

}  // namespace norma::spec
