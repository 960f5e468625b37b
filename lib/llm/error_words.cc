#include "lib/llm/error_words.h"

#include <algorithm>
#include <array>
#include <span>

#include "lib/base/text.h"

namespace norma::llm {
namespace {

constexpr size_t kBodyCharsMax = 500;
// Long bodies are pages of a proxy, not a provider's words.
constexpr size_t kPhraseBytesMax = 16u << 10;
constexpr int kNoStatus = 0;  // an error inside a stream
constexpr int kBadRequest = 400;
constexpr int kPayloadTooLarge = 413;
constexpr int kUnprocessable = 422;

// Lower case. Providers and gateways each have their own way to say it.
constexpr std::array<std::string_view, 19> kOverflowPhrases = {
    "too long",
    "context length",
    "context_length",
    "maximum context",
    "context limit",
    "context window",
    "request_too_large",
    "reduce the length of the messages",    // Groq
    "input token count",                    // Gemini
    "maximum number of tokens allowed",     // Gemini
    "maximum prompt length",                // xAI
    "maximum model length",                 // vLLM
    "`inputs` tokens",                      // text-generation-inference, Together
    "model token limit",                    // Moonshot
    "prompt exceeds max length",            // Z.ai
    "range of input length",                // DashScope
    "prompt token count",                   // GitHub
    "max_prompt_tokens_exceeded",           // GitHub
    "tokens in the prompt cannot exceed"};  // Cohere

// "too long" is also what validators say about one field; compacting the history cures none of it.
constexpr std::array<std::string_view, 3> kFieldPhrases = {"string too long", "string_too_long",
                                                           "maximum length"};

bool HoldsOneOf(std::string_view text, std::span<const std::string_view> phrases) {
  return std::ranges::any_of(phrases, [&](std::string_view phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

}  // namespace

std::string ErrorWords(json::Value body) {
  const json::Value error = body["error"];
  for (const json::Value& value :
       {error["message"], error, body["message"], body["detail"], error["type"]}) {
    const std::string_view words = Trim(value.Str());
    if (!words.empty()) return std::string(words);
  }
  return {};
}

std::string ErrorWords(std::string_view body) {
  json::ParseOptions options;
  options.refuse_duplicates = false;
  const auto document = json::Document::Parse(body, options);
  std::string words;
  if (document.ok()) {
    const json::Value root = document.value().root();
    words = ErrorWords(root.is_array() ? root.At(0) : root);  // Gemini wraps its errors in a list
  }
  return words.empty() ? Excerpt(Trim(body), kBodyCharsMax) : words;
}

std::string Excerpt(std::string_view text, size_t count) {
  const std::string valid = RepairUtf8(text);
  std::string out;
  size_t characters = 0;
  for (const char c : valid) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80 && ++characters > count) return out + "…";
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return out;
}

bool IsErrorFrame(json::Value frame) {
  const json::Value error = frame["error"];
  if (error.is_object()) return error.size() > 0;
  if (error.is_array()) return error.size() > 0;
  if (!error.Str().empty() || error.Bool(false)) return true;
  return frame["type"].Str() == "error" || frame["object"].Str() == "error";
}

Error ReportedError(json::Value frame) {
  std::string words = ErrorWords(frame);
  if (words.empty()) words = "the provider reports an error without a message";
  const json::Value error = frame["error"];
  bool full = false;
  // A gateway says "provider returned error" and puts the words that matter beside it.
  for (const std::string_view said :
       {std::string_view(words), error["code"].Str(), error["type"].Str(), frame["code"].Str(),
        error["metadata"]["raw"].Str()}) {
    full = full || SaysContextFull(kNoStatus, said.substr(0, kPhraseBytesMax));
  }
  return Error{full ? Code::kContextFull : Code::kModel, std::move(words)};
}

ErrorClass ClassifyWords(int status, std::string_view body) {
  ErrorClass out;
  out.message = ErrorWords(body);
  out.context_full = SaysContextFull(status, body.substr(0, kPhraseBytesMax));
  return out;
}

bool SaysContextFull(int status, std::string_view words) {
  if (status == kPayloadTooLarge) return true;
  // Rate limits and refusals speak of "long context" too, and no shorter prompt cures a 5xx.
  if (status != kNoStatus && status != kBadRequest && status != kUnprocessable) return false;
  const std::string lower = ToLower(words);
  const size_t exceed = lower.find("exceed");
  if (exceed != std::string::npos && lower.find("context", exceed) != std::string::npos) {
    return true;
  }
  return HoldsOneOf(lower, kOverflowPhrases) && !HoldsOneOf(lower, kFieldPhrases);
}

}  // namespace norma::llm
