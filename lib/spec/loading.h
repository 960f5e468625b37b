// What the steps of one Load share: the tree, its faults, the spec that grows. Private to the room.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/spec/check.h"
#include "lib/spec/fault.h"
#include "lib/spec/load.h"
#include "lib/spec/tree.h"

namespace norma::spec {

// Most bytes of a file that a spec names (PRODUCT: the prompt's limit holds for them too).
inline constexpr uint64_t kNamedFileBytesMax = uint64_t{16} << 20;
inline constexpr uint64_t kSpecBytesMax = uint64_t{4} << 20;

struct NamedFile {
  std::string path;     // absolute
  std::string display;  // as messages call it
  std::string text;
};

struct Loading {
  explicit Loading(const LoadInput& load_input)
      : input(load_input), names{load_input.known_tools, load_input.builtin_tools} {}

  const LoadInput& input;
  KnownNames names;
  Faults faults;
  Node root;
  Loaded out;
  // SHA-256 of what was read, by the key that named it; part of the spec's hash.
  std::map<std::string, std::string> file_hashes;

  // The value at a path of fixed keys; null when absent or already faulty.
  const Node* At(std::string_view path) const;
  // Reads the file that `node` names; a fault and nothing when it cannot be read.
  std::optional<NamedFile> ReadNamed(const Node& node, const std::string& key);
  // Where the file that `node` names is: relative to the spec's folder, made absolute.
  std::string PathOf(const std::string& name) const;
};

// sets.cc: --set into the tree, then ${NAME}, then the other flags (their text is taken as it is).
void ApplySets(Loading& load);
void ReplaceVariables(Loading& load);
void ApplyFlags(Loading& load);

// build.cc, model.cc: the tree, checked, into the RunSpec; adds faults that need more than one key.
void BuildModel(Loading& load);
void BuildRest(Loading& load);

// prices.cc. `model` is the one whose row is looked for in a LiteLLM table.
void BuildPrices(Loading& load, const std::string& model);

// script.cc
void BuildScript(Loading& load);
Script ReadScript(const std::string& text, int source, const KnownNames& names, Faults& faults);

// origins.cc
std::vector<Origin> OriginsOf(const Loading& load);
std::string HashOf(const Loading& load);

// Typed reads of a checked tree. False and no change when the key is absent or faulty.
bool Take(const Loading& load, std::string_view path, int64_t& out);
bool Take(const Loading& load, std::string_view path, double& out);
bool Take(const Loading& load, std::string_view path, bool& out);
bool Take(const Loading& load, std::string_view path, std::string& out);
bool Take(const Loading& load, std::string_view path, Millis& out);
bool Take(const Loading& load, std::string_view path, std::vector<std::string>& out);
bool Take(const Loading& load, std::string_view path,
          std::vector<std::pair<std::string, std::string>>& out);
bool TakeUsd(const Loading& load, std::string_view path, Nano& out);
bool TakeSize(const Loading& load, std::string_view path, int64_t& out);
template <typename T>
void Take(const Loading& load, std::string_view path, std::optional<T>& out) {
  T value{};
  if (Take(load, path, value)) out = value;
}

}  // namespace norma::spec
