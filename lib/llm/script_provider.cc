#include "lib/llm/script_provider.h"

#include <fmt/core.h>

#include <algorithm>

#include "lib/llm/error_words.h"
#include "lib/llm/json_text.h"
#include "lib/llm/retry.h"

namespace norma::llm {
namespace {

constexpr std::string_view kEndpoint = "script";
constexpr int kOk = 200;
constexpr size_t kShownChars = 200;
constexpr size_t kMessageOverhead = 32;  // what a wire format spends on a message, about

size_t BytesOf(const Block& block) {
  if (const auto* text = std::get_if<Text>(&block)) return text->text.size();
  if (const auto* thinking = std::get_if<Thinking>(&block)) return thinking->text.size();
  if (const auto* call = std::get_if<ToolCall>(&block)) {
    return call->id.size() + call->name.size() + call->valid_input.size();
  }
  if (const auto* result = std::get_if<ToolResult>(&block)) {
    return result->call_id.size() + result->text.size();
  }
  return std::get<Opaque>(block).json.size();
}

size_t BytesOf(const ChatRequest& request) {
  size_t bytes = 0;
  for (const std::string& segment : request.system) bytes += segment.size();
  for (const ToolSchema& tool : request.tools) {
    bytes += tool.name.size() + tool.description.size() + tool.input_schema.size();
  }
  for (const MessagePtr& message : request.messages) {
    bytes += kMessageOverhead;
    for (const Block& block : message->blocks) bytes += BytesOf(block);
  }
  return bytes;
}

// Texts and tool results of the newest user message, one line end between them.
std::string NewestUserText(const ChatRequest& request) {
  std::string out;
  for (auto at = request.messages.rbegin(); at != request.messages.rend(); ++at) {
    if ((*at)->role != Role::kUser) continue;
    for (const Block& block : (*at)->blocks) {
      const auto* text = std::get_if<Text>(&block);
      const auto* result = std::get_if<ToolResult>(&block);
      if (text == nullptr && result == nullptr) continue;
      if (!out.empty()) out += '\n';
      out += text != nullptr ? text->text : result->text;
    }
    break;
  }
  return out;
}

class ScriptProvider : public Provider {
 public:
  ScriptProvider(const ProviderConfig& config, Clock& clock) : config_(config), clock_(clock) {}

  Generated Generate(const ChatRequest& request, MonoTime deadline, const Cancel& cancel,
                     const Wake& wake, const Callbacks& callbacks) override;
  std::string Endpoint() const override { return std::string(kEndpoint); }

 private:
  struct Tried {
    bool ok = false;
    int status = kOk;
    Reply reply;
    std::string error_class;
    Error error{Code::kModel, ""};
    bool may_retry = false;
  };

  const ScriptReply* Next();
  Tried Play(const ChatRequest& request, MonoTime deadline, const Cancel& cancel, const Wake& wake,
             const Callbacks& callbacks);
  Tried ActError(const ScriptError& error) const;
  Reply Speak(const ScriptReply& script, const Callbacks& callbacks) const;
  std::optional<Millis> RetryIn(Tried& tried, int number, MonoTime deadline);

