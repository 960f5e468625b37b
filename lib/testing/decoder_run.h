// One decoder over one stream or body, with everything it told. Tests only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/llm/sse.h"
#include "lib/llm/wire.h"

namespace norma::testing {

using MakeDecoder = std::function<std::unique_ptr<llm::Decoder>(llm::DecodeEvents)>;

struct DecoderRun {
  Status status;  // the first error, or that of Finish
  Reply reply;
  std::string text, thinking;
  std::vector<ToolCall> calls;
  bool complete = false;

  std::vector<ToolCall> calls_in_reply() const {
    std::vector<ToolCall> out;
    for (const Block& block : reply.message.blocks) {
      if (const auto* call = std::get_if<ToolCall>(&block)) out.push_back(*call);
    }
    return out;
  }
};

inline std::unique_ptr<llm::Decoder> WatchedDecoder(const MakeDecoder& make, DecoderRun& run) {
  return make({[&run](std::string_view text) { run.text += text; },
               [&run](std::string_view text) { run.thinking += text; },
               [&run](const ToolCall& call) { run.calls.push_back(call); }});
}

// Feeds the stream in the given pieces, then ends it.
inline DecoderRun DecodeStream(const MakeDecoder& make,
                               const std::vector<std::string_view>& pieces) {
  DecoderRun run;
  const auto decoder = WatchedDecoder(make, run);
  llm::SseReader reader(
      [&](std::string_view name, std::string_view data) { return decoder->OnEvent(name, data); });
  for (const std::string_view piece : pieces) {
    if (run.status.ok()) run.status = reader.Feed(piece);
  }
  if (run.status.ok()) run.status = reader.End();
  const Status finish = decoder->Finish(&run.reply);
  if (run.status.ok()) run.status = finish;
  run.complete = decoder->complete();
  return run;
}

inline DecoderRun DecodeWhole(const MakeDecoder& make, std::string_view body) {
  DecoderRun run;
  const auto decoder = WatchedDecoder(make, run);
  run.status = decoder->OnBody(body);
  const Status finish = decoder->Finish(&run.reply);
  if (run.status.ok()) run.status = finish;
  return run;
}

inline std::string SseData(const std::string& data) {
  return "data: " + data + "\n\n";
}

}  // namespace norma::testing
