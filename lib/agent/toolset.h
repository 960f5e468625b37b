// Toolset: the tools of one agent. The built-ins that tools.enabled names, in the contract's order,
// and those that work on the run itself, which its features bring along. Run thread only.
#pragma once

#include <deque>
#include <string_view>
#include <vector>

#include "lib/agent/scope.h"
#include "lib/tool/tool.h"

namespace norma::agent {

class Toolset {
 public:
  // `scope` must outlive it: tools that work on the run refer to it.
  explicit Toolset(RunScope& scope);
  Toolset(const Toolset&) = delete;
  Toolset& operator=(const Toolset&) = delete;

  const std::vector<const tool::Tool*>& tools() const { return tools_; }

 private:
  void Add(tool::Tool tool);

  std::deque<tool::Tool> own_;  // addresses stay
  std::vector<const tool::Tool*> tools_;
};

}  // namespace norma::agent
