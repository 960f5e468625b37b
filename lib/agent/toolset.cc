#include "lib/agent/toolset.h"

#include <string>
#include <utility>

namespace norma::agent {

Toolset::Toolset(RunScope& scope) {
  for (const std::string& name : scope.spec.tools.enabled) {
    const tool::Tool* tool = tool::FindBuiltin(name);
    NORMA_CHECK(tool != nullptr);  // the loader knows which exist
    tools_.push_back(tool);
  }
}

void Toolset::Add(tool::Tool tool) {
  own_.push_back(std::move(tool));
  tools_.push_back(&own_.back());
}

}  // namespace norma::agent
