#include "lib/spec/load.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lib/base/json.h"
#include "lib/spec/key_table.h"
#include "lib/testing/spec_input.h"

namespace norma::spec {
namespace {

using testing::FaultOf;
using testing::Holds;
using testing::kSpecHead;
using testing::SpecFolder;
using testing::SpecOf;

namespace fs = std::filesystem;

// --- golden files
// -----------------------------------------------------------------------------------

std::vector<fs::path> SpecsIn(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(std::string(NORMA_SOURCE_DIR) + folder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".yaml") && !name.starts_with("_")) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

// Compares with the file beside it, or writes that file (scripts/regold.sh).
void CheckGolden(const fs::path& path, const std::string& text) {
  if (std::getenv("NORMA_REGOLD") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  CAPTURE(path.filename().string());
  const auto want = testing::ReadForSpec(path, 1 << 20);
  REQUIRE(want.ok());
  CHECK(text == want.value());
}

TEST_CASE("spec load: every bad spec has exactly its message (golden)") {
  const auto specs = SpecsIn("/testdata/spec/bad");
  CHECK(specs.size() >= 30);
  for (const fs::path& path : specs) {
    const auto loaded = Load(testing::SpecInput(path, path.filename()));
    CAPTURE(path.filename().string());
    CHECK_FALSE(loaded.ok());
    CheckGolden(fs::path(path).replace_extension(".err"), FaultOf(loaded) + "\n");
  }
}

TEST_CASE("spec load: every good spec loads to exactly these values (golden)") {
  const auto specs = SpecsIn("/testdata/spec/good");
  CHECK(specs.size() >= 5);
  for (const fs::path& path : specs) {
    const auto loaded = Load(testing::SpecInput(path, path.filename()));
    CAPTURE(path.filename().string());
    REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
    std::string text;
    for (const Origin& origin : loaded.value().origins) {
      text += origin.key + " = " + origin.value + "  # " + origin.from + "\n";
    }
    for (const std::string& warning : loaded.value().warnings) text += "warning: " + warning + "\n";
    CheckGolden(fs::path(path).replace_extension(".want"), text);
  }
}

// --- defaults, hash, origins
// ------------------------------------------------------------------------

TEST_CASE("spec load: the defaults of the page") {
  const RunSpec spec = testing::SpecOf("");
  CHECK(spec.model.max_tokens == 8192);
  CHECK(spec.model.retries == 3);
  CHECK(spec.model.empty_retries == 2);
  CHECK(spec.model.stream);
  CHECK(spec.model.cache == "auto");
  CHECK_FALSE(spec.model.temperature.has_value());
  CHECK(spec.model.thinking.empty());
  CHECK(spec.model.timeout_connect == Millis(10'000));
  CHECK(spec.model.timeout_idle == Millis(120'000));
  CHECK(spec.model.timeout_total == Millis(600'000));
  CHECK(spec.rules == RuleSyntax::kNames);
  CHECK_FALSE(spec.fail_on_denied);
  CHECK(spec.budgets == BudgetLimits{});
  CHECK(spec.tools.output_bytes == 30'000);
  CHECK(spec.tools.bash_timeout == Millis(120'000));
  CHECK(spec.tools.roots == std::vector<std::string>{"."});
  CHECK(spec.context_window == 200'000);
  CHECK(spec.context_strategy == "none");
  CHECK(spec.ledger.path == "runs/{run}.jsonl");
  CHECK(spec.ledger.sync == "action");
  CHECK(spec.ledger.content == "excerpt");
  CHECK(SpecFolder("norma: 1\nmodel: {format: anthropic, name: m}\n").Load().value().spec.mode ==
        Mode::kDefault);
}

TEST_CASE("spec load: every default of the table is accepted, and changes neither value nor hash") {
  const SpecFolder folder(kSpecHead);
  const Loaded plain = folder.Load().value();
  for (const KeyRow& row : SpecKeys()) {
    const bool fixed = row.path.find_first_of("*[") == std::string_view::npos;
    if (!fixed || row.fallback.empty() || row.path.starts_with("settlement")) continue;
    if (row.path == "mode") continue;  // the head sets another
    const std::string set = std::string(row.path) + "=" + std::string(row.fallback);
    CAPTURE(set);
    const auto loaded = folder.Load({set});
    REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
    CHECK(loaded.value().spec.hash == plain.spec.hash);
    CHECK(loaded.value().spec.context_strategy == plain.spec.context_strategy);
    CHECK(loaded.value().spec.tools.output_bytes == plain.spec.tools.output_bytes);
    CHECK(loaded.value().spec.ledger.excerpt_bytes == plain.spec.ledger.excerpt_bytes);
    CHECK(loaded.value().spec.model.timeout_total == plain.spec.model.timeout_total);
    CHECK(loaded.value().spec.budgets == plain.spec.budgets);
  }
}

TEST_CASE("spec load: the hash is of what is in effect, not of how it is written") {
  const std::string hash = SpecOf("budgets: {wall: 60s}\n").hash;
  CHECK(hash.size() == 64);
  CHECK(SpecOf("# a comment\nbudgets:\n  wall: \"1m\"\n").hash == hash);
  CHECK(SpecOf("", {"budgets.wall=1m"}).hash == hash);
  CHECK(SpecOf("budgets: {wall: 61s}\n").hash != hash);
  // Files count with their content.
  const auto with_file = [](const std::string& text) {
    const SpecFolder folder(std::string(kSpecHead) + "system: [{file: s.md}]\n");
    folder.dir().Write("s.md", text);
    return folder.Load().value().spec;
  };
  CHECK(with_file("one").hash != with_file("two").hash);
  CHECK(with_file("one").hash == with_file("one").hash);
  CHECK(with_file("\xEF\xBB\xBFone").system == std::vector<std::string>{"one"});
}

TEST_CASE("spec load: each value says where it comes from, flags beat the file") {
  const SpecFolder folder(std::string(kSpecHead) +
                          "budgets: {turns: 4}\nallow: [Bash, \"Write\"]\n");
  LoadInput input = folder.Input();
  input.sets = {"budgets.turns=7", "deny=[WebFetch]"};
  input.model_name = "other:model #1";  // taken as it is, not as YAML
  input.deadline = "30s";
  input.ledger_path = "/tmp/${x}.jsonl";
  const auto loaded = Load(input);
  REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
  const auto origin = [&](const std::string& key) -> std::pair<std::string, std::string> {
    for (const Origin& one : loaded.value().origins) {
      if (one.key == key) return {one.value, one.from};
    }
    return {};
  };
  using Pair = std::pair<std::string, std::string>;
  CHECK(origin("budgets.turns") == Pair{"7", "--set"});
  CHECK(origin("budgets.wall") == Pair{"30s", "--deadline"});
  CHECK(origin("model.name") == Pair{"other:model #1", "--model"});
  CHECK(origin("ledger.path") == Pair{"/tmp/${x}.jsonl", "--ledger"});
  CHECK(origin("model.format") == Pair{"anthropic", "spec.yaml:3"});
  CHECK(origin("model.max_tokens") == Pair{"8192", "default"});
  CHECK(origin("allow") == Pair{"[Bash, \"Write\"]", "spec.yaml:8"});
  const RunSpec& spec = loaded.value().spec;
  CHECK(spec.budgets.turns == 7);
  CHECK(spec.budgets.wall == Millis(30'000));
  REQUIRE(spec.allow.size() == 2);
  CHECK(spec.allow[1].source == "spec.yaml:8");
  CHECK(spec.allow[1].line == 8);
  CHECK(spec.deny[0].source == "--set");
  CHECK(spec.deny[0].line == 0);
}

TEST_CASE("spec load: a run without turns and cost limits is warned about") {
  CHECK(SpecFolder(kSpecHead).Load().value().warnings.size() == 1);
  CHECK(
      SpecFolder(std::string(kSpecHead) + "budgets: {turns: 4}\n").Load().value().warnings.empty());
}

// --- flags
// ------------------------------------------------------------------------------------------

TEST_CASE("spec load: --set is validated like the file and names itself") {
  struct Case {
    const char* set;
    const char* fault;
  };
  const SpecFolder folder(std::string(kSpecHead) + "deny: [Bash]\n");
  for (const Case& c : {
           Case{"budgets.turn=2", "--set budgets.turn: unknown key; did you mean \"turns\"?"},
           Case{"budgets.turns=-2", "--set budgets.turns: must be at least 0, got -2"},
           Case{"budgets.turns=many", "--set budgets.turns: expected a whole number, got \"many\""},
           Case{"nonsense", "--set nonsense: write path.to.key=VALUE"},
           Case{"=1", "--set : an empty or broken name in the path; write path.to.key=VALUE"},
           Case{"a..b=1",
                "--set a..b: an empty or broken name in the path; write path.to.key=VALUE"},
           Case{"budgts.turns=2",
                "--set budgts.turns: budgts: unknown key; did you mean \"budgets\"?"},
           Case{"deny.x=1", "--set deny.x: deny is no map: it holds a list"},
           Case{"budgets={turn: 3}",
                "--set budgets: budgets.turn: unknown key; did you mean \"turns\"?"},
           Case{"model.stop=",
                "--set model.stop: expected a list, like [a, b], got nothing (null)"},
           Case{"mcp.files.command=npx",
                "--set mcp.files.command: mcp: not supported yet; leave the key out, or at its "
                "default "
                "{}"},
       }) {
    CAPTURE(std::string(c.set));
    CHECK(FaultOf(folder.Load({c.set})) == c.fault);
  }
  CHECK(Holds(FaultOf(folder.Load({"mode=yolo"})),
              "--set mode: unknown value \"yolo\"; one of default"));
  CHECK(Holds(FaultOf(folder.Load({"allow=[a"})), "--set allow:"));
}

TEST_CASE("spec load: --set makes missing maps, takes dotted names, and the last one wins") {
  const RunSpec spec =
      SpecOf("prices: {gpt-4.1: {input: 1, output: 1}}\n",
             {"budgets.per_tool.Bash.calls=3", "prices.gpt-4.1.input=2", "prices.o3.mini.output=5",
              "prices.o3.mini.input=4", "model.headers.x.y=z", "model.extra_body.a.b=1",
              "budgets.turns=1", "budgets.turns=2"});
  CHECK(spec.budgets.per_tool.at("Bash").calls == 3);
  CHECK(spec.prices.Find("gpt-4.1")->input == 2'000'000'000);
  CHECK(spec.prices.Find("o3.mini")->output == 5'000'000'000);
  CHECK(spec.model.headers == std::vector<std::pair<std::string, std::string>>{{"x.y", "z"}});
  CHECK(spec.model.extra_body == R"({"a":{"b":1}})");
  CHECK(spec.budgets.turns == 2);
}

TEST_CASE("spec load: --set over a faulty key of the file leaves no fault") {
  const auto loaded =
      SpecFolder(std::string(kSpecHead) + "budgets: {turns: -1}\n").Load({"budgets.turns=1"});
  CHECK_MESSAGE(loaded.ok(), FaultOf(loaded));
}

// --- variables
// --------------------------------------------------------------------------------------

TEST_CASE("spec load: ${NAME} is replaced in text, templates are left alone, and nothing leaks") {
  const SpecFolder folder(std::string(kSpecHead) +
                          "system: [\"I am ${WHO:-nobody} of ${PLACE}${EMPTY}\", \"${EMPTY:- }\"]\n"
                          "prompt: \"{{stdin}} {{env.${PLACE}}} $PLACE $$ ${EMPTY:-e}\"\n"
                          "model_comment: x\n");
  CHECK(Holds(FaultOf(folder.Load()), "spec.yaml:9:1: model_comment: unknown key"));
  const RunSpec spec = SpecOf(
      "system: [\"I am ${WHO:-nobody} of ${PLACE}${EMPTY}\", \"${EMPTY:- }\"]\n"
      "prompt: \"{{stdin}} {{env.${PLACE}}} $PLACE $$ ${EMPTY:-e}\"\n");
  CHECK(spec.system == std::vector<std::string>{"I am nobody of here"});
  CHECK(spec.prompt == "{{stdin}} {{env.${PLACE}}} $PLACE $$ e");

  CHECK(FaultOf("prompt: \"${NOT_SET}\"\n") ==
        "spec.yaml:7:9: prompt: the environment variable NOT_SET is not set; set it, or write "
        "${NOT_SET:-default}");
  CHECK(Holds(FaultOf("prompt: \"${1}\"\n"), "spec.yaml:7:9: prompt: ${1} is no reference"));
  CHECK(Holds(FaultOf("prompt: \"${PLACE\"\n"), "spec.yaml:7:9: prompt: ${ without its }"));
  CHECK(Holds(FaultOf("prompt: \"${BROKEN}\"\n"), "BROKEN holds no valid UTF-8"));
  CHECK(Holds(FaultOf("budgets: {turns: \"${TURNS}\"}\n"), "use --set for this key"));

  // The value of a variable is shown nowhere.
  const auto secret = SpecFolder(std::string(kSpecHead) + "prompt: \"${SECRET}\"\n").Load();
  REQUIRE(secret.ok());
  for (const Origin& origin : secret.value().origins) CHECK_FALSE(Holds(origin.value, "canary"));
  for (const char* body :
       {"mode2: \"${SECRET}\"\n", "rules: \"${SECRET}\"\n",
        "budgets: {wall: \"${SECRET}\", cost_usd: \"${SECRET}\"}\n", "allow: [\"${SECRET}\"]\n",
        "tools: {enabled: [\"${SECRET}\"]}\n", "prices: {file: \"${SECRET}\"}\n"}) {
    CAPTURE(std::string(body));
    CHECK_FALSE(Holds(FaultOf(std::string(body)), "canary"));
  }
}

// --- files
// --------------------------------------------------------------------------------------------

TEST_CASE("spec load: what is no spec is said so") {
  struct Case {
    const char* text;
    const char* fault;
  };
  for (const Case& c : {
           Case{"", "spec.yaml:1:1: a run spec is a map of keys to values, got an empty file"},
           Case{"- a\n- b\n", "spec.yaml:1:1: a run spec is a map of keys to values, got a list"},
           Case{"just words\n",
                "spec.yaml:1:1: a run spec is a map of keys to values, got \"just words\""},
           Case{"a: [\n", "spec.yaml:2:1: this is no valid YAML: end of sequence flow not found"},
       }) {
    CAPTURE(std::string(c.text));
    const auto loaded = SpecFolder(c.text).Load();
    REQUIRE_FALSE(loaded.ok());
    CHECK(loaded.error() == Error{Code::kSpec, c.fault});
  }
  const testing::TempDir dir;
  const auto missing = Load(testing::SpecInput(dir / "none.yaml", "none.yaml"));
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error() == Error{Code::kUsage, "none.yaml: there is no such file"});
  dir.Write("big.yaml", "# " + std::string(4 << 20, 'x') + "\nnorma: 1\n");
  CHECK(Load(testing::SpecInput(dir / "big.yaml", "big.yaml")).error().code == Code::kUsage);
}

TEST_CASE("spec load: files are relative to the spec's folder") {
  const testing::TempDir dir;
  dir.Write("sub/spec.yaml", std::string(kSpecHead) +
                                 "system: [{file: prompts/base.md}]\nprices: {file: ../p.yaml}\n");
  dir.Write("sub/prompts/base.md", "Be brief.\n");
  dir.Write("p.yaml", "test-model: {input: 1, ouput: 2}\n");
  const auto loaded = Load(testing::SpecInput(dir / "sub/spec.yaml", "sub/spec.yaml"));
  CHECK(FaultOf(loaded) ==
        "sub/../p.yaml:1:13: test-model.output: this key is required and missing\n"
        "sub/../p.yaml:1:24: test-model.ouput: unknown key; did you mean \"output\"?");
  dir.Write("p.yaml", "test-model: {input: 1, output: 2}\n");
  const auto again = Load(testing::SpecInput(dir / "sub/spec.yaml", "sub/spec.yaml"));
  REQUIRE_MESSAGE(again.ok(), FaultOf(again));
  CHECK(again.value().spec.system == std::vector<std::string>{"Be brief.\n"});
}

TEST_CASE("spec load: JSON specs have right lines and surrogate pairs") {
  const SpecFolder good(
      "{\n \"norma\": 1,\n \"model\": {\n  \"format\": \"anthropic\",\n  \"name\": \"m\"\n },\n"
      " \"prompt\": \"\\ud83d\\ude00 a\\/b\"\n}");
  const auto loaded = good.Load();
  REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
  CHECK(loaded.value().spec.prompt == "😀 a/b");
  const SpecFolder bad(
      "{\n \"norma\": 1,\n \"model\": {\n  \"format\": \"anthropic\",\n  \"name\": \"m\",\n"
      "  \"retries\": -2\n }\n}");
  CHECK(FaultOf(bad.Load()) == "spec.yaml:6:14: model.retries: must be at least -1, got -2");
}

TEST_CASE("spec load: numbers and money are judged exactly") {
  for (const char* value : {"-1", "1.5", "\"5\"", ".nan", ".inf", "1e400", "true", "[1]", "0x10",
                            "010", "1_000", "+5", "99999999999999999999", "~", "1e2", "!!int 5"}) {
    CAPTURE(std::string(value));
    CHECK(Holds(FaultOf("budgets: {turns: " + std::string(value) + "}\n"), "spec.yaml:7:1"));
  }
  const RunSpec spec = SpecOf(
      "budgets: {cost_usd: \"0.50\", turns: 0}\nprices: {test-model: {input: 3, output: 15}}\n"
      "settlement: {prompt: wrap up, reserve_usd: 0.05}\n");
  CHECK(spec.budgets.cost == 500'000'000);
  CHECK(spec.budgets.settlement_reserve == 50'000'000);
  CHECK(spec.budgets.turns == 0);
  REQUIRE(spec.settlement.has_value());
  CHECK(spec.settlement->turns == 2);
}

TEST_CASE("spec load: tools are kept in the contract's order") {
  CHECK(SpecOf("tools: {enabled: [Bash, Read]}\n").tools.enabled ==
        std::vector<std::string>{"Read", "Bash"});
  CHECK(SpecOf("tools: {enabled: []}\n").tools.enabled.empty());
}

TEST_CASE("spec load: an allow rule with an argument needs to say what it means") {
  CHECK(Holds(FaultOf("allow:\n  - Read\n  - \"Bash(git:*)\"\n"), "spec.yaml:9:5: allow[1]: "));
  CHECK(SpecOf("allow: [\"Bash(git:*)\"]\nrules: names\n").allow.size() == 1);
  CHECK(SpecOf("deny: [\"Bash(git:*)\"]\n").deny.size() == 1);
  CHECK(SpecOf("allow: [\"*\", mcp__files__*, WebFetch]\n").allow.size() == 3);
}

// --- schema
// -------------------------------------------------------------------------------------------

TEST_CASE("spec schema: it holds every key of the table, with type and default") {
  const auto document = json::Document::Parse(SpecSchemaJson({"Bash", "Read"}));
  REQUIRE(document.ok());
  const json::Value root = document.value().root();
  CHECK(root["required"].size() == 2);
  for (const KeyRow& row : SpecKeys()) {
    json::Value at = root;
    std::string path(row.path);
    CAPTURE(path);
    while (!path.empty()) {
      const std::string name = path.substr(0, path.find('.'));
      path = path.find('.') == std::string::npos ? "" : path.substr(path.find('.') + 1);
      at = name == "*"    ? at["additionalProperties"]
           : name == "[]" ? at["items"]
                          : at["properties"][name];
    }
    CHECK_FALSE(at["description"].Str().empty());
    CHECK(at["default"].present() == !row.fallback.empty());
  }
  CHECK(root["properties"]["budgets"]["properties"]["turns"]["type"].Str() == "integer");
  CHECK(root["properties"]["model"]["additionalProperties"].kind() == json::Kind::kBool);
}

TEST_CASE("spec table: modes and budgets are the policy's own") {
  std::vector<std::string> modes;
  for (const std::string_view name : kModeNames) modes.emplace_back(name);
  CHECK(ChoicesOf(FindRow(SpecKeys(), "mode")->choices) == modes);
  for (const std::string_view limit : kLimitNames) {
    CAPTURE(limit);
    CHECK(FindRow(SpecKeys(), "budgets." + std::string(limit)) != nullptr);
  }
}

}  // namespace
}  // namespace norma::spec