  ProviderConfig config_;
  Clock& clock_;
  size_t played_ = 0;  // attempts so far: each takes the next reply
};

Generated ScriptProvider::Generate(const ChatRequest& request, MonoTime deadline,
                                   const Cancel& cancel, const Wake& wake,
                                   const Callbacks& callbacks) {
  const MonoTime started = clock_.Now();
  const size_t bytes = BytesOf(request);
  Generated out;
  const auto since = [&](MonoTime when) {
    return std::chrono::duration_cast<Millis>(clock_.Now() - when);
  };
  const auto failed = [&](Error error) {
    out.error = std::move(error);
    out.duration = since(started);
    return std::move(out);
  };
  int64_t max_tokens = request.max_tokens;
  if (callbacks.on_size) {
    const auto allowed = callbacks.on_size(bytes);
    if (!allowed.ok()) return failed(allowed.error());
    max_tokens = allowed.value();
  }
  for (int number = 1;; ++number) {  // ends with the retries of the policy
    if (cancel.tripped()) return failed({Code::kCancelled, "cancelled"});
    if (clock_.Now() >= deadline) return failed({Code::kTimeout, "the time limit passed"});
    AttemptFailure failure;
    failure.attempt = {number, Endpoint(), bytes, max_tokens};
    out.attempt = number;
    if (callbacks.on_attempt) {
      if (Status status = callbacks.on_attempt(failure.attempt); !status.ok()) {
        return failed(status.error());
      }
    }
    const MonoTime sent = clock_.Now();
    Tried tried = Play(request, deadline, cancel, wake, callbacks);
    out.status = tried.status;
    out.first_byte = since(sent);
    if (tried.ok) {
      out.ok = true;
      out.reply = std::move(tried.reply);
      out.duration = since(started);
      return out;
    }
    failure.retry_in = RetryIn(tried, number, deadline);
    failure.status = tried.status;
    failure.error_class = tried.error_class;
    failure.message = tried.error.message;
    failure.duration = since(sent);
    if (callbacks.on_failure) {
      if (Status status = callbacks.on_failure(failure); !status.ok()) {
        return failed(status.error());
      }
    }
    if (!failure.retry_in) return failed(std::move(tried.error));
    if (!Wait(clock_, clock_.Now() + *failure.retry_in, cancel, wake)) {
      return failed({Code::kCancelled, "cancelled while waiting for the next attempt"});
    }
  }
}

const ScriptReply* ScriptProvider::Next() {
  const auto& replies = config_.script.replies;
  const size_t at = played_++;
  if (at < replies.size()) return &replies[at];
  return config_.script.repeat && !replies.empty() ? &replies.back() : nullptr;
}

ScriptProvider::Tried ScriptProvider::Play(const ChatRequest& request, MonoTime deadline,
                                           const Cancel& cancel, const Wake& wake,
                                           const Callbacks& callbacks) {
  Tried tried;
  tried.error_class = "bad_body";
  const ScriptReply* script = Next();
  if (script == nullptr) {
    tried.error.message = fmt::format(
        "script: it has {} replies, and this is request {}; add a reply, or `repeat: true`",
        config_.script.replies.size(), played_);
    return tried;
  }
  if (script->delay.count() > 0) {
    const MonoTime until = clock_.Now() + script->delay;
    if (!Wait(clock_, std::min(until, deadline), cancel, wake)) {
      tried.status = 0;
      tried.error_class = "cancelled";
      tried.error = {Code::kCancelled, "cancelled"};
      return tried;
    }
    if (until >= deadline) {
      tried.status = 0;
      tried.error_class = "timeout";
      tried.error = {Code::kTimeout, "script: the time limit passed during a delay"};
      return tried;
    }
  }
  if (script->error) return ActError(*script->error);
  const std::string newest = NewestUserText(request);
  if (script->expect && newest.find(*script->expect) == std::string::npos) {
    tried.error.message =
        fmt::format("script: reply {} expects \"{}\" in the newest user message, which is \"{}\"",
                    played_, Excerpt(*script->expect, kShownChars), Excerpt(newest, kShownChars));
    return tried;
  }
  tried.reply = Speak(*script, callbacks);
  tried.ok = true;
  return tried;
}

// As if an HTTP answer of this status had come.
ScriptProvider::Tried ScriptProvider::ActError(const ScriptError& error) const {
  Tried tried;
  tried.status = error.status;
  if (error.status == 0) {
    tried.error_class = "connect";
    tried.error = {Code::kNetwork, "script: " + error.message};
    tried.may_retry = true;
    return tried;
  }
  tried.error_class = "status";
  tried.error = {SaysContextFull(error.status, error.message) ? Code::kContextFull : Code::kModel,
                 fmt::format("script: status {}: {}", error.status, error.message)};
  tried.may_retry = IsRetryableStatus(error.status);
  return tried;
}

Reply ScriptProvider::Speak(const ScriptReply& script, const Callbacks& callbacks) const {
  Reply reply;
  auto& blocks = reply.message.blocks;
  if (!script.thinking.empty()) {
    if (callbacks.on_thinking) callbacks.on_thinking(script.thinking);
    blocks.emplace_back(Thinking{script.thinking, ""});
  }
  if (!script.text.empty()) {
    if (callbacks.on_text) callbacks.on_text(script.text);
    blocks.emplace_back(Text{script.text});
  }
  for (size_t at = 0; at < script.calls.size(); ++at) {
    const ScriptCall& call = script.calls[at];
    // Counted by attempts, so that a repeated reply never repeats an id.
    std::string id = call.id.empty() ? fmt::format("call_{}_{}", played_, at + 1) : call.id;
    ToolCall made{std::move(id), call.name, call.input, ValidArguments(call.input)};
    blocks.emplace_back(made);
    if (callbacks.on_call) callbacks.on_call(made);
  }
  reply.stop_reason = script.stop;
  if (script.stop.empty()) reply.stop_reason = script.calls.empty() ? "end_turn" : "tool_use";
  Usage& usage = reply.usage;
  usage.reported = true;
  // As everywhere in norma, input includes the cached classes; it cannot be less than they are.
  usage.input = std::max(script.usage_input, script.usage_cache_read + script.usage_cache_write);
  usage.output = script.usage_output;
  usage.cache_read = script.usage_cache_read;
  usage.cache_write_5m = script.usage_cache_write;
  return reply;
}

std::optional<Millis> ScriptProvider::RetryIn(Tried& tried, int number, MonoTime deadline) {
  if (!tried.may_retry || number > config_.retry.retries) return std::nullopt;
  const Millis wait = RetryDelay(config_.retry, number);
  if (deadline == kNever || clock_.Now() + wait < deadline) return wait;
  tried.error.message += "; not tried again: the wait would pass the time limit of the run";
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Provider> NewScriptProvider(const ProviderConfig& config, Clock& clock) {
  return std::make_unique<ScriptProvider>(config, clock);
}

}  // namespace norma::llm
