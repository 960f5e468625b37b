// Sorting and printing of faults.
#include "lib/spec/fault.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/result.h"

namespace norma::spec {

namespace {

// A file of nonsense makes a fault a line; nobody reads more than this many.
constexpr size_t kFaultsShownMax = 100;

}  // namespace

int Faults::AddSource(std::string name, std::string key) {
  sources_.push_back({std::move(name), std::move(key)});
  return static_cast<int>(sources_.size()) - 1;
}

const std::string& Faults::SourceName(int source) const {
  NORMA_CHECK(source >= 0 && static_cast<size_t>(source) < sources_.size());
  return sources_[static_cast<size_t>(source)].name;
}

void Faults::Add(const Place& place, std::string_view path, std::string message) {
  faults_.push_back({place, std::string(path), std::move(message)});
}

std::string Faults::Where(const Place& place) const {
  const std::string& name = SourceName(place.source);
  return place.line > 0 ? name + ":" + std::to_string(place.line) : name;
}

std::string Faults::Text() const {
  std::vector<const Fault*> sorted;
  sorted.reserve(faults_.size());
  for (const Fault& fault : faults_) sorted.push_back(&fault);
  // Stable: two faults of one place stay in the order in which they were found.
  std::ranges::stable_sort(sorted, {}, [](const Fault* fault) {
    return std::tuple(fault->place.source, fault->place.line, fault->place.column);
  });

  std::string text;
  size_t shown = 0;
  for (const Fault* fault : sorted) {
    if (shown == kFaultsShownMax) {
      text += "\n… and " + std::to_string(sorted.size() - shown) + " more";
      break;
    }
    if (shown > 0) text += '\n';
    ++shown;
    text += Where(fault->place);
    if (fault->place.line > 0) text += ":" + std::to_string(fault->place.column);
    text += ": ";
    const Source& source = sources_[static_cast<size_t>(fault->place.source)];
    const bool said_already = !source.key.empty() && fault->path == source.key;
    if (!fault->path.empty() && !said_already) text += fault->path + ": ";
    text += fault->message;
  }
  return text;
}

}  // namespace norma::spec
