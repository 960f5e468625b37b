// Every key of the run spec and of the script file as one row: path, type, default, bounds,
// meaning. The loader checks against these rows, `norma check` prints from them and the JSON Schema
// is generated from them, so that nothing is said twice.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace norma::spec {

enum class Type {
  kMap,    // fixed keys: the rows below it
  kNamed,  // any names (or `choices`), each value as the row `path.*` says
  kList,   // each element as the row `path.[]` says
  kText,
  kTexts,    // list of text
  kTextMap,  // names -> text
  kBool,
  kInt,
  kNumber,
  kUsd,
  kDuration,
  kSize,
  kChoice,     // one of `choices`
  kVariable,   // the name of an environment variable
  kVariables,  // list of them
  kFile,       // a file that is read; relative to the spec's folder
  kRule,
  kTools,    // list of tool names
  kSegment,  // text, or {file: path}
  kJson,     // any object
};

enum class Built { kYes, kNotYet };

inline constexpr int64_t kNoMax = std::numeric_limits<int64_t>::max();

struct KeyRow {
  std::string_view path;  // "budgets.per_tool.*.calls": `*` any name, `[]` an element
  Type type = Type::kText;
  std::string_view about;
  std::string_view fallback = {};  // the default as YAML text; empty: none
  std::string_view choices = {};   // "a|b|c"; of kNamed: the allowed names, "TOOL" = tool names
  std::string_view later = {};     // those choices that are not built yet
  int64_t min = 0;                 // of numbers; durations in ms, money in nano-dollars
  int64_t max = kNoMax;
  bool required = false;      // within its map
  Built built = Built::kYes;  // kNotYet: only the default is accepted
};

using KeyTable = std::span<const KeyRow>;

KeyTable SpecKeys();    // in the order of PRODUCT §3
KeyTable ScriptKeys();  // replies.yaml of the script model

// The row of exactly this path; null when there is none.
const KeyRow* FindRow(KeyTable table, std::string_view path);
// The row of `name` below `parent` ("" = top): the exact one, else `parent.*`.
const KeyRow* ChildRow(KeyTable table, std::string_view parent, std::string_view name);
// The names of the fixed keys below `parent`, in order.
std::vector<std::string> ChildNames(KeyTable table, std::string_view parent);
// "budgets" of "budgets.turns", "" of "budgets"; and "turns".
std::string_view ParentOf(std::string_view path);
std::string_view LastOf(std::string_view path);

// `later` and `choices` taken apart.
std::vector<std::string> ChoicesOf(std::string_view choices);

}  // namespace norma::spec
