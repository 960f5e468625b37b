#include "lib/llm/encode_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/llm/json_text.h"

namespace norma::llm {

bool IsDisabled(std::string_view thinking) {
  return thinking == "disabled";
}

std::string_view EffortOf(const ProviderConfig& config) {
  return IsDisabled(config.thinking) ? std::string_view() : std::string_view(config.effort);
}

std::string JoinSegments(const std::vector<std::string>& segments, size_t from, size_t to) {
  std::string out;
  for (size_t at = from; at < to; ++at) {
    const std::string_view segment = Trim(segments[at]);
    if (segment.empty()) continue;
    if (!out.empty()) out += "\n\n";
    out += segment;
  }
  return out;
}

std::string SchemaText(const ToolSchema& tool) {
  auto schema = json::Minify(tool.input_schema);
  return schema.ok() ? std::move(schema).value() : std::string(R"({"type":"object"})");
}

Status CheckExtraBody(const ProviderConfig& config, std::span<const std::string_view> own_keys) {
  if (IsBlank(config.extra_body)) return {};
  const auto document = json::Document::Parse(config.extra_body);
  if (!document.ok() || !document.value().root().is_object()) {
    return Error{Code::kSpec, "model.extra_body must be one JSON object"};
  }
  std::string taken;
  document.value().root().EachMember([&](std::string_view key, json::Value) {
    if (taken.empty() && std::ranges::find(own_keys, key) != own_keys.end()) taken = key;
  });
  if (taken.empty()) return {};
  return Error{Code::kSpec, "model.extra_body may not replace the key \"" + taken +
                                "\"; use the key of `model` that sets it"};
}

std::string ExtraMembers(const ProviderConfig& config) {
  std::string out;
  if (IsBlank(config.extra_body)) return out;
  const auto minified = json::Minify(config.extra_body);
  if (!minified.ok()) return out;  // refused by CheckExtraBody
  EachRawMember(minified.value(), [&](std::string_view key, std::string_view raw) {
    out += fmt::format(",\"{}\":{}", key, raw);
  });
  return out;
}

std::string EndpointUrl(std::string_view base_url, std::string_view suffix) {
  const size_t end = std::min(base_url.find('?'), base_url.size());
  std::string_view path = base_url.substr(0, end);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  std::string url(path);
  url += suffix;
  url += base_url.substr(end);
  return url;
}

HttpHeaders MergedHeaders(HttpHeaders ours, const ProviderConfig& config) {
  for (const auto& [name, value] : config.headers) {
    const std::string lower = ToLower(name);
    std::erase_if(ours, [&](const auto& header) { return header.first == lower; });
    ours.emplace_back(lower, value);
  }
  return ours;
}

HttpHeaders OpenAiHeaders(const ProviderConfig& config) {
  HttpHeaders headers =
      MergedHeaders({{"content-type", "application/json"},
                     {"accept", config.stream ? "text/event-stream" : "application/json"}},
                    config);
  if (!config.api_key.empty()) headers.emplace_back("authorization", "Bearer " + config.api_key);
  return headers;
}

}  // namespace norma::llm
