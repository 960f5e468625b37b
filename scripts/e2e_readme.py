"""The first screen of README.md, played: its spec and its command run against the fake provider, and what is
printed there has to be what comes out. Times, ids and hashes differ from run to run and are not compared.
"""
import os
import re

from e2e_kit import Run, check
from fake_provider import Provider

README = "README.md"
LOG = ("ok   parser_test\nFAIL lexer_test: expected 3 tokens, got 4\n"
       "ok   emit_test\nFAIL link_test: timeout after 60 s\n")
REPLIES = [
    {"text": "I will look for failures.",
     "calls": [{"name": "Grep", "input": {"pattern": "^FAIL", "path": "build.log", "output_mode": "content"}},
               {"name": "Bash", "input": {"command": "git log -5 --stat"}}],
     "usage": {"input": 1873, "output": 118}},
    {"calls": [{"name": "Write", "input": {
        "file_path": "summary.md", "content": "- lexer_test: one token too many\n- link_test: timed out\n"}}],
     "usage": {"input": 2104, "output": 87}},
    {"text": "2 of 4 tests fail: lexer_test finds one token too many, link_test runs into its time limit.\n"
             "The list is in summary.md. I could not look at the history: Bash is not allowed.",
     "usage": {"input": 2251, "output": 61}}]
UNSTEADY = [(re.compile(p), w) for p, w in (
    (r"\d{8}T\d{6}-[0-9a-f]{12}", "RUN"), (r"[0-9a-f]{64}", "HASH"), (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
    (r'"(\w+_ms)":\d+', r'"\1":0'), (r'"(seq|bytes)":\d+', r'"\1":0'), (r"req_\w+", "REQ"))]


def block(text, mark):
    """The fenced block behind <!-- mark -->: (start, end) of its inside."""
    begin = text.index("\n", text.index("```", text.index(f"<!-- {mark} -->"))) + 1
    return begin, text.index("```", begin)


def inside(text, mark):
    begin, end = block(text, mark)
    return text[begin:end]


def shown_lines(run):
    """The denied call, the announced write, the end with its totals."""
    lines = run.ledger.decode().splitlines()
    denied = next(line for line in lines if '"kind":"call.judged"' in line and '"deny"' in line)
    write = next(line for line in lines if '"kind":"action.started"' in line)
    ended = next(line for line in lines if '"kind":"run.ended"' in line)
    return "\n".join((denied, write, ended)) + "\n"


def play(spec):
    """(command's screen, ledger lines) of the README's spec."""
    with Run() as run, Provider(REPLIES) as provider:
        run.write("triage.yaml", spec)
        run.write("build.log", LOG)
        run.start(["run", "triage.yaml"], stdin=b"Which tests fail in build.log? Write a list to summary.md.\n",
                  env={**run.environment(), "ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-ant-readme"})
        run.wait()
        assert not provider.faults, provider.faults[:2]
        run.ledger_name = os.path.join("runs", os.listdir(run.path("runs"))[0])
        check(run, 0, "completed", price_row={"input": "3", "output": "15"})
        assert run.read("summary.md")
        tidy = lambda text: text.replace(run.folder, "/home/you/job")
        screen = "$ norma run triage.yaml < prompt.txt > answer.txt\n" + tidy(run.err.decode()) + \
                 "$ cat answer.txt\n" + run.out.decode()
        return screen, tidy(shown_lines(run))


def steady(text):
    for pattern, word in UNSTEADY:
        text = pattern.sub(word, text)
    return text


def readme_is_true():
    with open(README, encoding="utf-8") as file:
        text = file.read()
    screen, ledger = play(inside(text, "spec"))
    for mark, got in (("screen", screen), ("ledger", ledger)):
        want = inside(text, mark)
        assert steady(want) == steady(got), f"README.md, {mark}: run scripts/regold.sh; now it is\n{got}"


def write_readme():
    with open(README, encoding="utf-8") as file:
        text = file.read()
    for mark, got in zip(("screen", "ledger"), play(inside(text, "spec"))):
        if steady(inside(text, mark)) != steady(got):  # ids alone are no reason for a diff
            begin, end = block(text, mark)
            text = text[:begin] + got + text[end:]
    with open(README, "w", encoding="utf-8") as file:
        file.write(text)


readme_is_true.__name__ = "README: its first screen is what happens"
