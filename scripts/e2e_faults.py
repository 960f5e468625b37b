"""The fault table: what goes wrong, and what norma makes of it: exit code, reason, last ledger record.

Each row is provoked on the real binary; the same rows are rendered into lib/FAULTS.md, which is checked
to be up to date. Rows run with `-o json`, so that the object on stdout has to agree too.
"""
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

from e2e_kit import PRICE_ROW, Run, check_ledger, spec_for, until
from fake_provider import Provider

FAULTS = []
DOC = "lib/FAULTS.md"
DONE = {"text": "done"}
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24
PRCTL = ctypes.CDLL(None).prctl  # looked up here: after a fork beside other threads it could hang


class Fault:
    def __init__(self, group, name, code, reason, last, act):
        self.group, self.name, self.code, self.reason, self.last, self.act = group, name, code, reason, last, act


def fault(group, name, code, reason, last="run.ended"):
    """Registers a function that gets an entered Run, provokes the fault and returns nothing."""
    def keep(act):
        FAULTS.append(Fault(group, name, code, reason, last, act))
        return act
    return keep


def calls(*names_and_inputs, **more):
    return {"calls": [{"name": name, "input": given} for name, given in names_and_inputs], **more}


def bash(command):
    return calls(("Bash", {"command": command}))


def play(run, replies, arguments=(), prompt="go", requests=None, strict=True, start=None, **over):
    """One whole run against these replies; `requests`: how many must have arrived."""
    with Provider(replies, strict) as provider:
        run.run_spec(spec_for(provider.url, **over), prompt, ["-o", "json", *arguments], **(start or {}))
        run.wait()
        assert not provider.faults, f"a strict provider would refuse: {provider.faults[:2]}"
        seen = len(provider.requests)
        assert requests is None or seen == requests, f"{seen} requests, wanted {requests}; {run.tell()}"


def interrupt(run, replies, number, when, start=None, **over):
    """Sends a signal as soon as when(provider, run) holds; the end must come within 3 s."""
    with Provider(replies) as provider:
        run.run_spec(spec_for(provider.url, **over), "go", ["-o", "json"], **(start or {}))
        until(lambda: when(provider, run), "the moment to interrupt")
        run.process.send_signal(number)
        run.wait(10)
    if number != signal.SIGKILL:
        assert run.seconds < 15 and not run.hung, "the signal did not end it"


def simple(group, name, reply, code, reason, requests=1, **over):
    """A fault of the provider alone."""
    replies = reply if isinstance(reply, list) else [reply]
    fault(group, name, code, reason)(lambda run: play(run, replies, requests=requests, **over))


# ----------------------------------------------------------------------------- refused by the provider
REFUSED = "The provider refuses"
for status, meaning in ((400, "bad request"), (401, "bad key"), (403, "forbidden"), (404, "no such model")):
    simple(REFUSED, f"{status} {meaning}", {"status": status, "message": meaning}, 4, "model_error",
           model={"retries": 3})
simple(REFUSED, "413 request too large", {"status": 413}, 5, "prompt_too_long")
simple(REFUSED, "400 prompt is too long",
       {"status": 400, "message": "prompt is too long: 250000 tokens > 200000 maximum"}, 5, "prompt_too_long")
simple(REFUSED, "429 for ever, 1 retry", {"status": 429, "headers": {"retry-after": "0"}}, 4, "model_error",
       requests=2, model={"retries": 1})
simple(REFUSED, "500, no retries", {"status": 500}, 4, "model_error")
simple(REFUSED, "529 overloaded, 1 retry", {"status": 529, "headers": {"retry-after": "0"}}, 4, "model_error",
       requests=2, model={"retries": 1})
simple(REFUSED, "503 once, then an answer", [{"status": 503, "headers": {"retry-after": "0"}}, DONE], 0,
       "completed", requests=2, model={"retries": 2})

# -------------------------------------------------------------------------------------------- network
NETWORK = "The network fails"


def alone(run, url, **over):
    run.run_spec(spec_for(url, **over), "go", ["-o", "json"]).wait()


@fault(NETWORK, "host name that does not resolve", 4, "model_error")
def dns(run):
    alone(run, "http://norma-e2e.invalid")


@fault(NETWORK, "refused connection", 4, "model_error")
def refused(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: the port refuses
        alone(run, f"http://127.0.0.1:{taken.getsockname()[1]}")


@fault(NETWORK, "TLS: certificate nobody trusts", 4, "model_error")
def untrusted(run):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", run.path("key.pem"),
                    "-out", run.path("cert.pem")], check=True, capture_output=True)
    with Provider([DONE], tls=(run.path("cert.pem"), run.path("key.pem"))) as provider:
        alone(run, provider.url)
        assert not provider.requests, "sent over an untrusted connection"


