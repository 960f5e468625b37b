// One whole run inside the process: an in-memory ledger, a model made by the test, real tools on a
// real folder, the spec as a struct. What loop tests and the simulation are built on.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/agent/run.h"
#include "lib/base/json.h"
#include "lib/ledger/reader.h"
#include "lib/ledger/redactor.h"
#include "lib/testing/memory_append_file.h"
#include "lib/testing/model_transport.h"
#include "lib/testing/temp_dir.h"

namespace norma::testing {

class SilentObserver : public agent::Observer {
 public:
  void OnRecord(const ledger::Record& record, std::string_view) override {
    if (on_record) on_record(record);
  }
  void OnTick(std::string_view) override {}
  std::string Deliver(const agent::RunResult&) override {
    return reader_there ? "" : "the reader of stdout went away";
  }

  std::function<void(const ledger::Record&)> on_record;
  bool reader_there = true;
};

class RunHarness {
 public:
  RunHarness() {
    spec.path = "spec.yaml";
    spec.model.format = "anthropic";
    spec.model.name = "test-model";
    spec.model.max_tokens = 1024;
    spec.mode = Mode::kBypassPermissions;
    spec.tools.enabled = {"Read", "Write", "LS", "TodoWrite", "Bash"};
    provider.format = "anthropic";
    provider.model = "test-model";
    provider.base_url = "http://127.0.0.1:1";
    provider.api_key = "test-key";
    provider.retry = {0, Millis{1}, Millis{1}};
  }

  // Prices of 3 / 15 USD per million tokens.
  void Price() {
    PriceInput input;
    input.input = 3'000'000'000;
    input.output = 15'000'000'000;
    input.cache_read = 300'000'000;
    spec.prices.name = "inline";
    spec.prices.rows["test-model"] = MakePriceRow(input).value();
  }

  agent::RunResult Run(ModelTransport& transport, Clock& clock = SystemClock(),
                       const std::string& prompt = "go") {
    agent::RunInput input;
    input.spec = &spec;
    input.provider = provider;
    input.redactor = &redactor;
    input.version = "test";
    input.run_id = "run-1";
    input.prompt = prompt;
    input.cwd = folder.path();
    input.ledger_path = folder / "ledger.jsonl";
    input.temp_folder = folder.path();
    input.environment = {{"PATH", "/usr/bin:/bin"}};
    input.started = clock.Now();
    input.one_request = one_request;
    agent::Seams seams;
    seams.clock = &clock;
    seams.transport = &transport;
    seams.rate_limiter = rate_limiter;
    seams.open_ledger = [this](const std::string&) -> Result<std::unique_ptr<AppendFile>> {
      if (ledger_refused) return Error{Code::kIo, "No such device"};
      return std::unique_ptr<AppendFile>(std::make_unique<MemoryAppendFile>(disk));
    };
    return RunOne(input, seams, cancel, observer);
  }
  agent::RunResult Run(std::function<ModelReply(const std::string&, int)> answer) {
    ModelTransport transport(std::move(answer));
    agent::RunResult result = Run(transport);
    protocol_fault = transport.fault();
    requests = transport.bodies();
    return result;
  }
  // These replies, the last one again and again.
  agent::RunResult Run(std::vector<ModelReply> replies) {
    return Run([replies = std::move(replies)](const std::string&, int number) {
      const size_t last = replies.size() - 1;
      return replies[std::min(static_cast<size_t>(number), last)];
    });
  }

  // "kind" of each record, or "kind:field" for the kinds where one word says more.
  std::vector<std::string> Story() const {
    std::vector<std::string> story;
    for (std::string_view line : Lines()) {
      const auto document = json::Document::Parse(line);
      if (!document.ok()) return {"not JSON: " + std::string(line)};
      const json::Value record = document.value().root();
      std::string word(record["kind"].Str());
      for (const char* field : {"verdict", "reason", "code", "class"}) {
        // Its reason is prose for the model.
        if (record["kind"].Str() == "call.judged" && field == std::string_view("reason")) continue;
        if (record[field].is_string()) word += ":" + std::string(record[field].Str());
      }
      story.push_back(std::move(word));
    }
    return story;
  }
  std::vector<std::string_view> Lines() const {
    std::vector<std::string_view> lines;
    std::string_view rest = disk->bytes;
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      lines.push_back(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    return lines;
  }
  // What the independent reader says of the ledger.
  ledger::Verification Verified() const {
    const std::string path = folder.Write("verify.jsonl", disk->bytes);
    Result<ledger::Verification> found = ledger::Verify(path);
    return found.ok() ? std::move(found).value() : ledger::Verification{};
  }

  TempDir folder;
  spec::RunSpec spec;
  llm::ProviderConfig provider;
  ledger::Redactor redactor;
  SilentObserver observer;
  Cancel cancel;
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  bool ledger_refused = false;
  bool one_request = false;
  llm::RateLimiter* rate_limiter = nullptr;
  std::string protocol_fault;
  std::vector<std::string> requests;
};

}  // namespace norma::testing
