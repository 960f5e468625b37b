"""Golden cases: testdata/e2e/<case>/ holds spec.yaml, prompt, replies.json (what the fake provider says) and,
when wanted, args (one a line), exit (a number) and files/ (copied into the run's folder). Compared are
want.out (stdout), want.jsonl (the ledger without what changes from run to run) and want.files/ (what the
tools must leave). scripts/regold.sh rewrites the want files.

Calls start while a reply still streams, so their lines and the reply's may change places from run to run:
want.jsonl holds the records of the loop in their order, then those of each call in their order.
"""
import filecmp
import json
import os
import re
import shutil

from e2e_kit import Run, check
from fake_provider import Provider

ROOT = "testdata/e2e"
# Fields that name this run, this machine or this moment.
VOLATILE = {"v", "seq", "t", "run", "agent", "prev", "version", "host", "cwd", "pid", "endpoint", "spec_path",
            "spec_hash", "policy_hash", "price_hash", "request_id", "bytes", "estimated_tokens", "reserved",
            "ledger", "ledger_head", "check"}
PRIVATE_FOLDER = re.compile(r"norma-[A-Za-z0-9]{6}\b")


def steady(value):
    """The value without its volatile parts."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items()
                if k not in VOLATILE and not k.endswith("_ms") and not (k == "sha256" and "text" in value)}
    if isinstance(value, list):
        return [steady(child) for child in value]
    return value


def projected(records):
    groups = {None: []}
    for record in records:
        groups.setdefault(record.get("call"), []).append(record)
    return lines_of(record for group in groups.values() for record in group)


def lines_of(values):
    return "".join(json.dumps(steady(value), ensure_ascii=False) + "\n" for value in values)


def read(path, default=""):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return default


def settle(path, got, regold):
    if regold:
        with open(path, "w", encoding="utf-8") as file:
            file.write(got)
        return
    want = read(path)
    for number, (w, g) in enumerate(zip(want.splitlines(), got.splitlines()), 1):
        assert w == g, f"{path}:{number}\n   want {w[:400]}\n   got  {g[:400]}"
    assert want == got, f"{path}: {len(want.splitlines())} lines wanted, {len(got.splitlines())} came"


def play(case, regold):
    here = os.path.join(ROOT, case)
    replies = json.loads(read(os.path.join(here, "replies.json")))["replies"]
    code = int(read(os.path.join(here, "exit"), "0"))
    with Run() as run, Provider(replies) as provider:
        if os.path.isdir(os.path.join(here, "files")):
            shutil.copytree(os.path.join(here, "files"), run.folder, dirs_exist_ok=True)
        run.write("spec.yaml", read(os.path.join(here, "spec.yaml")))
        arguments = read(os.path.join(here, "args")).split()
        run.start(["run", "spec.yaml", *arguments], stdin=read(os.path.join(here, "prompt")).encode(),
                  env=run.environment({"E2E_URL": provider.url})).wait()
        assert not provider.faults, provider.faults[:2]
        assert run.exit == code, f"wanted exit {code}; {run.tell()}"
        reason = run.records[-1].get("reason")
        check(run, code, reason, price_row=None)
        settle(os.path.join(here, "want.jsonl"), tidy(run, projected(run.records)), regold)
        settle(os.path.join(here, "want.out"), tidy(run, steady_output(run.out.decode())), regold)
        want = os.path.join(here, "want.files")
        for name in sorted(os.listdir(want)) if os.path.isdir(want) else []:
            assert filecmp.cmp(os.path.join(want, name), run.path(name), shallow=False), f"{name} differs"


def tidy(run, text):
    """Names of folders can stand in what a tool or a reason says."""
    return PRIVATE_FOLDER.sub("norma-XXXXXX", text.replace(run.folder, "FOLDER"))


def steady_output(text):
    """stdout; an object or event stream loses its volatile fields and gets the order of the ledger."""
    try:
        values = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text
    return projected(values) if values and isinstance(values[0], dict) else text


def cases(regold=False):
    def named(case):
        def run_case():
            play(case, regold)
        run_case.__name__ = f"case: {case}"
        return run_case
    return [named(case) for case in sorted(os.listdir(ROOT)) if os.path.isdir(os.path.join(ROOT, case))]
