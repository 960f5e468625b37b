// One seed drives a model, a transport that fails, a disk that fills and a cancel at any step; the
// checker reads only the ledger. Reproduce one: norma_test --test-case='sim*' and NORMA_SIM_SEED.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "lib/testing/hand_clock.h"
#include "lib/testing/run_harness.h"

using namespace norma;
using namespace norma::agent;
using norma::testing::HandClock;
using norma::testing::ModelCall;
using norma::testing::ModelReply;
using norma::testing::ModelTransport;
using norma::testing::RunHarness;

namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t Upto(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(engine_); }
  bool OneIn(int64_t n) { return Upto(n - 1) == 0; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Upto(static_cast<int64_t>(from.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

ModelReply RandomReply(Dice& dice, const std::string& body, int number) {
  static const std::vector<ModelCall> kCalls = {
      {"", "LS", "{}"},
      {"", "Read", R"({"file_path":"f"})"},
      {"", "Write", R"({"file_path":"f","content":"x"})"},
      {"", "Write", R"({"file_path":"../out","content":"x"})"},
      {"", "TodoWrite", R"({"todos":[]})"},
      {"", "Nope", "{}"},
      {"", "Write", R"({"file_path":)"},
      {"", "Read", R"({"file_path":5})"}};
  ModelReply reply;
  if (dice.OneIn(2)) reply.text = dice.OneIn(9) ? "" : "some words of an answer";
  if (dice.OneIn(4)) reply.thinking = "hm";
  if (!dice.OneIn(4)) {
    for (int64_t i = dice.Upto(3); i >= 0; --i) {
      ModelCall call = dice.Pick(kCalls);
      call.id = dice.OneIn(12) ? "twice" : fmt::format("t{}_{}", number, i);
      reply.calls.push_back(std::move(call));
    }
  }
  if (dice.OneIn(10)) reply.stop = dice.Pick(std::vector<std::string>{"max_tokens", "refusal"});
  if (dice.OneIn(8)) reply.status = dice.Pick(std::vector<int>{429, 500, 503, 529, 400, 413});
  if (dice.OneIn(15)) reply.cut_after_frames = static_cast<int>(dice.Upto(12));
  if (dice.OneIn(15)) {
    reply.failure = dice.Pick(std::vector<HttpFailure>{HttpFailure::kBroken, HttpFailure::kIdle,
                                                       HttpFailure::kConnect, HttpFailure::kTls});
  }
  // Random usage within what a request of this size can honestly cost.
  const auto document = json::Document::Parse(body);
  reply.input = dice.Upto(static_cast<int64_t>(body.size()) / 12);
  reply.cache_write = dice.Upto(static_cast<int64_t>(body.size()) / 12);
  reply.output = dice.Upto(document.value().root()["max_tokens"].Int());
  return reply;
}

void RandomSpec(Dice& dice, RunHarness& house) {
  spec::RunSpec& spec = house.spec;
  spec.tools.enabled = {"Read", "Write", "LS", "TodoWrite"};
  spec.mode = dice.Pick(std::vector<Mode>{Mode::kDefault, Mode::kAcceptEdits, Mode::kPlan,
                                          Mode::kBypassPermissions, Mode::kDontAsk, Mode::kAuto});
  spec.fail_on_denied = dice.OneIn(8);
  spec.model.escalate = dice.OneIn(4);
  spec.model.max_tokens = 300 + dice.Upto(3000);
  BudgetLimits& budgets = spec.budgets;
  budgets.turns = 1 + dice.Upto(8);
  if (dice.OneIn(3)) budgets.requests = 1 + dice.Upto(6);
  if (dice.OneIn(3)) budgets.calls = 1 + dice.Upto(6);
  if (dice.OneIn(3)) budgets.actions = 1 + dice.Upto(4);
  if (dice.OneIn(4)) budgets.output_tokens = 300 + dice.Upto(5000);
  if (dice.OneIn(4)) budgets.input_tokens = 500 + dice.Upto(9000);
  if (dice.OneIn(4)) budgets.per_tool["Read"].calls = dice.Upto(3);
  house.Price();
  if (!dice.OneIn(3)) budgets.cost = 1'000'000 + dice.Upto(200'000'000);
  if (dice.OneIn(2)) {
    spec.settlement = spec::Settlement{"WRAP UP", 1 + dice.Upto(2), {"Write"}};
    if (budgets.cost.has_value()) budgets.settlement_reserve = dice.Upto(*budgets.cost);
  }
  house.provider.retry.retries = static_cast<int>(dice.Upto(3));
  if (dice.OneIn(10)) house.disk->bytes_max = static_cast<uint64_t>(dice.Upto(12'000));
  if (dice.OneIn(20)) house.disk->fail_sync = true;
}

// The promises, read from the lines alone. Empty when they hold.
std::string BrokenPromise(const RunHarness& house, const RunResult& result) {
  const ledger::Verification verified = house.Verified();
  if (!verified.intact) return "not intact: " + ledger::Describe(verified);
  const bool ledger_failed = result.reason == EndReason::kLedgerError;
  if (!ledger_failed && !verified.complete) return "not complete: " + ledger::Describe(verified);
  std::set<std::string> may_run;
  std::set<std::string> answered;
  Nano cost = 0;
  std::string last;
  for (std::string_view line : house.Lines()) {
    const auto document = json::Document::Parse(line);
    const json::Value record = document.value().root();
    const std::string kind(record["kind"].Str());
    const std::string call(record["call"].Str());
    if (last == "run.ended") return "a record after run.ended";
    last = kind;
    cost += record["kind"].Str() == "run.ended" ? 0 : record["cost"].Int();
    if (kind == "call.judged" && record["verdict"].Str() == "allow") may_run.insert(call);
    if (kind == "call.finished" && !answered.insert(call).second) return "two results for " + call;
    if (kind == "action.started" && !may_run.contains(call)) {
      return "an effect of a call that nothing allowed: " + call;
    }
  }
  if (house.folder.Has("../out")) return "a file outside the roots";
  const auto& limit = house.spec.budgets.cost;
  if (limit.has_value() && cost > *limit) {
    return fmt::format("{} nano-dollars spent of {}", cost, *limit);
  }
  return "";
}

std::string Simulate(uint64_t seed) {
  Dice dice(seed);
  RunHarness house;
  house.folder.Write("f", "hello\n");
  RandomSpec(dice, house);
  const int64_t cancel_at = dice.OneIn(5) ? dice.Upto(25) : -1;
  int64_t records = 0;
  house.observer.on_record = [&](const ledger::Record&) {
    if (records++ == cancel_at) house.cancel.Trip(15);
  };
  HandClock clock;
  ModelTransport transport(
      [&](const std::string& body, int number) { return RandomReply(dice, body, number); });
  const RunResult result = house.Run(transport, clock);
  if (!transport.fault().empty()) return "a request the API refuses: " + transport.fault();
  return BrokenPromise(house, result);
}

}  // namespace

TEST_CASE("sim: whatever the model, the network and the disk do, the ledger keeps its promises") {
  const char* one = std::getenv("NORMA_SIM_SEED");
  const char* many = std::getenv("NORMA_SIM_RUNS");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
  const uint64_t runs = one != nullptr    ? 1
                        : many != nullptr ? std::strtoull(many, nullptr, 10)
                                          : 500;
  int broken = 0;
  for (uint64_t seed = first; seed < first + runs && broken < 5; ++seed) {
    const std::string why = Simulate(seed);
    if (why.empty()) continue;
    ++broken;
    MESSAGE("seed " << seed << ": " << why);
  }
  CHECK(broken == 0);
}
