// A LoadInput as the command line would fill it, with a small reader of real files and a fixed
// environment; and the message of a load that must fail.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "lib/spec/load.h"
#include "lib/testing/temp_dir.h"

namespace norma::testing {

inline Result<std::string> ReadForSpec(const std::string& path, uint64_t bytes_max) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{Code::kNotFound, "there is no such file"};
  }
  if (std::filesystem::file_size(path, error) > bytes_max) {
    return Error{Code::kInvalid, "the file is too large"};
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline spec::LoadInput SpecInput(const std::string& path, const std::string& display) {
  spec::LoadInput input;
  input.path = path;
  input.display = display;
  input.env = [](const std::string& name) -> std::optional<std::string> {
    static const std::map<std::string, std::string> environment = {
        {"PLACE", "here"},
        {"EMPTY", ""},
        {"TURNS", "4"},
        {"SECRET", "sk-canary-0123456789"},
        {"BROKEN", "a\xFF"}};
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
  input.read_file = ReadForSpec;
  input.builtin_tools = {"Read", "Write", "Edit", "MultiEdit", "LS",
                         "Glob", "Grep",  "Bash", "sleep",     "TodoWrite"};
  input.default_tools = input.builtin_tools;
  input.known_tools = input.builtin_tools;
  for (const char* later : {"WebFetch", "web_search", "TaskOutput", "Agent"}) {
    input.known_tools.emplace_back(later);
  }
  input.formats = {"anthropic", "script"};
  return input;
}

// What every test spec starts with: six lines.
inline constexpr const char* kSpecHead =
    "norma: 1\n"
    "model:\n"
    "  format: anthropic\n"
    "  name: test-model\n"
    "  api_key_env: TEST_KEY\n"
    "mode: dontAsk\n";
inline constexpr int kSpecHeadLines = 6;

// A spec in a fresh folder.
class SpecFolder {
 public:
  explicit SpecFolder(const std::string& text) { dir_.Write("spec.yaml", text); }
  const TempDir& dir() const { return dir_; }
  spec::LoadInput Input() const { return SpecInput(dir_ / "spec.yaml", "spec.yaml"); }
  Result<spec::Loaded> Load() const { return spec::Load(Input()); }
  Result<spec::Loaded> Load(const std::vector<std::string>& sets) const {
    spec::LoadInput input = Input();
    input.sets = sets;
    return spec::Load(input);
  }

 private:
  TempDir dir_;
};

inline std::string FaultOf(const Result<spec::Loaded>& loaded) {
  return loaded.ok() ? std::string("(no fault)") : loaded.error().message;
}

// The message for this text behind the head.
inline std::string FaultOf(const std::string& body) {
  return FaultOf(SpecFolder(kSpecHead + body).Load());
}

inline spec::RunSpec SpecOf(const std::string& body, const std::vector<std::string>& sets = {}) {
  auto loaded = SpecFolder(kSpecHead + body).Load(sets);
  REQUIRE_MESSAGE(loaded.ok(), FaultOf(loaded));
  return std::move(loaded).value().spec;
}

inline bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace norma::testing