@fault(NETWORK, "TLS spoken to a plain port", 4, "model_error")
def no_tls(run):
    with Provider([DONE]) as provider:
        alone(run, provider.url.replace("http:", "https:"))


simple(NETWORK, "connection reset before an answer", {"fault": "reset"}, 4, "model_error")
simple(NETWORK, "connection closed before an answer", {"fault": "hang_up"}, 4, "model_error")
simple(NETWORK, "accepted, then silence (idle 1 s)", {"fault": "silent"}, 4, "model_error",
       model={"timeout": {"idle": "1s", "total": "20s"}})
simple(NETWORK, "stream cut in the middle", {"fault": "cut"}, 4, "model_error", model={"retries": 3})
simple(NETWORK, "stream reset in the middle", {"fault": "cut_reset"}, 4, "model_error", model={"retries": 3})
simple(NETWORK, "stream that stops talking (idle 1 s)", {"fault": "stall"}, 4, "model_error",
       model={"timeout": {"idle": "1s", "total": "20s"}})
simple(NETWORK, "stream of keep-alives only (idle 1 s)", {"fault": "beat"}, 4, "model_error",
       model={"timeout": {"idle": "1s", "total": "20s"}})
simple(NETWORK, "stream of pings only (total 2 s)", {"fault": "beat", "beat": "data: {\"type\": \"ping\"}\n\n"},
       4, "model_error", model={"timeout": {"idle": "1s", "total": "2s"}})

# ----------------------------------------------------------------------------------- nonsense answers
NONSENSE = "The provider talks nonsense"
simple(NONSENSE, "HTML with status 200", {"body": "<html>Sign in</html>", "content_type": "text/html"},
       4, "model_error")
simple(NONSENSE, "204 without a body", {"body": "", "status": 204}, 4, "model_error")
simple(NONSENSE, "200 with an empty body", {"body": ""}, 4, "model_error")
simple(NONSENSE, "JSON instead of a stream", {"body": "{\"hello\": 1}", "content_type": "application/json"},
       4, "model_error")
simple(NONSENSE, "garbage in the events", {"fault": "garbage"}, 4, "model_error")
simple(NONSENSE, "not HTTP at all", {"fault": "no_http"}, 4, "model_error")
simple(NONSENSE, "Content-Length larger than the body", {"fault": "short"}, 4, "model_error")
simple(NONSENSE, "chunked body without its end", {"fault": "chunked_cut"}, 4, "model_error")
simple(NONSENSE, "content-encoding that was not asked for", {"fault": "gzip_lie"}, 4, "model_error")
simple(NONSENSE, "redirect to another path", {"fault": "redirect"}, 4, "model_error")
simple(NONSENSE, "error event in the middle of the stream", {"fault": "error_event"}, 4, "model_error")
simple(NONSENSE, "line of 64 MiB without an end", {"fault": "long_line"}, 4, "model_error")

# ---------------------------------------------------------------------------------- the model misbehaves
MODEL = "The model misbehaves"
simple(MODEL, "denied tool", [bash("touch x"), DONE], 0, "completed", requests=2)
simple(MODEL, "denied tool, `on_denied: fail`", [bash("touch x"), DONE], 7, "denied", on_denied="fail")
simple(MODEL, "unknown tool", [calls(("Teleport", {"to": "Mars"})), DONE], 0, "completed", requests=2)
simple(MODEL, "tool arguments that are no JSON",
       [{"calls": [{"name": "Bash", "raw": "{\"command\": \"touch x", "input": {}}]}, DONE], 0, "completed",
       requests=2, mode="bypassPermissions")
simple(MODEL, "two calls with one id",
       [{"calls": [{"name": "LS", "input": {"path": "."}, "id": "same"}] * 2}, DONE], 0, "completed", requests=2)
simple(MODEL, "empty answer, twice", {"text": ""}, 11, "empty_answer", requests=2)
simple(MODEL, "refusal", {"text": "I can not help.", "stop": "refusal"}, 11, "refused")

# -------------------------------------------------------------------------------------------- budgets
BUDGET = "A budget ends the run"
simple(BUDGET, "`turns: 2`", bash("true"), 3, "max_turns", requests=None, allow=["Bash"], budgets={"turns": 2})
simple(BUDGET, "`wall: 1s` while the model is silent", {"fault": "silent"}, 3, "timeout",
       budgets={"wall": "1s", "grace": "1s"})
simple(BUDGET, "`wall: 1s` while a tool runs", [bash("sleep 300"), DONE], 3, "timeout",
       allow=["Bash"], budgets={"wall": "1s", "grace": "1s"})
