// The loop as the ledger tells it: each end reason and continue reason with its records.
#include "lib/agent/run.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

#include "lib/testing/hand_clock.h"
#include "lib/testing/run_harness.h"

using namespace norma;
using namespace norma::agent;
using norma::testing::ModelCall;
using norma::testing::ModelReply;
using norma::testing::ModelTransport;
using norma::testing::RunHarness;

namespace {

using Story = std::vector<std::string>;

ModelReply Says(std::string text) {
  ModelReply reply;
  reply.text = std::move(text);
  return reply;
}

ModelReply Calls(std::vector<ModelCall> calls) {
  ModelReply reply;
  reply.calls = std::move(calls);
  return reply;
}

// Numbered by reply, as a real provider does.
std::function<ModelReply(const std::string&, int)> AlwaysCalls(std::string name,
                                                               std::string input) {
  return [=](const std::string&, int number) {
    return Calls({{"toolu_" + std::to_string(number), name, input}});
  };
}

void CheckSound(const RunHarness& house) {
  const ledger::Verification found = house.Verified();
  CHECK(found.intact);
  CHECK(found.complete);
  for (const ledger::Fault& fault : found.faults) MESSAGE(fault.line << ": " << fault.what);
  CHECK(house.protocol_fault.empty());
}

}  // namespace

TEST_CASE("run: a text answer completes, and the ledger tells it in four lines") {
  RunHarness house;
  const RunResult result = house.Run({Says("hello")});
  CHECK(result.reason == EndReason::kCompleted);
  CHECK(result.exit_code == 0);
  CHECK(result.text == "hello");
  CHECK(house.Story() ==
        Story{"run.started", "request.sent", "reply.received", "run.ended:completed"});
  CheckSound(house);
}

TEST_CASE("run: a tool turn is judged, announced, finished and answered") {
  RunHarness house;
  const RunResult result =
      house.Run({Calls({{"t1", "Write", R"({"file_path":"a.txt","content":"x"})"}}), Says("done")});
  CHECK(result.text == "done");
  CHECK(house.folder.Read("a.txt") == "x");
  // The tool starts while the reply still streams: which of the two lines comes first is open.
  Story story = house.Story();
  CHECK(std::erase(story, "reply.received") == 2);
  CHECK(story == Story{"run.started", "request.sent", "call.judged:allow", "action.started",
                       "action.finished", "call.finished", "loop.continued:next_turn",
                       "request.sent", "run.ended:completed"});
  CheckSound(house);
}

TEST_CASE("run: a denied call is answered, recorded and not run") {
  RunHarness house;
  house.spec.mode = Mode::kDontAsk;
  const RunResult result =
      house.Run({Calls({{"t1", "Write", R"({"file_path":"a.txt","content":"x"})"}}), Says("no")});
  CHECK(result.reason == EndReason::kCompleted);
  CHECK_FALSE(house.folder.Has("a.txt"));
  CHECK(result.denied == std::vector<ledger::Denied>{{"Write", "t1", ""}});
  CheckSound(house);
}

TEST_CASE("run: with on_denied fail the first denied call ends the run") {
  RunHarness house;
  house.spec.mode = Mode::kDontAsk;
  house.spec.fail_on_denied = true;
  house.spec.allow = {ParseRule("Bash").value()};
  const RunResult result =
      house.Run({Calls({{"t1", "Write", R"({"file_path":"a.txt","content":"x"})"},
                        {"t2", "Bash", R"({"command":"touch b.txt"})"}}),
                 Says("never")});
  CHECK(result.reason == EndReason::kDenied);
  CHECK(result.exit_code == 7);
  CHECK(house.requests.size() == 1);
  CHECK_FALSE(house.folder.Has("b.txt"));
  CheckSound(house);
}

TEST_CASE("run: turns end the run with its name and value") {
  RunHarness house;
  house.spec.budgets.turns = 2;
  const RunResult result = house.Run(AlwaysCalls("LS", "{}"));
  CHECK(result.reason == EndReason::kMaxTurns);
  CHECK(result.limit_name == "turns");
  CHECK(result.limit_value == "2");
  CHECK(result.turns == 2);
  CHECK(house.requests.size() == 2);
  CheckSound(house);
}

