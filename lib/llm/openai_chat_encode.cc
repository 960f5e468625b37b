#include "lib/llm/openai_chat_encode.h"

#include <algorithm>
#include <array>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace norma::llm {
namespace {

constexpr std::string_view kCompletionKey = "max_completion_tokens";
// Servers that think refuse a call without the thoughts before it.
constexpr std::string_view kReasoningGone =
    "(The reasoning before this call was removed when the conversation was shortened.)";

// Always sent by us, or never beside what we send.
constexpr std::array<std::string_view, 7> kOwnKeys = {
    "model", "messages", "tools", "stream", "stream_options", "max_tokens", kCompletionKey};

std::string CallItem(const ToolCall& call) {
  std::string out = R"({"id":)";
  json::AppendQuoted(out, call.id);
  out += R"(,"type":"function","function":{"name":)";
  json::AppendQuoted(out, call.name);
  out += R"(,"arguments":)";
  // Raw arguments never go back: they may be half an object, and servers parse them.
  json::AppendQuoted(out, call.valid_input.empty() ? "{}" : std::string_view(call.valid_input));
  return out + "}}";
}

std::string ToolMessage(const ToolResult& result) {
  std::string out = R"({"role":"tool","tool_call_id":)";
  json::AppendQuoted(out, result.call_id);
  out += R"(,"content":)";
  json::AppendQuoted(out, IsBlank(result.text) ? kEmptyResult : std::string_view(result.text));
  return out + '}';
}

}  // namespace

Status CheckOpenAiChatBody(const ProviderConfig& config) {
  if (config.max_token_key != "max_tokens" && config.max_token_key != kCompletionKey) {
    return Error{Code::kSpec, "model.max_token_key must be max_tokens or max_completion_tokens"};
  }
  std::vector<std::string_view> own(kOwnKeys.begin(), kOwnKeys.end());
  if (config.temperature) own.emplace_back("temperature");
  if (!config.stop.empty()) own.emplace_back("stop");
  if (!config.thinking.empty()) own.emplace_back("thinking");
  if (!EffortOf(config).empty()) own.emplace_back("reasoning_effort");
  return CheckExtraBody(config, own);
}

OpenAiChatEncoder::OpenAiChatEncoder(const ProviderConfig& config)
    : config_(config), extra_(ExtraMembers(config)) {
  reasoning_ = !config_.thinking.empty() || !config_.effort.empty();
}

std::string OpenAiChatEncoder::Encode(const ChatRequest& request) {
  std::vector<const Encoded*> history;
  history.reserve(request.messages.size());
  size_t bytes = 4096;
  for (const MessagePtr& message : request.messages) {
    const Encoded& encoded =
        cache_.Get(message, [&](const Message& one) { return EncodeMessage(one); });
    if (encoded.dropped) continue;
    history.push_back(&encoded);
    bytes += encoded.whole.size() + 1;
    for (const Paired& result : encoded.results) bytes += result.bytes.size() + 1;
  }
  const std::string system = JoinSegments(request.system, 0, request.system.size());
  const std::string tools = Tools(request.tools);
  std::string out;
  out.reserve(bytes + tools.size() + system.size() + system.size() / 8);
  out += R"({"model":)";
  json::AppendQuoted(out, config_.model);
  out += tools;
  out += R"(,"messages":[)";
  if (!system.empty()) {
    out += R"({"role":"system","content":)";
    json::AppendQuoted(out, system);
    out += '}';
  }
  AppendHistory(out, history);
  out += ']';
  out += Tail(request.max_tokens);
  cache_.Sweep();
  return out;
}

OpenAiChatEncoder::Encoded OpenAiChatEncoder::EncodeMessage(const Message& message) const {
  Encoded out;
  out.role = message.role;
  std::string text, reasoning;
  for (const Block& block : message.blocks) {
    if (const auto* one = std::get_if<Text>(&block)) {
      text += one->text;
    } else if (const auto* thinking = std::get_if<Thinking>(&block)) {
      reasoning += thinking->text;
    } else if (const auto* call = std::get_if<ToolCall>(&block)) {
      out.calls.push_back({call->id, CallItem(*call)});
    } else if (const auto* result = std::get_if<ToolResult>(&block)) {
      out.results.push_back({result->call_id, ToolMessage(*result)});
    }
  }
  if (!IsBlank(text)) json::AppendQuoted(out.content, text);
  if (!reasoning.empty()) json::AppendQuoted(out.reasoning, reasoning);
  if (message.role == Role::kAssistant) {
    out.results.clear();
    out.whole = Assistant(out, nullptr);
  } else {
    out.calls.clear();
    if (!out.content.empty()) out.whole = R"({"role":"user","content":)" + out.content + '}';
    out.dropped = out.whole.empty() && out.results.empty();
  }
  return out;
}

