// What the encoders of all wire formats share: the system prompt as one text, tool schemas, extra
// members of the body, where requests go, and the bytes of messages kept between requests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/chat/message.h"
#include "lib/llm/provider.h"

namespace norma::llm {

// In place of a text that an API refuses to see empty.
inline constexpr std::string_view kEmptyMessage = "…";
inline constexpr std::string_view kEmptyResult = "(no output)";

bool IsDisabled(std::string_view thinking);
// The effort to send: none when thinking is switched off.
std::string_view EffortOf(const ProviderConfig& config);

// Segments `from` to `to`: trimmed, blank ones dropped, one empty line between them.
std::string JoinSegments(const std::vector<std::string>& segments, size_t from, size_t to);

// The minified schema. Whoever offers a tool has checked it; any object is the harmless reading.
std::string SchemaText(const ToolSchema& tool);

// kSpec when extra_body is no JSON object or would replace a key of ours.
Status CheckExtraBody(const ProviderConfig& config, std::span<const std::string_view> own_keys);
// `,"key":value` of each member of extra_body, byte for byte.
std::string ExtraMembers(const ProviderConfig& config);

// Base plus suffix, literally: a base that already ends in the suffix gets a second one (spec/10
// §2). Only trailing slashes go, and a query stays behind the path.
std::string EndpointUrl(std::string_view base_url, std::string_view suffix);

// `ours`, with the headers of the spec in place of those of the same name. Credentials were refused
// when the spec was read.
HttpHeaders MergedHeaders(HttpHeaders ours, const ProviderConfig& config);
// content-type and accept, then MergedHeaders, then the bearer key: both OpenAI formats.
HttpHeaders OpenAiHeaders(const ProviderConfig& config);

// Encoded messages by address. A message of the history never changes, so that its bytes can stay;
// the pointer inside keeps the address from being reused while it is a key.
template <class Encoded>
class MessageCache {
 public:
  // `encode(const Message&)` makes what is not there yet. Valid until Sweep.
  template <class Encode>
  const Encoded& Get(const MessagePtr& message, Encode encode) {
    auto found = entries_.find(message.get());
    if (found == entries_.end()) {
      found = entries_.emplace(message.get(), Entry{message, encode(*message), 0}).first;
    }
    found->second.used = request_;
    return found->second.encoded;
  }
  // Ends a request. What did not go out this time was compacted away; its bytes would only pile up.
  void Sweep() {
    std::erase_if(entries_, [&](const auto& entry) { return entry.second.used != request_; });
    ++request_;
  }

 private:
  struct Entry {
    MessagePtr message;
    Encoded encoded;
    uint64_t used = 0;  // the last request it went out with
  };
  std::unordered_map<const Message*, Entry> entries_;
  uint64_t request_ = 0;
};

}  // namespace norma::llm
