// The replies of the script model (PRODUCT §7), as strict as the spec itself.
#include <string>
#include <utility>

#include "lib/spec/loading.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

int64_t IntAt(const Node& map, std::string_view key) {
  const Node* node = map.Find(key);
  if (node == nullptr) return 0;
  const auto value = IntOf(*node);
  return value.ok() ? value.value() : 0;
}

std::string TextAt(const Node& map, std::string_view key) {
  const Node* node = map.Find(key);
  if (node == nullptr) return {};
  auto value = TextOf(*node);
  return value.ok() ? std::move(value).value() : std::string();
}

ScriptCall CallOf(const Node& node) {
  ScriptCall call;
  call.id = TextAt(node, "id");
  call.name = TextAt(node, "name");
  call.input = "{}";
  if (const Node* input = node.Find("input"); input != nullptr) {
    if (auto json = JsonOf(*input); json.ok()) call.input = std::move(json).value();
  }
  return call;
}

ScriptReply ReplyOf(const Node& node) {
  ScriptReply reply;
  reply.text = TextAt(node, "text");
  reply.thinking = TextAt(node, "thinking");
  reply.stop = TextAt(node, "stop");
  if (const Node* calls = node.Find("calls"); calls != nullptr) {
    for (const Node& call : calls->items) reply.calls.push_back(CallOf(call));
  }
  if (const Node* usage = node.Find("usage"); usage != nullptr) {
    reply.usage_input = IntAt(*usage, "input");
    reply.usage_output = IntAt(*usage, "output");
    reply.usage_cache_read = IntAt(*usage, "cache_read");
    reply.usage_cache_write = IntAt(*usage, "cache_write");
  }
  if (const Node* delay = node.Find("delay"); delay != nullptr) {
    if (const auto value = DurationOf(*delay); value.ok()) reply.delay = value.value();
  }
  if (node.Find("expect") != nullptr) reply.expect = TextAt(node, "expect");
  if (const Node* error = node.Find("error"); error != nullptr) {
    reply.error = ScriptError{static_cast<int>(IntAt(*error, "status")), TextAt(*error, "message")};
  }
  return reply;
}

// What a row of the table cannot say about one reply.
void CheckReply(const Node& node, const std::string& path, Faults& faults) {
  if (node.kind != NodeKind::kMap) return;
  const Node* error = node.Find("error");
  if (error == nullptr) {
    const Node* usage = node.Find("usage");
    if (usage == nullptr || usage->kind != NodeKind::kMap) return;
    const int64_t cached = IntAt(*usage, "cache_read") + IntAt(*usage, "cache_write");
    if (cached > IntAt(*usage, "input")) {
      faults.Add(usage->place, path + ".usage",
                 "input includes the cached tokens, so it cannot be less");
    }
    return;
  }
  for (const char* key : {"text", "thinking", "calls", "usage", "stop"}) {
    if (const Node* other = node.Find(key); other != nullptr) {
      faults.Add(other->place, path + "." + key, "a reply is an error or has content, not both");
    }
  }
  const int64_t status = error->kind == NodeKind::kMap ? IntAt(*error, "status") : 0;
  if (status != 0 && status < 400) {
    faults.Add(error->place, path + ".error.status",
               "an HTTP error is 400 or above; 0 or none is a network error");
  }
}

}  // namespace

Script ReadScript(const std::string& text, int source, const KnownNames& names, Faults& faults) {
  Script script;
  const auto root = ParseTree(text, source, faults);
  if (!root) return script;
  if (root->kind != NodeKind::kMap) {
    faults.Add({source, 1, 1}, "", "a script is a map with replies:, got " + Describe(*root));
    return script;
  }
  const size_t before = faults.size();
  Checker(ScriptKeys(), names, faults).CheckMap(*root, "", "");
  const Node* replies = root->Find("replies");
  if (replies == nullptr || replies->kind != NodeKind::kList) return script;
  for (size_t i = 0; i < replies->items.size(); ++i) {
    CheckReply(replies->items[i], "replies[" + std::to_string(i) + "]", faults);
  }
  if (replies->items.empty())
    faults.Add(replies->place, "replies", "a script needs at least one reply");
  if (faults.size() > before) return script;

  for (const Node& reply : replies->items) script.replies.push_back(ReplyOf(reply));
  if (const Node* repeat = root->Find("repeat"); repeat != nullptr)
    script.repeat = repeat->text == "true";
  return script;
}

void BuildScript(Loading& load) {
  Model& model = load.out.spec.model;
  if (model.format != "script") return;
  const Node* all = load.At("model");
  if (all == nullptr || all->kind != NodeKind::kMap) return;
  const Node* node = load.At("model.script");
  if (all->Find("script") == nullptr) {
    load.faults.Add(all->place, "model.script",
                    "format: script needs the file of its replies here");
  }
  if (node == nullptr || node->kind != NodeKind::kScalar || !TextOf(*node).ok()) return;
  const auto file = load.ReadNamed(*node, "model.script");
  if (!file) return;
  model.script_path = file->path;
  model.script =
      ReadScript(file->text, load.faults.AddSource(file->display), load.names, load.faults);
}

}  // namespace norma::spec