// `answered`: the ids that have a result; nullptr: all of them.
std::string OpenAiChatEncoder::Assistant(const Encoded& message, const Ids* answered) const {
  std::string calls;
  for (const Paired& call : message.calls) {
    if (answered != nullptr && !answered->contains(call.id)) continue;
    if (!calls.empty()) calls += ',';
    calls += call.bytes;
  }
  std::string out = R"({"role":"assistant")";
  if (!message.content.empty()) {
    out += R"(,"content":)" + message.content;
  } else if (calls.empty()) {
    out += R"(,"content":)" + json::Quote(kEmptyMessage);
  }
  if (!message.reasoning.empty()) {
    out += R"(,"reasoning_content":)" + message.reasoning;
  } else if (reasoning_ && !calls.empty()) {
    out += R"(,"reasoning_content":)" + json::Quote(kReasoningGone);
  }
  if (!calls.empty()) out += R"(,"tool_calls":[)" + calls + ']';
  return out + '}';
}

std::string OpenAiChatEncoder::Tools(const std::vector<ToolSchema>& tools) {
  if (tools.empty()) return {};
  if (tools == tools_ && !tools_bytes_.empty()) return tools_bytes_;
  std::string list;
  for (const ToolSchema& tool : tools) {
    if (!list.empty()) list += ',';
    list += R"({"type":"function","function":{"name":)";
    json::AppendQuoted(list, tool.name);
    if (!tool.description.empty()) {
      list += R"(,"description":)";
      json::AppendQuoted(list, tool.description);
    }
    list += R"(,"parameters":)" + SchemaText(tool) + "}}";
  }
  tools_ = tools;
  tools_bytes_ = R"(,"tools":[)" + list + ']';
  return tools_bytes_;
}

// Servers refuse a call without a result and a result without a call (spec/10 §4.5).
void OpenAiChatEncoder::AppendHistory(std::string& out,
                                      const std::vector<const Encoded*>& history) const {
  Ids answered, asked;
  for (const Encoded* message : history) {
    for (const Paired& result : message->results) answered.insert(result.id);
    for (const Paired& call : message->calls) asked.insert(call.id);
  }
  const auto append = [&](const std::string& message) {
    if (out.back() != '[') out += ',';
    out += message;
  };
  for (const Encoded* message : history) {
    for (const Paired& result : message->results) {
      if (result.id.empty() || asked.contains(result.id)) append(result.bytes);
    }
    const bool all = std::ranges::all_of(
        message->calls, [&](const Paired& call) { return answered.contains(call.id); });
    if (!all) {
      append(Assistant(*message, &answered));
    } else if (!message->whole.empty()) {
      append(message->whole);
    }
  }
}

std::string OpenAiChatEncoder::Tail(int64_t max_tokens) const {
  json::Writer tail;
  tail.BeginObject();
  if (max_tokens > 0) tail.Field(config_.max_token_key, max_tokens);
  if (config_.temperature) tail.Key("temperature").Double(*config_.temperature);
  if (!config_.stop.empty()) {
    tail.Key("stop").BeginArray();
    for (const std::string& stop : config_.stop) tail.String(stop);
    tail.EndArray();
  }
  if (!config_.thinking.empty()) {
    tail.Key("thinking").BeginObject().Field("type", config_.thinking);
    if (config_.thinking_budget > 0 && !IsDisabled(config_.thinking)) {
      tail.Field("budget_tokens", config_.thinking_budget);
    }
    tail.EndObject();
  }
  if (!EffortOf(config_).empty()) tail.Key("reasoning_effort").String(EffortOf(config_));
  if (config_.stream) {
    tail.Key("stream_options").BeginObject().Field("include_usage", true).EndObject();
  }
  tail.EndObject();
  const std::string& members = tail.text();
  std::string out;
  if (members.size() > 2) out = "," + members.substr(1, members.size() - 2);
  out += extra_;
  out += config_.stream ? R"(,"stream":true})" : R"(,"stream":false})";
  return out;
}

}  // namespace norma::llm
