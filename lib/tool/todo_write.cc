// TodoWrite: the model's own plan. Touches nothing outside the run, hence no action.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/tool/builtins.h"

namespace norma::tool {
namespace {

constexpr std::array<std::string_view, 3> kStatuses = {"pending", "in_progress", "completed"};

ToolOutput Run(const std::vector<TodoItem>& items, ToolContext& context) {
  TodoList* list = context.env().todos;
  if (list == nullptr) return Fail("this run keeps no todo list");
  std::lock_guard lock(list->mutex);
  list->items = items;
  return {"The todo list was updated. Keep it current while you work.", false, false};
}

Result<Prepared> Prepare(json::Value arguments, const ToolEnv&) {
  std::vector<TodoItem> items;
  std::string fault;
  arguments["todos"].EachElement([&](json::Value element) {
    TodoItem item{std::string(element["content"].Str()), std::string(element["status"].Str())};
    if (fault.empty() && std::ranges::find(kStatuses, item.status) == kStatuses.end()) {
      fault = fmt::format("todos[{}].status must be pending, in_progress or completed, not `{}`",
                          items.size(), item.status);
    }
    items.push_back(std::move(item));
  });
  if (!fault.empty()) return Error{Code::kInvalid, fault};
  Prepared prepared;
  prepared.own = OwnVerdict::kAllow;
  prepared.run = [items = std::move(items)](ToolContext& context) { return Run(items, context); };
  return prepared;
}

}  // namespace

Tool TodoWriteTool() {
  return Tool{
      .name = "TodoWrite",
      .description =
          "Replaces your list of steps for this task. Use it when the work has several "
          "steps: one item each, one of them in_progress at a time, and completed as "
          "soon as it is done. An empty list clears it.",
      .input_schema =
          R"({"type":"object","properties":{"todos":{"type":"array",)"
          R"("description":"The whole list, in order.","items":{"type":"object","properties":{)"
          R"("content":{"type":"string","description":"What is to be done."},)"
          R"("status":{"type":"string","enum":["pending","in_progress","completed"]}},)"
          R"("required":["content","status"]}}},"required":["todos"]})",
      .read_only = false,
      .own = OwnVerdict::kAllow,
      .prepare = Prepare};
}

}  // namespace norma::tool