simple(BUDGET, "`cost_usd` smaller than one request", DONE, 3, "budget_exceeded", requests=0,
       budgets={"cost_usd": "0.0001"})
simple(BUDGET, "`calls: 1`", [calls(("LS", {"path": "."}), ("LS", {"path": "."})), DONE], 3,
       "budget_exceeded", requests=1, budgets={"calls": 1})

# ----------------------------------------------------------------------------------------- own machine
MACHINE = "The machine does not play along"


@fault(MACHINE, "ledger on a full disk (`/dev/full`)", 9, "ledger_error", None)
def full(run):
    play(run, [DONE], requests=0, ledger={"path": "/dev/full"})


@fault(MACHINE, "ledger in a read-only folder", 9, "ledger_error", None)
def read_only(run):
    def become_ordinary():  # root ignores modes; without these capabilities it does not
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            PRCTL(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.mkdir(run.path("locked"), 0o555)
    play(run, [DONE], requests=0, ledger={"path": "locked/ledger.jsonl"},
         start={"preexec_fn": become_ordinary})


@fault(MACHINE, "disk full after some lines (file size limit)", 9, "ledger_error", "open")
def no_space(run):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))
    names = [f"made-{i}" for i in range(60)]
    reply = {"calls": [{"name": "Bash", "input": {"command": f"touch {name}"}} for name in names]}
    play(run, [reply, DONE], requests=1, allow=["Bash"], start={"preexec_fn": limit})
    announced = len(run.kinds("action.started"))
    made = sum(os.path.exists(run.path(name)) for name in names)
    assert 0 < made <= announced < 60, f"{made} effects, {announced} announced"


@fault(MACHINE, "stdin closed, prompt by flag", 0, "completed")
def stdin_closed(run):
    play(run, [DONE], requests=1, start={"preexec_fn": lambda: os.close(0)})


@fault(MACHINE, "stdout: the reader went away", 141, "aborted_output")
def stdout_gone(run):
    reading, writing = os.pipe()
    os.close(reading)
    with Provider([DONE]) as provider:
        run.run_spec(spec_for(provider.url), "go", ["-o", "stream-json"], stdout=writing)
        os.close(writing)
        run.wait()


# ------------------------------------------------------------------------------------------ bad start
START = "Nothing can be started"


@fault(START, "no key in the environment", 2, "usage", None)
def no_key(run):
    env = run.environment()
    del env["E2E_KEY"]
    play(run, [DONE], requests=0, start={"env": env})


@fault(START, "spec is `/dev/zero`", 2, "usage", None)
def zero(run):
    run.start(["run", "/dev/zero", "-p", "go"]).wait(5)


@fault(START, "spec is a folder", 2, "usage", None)
def folder(run):
    run.start(["run", ".", "-p", "go"]).wait(5)


@fault(START, "spec with an unknown key", 2, "usage", None)
def unknown_key(run):
    play(run, [DONE], requests=0, budgts={"turns": 1})
    assert b"budgets" in run.err and b"spec.yaml:" in run.err, run.tell()


@fault(START, "blank prompt", 2, "usage", None)
def blank(run):
    play(run, [DONE], prompt=None, requests=0, start={"stdin": b" \n\t\n"})


@fault(START, "no prompt and stdin closed", 2, "usage", None)
def nothing_to_read(run):
    play(run, [DONE], prompt=None, requests=0, start={"preexec_fn": lambda: os.close(0)})


@fault(START, "prompt over 16 MiB", 2, "usage", None)
def too_big(run):
    play(run, [DONE], prompt=None, requests=0, start={"stdin": b"a" * ((16 << 20) + 1)})


# -------------------------------------------------------------------------------------------- signals
SIGNALS = "A signal comes"


def asked(provider, run):
    return provider.requests


def streaming(provider, run):
    """The request is out and its first frames had time to arrive."""
    if not provider.requests:
        return False
    time.sleep(0.2)
    return True


def sleeping(provider, run):
    return os.path.exists(run.path("started"))


def retrying(provider, run):
    return run.kinds("request.failed")


SLEEP = [bash("touch started; sleep 300"), DONE]


@fault(SIGNALS, "SIGTERM while waiting for the first byte", 143, "aborted_streaming")
def term_connecting(run):
    interrupt(run, [{"fault": "silent"}], signal.SIGTERM, asked)


@fault(SIGNALS, "SIGTERM in the middle of the stream", 143, "aborted_streaming")
def term_streaming(run):
    interrupt(run, [{"text": "half an answer " * 9, "fault": "stall", "frames": 5}], signal.SIGTERM, streaming)