TEST_CASE("run: settlement asks for a wrap-up under the original reason") {
  RunHarness house;
  house.spec.budgets.turns = 1;
  house.spec.settlement = spec::Settlement{"WRAP UP", 2, {"Bash"}};
  const RunResult result =
      house.Run({Calls({{"t1", "LS", "{}"}}), Calls({{"t2", "Bash", R"({"command":"touch x"})"}}),
                 Says("ok")});
  CHECK(result.reason == EndReason::kMaxTurns);
  CHECK(result.text == "ok");
  CHECK_FALSE(house.folder.Has("x"));
  CHECK(house.requests[1].find("WRAP UP") != std::string::npos);
  CHECK(house.requests[1].find("\"name\":\"Bash\"") == std::string::npos);
  CheckSound(house);
}

TEST_CASE("run: settlement ends after its turns with empty text") {
  RunHarness house;
  house.spec.budgets.turns = 1;
  house.spec.settlement = spec::Settlement{"WRAP UP", 2, {}};
  const RunResult result = house.Run(AlwaysCalls("LS", "{}"));
  CHECK(result.reason == EndReason::kMaxTurns);
  CHECK(result.text.empty());
  CHECK(house.requests.size() == 3);
  CheckSound(house);
}

TEST_CASE("run: a cut answer is resumed three times, parts joined") {
  RunHarness house;
  ModelReply cut = Says("part ");
  cut.stop = "max_tokens";
  const RunResult result = house.Run({cut, cut, Says("end")});
  CHECK(result.reason == EndReason::kCompleted);
  CHECK(result.text == "part part end");
  CheckSound(house);

  RunHarness always;
  const RunResult gave_up = always.Run({cut});
  CHECK(gave_up.reason == EndReason::kCompleted);
  CHECK(always.requests.size() == 4);
  CHECK(gave_up.turns == 1);
}

TEST_CASE("run: escalation alternates with recovery: eight replies, then it does as it is") {
  RunHarness house;
  house.spec.model.escalate = true;
  ModelReply cut = Says("part ");
  cut.stop = "max_tokens";
  const RunResult result = house.Run({cut});
  CHECK(result.reason == EndReason::kCompleted);
  std::vector<std::string> caps;
  for (const std::string& body : house.requests) {
    const auto document = json::Document::Parse(body);
    caps.push_back(std::to_string(document.value().root()["max_tokens"].Int()));
  }
  CHECK(caps == Story{"1024", "64000", "1024", "64000", "1024", "64000", "1024", "64000"});
  CheckSound(house);
}

TEST_CASE("run: an empty answer is asked for once more, then it is empty_answer") {
  RunHarness house;
  CHECK(house.Run({ModelReply{}}).reason == EndReason::kEmptyAnswer);
  CHECK(house.requests.size() == 2);
  CheckSound(house);
  RunHarness thinker;
  ModelReply thinking;
  thinking.thinking = "hm";
  CHECK(thinker.Run({thinking, Says("now")}).text == "now");
  CheckSound(thinker);
}

TEST_CASE("run: a refusal is its own reason") {
  RunHarness house;
  ModelReply refusal = Says("I can not");
  refusal.stop = "refusal";
  CHECK(house.Run({refusal}).reason == EndReason::kRefused);
  CheckSound(house);
}

TEST_CASE("run: arguments that are not one JSON object are invalid and never run") {
  for (const char* raw : {"{\"command\":\"touch x\"", "[]", "null", "\"touch x\"", "{}",
                          "{\"command\":\"touch x\",\"command\":\"ls\"}", "{\"command\":5}"}) {
    RunHarness house;
    const RunResult result = house.Run({Calls({{"t1", "Bash", raw}}), Says("ok")});
    CHECK(result.reason == EndReason::kCompleted);
    CHECK_FALSE(house.folder.Has("x"));
    CHECK(house.Story()[2] == "call.judged:invalid");
    CheckSound(house);
  }
}

TEST_CASE("run: ids that repeat, are empty or are illegal are replaced, results stay paired") {
  RunHarness house;
  const RunResult result =
      house.Run({Calls({{"same", "Bash", R"({"command":"touch a"})"},
                        {"same", "Bash", R"({"command":"touch b"})"},
                        {"", "Bash", R"({"command":"touch c"})"},
                        {"no good!", "Bash", R"({"command":"touch d"})"}}),
                 Calls({{"same", "Bash", R"({"command":"touch e"})"}}), Says("ok")});
  CHECK(result.reason == EndReason::kCompleted);
  CHECK(house.folder.Has("a"));
  CHECK_FALSE(house.folder.Has("b"));
  CHECK(house.folder.Has("c"));
  CHECK(house.folder.Has("d"));
  CHECK(house.folder.Has("e"));
  CheckSound(house);
}

