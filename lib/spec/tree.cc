// The strict YAML reader: yaml-cpp's events, our own tree.
#include "lib/spec/tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

const Node* FindIn(const Node& node, std::string_view key) {
  for (size_t i = 0; i < node.keys.size(); ++i) {
    if (node.keys[i].text == key) return &node.items[i];
  }
  return nullptr;
}

// --- what is refused before YAML is asked -----------------------------------------------------

// Offset of the first control character that a text file has no use for, or npos. C1 controls count
// (yaml-cpp would take U+0085 as part of a word, other readers as a line end).
size_t FindControl(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') return i;
    if (byte == 0x7F) return i;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0)
      return i;
  }
  return std::string_view::npos;
}

size_t FindInvalidUtf8(std::string_view text) {
  size_t offset = 0;
  for (const std::string_view line : SplitLines(text)) {
    if (!IsValidUtf8(line)) return offset;
    offset += line.size() + 1;
  }
  return 0;
}

bool CheckBytes(std::string_view text, int source, Faults& faults) {
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    faults.Add(PlaceOf(text, nul, source), "", "a NUL byte: this is no UTF-8 text file");
    return false;
  }
  if (!IsValidUtf8(text)) {
    faults.Add(PlaceOf(text, FindInvalidUtf8(text), source), "",
               "bytes that are not valid UTF-8; save the file as UTF-8");
    return false;
  }
  if (const size_t control = FindControl(text); control != std::string_view::npos) {
    faults.Add(PlaceOf(text, control, source), "",
               "a control character; write it as an escape in double quotes");
    return false;
  }
  return true;
}

