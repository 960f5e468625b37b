#include "lib/llm/openai_responses_encode.h"

#include <array>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::llm {
namespace {

// Always sent by us.
constexpr std::array<std::string_view, 7> kOwnKeys = {
    "model", "instructions", "input", "tools", "max_output_tokens", "stream", "store"};

// Items of one message in the order of its blocks: text is gathered until a call or a result comes.
class ItemList {
 public:
  explicit ItemList(Role role) : role_(role) {}

  void AddText(const std::string& text) { text_ += text; }
  void AddCall(const ToolCall& call) {
    Begin(R"({"type":"function_call","call_id":)", call.id);
    bytes_ += R"(,"name":)";
    json::AppendQuoted(bytes_, call.name);
    bytes_ += R"(,"arguments":)";
    // Raw arguments never go back: they may be half an object.
    json::AppendQuoted(bytes_,
                       call.valid_input.empty() ? "{}" : std::string_view(call.valid_input));
    bytes_ += '}';
  }
  void AddResult(const ToolResult& result) {
    Begin(R"({"type":"function_call_output","call_id":)", result.call_id);
    bytes_ += R"(,"output":)";
    json::AppendQuoted(bytes_, IsBlank(result.text) ? kEmptyResult : std::string_view(result.text));
    bytes_ += '}';
  }
  std::string Take() {
    Flush();
    return std::move(bytes_);
  }

 private:
  void Begin(std::string_view start, std::string_view id) {
    Flush();
    Item(start);
    json::AppendQuoted(bytes_, id);
  }
  void Flush() {
    if (!IsBlank(text_)) {
      Item(role_ == Role::kUser ? R"({"role":"user","content":)"
                                : R"({"role":"assistant","content":)");
      json::AppendQuoted(bytes_, text_);
      bytes_ += '}';
    }
    text_.clear();
  }
  void Item(std::string_view start) {
    if (!bytes_.empty()) bytes_ += ',';
    bytes_ += start;
  }

  Role role_;
  std::string text_;
  std::string bytes_;
};

// Thinking is dropped: without the provider's own store it cannot be taken up again.
std::string ItemsOf(const Message& message) {
  ItemList items(message.role);
  for (const Block& block : message.blocks) {
    if (const auto* text = std::get_if<Text>(&block)) {
      items.AddText(text->text);
    } else if (const auto* call = std::get_if<ToolCall>(&block)) {
      items.AddCall(*call);
    } else if (const auto* result = std::get_if<ToolResult>(&block)) {
      items.AddResult(*result);
    }
  }
  return items.Take();
}

}  // namespace

Status CheckOpenAiResponsesBody(const ProviderConfig& config) {
  std::vector<std::string_view> own(kOwnKeys.begin(), kOwnKeys.end());
  if (config.temperature) own.emplace_back("temperature");
  if (!EffortOf(config).empty()) own.emplace_back("reasoning");
  return CheckExtraBody(config, own);
}

OpenAiResponsesEncoder::OpenAiResponsesEncoder(const ProviderConfig& config)
    : config_(config), extra_(ExtraMembers(config)) {}

std::string OpenAiResponsesEncoder::Encode(const ChatRequest& request) {
  std::vector<const std::string*> items;
  items.reserve(request.messages.size());
  size_t bytes = 4096;
  for (const MessagePtr& message : request.messages) {
    items.push_back(&cache_.Get(message, ItemsOf));
    bytes += items.back()->size() + 1;
  }
  const std::string system = JoinSegments(request.system, 0, request.system.size());
  const std::string tools = Tools(request.tools);
  std::string out;
  out.reserve(bytes + tools.size() + system.size() + system.size() / 8);
  out += R"({"model":)";
  json::AppendQuoted(out, config_.model);
  if (!system.empty()) {
    out += R"(,"instructions":)";
    json::AppendQuoted(out, system);
  }
  out += tools;
  out += R"(,"input":[)";
  bool first = true;
  for (const std::string* item : items) {
    if (item->empty()) continue;
    if (!first) out += ',';
    first = false;
    out += *item;
  }
  out += ']';
  out += Tail(request.max_tokens);
  cache_.Sweep();
  return out;
}

std::string OpenAiResponsesEncoder::Tools(const std::vector<ToolSchema>& tools) {
  if (tools.empty()) return {};
  if (tools == tools_ && !tools_bytes_.empty()) return tools_bytes_;
  std::string list;
  for (const ToolSchema& tool : tools) {
    if (!list.empty()) list += ',';
    list += R"({"type":"function","name":)";
    json::AppendQuoted(list, tool.name);
    if (!tool.description.empty()) {
      list += R"(,"description":)";
      json::AppendQuoted(list, tool.description);
    }
    list += R"(,"parameters":)" + SchemaText(tool) + '}';
  }
  tools_ = tools;
  tools_bytes_ = R"(,"tools":[)" + list + ']';
  return tools_bytes_;
}

std::string OpenAiResponsesEncoder::Tail(int64_t max_tokens) const {
  json::Writer tail;
  tail.BeginObject();
  if (max_tokens > 0) tail.Field("max_output_tokens", max_tokens);
  if (config_.temperature) tail.Key("temperature").Double(*config_.temperature);
  if (!EffortOf(config_).empty()) {
    tail.Key("reasoning").BeginObject().Field("effort", EffortOf(config_)).EndObject();
  }
  tail.Field("store", false).EndObject();
  const std::string& members = tail.text();
  std::string out = "," + members.substr(1, members.size() - 2) + extra_;
  out += config_.stream ? R"(,"stream":true})" : R"(,"stream":false})";
  return out;
}

}  // namespace norma::llm
