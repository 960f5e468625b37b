#include "lib/llm/anthropic_encode.h"

#include <algorithm>
#include <array>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/llm/encode_parts.h"

namespace norma::llm {
namespace {

constexpr std::string_view kWireName = "anthropic";
constexpr std::string_view kCacheMarker = R"(,"cache_control":{"type":"ephemeral"})";
constexpr int64_t kMaxTokensDefault = 8192;

// Always sent by us.
constexpr std::array<std::string_view, 6> kOwnKeys = {"model",    "system",     "tools",
                                                      "messages", "max_tokens", "stream"};

std::string TextBlock(std::string_view text) {
  std::string out = R"({"type":"text","text":)";
  json::AppendQuoted(out, text);
  return out + '}';
}

std::string ThinkingBlock(const Thinking& thinking) {
  std::string out = R"({"type":"thinking","thinking":)";
  json::AppendQuoted(out, thinking.text);
  if (!thinking.signature.empty()) {
    out += R"(,"signature":)";
    json::AppendQuoted(out, thinking.signature);
  }
  return out + '}';
}

std::string CallBlock(const ToolCall& call) {
  std::string out = R"({"type":"tool_use","id":)";
  json::AppendQuoted(out, call.id);
  out += R"(,"name":)";
  json::AppendQuoted(out, call.name);
  out += R"(,"input":)";
  // Raw arguments never go back: they may be half an object, and the API wants a whole one.
  out += call.valid_input.empty() ? "{}" : call.valid_input;
  return out + '}';
}

std::string ResultBlock(const ToolResult& result) {
  std::string out = R"({"type":"tool_result","tool_use_id":)";
  json::AppendQuoted(out, result.call_id);
  out += R"(,"content":[)";
  out += TextBlock(IsBlank(result.text) ? kEmptyResult : std::string_view(result.text));
  out += ']';
  if (result.is_error) out += R"(,"is_error":true)";
  return out + '}';
}

}  // namespace

Status CheckAnthropicBody(const ProviderConfig& config) {
  std::vector<std::string_view> own(kOwnKeys.begin(), kOwnKeys.end());
  if (config.temperature) own.emplace_back("temperature");
  if (!config.stop.empty()) own.emplace_back("stop_sequences");
  if (!config.thinking.empty()) own.emplace_back("thinking");
  if (!config.effort.empty()) own.emplace_back("output_config");
  return CheckExtraBody(config, own);
}

AnthropicEncoder::AnthropicEncoder(const ProviderConfig& config)
    : config_(config), extra_(ExtraMembers(config)) {
  replay_thinking_ = !config_.thinking.empty() && !IsDisabled(config_.thinking);
}

void AnthropicEncoder::Blocks::Add(std::string_view block, bool may_mark) {
  if (!bytes.empty()) bytes += ',';
  bytes += block;
  if (may_mark) mark = bytes.size() - 1;
}

std::string AnthropicEncoder::Encode(const ChatRequest& request) {
  ++requests_;
  const std::vector<Group> groups = Grouped(request);
  size_t bytes = 4096;
  for (const Group& group : groups) {
    for (const Encoded* one : group.messages) {
      bytes += one->results.bytes.size() + one->rest.bytes.size() + 64;
    }
  }
  std::string out;
  out.reserve(bytes + tools_bytes_.size());
  out += R"({"model":)";
  json::AppendQuoted(out, config_.model);
  out += System(request);
  AppendTools(out, request.tools);
  out += R"(,"messages":[)";
  AppendMessages(out, groups);
  out += ']';
  out += Tail(request.max_tokens);
  // What did not go out this time was compacted away; its bytes would only pile up.
  std::erase_if(encoded_, [&](const auto& entry) { return entry.second.used != requests_; });
  return out;
}

std::string AnthropicEncoder::System(const ChatRequest& request) const {
  const size_t count = request.system.size();
  const size_t boundary = std::min(request.system_static, count);
  const std::string fixed = JoinSegments(request.system, 0, boundary);
  const std::string varying = JoinSegments(request.system, boundary, count);
  if (fixed.empty() && varying.empty()) return {};
  Blocks blocks;
  if (!fixed.empty()) blocks.Add(TextBlock(fixed), true);
  if (blocks.mark != kNoMark && config_.cache != "off") {
    blocks.bytes.insert(blocks.mark, kCacheMarker);
  }
  if (!varying.empty()) blocks.Add(TextBlock(varying), false);
  return R"(,"system":[)" + blocks.bytes + ']';
}

void AnthropicEncoder::AppendTools(std::string& out, const std::vector<ToolSchema>& tools) {
  if (tools.empty()) return;
  if (tools != tools_ || tools_bytes_.empty()) {
    Blocks blocks;
    for (const ToolSchema& tool : tools) {
      std::string one = R"({"name":)";
      json::AppendQuoted(one, tool.name);
      if (!tool.description.empty()) {
        one += R"(,"description":)";
        json::AppendQuoted(one, tool.description);
      }
      one += R"(,"input_schema":)";
      one += SchemaText(tool);
      blocks.Add(one + '}', true);
    }
    if (config_.cache == "auto") blocks.bytes.insert(blocks.mark, kCacheMarker);
    tools_ = tools;
    tools_bytes_ = R"(,"tools":[)" + blocks.bytes + ']';
  }
  out += tools_bytes_;
}

const AnthropicEncoder::Encoded& AnthropicEncoder::Lookup(const MessagePtr& message) {
  auto found = encoded_.find(message.get());
  if (found == encoded_.end()) {
    found = encoded_.emplace(message.get(), EncodeMessage(message)).first;
  }
  found->second.used = requests_;
  return found->second;
}

AnthropicEncoder::Encoded AnthropicEncoder::EncodeMessage(const MessagePtr& message) const {
  Encoded out;
  out.message = message;
  bool blank_text = false;
  for (const Block& block : message->blocks) {
    if (const auto* text = std::get_if<Text>(&block)) {
      if (IsBlank(text->text)) {
        blank_text = true;  // the API refuses blank text
      } else {
        out.rest.Add(TextBlock(text->text), true);
      }
    } else if (const auto* thinking = std::get_if<Thinking>(&block)) {
      if (replay_thinking_) out.rest.Add(ThinkingBlock(*thinking), false);
    } else if (const auto* call = std::get_if<ToolCall>(&block)) {
      out.rest.Add(CallBlock(*call), true);
    } else if (const auto* result = std::get_if<ToolResult>(&block)) {
      out.results.Add(ResultBlock(*result), true);
    } else if (const auto* opaque = std::get_if<Opaque>(&block)) {
      if (replay_thinking_ && opaque->wire == kWireName) out.rest.Add(opaque->json, false);
    }
  }
  if (!out.rest.bytes.empty() || !out.results.bytes.empty()) return out;
  // Emptied by the thinking filter (or empty from the start): nothing was said. Emptied because its
  // text is blank: the turn took place, and dropping it would join two turns of the other side.
  if (blank_text) {
    out.rest.Add(TextBlock(kEmptyMessage), true);
  } else {
    out.dropped = true;
  }
  return out;
}

std::vector<AnthropicEncoder::Group> AnthropicEncoder::Grouped(const ChatRequest& request) {
  std::vector<Group> groups;
  for (const MessagePtr& message : request.messages) {
    const Encoded& encoded = Lookup(message);
    if (encoded.dropped) continue;
    if (groups.empty() || groups.back().role != message->role) {
      groups.push_back({message->role, {}});
    }
    groups.back().messages.push_back(&encoded);
  }
  return groups;
}

const AnthropicEncoder::Blocks* AnthropicEncoder::MarkOf(const Group& group) {
  for (auto one = group.messages.rbegin(); one != group.messages.rend(); ++one) {
    if ((*one)->rest.mark != kNoMark) return &(*one)->rest;
  }
  for (auto one = group.messages.rbegin(); one != group.messages.rend(); ++one) {
    if ((*one)->results.mark != kNoMark) return &(*one)->results;
  }
  return nullptr;
}

void AnthropicEncoder::AppendMessages(std::string& out, const std::vector<Group>& groups) const {
  // Two markers: the end of this history, to be written, and the end of the last request's, to be
  // found again even when a turn brought more blocks than the provider looks back over.
  std::vector<const Blocks*> marked;
  if (config_.cache == "auto") {
    for (size_t at = groups.size(); at > 0 && marked.size() < 2; --at) {
      const Group& group = groups[at - 1];
      if (at != groups.size() && group.role != Role::kUser) continue;
      if (const Blocks* blocks = MarkOf(group)) marked.push_back(blocks);
    }
  }
  const auto append = [&](const Blocks& blocks, bool& first) {
    if (blocks.bytes.empty()) return;
    if (!first) out += ',';
    first = false;
    if (std::ranges::find(marked, &blocks) == marked.end()) {
      out += blocks.bytes;
      return;
    }
    out.append(blocks.bytes, 0, blocks.mark);
    out += kCacheMarker;
    out.append(blocks.bytes, blocks.mark);
  };
  for (size_t at = 0; at < groups.size(); ++at) {
    out += at == 0 ? R"({"role":)" : R"(,{"role":)";
    out += groups[at].role == Role::kUser ? R"("user","content":[)" : R"("assistant","content":[)";
    bool first = true;
    for (const Encoded* one : groups[at].messages) append(one->results, first);
    for (const Encoded* one : groups[at].messages) append(one->rest, first);
    out += "]}";
  }
}

std::string AnthropicEncoder::Tail(int64_t max_tokens) const {
  const int64_t most = max_tokens > 0 ? max_tokens : kMaxTokensDefault;
  json::Writer tail;
  tail.BeginObject().Field("max_tokens", most);
  if (config_.temperature) tail.Key("temperature").Double(*config_.temperature);
  if (!config_.stop.empty()) {
    tail.Key("stop_sequences").BeginArray();
    for (const std::string& stop : config_.stop) tail.String(stop);
    tail.EndArray();
  }
  if (!config_.thinking.empty()) {
    tail.Key("thinking").BeginObject().Field("type", config_.thinking);
    if (config_.thinking_budget > 0 && !IsDisabled(config_.thinking)) {
      // A budget of money may have lowered max_tokens; the API wants thinking to fit below it.
      tail.Field("budget_tokens",
                 std::min(config_.thinking_budget, std::max<int64_t>(most - 1, 1)));
    }
    tail.EndObject();
  }
  if (!EffortOf(config_).empty()) {
    tail.Key("output_config").BeginObject().Field("effort", EffortOf(config_)).EndObject();
  }
  tail.EndObject();
  std::string out = "," + tail.text().substr(1, tail.text().size() - 2) + extra_;
  out += config_.stream ? R"(,"stream":true})" : R"(,"stream":false})";
  return out;
}

}  // namespace norma::llm
