// What is wrong with a spec, collected: every fault of all its files and flags in one go, each with
// the place where a person has to look. Knows neither YAML nor any key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace norma::spec {

// Where a value stands: a file's line and column (both from 1, columns count bytes), or a flag
// (line 0). `source` is a number given out by Faults::AddSource.
struct Place {
  int source = 0;
  int line = 0;
  int column = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

class Faults {
 public:
  // `name` is a file as messages call it, or a flag with the key it sets ("--set budgets.turns").
  // For a flag `key` is that path: a fault of exactly this key does not repeat it.
  int AddSource(std::string name, std::string key = {});
  const std::string& SourceName(int source) const;

  // One fault. `path` is the key's ("budgets.turns"), empty for a fault of the file itself.
  void Add(const Place& place, std::string_view path, std::string message);

  bool empty() const { return faults_.empty(); }
  size_t size() const { return faults_.size(); }

  // "spec.yaml:12", "--set budgets.turns": where a value comes from.
  std::string Where(const Place& place) const;
  // All of them, one a line, sorted by file (in the order of AddSource), line and column.
  std::string Text() const;

 private:
  struct Source {
    std::string name;
    std::string key;
  };
  struct Fault {
    Place place;
    std::string path;
    std::string message;
  };
  std::vector<Source> sources_;
  std::vector<Fault> faults_;
};

}  // namespace norma::spec