// --- yaml-cpp's events -> Node ------------------------------------------------------------------

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(int source, Faults& faults) : source_(source), faults_(faults) {}

  Node TakeRoot() { return std::move(root_); }
  Place document_place() const { return document_place_; }
  bool has_root() const { return has_root_; }

  void OnDocumentStart(const YAML::Mark& mark) override { document_place_ = PlaceAt(mark); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Attach(NewNode(NodeKind::kNull, mark, "?", anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Node node = NewNode(NodeKind::kNull, mark, "?", 0);
    Refuse(node, "an alias (*name); write the value out where it is used");
    Attach(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = NewNode(NodeKind::kScalar, mark, tag, anchor);
    node.quoted = tag == "!";
    node.text = value;
    Attach(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(NewNode(NodeKind::kList, mark, tag, anchor), mark);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(NewNode(NodeKind::kMap, mark, tag, anchor), mark);
  }
  void OnMapEnd() override { Close(); }

 private:
  Place PlaceAt(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

  void Refuse(Node& node, std::string message) {
    faults_.Add(node.place, "", std::move(message));
    node.broken = true;
  }

  Node NewNode(NodeKind kind, const YAML::Mark& mark, const std::string& tag,
               YAML::anchor_t anchor) {
    Node node;
    node.kind = kind;
    node.place = PlaceAt(mark);
    if (anchor != 0) Refuse(node, "an anchor (&name); write the value out where it is used");
    if (!tag.empty() && tag != "?" && tag != "!") {
      Refuse(node, "a tag (" + std::string(CutUtf8(tag, 40)) + "); a policy has no use for tags");
    }
    return node;
  }

  void Open(Node node, const YAML::Mark& mark) {
    if (static_cast<int>(open_.size()) >= kDepthMax) {
      throw YAML::ParserException(mark, "nested deeper than 64 levels");
    }
    open_.push_back(std::move(node));
  }

  void Close() {
    NORMA_CHECK(!open_.empty());
    Node node = std::move(open_.back());
    open_.pop_back();
    Attach(std::move(node));
  }

  void Attach(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      has_root_ = true;
      return;
    }
    Node& parent = open_.back();
    const bool is_key = parent.kind == NodeKind::kMap && parent.keys.size() == parent.items.size();
    (is_key ? parent.keys : parent.items).push_back(std::move(node));
  }

  const int source_;
  Faults& faults_;
  std::vector<Node> open_;
  Node root_;
  bool has_root_ = false;
  Place document_place_;
};

// yaml-cpp's own words, and what helps with the commonest of them.
std::string SyntaxMessage(std::string_view text, const YAML::Exception& error) {
  std::string message = "this is no valid YAML: " + error.msg;
  const auto lines = SplitLines(text);
  const auto index = static_cast<size_t>(std::max(error.mark.line, 0));
  if (index < lines.size()) {
    const std::string_view line = lines[index];
    const size_t blank = std::min(line.find_first_not_of(" \t"), line.size());
    if (line.substr(0, blank).find('\t') != std::string_view::npos) {
      message += "; indent with blanks, not with tabs";
    }
  }
  if (error.msg.starts_with("illegal document indicator"))
    message += "; is a closing quote missing?";
  if (error.msg.starts_with("invalid unicode")) {
    message += "; surrogate pairs work in JSON only, write the character itself";
  }
  return message;
}

// A scalar that is quoted and never closed would be taken up to the end of the file by yaml-cpp; an
// end-of-document line makes it an error there.
std::string WithEndLine(std::string_view text) {
  std::string fed(text);
  if (!fed.empty() && fed.back() != '\n') fed += '\n';
  fed += "...\n";
  return fed;
}

std::optional<Node> ParseYaml(std::string_view text, int source, Faults& faults) {
  try {
    std::istringstream in(WithEndLine(text));
    YAML::Parser parser(in);
    TreeBuilder first(source, faults);
    if (!parser.HandleNextDocument(first) || !first.has_root()) {
      Node empty;
      empty.place = {source, 1, 1};
      return empty;
    }
    TreeBuilder second(source, faults);
    if (parser.HandleNextDocument(second)) {
      faults.Add(
          second.document_place(), "",
          "a second document starts here; one file is one document (is the indentation right?)");
      return std::nullopt;
    }
    return first.TakeRoot();
  } catch (const YAML::Exception& error) {
    const Place place{source, std::max(error.mark.line, 0) + 1, std::max(error.mark.column, 0) + 1};
    faults.Add(place, "", SyntaxMessage(text, error));
  } catch (const std::exception& error) {
    faults.Add({source, 1, 1}, "", std::string("cannot be read as YAML: ") + error.what());
  }
  return std::nullopt;
}

// --- what holds for every tree, wherever it came from --------------------------------------------

// A null behind `key:` is reported by yaml-cpp at the next token, often lines further down.
void PlaceOfMissingValue(const Node& key, Node& item) {
  if (item.kind == NodeKind::kNull) item.place = key.place;
  // Faults of a value that starts on a later line (a block map) are looked for at its key.
  if (item.place.line != key.place.line) item.place = key.place;
}

bool IsTextKey(const Node& key) {
  if (key.kind != NodeKind::kScalar) return false;
  return key.quoted || ClassifyPlain(key.text) == PlainKind::kText;
}

void CheckMap(Node& map, Faults& faults) {
  std::unordered_map<std::string_view, int> seen;  // key -> line
  std::vector<size_t> dropped;
  for (size_t i = 0; i < map.items.size(); ++i) {
    const Node& key = map.keys[i];
    PlaceOfMissingValue(key, map.items[i]);
    if (key.broken) {
      dropped.push_back(i);
    } else if (!IsTextKey(key)) {
      faults.Add(key.place, "", "a key must be text, got " + Describe(key) + "; put it in quotes");
      dropped.push_back(i);
    } else if (!key.quoted && key.text == "<<") {
      faults.Add(key.place, "", "a merge key (<<); write the keys out where they belong");
      dropped.push_back(i);
    } else if (const auto [at, added] = seen.emplace(key.text, key.place.line); !added) {
      faults.Add(key.place, "",
                 "duplicate key " + json::Quote(CutUtf8(key.text, 80)) + ", first at line " +
                     std::to_string(at->second));
      dropped.push_back(i);
    }
  }
  seen.clear();  // its views die with the erased keys
  for (auto index = dropped.rbegin(); index != dropped.rend(); ++index) {
    map.keys.erase(map.keys.begin() + static_cast<std::ptrdiff_t>(*index));
    map.items.erase(map.items.begin() + static_cast<std::ptrdiff_t>(*index));
  }
}

void CheckTree(Node& node, Faults& faults) {
  NORMA_CHECK(node.kind != NodeKind::kMap || node.keys.size() == node.items.size());
  if (node.kind == NodeKind::kScalar && node.text.find('\0') != std::string::npos) {
    faults.Add(node.place, "", "text must not hold a NUL character");
    node.broken = true;
  }
  if (node.kind == NodeKind::kMap) CheckMap(node, faults);
  for (Node& item : node.items) CheckTree(item, faults);
}

}  // namespace

const Node* Node::Find(std::string_view key) const {
  return FindIn(*this, key);
}
Node* Node::Find(std::string_view key) {
  return const_cast<Node*>(FindIn(*this, key));
}

Place PlaceOf(std::string_view text, size_t offset, int source) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
  return {source, static_cast<int>(lines) + 1, static_cast<int>(before.size() - line_start) + 1};
}

std::optional<Node> ParseTree(std::string_view text, int source, Faults& faults) {
  if (!CheckBytes(text, source, faults)) return std::nullopt;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);

  std::optional<Node> root;
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool may_be_json = first != std::string_view::npos &&
                           std::string_view("{[\"").find(text[first]) != std::string_view::npos;
  JsonStop stop;
  if (may_be_json) root = ParseJsonTree(text, source, &stop);
  if (!root) {
    Faults yaml_faults = faults;
    root = ParseYaml(text, source, yaml_faults);
    // Neither JSON nor YAML, though it starts like JSON: yaml-cpp then points at the first brace,
    // the JSON reader at the place where it went wrong.
    if (!root && text[std::min(first, text.size() - 1)] == '{') {
      faults.Add(PlaceOf(text, stop.offset, source), "",
                 "this is no valid JSON or YAML: " + stop.reason);
      return std::nullopt;
    }
    faults = std::move(yaml_faults);
  }
  if (root) CheckTree(*root, faults);
  return root;
}

}  // namespace norma::spec
