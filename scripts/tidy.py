#!/usr/bin/env python3
"""House rules that no compiler and no formatter sees; prints `file:line: what`, exit 1 if any.

Sizes (lib and cmd, tests are free), columns, tabs, trailing blanks, the newline at the end, head
comments, #pragma once, and paths of the machine on which a file was written.
"""
import pathlib
import re
import subprocess
import sys

COLUMNS_MAX = {".h": 100, ".cc": 100, ".py": 120}
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

CPP = (".h", ".cc")
MACHINE_PATH = re.compile(r"(?<![\w.~$}*-])/(work|root)/")
# Text in which a brace is no brace: comments, strings, characters, preprocessor lines.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)  # sample text; nobody can break its lines
DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?![^(]*\()")
TEMPLATE = re.compile(r"<[^<>]*>")
ASSIGNED = re.compile(r"(?<![=!<>r])=(?!=)")  # an initialiser, not operator=


def blank(match):
    """Takes the text out and leaves its lines."""
    return "\n" * match.group().count("\n") or " "


def kind_of(head):
    """What the braces behind `head` hold, outside of every function."""
    if SCOPE.search(head):
        return "scope"
    before = TEMPLATE.sub("", head).split("(")
    return "function" if len(before) > 1 and not ASSIGNED.search(before[0]) else "value"


def long_functions(text):
    """(first line, lines) of each function that is too long. Braces in parentheses do not count."""
    code = NO_CODE.sub(blank, DIGIT_SEPARATOR.sub("", text))
    stack, begin, depth = [], 0, 0
    for match in re.finditer(r"[{}();]|\b(?:public|private|protected):", code):
        token = match.group()
        if token in "()":
            depth += 1 if token == "(" else -1
        if token in "()" or depth > 0:
            continue
        head = code[begin:match.start()]
        begin = match.end()
        if token == "{":
            first = code.count("\n", 0, match.start() - len(head.lstrip())) + 1
            in_function = any(kind != "scope" for kind, _ in stack)
            stack.append(("inside" if in_function else kind_of(head), first))
        elif token == "}" and stack:
            kind, first = stack.pop()
            lines = code.count("\n", 0, match.start()) + 2 - first
            if kind == "function" and lines > FUNCTION_LINES_MAX:
                yield first, lines


def long_lines(name, text, lines):
    columns_max = COLUMNS_MAX.get(pathlib.PurePath(name).suffix)
    if columns_max is None or max(map(len, lines)) <= columns_max:
        return
    raw = set()
    for match in RAW_STRING.finditer(text) if name.endswith(CPP) else ():
        first = text.count("\n", 0, match.start()) + 1
        raw.update(range(first, first + match.group().count("\n") + 1))
    for number, line in enumerate(lines, 1):
        if len(line) > columns_max and number not in raw:
            yield number, f"{len(line)} columns, at most {columns_max}"


def cpp_faults(name, text, lines):
    own_header = '#include "%s.h"' % name[:-3] if name.endswith(".cc") else None
    is_test = name.endswith(("_test.cc", "_bench.cc", "_fuzz.cc"))
    if not lines[0].startswith("//") and lines[0] != own_header and not is_test:
        yield 1, "no head comment: what the file does and what it does not know"
    if name.endswith(".h") and "#pragma once" not in lines:
        yield 1, "no #pragma once"
    if name.startswith(("lib/", "cmd/")) and not is_test:
        if len(lines) > FILE_LINES_MAX:
            yield 1, f"{len(lines)} lines, at most {FILE_LINES_MAX}"
        for first, count in long_functions(text):
            yield first, f"a function of {count} lines, at most {FUNCTION_LINES_MAX}"


def faults_of(name, text):
    lines = text.split("\n")
    if name.startswith("testdata/"):  # bytes of test inputs mean something
        checks = []
    else:
        checks = [("trailing blank", lambda line: line != line.rstrip())]
        if not name.endswith(("Makefile", ".mk")):
            checks.append(("tab", lambda line: "\t" in line))
        if text and not text.endswith("\n"):
            yield len(lines), "no newline at the end"
        if text.endswith("\n\n"):
            yield len(lines) - 1, "blank line at the end"
    checks.append(("a path of one machine", MACHINE_PATH.search))
    for number, line in enumerate(lines, 1):
        for what, check in checks:
            if check(line):
                yield number, what
    yield from long_lines(name, text, lines)
    if name.endswith(CPP):
        yield from cpp_faults(name, text, lines[:-1] or [""])


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root,
                            capture_output=True, check=True).stdout.decode().split("\0")
    found = False
    for name in sorted(set(filter(None, listed))):
        path = root / name
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" in data[:8000]:
            continue  # binary
        for number, what in sorted(faults_of(name, data.decode("utf-8", "replace"))):
            print(f"{name}:{number}: {what}")
            found = True
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
