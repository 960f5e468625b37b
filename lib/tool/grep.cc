// Grep: lines or files below a folder by regular expression. This file reads the arguments and
// tells the story; which files: grep_files.cc, which lines: grep_scan.cc, what it looks like:
// grep_format.cc.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "lib/tool/builtins.h"
#include "lib/tool/grep_files.h"
#include "lib/tool/grep_rg.h"
#include "lib/tool/tool_path.h"

namespace norma::tool {
namespace {

constexpr Millis kSearchTimeMax{30'000};
constexpr Millis kShowTimeMax{10'000};  // reading the shown files again
constexpr int64_t kHeadLimitDefault = 250;
constexpr int64_t kContextMax = 100'000;
constexpr size_t kRipgrepFilesMin = 2;

struct GrepCall {
  PathClaim claim;
  GrepPattern pattern;
  std::shared_ptr<const LineMatcher> matcher;  // null: `error` says why
  std::string error;
  GrepMode mode = GrepMode::kFiles;
  ContentStyle style;
  std::shared_ptr<const GrepFilter> filter;
  uint64_t offset = 0, limit = 0;
};

uint64_t ContextOf(json::Value value) {
  return static_cast<uint64_t>(std::clamp<int64_t>(value.Int(0), 0, kContextMax));
}

GrepCall ParseCall(json::Value arguments, const ToolEnv& env) {
  GrepCall call;
  const std::string_view path = arguments["path"].Str();
  call.claim = ClaimPath(path.empty() ? "." : path, env);
  call.pattern.text = arguments["pattern"].Str();
  call.pattern.ignore_case = arguments["-i"].Bool(false);
  call.pattern.multiline = arguments["multiline"].Bool(false);
  auto matcher = LineMatcher::Compile(call.pattern);
  if (matcher.ok()) {
    call.matcher = std::make_shared<const LineMatcher>(std::move(matcher).value());
  } else {
    call.error = "invalid regex: " + matcher.error().message;
  }
  const std::string_view mode = arguments["output_mode"].Str("files_with_matches");
  call.mode = mode == "content" ? GrepMode::kContent
              : mode == "count" ? GrepMode::kCount
                                : GrepMode::kFiles;
  if (call.mode == GrepMode::kFiles && mode != "files_with_matches") {
    call.error =
        fmt::format("unknown output_mode {}: use files_with_matches, content or count", mode);
  }
  call.style.numbers = arguments["-n"].Bool(true);
  call.style.before = ContextOf(arguments["-B"]);
  call.style.after = ContextOf(arguments["-A"]);
  if (const uint64_t both = ContextOf(arguments["-C"]); both > 0) {
    call.style.before = call.style.after = both;
  }
  call.filter =
      std::make_shared<const GrepFilter>(arguments["glob"].Str(), arguments["type"].Str());
  call.limit =
      static_cast<uint64_t>(std::max<int64_t>(0, arguments["head_limit"].Int(kHeadLimitDefault)));
  call.offset = static_cast<uint64_t>(std::max<int64_t>(0, arguments["offset"].Int(0)));
  return call;
}

// What was not searched, one bracketed line each.
struct Gaps {
  std::vector<std::string> notes;
  bool incomplete = false;  // time, cancel or a bound cut the search short
};

Gaps FindGaps(const GrepSearch& search, const GrepList& list, const WalkOptions& options) {
  Gaps gaps;
  uint64_t pending = 0, large = 0, unreadable = 0;
  for (const GrepFile& file : list.files) {
    pending += file.state == ScanState::kPending;
    large += file.state == ScanState::kTooLarge;
    unreadable += file.state == ScanState::kUnreadable;
  }
  const WalkOutcome& walk = list.walk;
  gaps.incomplete = pending > 0 || walk.timed_out || walk.cancelled || walk.too_many;
  if (walk.timed_out || walk.cancelled || (pending == 0 && !walk.complete())) {
    gaps.notes.push_back("search " + DescribeGaps(walk, options));
  } else if (pending > 0) {
    gaps.notes.push_back(fmt::format(
        "search incomplete: {}; {} of {} files were searched",
        search.cancel.tripped() ? "the call was cancelled"
                                : "the time limit was reached, name a smaller folder or a glob",
        list.files.size() - pending, list.files.size()));
  }
  if (large > 0) {
    gaps.notes.push_back(fmt::format("{} file(s) over 16 MiB were not searched", large));
  }
  if (unreadable > 0) gaps.notes.push_back(fmt::format("{} file(s) could not be read", unreadable));
  if (search.top.kind == FileKind::kRegular && list.files[0].state == ScanState::kBinary) {
    gaps.notes.push_back("the file is binary and was not searched");
  }
  return gaps;
}

// Fills the page; gives the number of output lines there are in all. False in `*whole` when the
// time ended before the page was full.
uint64_t FillPage(const GrepSearch& search, const std::vector<GrepFile>& files, Page* page,
                  bool* whole) {
  uint64_t total = 0;
  for (const GrepFile& file : files) {
    if (file.state != ScanState::kMatched) continue;
    if (*whole && page->Reaches(total, file.output_lines)) {
      switch (search.mode) {
        case GrepMode::kFiles:
          page->Add(total, file.below);
          break;
        case GrepMode::kCount:
          page->Add(total, fmt::format("{}: {}", file.below, file.matches));
          break;
        case GrepMode::kContent:
          *whole = ShowGrepFile(search, file, total, page);
          break;
      }
    }
    total += file.output_lines;
  }
  return total;
}

std::string NothingFound(const GrepCall& call, const Gaps& gaps) {
  if (gaps.incomplete) return "Nothing found so far";
  std::string text = "No matches found";
  if (!call.pattern.multiline && (call.pattern.text.find("\\n") != std::string::npos ||
                                  call.pattern.text.find('\n') != std::string::npos)) {
    text += "\n[the pattern holds a line break: set multiline to search across lines]";
  }
  if (!call.filter->problem().empty()) text += fmt::format("\n[{}]", call.filter->problem());
  return text;
}

Result<ToolOutput> Search(const GrepCall& call, ToolContext& context) {
  const ToolEnv& env = context.env();
  if (call.matcher == nullptr || !call.error.empty()) return Error{Code::kInvalid, call.error};
  NORMA_ASSIGN(const Place top, Reclaim(call.claim, env));
  if (top.kind == FileKind::kNone) return Error{Code::kNotFound, "no such file or directory"};
  if (top.kind == FileKind::kOther) return Error{Code::kInvalid, "it is not a regular file"};

  const MonoTime deadline = EarlierOf(context.deadline(), env.clock->Now(), kSearchTimeMax);
  const GrepSearch search{env,           context.cancel(), deadline,  top,
                          *call.matcher, call.mode,        call.style};
  WalkOptions options;
  options.gitignore = true;
  options.deadline = deadline;
  const bool ripgrep =
      !env.ripgrep.empty() && RipgrepPays(call.matcher->required(), call.pattern.ignore_case);
  NORMA_ASSIGN(GrepList list, ListGrepFiles(search, *call.filter, options, ripgrep));
  if (ripgrep && list.files.size() >= kRipgrepFilesMin) {
    (void)SkipByRipgrep(search, context, &list.files);  // what it leaves pending is scanned below
  }
  ScanGrepFiles(search, &list.files);

  Gaps gaps = FindGaps(search, list, options);
  Page page(call.offset, call.limit);
  bool whole = true;
  GrepSearch show = search;
  show.deadline = EarlierOf(context.deadline(), env.clock->Now(), kShowTimeMax);
  const uint64_t total = FillPage(show, list.files, &page, &whole);
  if (!whole) {
    gaps.incomplete = true;
    gaps.notes.push_back("the output is incomplete: the time limit was reached");
  }
  ToolOutput output = Capture(page.text(), env);
  if (total == 0) output.text = NothingFound(call, gaps);
  const auto add = [&](const std::string& line) {
    output.text += (output.text.empty() ? "" : "\n") + line;
  };
  const std::string more = page.Note(total);
  if (!more.empty() && (whole || page.shown() > 0)) add(more);
  for (const std::string& note : gaps.notes) add(fmt::format("[{}]", note));
  output.truncated = output.truncated || gaps.incomplete || page.shown() < total;
  return output;
}

Result<Prepared> Prepare(json::Value arguments, const ToolEnv& env) {
  const GrepCall call = ParseCall(arguments, env);
  Prepared prepared;
  prepared.read_only = true;
  prepared.own = OwnVerdict::kAllow;
  JudgeClaim(call.claim, env, &prepared);
  prepared.run = [call](ToolContext& context) {
    const auto output = Search(call, context);
    if (output.ok()) return output.value();
    return Fail(fmt::format("Error searching {}: {}", call.claim.spelled, output.error().message));
  };
  return prepared;
}

}  // namespace

Tool GrepTool() {
  return {
      "Grep",
      "Searches file contents by regular expression (RE2 syntax: no look-around, no "
      "backreferences), line by line, sorted by path. output_mode files_with_matches (default) "
      "lists files, content shows lines, count shows `path: N`. Hidden files are searched; .git, "
      "node_modules, vendor, binary files and what .gitignore names are not. 250 output lines are "
      "shown unless head_limit says otherwise; offset goes on from there.",
      R"json({"type":"object","required":["pattern"],"properties":{
"pattern":{"type":"string","description":"The regular expression"},
"path":{"type":"string","description":"File or directory (default: the working directory)"},
"glob":{"type":"string","description":"Only paths like *.{ts,tsx} or src/**/*.c; !x leaves out"},
"type":{"type":"string","description":"Only files of a type: go, py, js, ts, rust, java, cpp, …"},
"output_mode":{"type":"string","enum":["files_with_matches","content","count"]},
"-i":{"type":"boolean","description":"Ignore case"},
"-n":{"type":"boolean","description":"Line numbers in content (default true)"},
"-A":{"type":"integer","description":"Lines of context after each match"},
"-B":{"type":"integer","description":"Lines of context before each match"},
"-C":{"type":"integer","description":"Lines of context on both sides; overrides -A and -B"},
"multiline":{"type":"boolean","description":"Matches may span lines, the dot matches line breaks"},
"head_limit":{"type":"integer","description":"Output lines to show (default 250, 0 = all)"},
"offset":{"type":"integer","description":"Output lines to leave out first"}}})json",
      true,
      true,
      OwnVerdict::kAllow,
      Prepare};
}

}  // namespace norma::tool
