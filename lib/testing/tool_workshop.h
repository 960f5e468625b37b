// A folder, roots and an environment in which one file tool after the other can be called, the way
// a run does it: prepare, own verdict, run.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/testing/hand_clock.h"
#include "lib/testing/temp_dir.h"
#include "lib/testing/tool_context.h"
#include "lib/tool/builtins.h"
#include "lib/tool/read_log.h"

namespace norma::testing {

class ToolWorkshop {
 public:
  explicit ToolWorkshop(std::vector<std::string> roots = {"."},
                        std::vector<std::string> read_only = {}) {
    auto opened = Roots::Open(roots, dir.path(), read_only);
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    roots_.emplace(std::move(opened).value());
    env.roots = &*roots_;
    env.cwd = dir.path();
    env.clock = &clock;
  }

  // An own deny comes back as an error that starts with "denied: ".
  tool::ToolOutput Call(const tool::Tool& tool, const std::string& arguments) {
    const auto document = json::Document::Parse(arguments);
    if (!document.ok()) return tool::Fail("bad test: " + document.error().message);
    const auto prepared = tool.prepare(document.value().root(), env);
    if (!prepared.ok()) return tool::Fail("invalid: " + prepared.error().message);
    actions = prepared.value().actions;
    if (prepared.value().own == OwnVerdict::kDeny) {
      return tool::Fail("denied: " + prepared.value().own_message);
    }
    return prepared.value().run(context);
  }

  TempDir dir;
  HandClock clock;
  tool::ToolEnv env;
  FakeToolContext context{env};
  std::vector<Action> actions;  // of the last call

 private:
  std::optional<Roots> roots_;
};

}  // namespace norma::testing