TEST_CASE("run: a tool name that no API takes back is made legal, and never finds a tool") {
  const std::string illegal("no\x1b]0;tool\x07\n", 12);
  for (const std::string& name :
       {std::string(), std::string("to do"), illegal, std::string(5000, 'x'),
        std::string("L\0S", 3), std::string("Todo Write"), std::string("B\xc3\xa4sh")}) {
    CAPTURE(name);
    RunHarness house;
    const RunResult result = house.Run({Calls({{"t1", name, "{}"}}), Says("ok")});
    CHECK(result.reason == EndReason::kCompleted);
    CHECK(result.totals.calls == 1);
    CHECK(result.totals.actions == 0);
    REQUIRE(house.requests.size() == 2);
    const std::string& body = house.requests[1];
    const size_t call = body.find("\"type\":\"tool_use\"");
    REQUIRE(call != std::string::npos);
    constexpr std::string_view kKey = "\"name\":\"";
    const size_t from = body.find(kKey, call) + kKey.size();
    const std::string sent = body.substr(from, body.find('"', from) - from);
    CHECK(sent.size() <= 64);
    CHECK(sent.find_first_not_of(
              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-0123456789") ==
          std::string::npos);
    CHECK_FALSE(sent.empty());
    CHECK(std::ranges::count(house.Story(), "call.judged:invalid") == 1);
    CheckSound(house);
  }
}

TEST_CASE("run: a reply that claims to have cost no tokens is billed by estimate") {
  RunHarness house;
  house.Price();
  ModelReply free = Says("an answer of some length");
  free.input = free.output = 0;
  const RunResult result = house.Run({free});
  CHECK(result.totals.input > 0);
  CHECK(result.totals.output > 0);
  CHECK(result.totals.cost.value_or(0) > 0);
  CheckSound(house);
}

TEST_CASE("run: a hard link to its own files and their real path are not written to") {
  RunHarness house;
  house.folder.Write("ledger.jsonl", "kept");
  REQUIRE(link((house.folder / "ledger.jsonl").c_str(), (house.folder / "hard").c_str()) == 0);
  const RunResult result =
      house.Run({Calls({{"t1", "Write", R"({"file_path":"hard","content":"x"})"},
                        {"t2", "Write", R"({"file_path":"ledger.jsonl","content":"x"})"}}),
                 Says("ok")});
  CHECK(result.denied.size() == 2);
  CHECK(house.folder.Read("hard") == "kept");
}

TEST_CASE("run: a stream that breaks after a call started ends it, pairs it and bills it") {
  RunHarness house;
  house.Price();
  ModelReply broken = Calls(
      {{"t1", "Bash", R"({"command":"sleep 300"})"}, {"t2", "Bash", R"({"command":"touch two"})"}});
  const auto frames = norma::testing::AnthropicFrames(broken, 0);
  broken.cut_after_frames = static_cast<int>(frames.size()) - 4;
  broken.input = 5000;
  const RunResult result = house.Run({broken});
  CHECK(result.reason == EndReason::kModelError);
  CHECK(house.requests.size() == 1);
  CHECK_FALSE(house.folder.Has("two"));
  REQUIRE(result.totals.cost.has_value());
  CHECK(*result.totals.cost >= 5000 * 3000);
  CheckSound(house);
}

TEST_CASE("run: a call budget refuses the call that does not fit and ends the run") {
  RunHarness house;
  house.spec.budgets.calls = 3;
  const RunResult result = house.Run([](const std::string&, int number) {
    const std::string id = std::to_string(number);
    return Calls({{"a" + id, "Bash", R"({"command":"echo x >> log"})"},
                  {"b" + id, "Bash", R"({"command":"echo x >> log"})"}});
  });
  CHECK(result.reason == EndReason::kBudgetExceeded);
  CHECK(result.limit_name == "calls");
  CHECK(house.folder.Read("log") == "x\nx\nx\n");
  CheckSound(house);
}

TEST_CASE("run: a full disk stops before the next effect and leaves an intact prefix") {
  for (uint64_t bytes = 0; bytes < 6000; bytes += 97) {
    RunHarness house;
    house.disk->bytes_max = bytes;
    int effects = 0;
    const RunResult result = house.Run([&](const std::string&, int number) {
      if (number == 2) return Says("done");
      return Calls({{"t" + std::to_string(number), "Bash",
                     fmt::format(R"({{"command":"touch f{}"}})", number)}});
    });
    for (int i = 0; i < 2; ++i) effects += house.folder.Has("f" + std::to_string(i)) ? 1 : 0;
    int announced = 0;
    for (const std::string& word : house.Story()) announced += word == "action.started" ? 1 : 0;
    CHECK(effects <= announced);
    CHECK(house.Verified().intact);
    if (result.reason != EndReason::kCompleted) CHECK(result.reason == EndReason::kLedgerError);
  }
}

TEST_CASE("run: a ledger that cannot be opened is exit 9 without a request") {
  RunHarness house;
  house.ledger_refused = true;
  const RunResult result = house.Run({Says("hello")});
  CHECK(result.reason == EndReason::kLedgerError);
  CHECK(result.exit_code == 9);
  CHECK(house.requests.empty());
}

TEST_CASE("run: a signal in a tool is aborted_tools, while streaming aborted_streaming") {
  RunHarness house;
  // The tool may start before the reply has come to its end: only both make it the tools' phase.
  int seen = 0;
  house.observer.on_record = [&](const ledger::Record& record) {
    seen += std::holds_alternative<ledger::ActionStarted>(record) ? 1 : 0;
    seen += std::holds_alternative<ledger::ReplyReceived>(record) ? 1 : 0;
    if (seen == 2) house.cancel.Trip(15);
  };
  const RunResult tools =
      house.Run({Calls({{"t1", "Bash", R"({"command":"sleep 300"})"}}), Says("never")});
  CHECK(tools.reason == EndReason::kAbortedTools);
  CHECK(tools.exit_code == 143);
  CHECK(house.requests.size() == 1);
  CheckSound(house);

  RunHarness stream;
  stream.observer.on_record = [&](const ledger::Record& record) {
    if (std::holds_alternative<ledger::RequestSent>(record)) stream.cancel.Trip(2);
  };
  const RunResult streaming = stream.Run({Says("never")});
  CHECK(streaming.reason == EndReason::kAbortedStreaming);
  CHECK(streaming.exit_code == 130);
  CheckSound(stream);
}

TEST_CASE("run: a reader that went away is aborted_output, 141") {
  RunHarness house;
  house.observer.reader_there = false;
  const RunResult result = house.Run({Says("hello")});
  CHECK(result.reason == EndReason::kAbortedOutput);
  CHECK(result.exit_code == 141);
  CheckSound(house);
}

TEST_CASE("run: an overflow is prompt_too_long, from the server or from the window") {
  RunHarness house;
  ModelReply too_long;
  too_long.status = 413;
  CHECK(house.Run({too_long}).reason == EndReason::kPromptTooLong);
  CheckSound(house);
  RunHarness window;
  window.spec.context_window = 10;
  CHECK(window.Run({Says("x")}).exit_code == 5);
  CHECK(window.requests.empty());
  CheckSound(window);
}

TEST_CASE("run: every message is sent as it was sent before: request n+1 extends request n") {
  RunHarness house;
  house.provider.cache = "off";
  house.spec.budgets.turns = 4;
  house.Run(AlwaysCalls("LS", "{}"));
  REQUIRE(house.requests.size() == 4);
  for (size_t i = 1; i < house.requests.size(); ++i) {
    const std::string& before = house.requests[i - 1];
    const size_t end = before.rfind("]", before.rfind("\"max_tokens\""));
    CHECK(house.requests[i].substr(0, end) == before.substr(0, end));
  }
}

TEST_CASE("run: a request without a recording ends the run as replay_miss, at once") {
  RunHarness house;
  house.provider.retry.retries = 3;
  ModelReply miss;
  miss.failure = HttpFailure::kReplayMiss;
  const RunResult result = house.Run({miss});
  CHECK(result.reason == EndReason::kReplayMiss);
  CHECK(result.exit_code == 10);
  CHECK(house.Story() == Story{"run.started", "request.sent", "request.failed:replay_miss",
                               "run.ended:replay_miss"});
  CheckSound(house);
}

TEST_CASE("run: a recording that cannot be written ends the run as setup_failed") {
  RunHarness house;
  ModelReply lost;
  lost.failure = HttpFailure::kRecord;
  const RunResult result = house.Run({lost});
  CHECK(result.reason == EndReason::kSetupFailed);
  CHECK(house.Story().back() == "run.ended:setup_failed");
}

TEST_CASE("run: a probe is one request, whatever the reply holds") {
  for (const ModelReply& reply : {Says(""), Calls({{"toolu_1", "Read", R"({"file_path":"x"})"}})}) {
    RunHarness house;
    house.spec.tools.enabled.clear();
    house.one_request = true;
    const RunResult result = house.Run({reply});
    CHECK(result.reason == EndReason::kCompleted);
    CHECK(house.requests.size() == 1);
    CheckSound(house);
  }
}

TEST_CASE("run: a wait for the rate limit that does not fit ends the run at once") {
  RunHarness house;
  house.spec.budgets.wall = Millis{5'000};
  house.spec.budgets.grace = Millis{0};
  norma::testing::HandClock clock;
  llm::RateLimiter limiter({0, 1, 0}, clock);
  house.rate_limiter = &limiter;
  ModelTransport transport(AlwaysCalls("Read", R"({"file_path":"x"})"));
  const RunResult result = house.Run(transport, clock);
  CHECK(result.reason == EndReason::kTimeout);
  CHECK(result.message.find("model.rate_limit asks for a wait of 60.0 s") != std::string::npos);
  CHECK(transport.bodies().size() == 1);
}
TEST_CASE("run: denied calls count against the call budget") {
  RunHarness house;
  house.spec.mode = Mode::kDontAsk;
  house.spec.budgets.calls = 2;
  house.spec.budgets.turns = 50;
  const RunResult result = house.Run(AlwaysCalls("Write", R"({"file_path":"a","content":"x"})"));
  CHECK(result.reason == EndReason::kBudgetExceeded);
  CHECK(result.limit_name == "calls");
  CHECK(house.requests.size() == 3);
  CheckSound(house);
}

TEST_CASE("run: a 200 whose stream broke before any content is billed as an estimate") {
  RunHarness house;
  house.Price();
  ModelReply silent = Says("never");
  silent.cut_after_frames = 0;
  silent.failure = HttpFailure::kBroken;
  const RunResult result = house.Run({silent});
  CHECK(result.reason == EndReason::kModelError);
  REQUIRE(result.totals.cost.has_value());
  CHECK(*result.totals.cost > 0);
  CheckSound(house);
}

TEST_CASE("run: token budgets are checked for each attempt, not once for a request") {
  RunHarness house;
  house.provider.retry.retries = 9;
  house.spec.budgets.input_tokens = 3'000;
  ModelReply silent;
  silent.failure = HttpFailure::kIdle;
  const RunResult result = house.Run({silent});
  CHECK(result.reason == EndReason::kBudgetExceeded);
  CHECK(result.limit_name == "input_tokens");
  CHECK(result.totals.input <= 3'000);
  CheckSound(house);
}

TEST_CASE("run: an answer that reached nobody changes a completed run only") {
  RunHarness house;
  house.observer.reader_there = false;
  house.spec.budgets.turns = 1;
  CHECK(house.Run(AlwaysCalls("LS", "{}")).reason == EndReason::kMaxTurns);
  CheckSound(house);
}

TEST_CASE("run: a tool that settlement took away is no denial") {
  RunHarness house;
  house.spec.fail_on_denied = true;
  house.spec.budgets.turns = 1;
  house.spec.settlement = spec::Settlement{"WRAP UP", 1, {"Bash"}};
  const RunResult result =
      house.Run({Calls({{"t1", "LS", "{}"}}), Calls({{"t2", "Bash", R"({"command":"ls"})"}})});
  CHECK(result.reason == EndReason::kMaxTurns);
  CheckSound(house);
}

TEST_CASE("run: the word for why a reply ended decides what its text is worth") {
  const std::vector<std::pair<std::string, EndReason>> rows = {
      {"stop_sequence", EndReason::kCompleted},
      {"something_new", EndReason::kCompleted},
      {"content_filter", EndReason::kRefused},
      {"pause_turn", EndReason::kModelError},
      {"model_context_window_exceeded", EndReason::kPromptTooLong}};
  for (const auto& row : rows) {
    CAPTURE(row.first);
    RunHarness house;
    ModelReply reply = Says("half an answer");
    reply.stop = row.first;
    CHECK(house.Run({reply}).reason == row.second);
    CheckSound(house);
  }
}
