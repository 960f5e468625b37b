// JSON Schema draft-07 for tool inputs and structured answers. nlohmann-json and valijson live
// behind json_schema.cc alone. `pattern` runs on RE2, never on std::regex.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace norma {

class JsonSchema {
 public:
  // kInvalid when the text is no draft-07 schema (unknown `type`, bad `pattern`, remote `$ref`, …).
  static Result<JsonSchema> Compile(std::string_view schema_text);

  // Ok, or kInvalid naming the first fault with its path: `input.edits[0].old_string: …`. `root` is
  // the name of the whole value. An integral float counts as an integer. Thread-safe.
  Status Validate(std::string_view json_text, std::string_view root = "input") const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace norma
