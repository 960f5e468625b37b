// The fields of every kind as one table: the JSON Schema is made of it, and FORMAT.md is tested
// against it.
#pragma once

#include <span>
#include <string_view>

namespace norma::ledger {

enum class FieldType {
  kString,
  kInt,
  kIntOrNull,
  kBool,
  kTrue,  // present only when true
  kHash,  // SHA-256 in hex
  kStrings,
  kObject,
  kContent,
  kBlocks,
  kUsage,
  kAnyJson,
  kVerdict,
  kReason,
  kLimit,
  kTotals,
  kDenied,
};

struct FieldRow {
  std::string_view name;
  FieldType type;
  bool required;
  std::string_view meaning;
};

struct KindRow {
  std::string_view kind;
  std::string_view meaning;
  std::span<const FieldRow> fields;
};

// In the order of the Record variant.
std::span<const KindRow> KindTable();

}  // namespace norma::ledger
