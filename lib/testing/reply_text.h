// A reply as one line of JSON, for golden files and for failures that a person can read. Tests
// only.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "lib/base/json.h"
#include "lib/chat/message.h"

namespace norma::testing {

inline std::string ReplyText(const Reply& reply) {
  json::Writer out;
  out.BeginObject().Key("blocks").BeginArray();
  for (const Block& block : reply.message.blocks) {
    out.BeginObject();
    if (const auto* text = std::get_if<Text>(&block)) {
      out.Field("text", text->text);
    } else if (const auto* thinking = std::get_if<Thinking>(&block)) {
      out.Field("thinking", thinking->text).Field("signature", thinking->signature);
    } else if (const auto* call = std::get_if<ToolCall>(&block)) {
      out.Field("call", call->id).Field("name", call->name).Field("input", call->input);
      out.Field("valid_input", call->valid_input);
    } else if (const auto* opaque = std::get_if<Opaque>(&block)) {
      out.Field("opaque", opaque->wire).Field("json", opaque->json);
    }
    out.EndObject();
  }
  const Usage& usage = reply.usage;
  out.EndArray().Field("stop_reason", reply.stop_reason).Key("usage").BeginObject();
  out.Field("input", usage.input).Field("output", usage.output);
  out.Field("cache_read", usage.cache_read).Field("cache_write_5m", usage.cache_write_5m);
  out.Field("cache_write_1h", usage.cache_write_1h).Field("reasoning", usage.reasoning);
  if (!usage.raw.empty()) out.Key("raw").Raw(usage.raw);
  out.EndObject().EndObject();
  return out.Take();
}

// A file below testdata/llm, without its last line end when `one_line`.
inline std::string LlmTestData(const std::string& name, bool one_line = false) {
  std::ifstream in(std::string(NORMA_SOURCE_DIR) + "/testdata/llm/" + name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  std::string text = out.str();
  if (one_line && !text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace norma::testing
