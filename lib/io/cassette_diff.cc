// Where two canonical requests differ first, for a person who looks for what changed. Pure.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lib/base/text.h"
#include "lib/io/cassette.h"

namespace norma {
namespace {

constexpr size_t kShownBytesMax = 80;
constexpr size_t kBeforeBytes = 20;  // shown of what is still the same

using Members = std::vector<std::pair<std::string, json::Value>>;

Members MembersOf(json::Value value) {
  Members members;
  value.EachMember(
      [&](std::string_view key, json::Value member) { members.emplace_back(key, member); });
  return members;
}

std::string Shown(json::Value value) {
  switch (value.kind()) {
    case json::Kind::kNull:
      return value.present() ? "null" : "(nothing)";
    case json::Kind::kBool:
      return value.Bool() ? "true" : "false";
    case json::Kind::kInt:
      return std::to_string(value.Int());
    case json::Kind::kUint:
      return std::to_string(value.Uint());
    case json::Kind::kDouble:
      return fmt::format("{}", value.Double());
    case json::Kind::kString:
      return json::Quote(CutUtf8(value.Str(), kShownBytesMax));
    case json::Kind::kArray:
      return fmt::format("a list of {}", value.size());
    case json::Kind::kObject:
      return "an object";
  }
  return "";
}

// From a little before the first byte that differs.
std::string ShownFrom(std::string_view text, size_t at) {
  const size_t begin = at < kBeforeBytes ? 0 : at - kBeforeBytes;
  const std::string_view head = text.substr(0, begin + kShownBytesMax);
  const std::string_view part = CutUtf8Tail(head, head.size() - std::min(begin, head.size()));
  return (begin > 0 ? "…" : "") + json::Quote(CutUtf8(part, kShownBytesMax));
}

class Walk {
 public:
  // True: the same.
  bool Same(json::Value a, json::Value b, const std::string& path) {
    const bool both = a.present() && b.present() && a.kind() == b.kind();
    if (both && a.is_object()) return SameObject(a, b, path);
    if (both && a.is_array()) return SameList(a, b, path);
    if (both && a.is_string()) return SameText(a.Str(), b.Str(), path);
    const std::string recorded = Shown(a), now = Shown(b);
    if (both && recorded == now) {
      found.matched += recorded.size();
      return true;
    }
    return Differ(path, recorded, now);
  }

  Difference found;

 private:
  bool SameObject(json::Value a, json::Value b, const std::string& path) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto& [key, value] : MembersOf(a)) {
      if (!Same(value, b[key], prefix + key)) return false;
    }
    for (const auto& [key, value] : MembersOf(b)) {
      if (!a[key].present()) return Differ(prefix + key, Shown({}), Shown(value));
    }
    return true;
  }

  bool SameList(json::Value a, json::Value b, const std::string& path) {
    std::vector<json::Value> left, right;
    a.EachElement([&](json::Value value) { left.push_back(value); });
    b.EachElement([&](json::Value value) { right.push_back(value); });
    const size_t count = std::max(left.size(), right.size());
    for (size_t n = 0; n < count; ++n) {
      const json::Value x = n < left.size() ? left[n] : json::Value();
      const json::Value y = n < right.size() ? right[n] : json::Value();
      if (!Same(x, y, fmt::format("{}[{}]", path, n))) return false;
    }
    return true;
  }

  bool SameText(std::string_view a, std::string_view b, const std::string& path) {
    const auto [x, y] = std::ranges::mismatch(a, b);
    const auto at = static_cast<size_t>(x - a.begin());
    found.matched += at;
    if (x == a.end() && y == b.end()) return true;
    return Differ(fmt::format("{} at byte {}", path, at), ShownFrom(a, at), ShownFrom(b, at));
  }

  bool Differ(const std::string& path, const std::string& recorded, const std::string& now) {
    found.text = fmt::format("{}: recorded {}, now {}", path, recorded, now);
    return false;
  }
};

}  // namespace

Difference FirstDifference(json::Value recorded, json::Value now) {
  Walk walk;
  if (walk.Same(recorded, now, "")) walk.found.text.clear();
  return walk.found;
}

}  // namespace norma
