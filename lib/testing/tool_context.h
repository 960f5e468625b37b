// A ToolContext for tests: no run thread behind it, it remembers what a tool announced and can
// refuse.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/tool/tool.h"

namespace norma::testing {

class FakeToolContext : public tool::ToolContext {
 public:
  // The environment must outlive the context.
  explicit FakeToolContext(const tool::ToolEnv& env) : env_(env) {}

  const tool::ToolEnv& env() const override { return env_; }
  const Cancel& cancel() const override { return cancel_; }
  MonoTime deadline() const override { return deadline_; }
  const std::string& call_id() const override { return call_id_; }

  Result<std::string> Begin(const tool::ActionReport& action) override {
    std::lock_guard lock(mutex_);
    if (!refuse_.empty()) return Error{Code::kDenied, refuse_};
    if (on_begin_) on_begin_(action);
    begun_.push_back(action);
    return fmt::format("a{}", begun_.size());
  }
  void End(const std::string& action_id, const tool::ActionReport& outcome) override {
    std::lock_guard lock(mutex_);
    ended_.emplace_back(action_id, outcome);
  }

  // Arranging. Not while a tool runs, but Trip.
  void SetDeadline(MonoTime deadline) { deadline_ = deadline; }
  void SetCallId(std::string id) { call_id_ = std::move(id); }
  void RefuseWith(std::string message) { refuse_ = std::move(message); }
  // Called inside Begin: "what is true when the effect is announced".
  void OnBegin(std::function<void(const tool::ActionReport&)> visit) {
    on_begin_ = std::move(visit);
  }
  void Trip(int cause) { cancel_.Trip(cause); }

  // What happened, in order. The id of the n-th Begin is "a<n>", from 1.
  const std::vector<tool::ActionReport>& begun() const { return begun_; }
  const std::vector<std::pair<std::string, tool::ActionReport>>& ended() const { return ended_; }
  // Each Begin had its End: must hold after every call.
  bool balanced() const { return begun_.size() == ended_.size(); }

 private:
  const tool::ToolEnv& env_;
  Cancel cancel_;
  MonoTime deadline_ = kNever;
  std::string call_id_ = "call-1";
  std::string refuse_;
  std::function<void(const tool::ActionReport&)> on_begin_;
  std::mutex mutex_;  // tools may announce from a worker thread; guards the two lists
  std::vector<tool::ActionReport> begun_;
  std::vector<std::pair<std::string, tool::ActionReport>> ended_;
};

// Runs one call the way the scheduler does, without its checks: parse, prepare, run. A refusal of
// prepare comes back as an error result that starts with "invalid: ".
inline tool::ToolOutput RunTool(const tool::Tool& tool, const std::string& arguments,
                                tool::ToolContext& context) {
  const auto document = json::Document::Parse(arguments);
  if (!document.ok()) return tool::Fail("invalid: " + document.error().message);
  const auto prepared = tool.prepare(document.value().root(), context.env());
  if (!prepared.ok()) return tool::Fail("invalid: " + prepared.error().message);
  return prepared.value().run(context);
}

}  // namespace norma::testing
