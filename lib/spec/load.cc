// The steps of loading, in order.
#include "lib/spec/load.h"

#include <filesystem>
#include <utility>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/spec/key_table.h"
#include "lib/spec/loading.h"
#include "lib/spec/values.h"

namespace norma::spec {

namespace {

// "dir/" of "dir/spec.yaml", "" of "spec.yaml".
std::string FolderPrefix(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/') + 1));  // npos + 1 == 0
}

template <typename T, typename Read>
bool TakeWith(const Loading& load, std::string_view path, T& out, Read read) {
  const Node* node = load.At(path);
  if (node == nullptr) return false;
  auto value = read(*node);
  if (!value.ok()) return false;  // the Checker has said so
  out = std::move(value).value();
  return true;
}

Error AllFaults(const Loading& load) {
  return Error{Code::kSpec, load.faults.Text()};
}

Status ReadTree(Loading& load) {
  const LoadInput& input = load.input;
  const std::string& display = input.display.empty() ? input.path : input.display;
  if (!input.read_file) return Error{Code::kInternal, "no reader of files was given"};
  const auto text = input.read_file(input.path, kSpecBytesMax);
  if (!text.ok()) {
    // The reader names the path; the display name is what the user typed.
    const std::string& reason = text.error().message;
    const bool named = reason.find(display) != std::string::npos;
    return Error{Code::kUsage, named ? reason : display + ": " + reason};
  }
  const int source = load.faults.AddSource(display);
  auto root = ParseTree(text.value(), source, load.faults);
  if (!root) return AllFaults(load);
  if (root->kind != NodeKind::kMap) {
    const std::string got = root->kind == NodeKind::kNull ? "an empty file" : Describe(*root);
    load.faults.Add({source, 1, 1}, "", "a run spec is a map of keys to values, got " + got);
    return AllFaults(load);
  }
  load.root = std::move(*root);
  return {};
}

}  // namespace

const Node* Loading::At(std::string_view path) const {
  const Node* node = &root;
  for (const std::string_view name : Split(path, '.')) {
    if (node->kind != NodeKind::kMap) return nullptr;
    node = node->Find(name);
    if (node == nullptr) return nullptr;
  }
  return node->broken || node->kind == NodeKind::kNull ? nullptr : node;
}

std::string Loading::PathOf(const std::string& name) const {
  const std::string joined = name.starts_with('/') ? name : FolderPrefix(input.path) + name;
  if (joined.starts_with('/')) return joined;
  if (!input.cwd.empty()) return input.cwd + "/" + joined;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(joined, error);
  return error ? joined : absolute.string();
}

std::optional<NamedFile> Loading::ReadNamed(const Node& node, const std::string& key) {
  NamedFile file;
  file.path = PathOf(node.text);
  const std::string& display = input.display.empty() ? input.path : input.display;
  file.display =
      node.shown().starts_with('/') ? node.shown() : FolderPrefix(display) + node.shown();
  auto text = input.read_file(file.path, kNamedFileBytesMax);
  if (!text.ok()) {
    const std::string& reason = text.error().message;
    const bool named = node.replaced || reason.find(file.display) != std::string::npos;
    faults.Add(node.place, key, "cannot read " + (named ? "" : file.display + ": ") + reason);
    return std::nullopt;
  }
  file.text = std::move(text).value();
  file_hashes[key] = Sha256Hex(file.text);
  return file;
}

bool Take(const Loading& load, std::string_view path, int64_t& out) {
  return TakeWith(load, path, out, IntOf);
}
bool Take(const Loading& load, std::string_view path, double& out) {
  return TakeWith(load, path, out, NumberOf);
}
bool Take(const Loading& load, std::string_view path, bool& out) {
  return TakeWith(load, path, out, BoolOf);
}
bool Take(const Loading& load, std::string_view path, std::string& out) {
  return TakeWith(load, path, out, TextOf);
}
bool Take(const Loading& load, std::string_view path, Millis& out) {
  return TakeWith(load, path, out, DurationOf);
}
bool TakeUsd(const Loading& load, std::string_view path, Nano& out) {
  return TakeWith(load, path, out, UsdOf);
}
bool TakeSize(const Loading& load, std::string_view path, int64_t& out) {
  return TakeWith(load, path, out, SizeOf);
}

bool Take(const Loading& load, std::string_view path, std::vector<std::string>& out) {
  const Node* node = load.At(path);
  if (node == nullptr || node->kind != NodeKind::kList) return false;
  out.clear();
  for (const Node& item : node->items) {
    if (auto text = TextOf(item); text.ok()) out.push_back(std::move(text).value());
  }
  return true;
}

bool Take(const Loading& load, std::string_view path,
          std::vector<std::pair<std::string, std::string>>& out) {
  const Node* node = load.At(path);
  if (node == nullptr || node->kind != NodeKind::kMap) return false;
  out.clear();
  for (size_t i = 0; i < node->items.size(); ++i) {
    if (auto text = TextOf(node->items[i]); text.ok()) {
      out.emplace_back(node->keys[i].text, std::move(text).value());
    }
  }
  return true;
}

Result<Loaded> Load(const LoadInput& input) {
  Loading load(input);
  NORMA_TRY(ReadTree(load));
  ApplySets(load);
  ReplaceVariables(load);
  ApplyFlags(load);
  Checker(SpecKeys(), load.names, load.faults).CheckMap(load.root, "", "");

  load.out.spec.path = input.path;
  BuildModel(load);
  BuildPrices(load, load.out.spec.model.name);
  BuildRest(load);
  if (!load.faults.empty()) return AllFaults(load);

  load.out.spec.hash = HashOf(load);
  load.out.origins = OriginsOf(load);
  return std::move(load.out);
}

}  // namespace norma::spec