@fault(SIGNALS, "SIGTERM while a tool runs", 143, "aborted_tools")
def term_tool(run):
    interrupt(run, SLEEP, signal.SIGTERM, sleeping, allow=["Bash"])


@fault(SIGNALS, "SIGTERM while waiting to retry", 143, "aborted_streaming")
def term_retry(run):
    interrupt(run, [{"status": 429, "headers": {"retry-after": "20"}}], signal.SIGTERM, retrying,
              model={"retries": 3})


@fault(SIGNALS, "SIGTERM while reading the prompt", 143, None, None)
def term_prompt(run):
    reading, writing = os.pipe()
    with Provider([DONE]) as provider:
        run.run_spec(spec_for(provider.url), None, ["-o", "json"], stdin=reading)
        os.close(reading)
        time.sleep(0.3)
        run.process.send_signal(signal.SIGTERM)
        run.wait(5)
        os.close(writing)
        assert not provider.requests


@fault(SIGNALS, "SIGINT in the middle of the stream", 130, "aborted_streaming")
def int_streaming(run):
    interrupt(run, [{"text": "half an answer " * 9, "fault": "stall", "frames": 5}], signal.SIGINT, streaming)


@fault(SIGNALS, "SIGHUP while a tool runs", 129, "aborted_tools")
def hup_tool(run):
    interrupt(run, SLEEP, signal.SIGHUP, sleeping, allow=["Bash"])


@fault(SIGNALS, "`kill -9` while a tool runs", -9, None, "open")
def kill_tool(run):
    interrupt(run, SLEEP, signal.SIGKILL, sleeping, allow=["Bash"])
    assert run.records[-1]["kind"] == "action.started", run.records[-1]["kind"]


@fault(SIGNALS, "`kill -9` in the middle of the stream", -9, None, "open")
def kill_streaming(run):
    interrupt(run, [{"fault": "stall"}], signal.SIGKILL, streaming)
    assert run.records[-1]["kind"] == "request.sent", run.records[-1]["kind"]


# ------------------------------------------------------------------------------------ judging, rendering


def judge(row, run):
    """The row's promise against what happened."""
    assert not run.hung, f"hung for {run.seconds:.0f} s; {run.tell()}"
    assert run.exit == row.code, f"wanted exit {row.code}; {run.tell()}"
    if row.code > 0:
        assert run.err.strip(), "an end that is no success, and nothing on stderr"
    if row.last == "run.ended":
        check_ledger(run, price_row=PRICE_ROW)
        last = run.records[-1]
        assert (last["reason"], last["exit_code"]) == (row.reason, row.code), (last["reason"], last["exit_code"])
    elif row.last == "open":
        check_ledger(run, complete=False)
    else:
        assert not run.ledger, "there is a ledger"
    if row.reason not in (None, "usage", "aborted_output"):
        said = json.loads(run.out)
        assert (said["reason"], said["exit_code"]) == (row.reason, row.code), said
    # After kill -9 nobody is left to clean up: what the tool started is this suite's to end.
    left = run.left_over()
    assert not left or row.code == -9, f"left over: {left}"


def check_of(row):
    def run_row():
        with Run() as run:
            row.act(run)
            judge(row, run)
    run_row.__name__ = f"fault: {row.name}"
    return run_row


def rendered():
    lines = ["# What goes wrong, and what norma makes of it", "",
             "Each row is provoked on the real binary by `make e2e` (`scripts/e2e_faults.py`); this page is generated",
             "from the same table by `scripts/regold.sh`. *Last record* is the last line of the ledger: `run.ended`",
             "for every run that started and was not killed outright. *open* is an intact file whose run has no end",
             "(`norma ledger verify` says 3); *none*: no ledger was made.", ""]
    group = None
    for row in FAULTS:
        if row.group != group:
            group = row.group
            lines += ["" if lines[-1] else None, f"## {group}", "", "| fault | exit | reason | last record |",
                      "|---|---:|---|---|"]
        code = "137 (killed)" if row.code == -9 else str(row.code)
        reason = f"`{row.reason}`" if row.reason else "–"
        last = {"run.ended": "`run.ended`", "open": "open", None: "none"}[row.last]
        lines.append(f"| {row.name} | {code} | {reason} | {last} |")
    return "\n".join(line for line in lines if line is not None) + "\n"


def doc_is_current():
    with open(DOC, encoding="utf-8") as file:
        assert file.read() == rendered(), f"{DOC} is not what the table says; run scripts/regold.sh"


def write_doc():
    with open(DOC, "w", encoding="utf-8") as file:
        file.write(rendered())


if __name__ == "__main__":
    sys.stdout.write(rendered())
