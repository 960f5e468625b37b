// Any bytes as a run spec, as the script and as the price table it names: a Result, never a throw.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/spec/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  norma::spec::LoadInput input;
  input.path = "/fuzz/spec.yaml";
  input.env = [](const std::string&) { return std::optional<std::string>("x"); };
  input.known_tools = {"Read", "Bash"};
  input.builtin_tools = input.known_tools;
  input.default_tools = input.known_tools;
  input.formats = {"anthropic", "script"};
  input.read_file = [&text](const std::string&, uint64_t) -> norma::Result<std::string> {
    return text;
  };
  (void)norma::spec::Load(input).ok();

  input.read_file = [&text](const std::string& path, uint64_t) -> norma::Result<std::string> {
    if (!path.ends_with("spec.yaml")) return text;
    return std::string(
        "norma: 1\nmodel: {format: script, script: r.yaml, name: m}\nprices: {file: p.yaml}\n");
  };
  (void)norma::spec::Load(input).ok();

  input.read_file = [](const std::string&, uint64_t) -> norma::Result<std::string> {
    return std::string("norma: 1\nmodel: {format: anthropic, name: m}\n");
  };
  input.sets = {text};
  (void)norma::spec::Load(input).ok();
  return 0;
}
