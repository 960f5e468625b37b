// Edit and MultiEdit: text replaced inside a file. All edits are applied in memory first; the file
// is announced and written once, or not at all.
#include <fmt/core.h>

#include <vector>

#include "lib/base/sha256.h"
#include "lib/tool/builtins.h"
#include "lib/tool/edit_text.h"
#include "lib/tool/file_change.h"

namespace norma::tool {
namespace {

// Gives the number of replacements. `numbered` names the failing edit by its place in the list.
Result<size_t> EditFile(const PathClaim& claim, const std::vector<TextEdit>& edits, bool numbered,
                        ToolContext& context) {
  const ToolEnv& env = context.env();
  NORMA_ASSIGN(const Place place, ResolveTarget(claim, env));
  if (place.kind == FileKind::kNone) return Error{Code::kNotFound, "no such file"};
  if (edits.empty()) return Error{Code::kInvalid, "edits is empty: nothing to do"};
  NORMA_ASSIGN(std::string text, env.roots->Read(place, kChangeBytesMax));
  FileChange change{"edit", {}, Sha256Hex(text)};
  size_t replacements = 0;
  for (size_t i = 0; i < edits.size(); ++i) {
    auto edited = ApplyEdit(text, edits[i], kChangeBytesMax);
    if (!edited.ok() && numbered) {
      return Error{edited.error().code, fmt::format("edit {} of {}: {} (the file was not changed)",
                                                    i + 1, edits.size(), edited.error().message)};
    }
    if (!edited.ok()) return edited.error();
    text = std::move(edited.value().text);
    replacements += edited.value().replacements;
  }
  change.bytes = text;
  NORMA_TRY(CommitChange(place, change, context));
  return replacements;
}

TextEdit EditOf(json::Value value) {
  return {std::string(value["old_string"].Str()), std::string(value["new_string"].Str()),
          value["replace_all"].Bool(false)};
}

ToolOutput EditError(const PathClaim& claim, const Error& error) {
  return Fail(fmt::format("Error editing {}: {}", claim.spelled, error.message));
}

Result<Prepared> PrepareEdit(json::Value arguments, const ToolEnv& env) {
  const PathClaim claim = ClaimPath(arguments["file_path"].Str(), env, true);
  Prepared prepared = PrepareChange(claim, env);
  prepared.run = [claim, edit = EditOf(arguments)](ToolContext& context) {
    const auto count = EditFile(claim, {edit}, false, context);
    if (!count.ok()) return EditError(claim, count.error());
    return ToolOutput{fmt::format("Edited {} ({} replacement(s))", claim.spelled, count.value())};
  };
  return prepared;
}

Result<Prepared> PrepareMultiEdit(json::Value arguments, const ToolEnv& env) {
  const PathClaim claim = ClaimPath(arguments["file_path"].Str(), env, true);
  std::vector<TextEdit> edits;
  arguments["edits"].EachElement([&](json::Value edit) { edits.push_back(EditOf(edit)); });
  Prepared prepared = PrepareChange(claim, env);
  prepared.run = [claim, edits = std::move(edits)](ToolContext& context) {
    const auto count = EditFile(claim, edits, true, context);
    if (!count.ok()) return EditError(claim, count.error());
    return ToolOutput{fmt::format("Applied {} edits to {} ({} replacement(s))", edits.size(),
                                  claim.spelled, count.value())};
  };
  return prepared;
}

}  // namespace

Tool EditTool() {
  return {
      "Edit",
      "Replaces text in a file. old_string must stand in the file exactly once, blanks included, "
      "unless replace_all is set; give enough lines around it. Line breaks may be written as LF "
      "for any file: the file keeps its own. Read the file first.",
      R"json({"type":"object","required":["file_path","old_string","new_string"],"properties":{
"file_path":{"type":"string","description":"Absolute, or relative to the working directory"},
"old_string":{"type":"string","description":"The text to replace"},
"new_string":{"type":"string","description":"What comes in its place"},
"replace_all":{"type":"boolean","description":"Replace every occurrence (default false)"}}})json",
      false,
      false,
      OwnVerdict::kAsk,
      PrepareEdit};
}

Tool MultiEditTool() {
  return {"MultiEdit",
          "Several edits of one file, applied in order, each to the result of the one before; each "
          "follows the rules of Edit. If one fails, the file is left as it was.",
          R"json({"type":"object","required":["file_path","edits"],"properties":{
"file_path":{"type":"string","description":"Absolute, or relative to the working directory"},
"edits":{"type":"array","description":"The edits in order","items":{"type":"object",
"required":["old_string","new_string"],"properties":{
"old_string":{"type":"string","description":"The text to replace"},
"new_string":{"type":"string","description":"What comes in its place"},
"replace_all":{"type":"boolean","description":"Replace every occurrence (default false)"}
}}}}})json",
          false,
          false,
          OwnVerdict::kAsk,
          PrepareMultiEdit};
}

}  // namespace norma::tool
