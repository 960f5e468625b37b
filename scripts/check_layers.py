#!/usr/bin/env python3
"""Which room may include which, and which file owns a foreign library (the map: lib/README.md).

Prints `file:line: what` for each include that breaks a rule; exit 1 if there is any."""
import fnmatch
import pathlib
import re
import sys

LIB = "base chat io policy spec ledger llm context tool agent"
MAY_SEE = {  # besides itself; policy, which decides about security, can be read alone
    "base": "", "chat": "base", "io": "base", "policy": "base", "spec": "base chat policy",
    "ledger": "base chat io policy", "llm": "base chat io", "context": "base chat io",
    "tool": "base chat io policy", "agent": LIB, "testing": LIB, "cmd": LIB}
OWNERS = {  # start of a header: the files that may see it
    "simdjson": ["lib/base/json.cc"], "openssl/": ["lib/base/sha256.cc"],
    "nlohmann/": ["lib/base/json_schema.cc", "lib/base/json_schema_*"],
    "valijson/": ["lib/base/json_schema.cc", "lib/base/json_schema_*"],
    "lib/base/json_schema_": ["lib/base/json_schema*"],  # inner headers, they show valijson
    "curl/": ["lib/io/http_curl*.cc"], "re2/": ["lib/base/regex.cc"],
    "gumbo": ["lib/tool/web/html.cc"], "yaml-cpp/": ["lib/spec/*"], "CLI/": ["cmd/*"],
    "doctest": ["*_test.cc", "lib/testing/*"], "benchmark/": ["*_bench.cc"]}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def fault(name, quote, header):
    """Why file `name` may not include `header`, or None."""
    for start, owners in OWNERS.items():
        if header.startswith(start) and not any(fnmatch.fnmatchcase(name, o) for o in owners):
            return f"{header} is for {' and '.join(owners)} alone"
    if not header.startswith(("lib/", "cmd/")):
        is_known = quote == "<" or header.startswith(tuple(OWNERS))
        return None if is_known else f'"{header}": write our headers with their full path'
    room, seen = (n.split("/")[0 if n.startswith("cmd/") else 1] for n in (name, header))
    if seen == "testing":
        is_test = room == "testing" or name.endswith("_test.cc")
        return None if is_test else f"{header}: only tests may see lib/testing"
    if room not in MAY_SEE:
        return f"{room} is a new room: say in scripts/check_layers.py what it may see"
    if seen == room or seen in MAY_SEE[room].split():
        return None
    return f"{header}: {room} may see {MAY_SEE[room] or 'nothing of ours'}, not {seen}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    faults = []
    for path in sorted(p for top in ("lib", "cmd") for p in (root / top).rglob("*.[ch]*")):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and (what := fault(name, *match.groups())):
                faults.append(f"{name}:{number}: {what}")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main())
