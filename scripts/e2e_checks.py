"""End-to-end checks that are no row of the fault table: crashes at random moments, stdin and environment,
processes that try to stay, memory and disk, readers that are slow or leave."""
import fcntl
import json
import os
import random
import subprocess
import time

from e2e_faults import DONE, bash, calls
from e2e_kit import KEY, Run, check, check_ledger, norma, spec_for, until
from fake_provider import Provider
from provider_rules import protocol_faults

CHECKS = []
CRASHES = 20  # --crashes raises it


def e2e(name):
    def keep(act):
        act.__name__ = name
        CHECKS.append(act)
        return act
    return keep


# ------------------------------------------------------------------------------------------- crashes


@e2e("crash: kill -9 at random moments leaves an intact ledger with its open actions")
def crashes():
    random.seed(20)
    many = {"calls": [{"name": "Bash", "input": {"command": f"echo {i} >> log"}} for i in range(4)]}
    opened = 0
    for _ in range(CRASHES):
        with Run() as run, Provider([many]) as provider:
            run.run_spec(spec_for(provider.url, allow=["Bash"], budgets={"turns": 400}))
            until(lambda: run.ledger, "the first line")
            time.sleep(random.uniform(0, 0.4))
            run.process.kill()
            run.wait()
            run.left_over()
            check_ledger(run, complete=False)
            started = {r["id"] for r in run.kinds("action.started")}
            finished = {r["id"] for r in run.kinds("action.finished")}
            opened += len(started - finished)
            # No effect without its line: each echo that ran was announced.
            assert run.read("log").count(b"\n") <= len(started), "an effect that no line announced"
            assert not provider.faults, provider.faults[:2]
    return f"{CRASHES} crashes, {opened} open actions seen"


@e2e("crash: a torn last line is cut on reopen and the next run goes on behind it")
def torn():
    with Run() as run, Provider([DONE]) as provider:
        spec = spec_for(provider.url)
        check(run.run_spec(spec).wait(), 0, "completed")
        whole = run.ledger
        run.write("ledger.jsonl", whole + b'{"v":1,"seq":999,"t":"2025-')
        os.chmod(run.path("ledger.jsonl"), 0o600)
        check(run.run_spec(spec).wait(), 0, "completed")
        assert run.ledger.startswith(whole) and b'"seq":999' not in run.ledger
        assert len(run.kinds("run.ended")) == 2


@e2e("ledger: every cut of the file verifies as a prefix or as torn, never as complete")
def every_cut():
    with Run() as run, Provider([bash("true"), DONE]) as provider:
        check(run.run_spec(spec_for(provider.url, allow=["Bash"])).wait(), 0, "completed")
        data = run.ledger
        random.seed(7)
        for size in sorted(random.sample(range(1, len(data)), 15)):
            run.write("cut.jsonl", data[:size])
            code, _, _ = norma("ledger", "verify", run.path("cut.jsonl"))
            assert code in (1, 3), f"{size} of {len(data)} bytes: verify says {code}"
        for _ in range(15):
            at = random.randrange(len(data) - 1)
            flipped = bytearray(data)
            flipped[at] ^= 1
            run.write("bad.jsonl", bytes(flipped))
            code, _, _ = norma("ledger", "verify", run.path("bad.jsonl"))
            # The last line is covered by no later hash; a changed word in it still has to be JSON.
            last_line = data[:-1].rfind(b"\n") + 1
            assert code == 1 or at >= last_line, f"byte {at} flipped: verify says {code}"


@e2e("ledger: eight runs at once share one file")
def shared():
    with Run() as first, Provider([{"text": "shared"}]) as provider:
        spec = spec_for(provider.url, ledger={"path": first.path("ledger.jsonl")})
        runs = [Run().run_spec(spec) for _ in range(8)]
        for run in runs:
            with run:
                assert run.wait().exit == 0, run.tell()
        check_ledger(first)
        assert len(first.kinds("run.ended")) == 8


# ------------------------------------------------------------------------------- stdin, environment


@e2e("stdin: `sleep 1000 | norma run s.yaml -p hi` ends")
def sleeping_stdin():
    with Run() as run, Provider([DONE]) as provider:
        with subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE) as sleeper:
            try:
                check(run.run_spec(spec_for(provider.url), "hi", stdin=sleeper.stdout).wait(10), 0, "completed")
            finally:
                sleeper.kill()


@e2e("stdin: a prompt that arrives late and in pieces is read whole")
def slow_stdin():
    with Run() as run, Provider([DONE]) as provider:
        reading, writing = os.pipe()
        run.run_spec(spec_for(provider.url), None, stdin=reading)
        os.close(reading)
        for part in (b"first ", "zweite Hälfte, 漢字 ".encode() * 9000, b"last"):
            time.sleep(0.15)
            offset = 0
            while offset < len(part):
                offset += os.write(writing, part[offset:offset + 65536])
        os.close(writing)
        check(run.wait(), 0, "completed")
        asked = json.dumps(provider.body(0)["messages"][0], ensure_ascii=False)
        assert "first zweite" in asked and asked.count("漢字") == 9000 and "last" in asked


@e2e("environment: `env -i`, no HOME, no TERM, setsid: the same answer")
def bare_environment():
    for extra in ({}, {"TERM": "dumb"}, {"LC_ALL": "xx_XX.nonsense", "TZ": "Nowhere/None"}):
        with Run() as run, Provider([DONE]) as provider:
            env = {"E2E_KEY": run.environment()["E2E_KEY"], **extra}
            check(run.run_spec(spec_for(provider.url), env=env).wait(), 0, "completed")
            assert run.out == b"done\n", run.out


@e2e("stdout: nobody reads it until the time is over: timeout, and the ledger says so")
def unread_stdout():
    with Run() as run, Provider([{"text": "x" * 300_000}]) as provider:
        reading, writing = os.pipe()
        run.run_spec(spec_for(provider.url, budgets={"wall": "1s", "grace": "1s"}), "go", [], stdout=writing)
        os.close(writing)
        check(run.wait(20), 3, "timeout")
        os.close(reading)


@e2e("stdout: a full disk behind it is named, and the run is no success")
def full_stdout():
    with Run() as run, Provider([DONE]) as provider, open("/dev/full", "wb") as full:
        check(run.run_spec(spec_for(provider.url), "go", [], stdout=full).wait(), 141, "aborted_output")
        assert b"No space left" in run.err, run.err


@e2e("stderr: nobody reads it, and the run is not held up")
def unread_stderr():
    calls = {"calls": [{"name": "Bash", "input": {"command": "x" * 400}} for _ in range(700)]}
    with Run() as run, Provider([calls, DONE]) as provider:
        reading, writing = os.pipe()
        run.run_spec(spec_for(provider.url), "go", [], stderr=writing)
        os.close(writing)
        assert run.wait(20).exit == 0, run.tell()
        os.close(reading)


@e2e("prompts of 1 B to 4 MiB arrive byte for byte")
def prompt_sizes():
    for size in (1, 4095, 4096, 4097, 65535, 65536, 65537, 4 << 20):
        with Run() as run, Provider([DONE]) as provider:
            text = ("x" * size) if size < 8 else "é" * (size // 2) + "y" * (size % 2)
            check(run.run_spec(spec_for(provider.url, context={"window": 100_000_000}), None,
                               stdin=text.encode()).wait(), 0, "completed")
            content = provider.body(0)["messages"][0]["content"]
            got = content if isinstance(content, str) else "".join(b["text"] for b in content)
            assert got == text, f"{size} B: {len(got)} characters arrived"


# ---------------------------------------------------------------------------- processes that stay


@e2e("Bash: a background child does not hold the call, and is gone after the run")
def background():
    lines = ("sleep 300 & echo hi", "setsid sleep 300 & echo hi", "nohup sleep 300 >/dev/null 2>&1 & echo hi",
             "(setsid bash -c 'sleep 300 & sleep 301' &) ; echo hi",
             "setsid setsid bash -c 'trap \"\" TERM HUP INT; sleep 300' >/dev/null 2>&1 & echo hi",
             "env -i setsid sleep 300 & echo hi")
    for line in lines:
        with Run() as run, Provider([bash(line), DONE]) as provider:
            check(run.run_spec(spec_for(provider.url, allow=["Bash"])).wait(20), 0, "completed")
            assert run.seconds < 10, f"{line}: {run.seconds:.1f} s"
            _, text, is_error = provider.results(1)[0]
            assert "hi" in text and not is_error, f"{line}: {text!r}"


@e2e("Bash: a timeout kills the whole tree")
def bash_timeout():
    with Run() as run, Provider([bash("sleep 301 & setsid sleep 302 & sleep 303"), DONE]) as provider:
        spec = spec_for(provider.url, allow=["Bash"], tools={"bash": {"timeout": "1s"}})
        check(run.run_spec(spec).wait(20), 0, "completed")
        assert run.seconds < 12 and provider.results(1)[0][2], provider.results(1)


@e2e("Bash: `kill 0` and `kill -9 $PPID` in a tool do not take norma along")
def kill_zero():
    with Run() as run, Provider([bash("kill 0; sleep 1"), DONE]) as provider:
        check(run.run_spec(spec_for(provider.url, allow=["Bash"])).wait(20), 0, "completed")


@e2e("Bash: a tool sees neither the key nor its parent's environment")
def no_key_for_children():
    # Up to init: norma, whatever it starts tools through, and who started it.
    upwards = ("p=$PPID; while [ $p -gt 1 ]; do tr '\\0' '\\n' < /proc/$p/environ; "
               "p=$(sed -n 's/^PPid:.//p' /proc/$p/status); done")
    lines = ("env", upwards, "cat; tty; true")
    with Run() as run, Provider([*map(bash, lines), DONE]) as provider:
        check(run.run_spec(spec_for(provider.url, allow=["Bash"])).wait(), 0, "completed")
        texts = [provider.results(n)[0][1] for n in (1, 2, 3)]
        assert "E2E_KEY" not in texts[0] and "HOME=" in texts[0], texts[0][-300:]
        assert KEY not in texts[1] and KEY[:12] not in texts[1], texts[1][-300:]
        assert "not a tty" in texts[2], texts[2]


@e2e("Bash: `yes` and a flood without newlines stay below 64 MiB of memory and 50 MiB of disk")
def flood():
    for line in ("yes", "cat /dev/zero | tr '\\0' x", "yes >&2"):
        with Run() as run, Provider([bash(line), DONE]) as provider:
            spec = spec_for(provider.url, allow=["Bash"], tools={"bash": {"timeout": "20s"}})
            check(run.run_spec(spec).watch(), 0, "completed")
            assert 0 < run.peak_kib < 64 * 1024, f"{line}: {run.peak_kib} KiB of memory"
            assert run.peak_disk <= 51 << 20, f"{line}: {run.peak_disk} bytes of disk"
            assert len(provider.results(1)[0][1]) < 100_000


# ----------------------------------------------------------------------------------------- readers


@e2e("stdout: 5 MB into a slow reader and into a non-blocking pipe arrive whole")
def slow_reader():
    text = "0123456789abcde\n" * (5 * (1 << 20) // 16)
    for non_blocking in (False, True):
        with Run() as run, Provider([{"text": text, "usage": {"output": 1000}}]) as provider:
            reading, writing = os.pipe()
            if non_blocking:
                fcntl.fcntl(writing, fcntl.F_SETFL, os.O_NONBLOCK)
            run.run_spec(spec_for(provider.url, model={"max_tokens": 64000}), stdout=writing)
            os.close(writing)
            got = bytearray()
            while part := os.read(reading, 65536):
                got += part
                if len(got) % 7 == 0:
                    time.sleep(0.02)
            os.close(reading)
            check(run.wait(), 0, "completed")
            assert bytes(got).decode().rstrip("\n") == text.rstrip("\n"), f"{len(got)} of {len(text)} bytes"


@e2e("stdout: `-o stream-json | head -1` ends cleanly")
def head_one():
    with Run() as run, Provider([bash("true")] * 9 + [DONE]) as provider:
        reading, writing = os.pipe()
        with subprocess.Popen(["head", "-1"], stdin=reading, stdout=subprocess.PIPE) as head:
            os.close(reading)
            run.run_spec(spec_for(provider.url, allow=["Bash"]), arguments=["-o", "stream-json"], stdout=writing)
            os.close(writing)
            first = head.stdout.read()
        assert json.loads(first)["kind"] == "run.started", first
        assert run.wait(10).exit in (0, 141), run.tell()
        check(run, run.exit, "completed" if run.exit == 0 else "aborted_output")


@e2e("output: json and stream-json say what the ledger says")
def outputs():
    replies = [calls(("LS", {"path": "."}), ("Bash", {"command": "true"})), {"text": "It is done.\nReally."}]
    with Run() as run, Provider(replies) as provider:
        check(run.run_spec(spec_for(provider.url), arguments=["-o", "json"]).wait(), 0, "completed")
        said, end = json.loads(run.out), run.records[-1]
        assert said["text"] == "It is done.\nReally." and said["turns"] == end["turns"], said
        assert said["requests"] == 2 and said["calls"] == 2 and said["exit_code"] == 0, said
        assert [d["tool"] for d in said["denied"]] == ["Bash"] == [d["tool"] for d in end["denied"]]
        code, out, _ = norma("ledger", "verify", run.path("ledger.jsonl"))
        assert said["ledger_head"].encode() in out, out
    with Run() as run, Provider(replies) as provider:
        check(run.run_spec(spec_for(provider.url), arguments=["-o", "stream-json"]).wait(), 0, "completed")
        events = [json.loads(line) for line in run.out.splitlines()]
        assert events[-1]["kind"] == "result" and events[-1]["reason"] == "completed", events[-1]
        kinds = [record["kind"] for record in run.records]
        assert [e["kind"] for e in events[:-1] if e["kind"] in kinds] == kinds, [e["kind"] for e in events]


# ----------------------------------------------------------------------------------- memory, demo, self


@e2e("memory: a small answer takes less than 18 MiB, 30 results of 100 KB not much more than their size")
def memory():
    with Run() as run, Provider([{**DONE, "delay_ms": 100}]) as provider:
        check(run.run_spec(spec_for(provider.url)).watch(), 0, "completed")
        assert 0 < run.peak_kib < 18 * 1024, f"{run.peak_kib} KiB"  # 16 without a sanitizer's or libc's whims
    reply = bash("head -c 100000 /dev/zero | tr '\\0' x")
    with Run() as run, Provider([reply] * 30 + [DONE], strict=False) as provider:
        spec = spec_for(provider.url, allow=["Bash"], context={"window": 100_000_000},
                        tools={"output_bytes": 100_000})
        check(run.run_spec(spec).watch(), 0, "completed")
        # 3 MB of history: held as blocks, as encoded bytes, and once more in the request.
        assert run.peak_kib < 40 * 1024, f"{run.peak_kib} KiB"


@e2e("demo: the spec answers from the repo's root and leaves nothing but runs/")
def demo():
    with Run() as run:
        subprocess.run(["cp", "-r", "testdata", run.path("testdata")], check=True)
        before = {os.path.join(d, f) for d, _, fs in os.walk(run.folder) for f in fs}
        run.start(["run", "testdata/demo/spec.yaml"], stdin=b"list the files").wait()
        assert run.exit == 0 and b"orders-2025-11.csv" in run.out, run.tell()
        after = {os.path.join(d, f) for d, _, fs in os.walk(run.folder) for f in fs}
        new = {os.path.relpath(path, run.folder) for path in after - before} - {".out", ".err", ".stdin"}
        assert all(path.startswith("runs/") for path in new) and before <= after, new
        assert b"runs/" in run.err and b"$0.0" in run.err.replace(b"USD ", b"$"), run.tell()


@e2e("the fake provider refuses what a strict provider refuses")
def strictness():
    use = {"type": "tool_use", "id": "t1", "name": "LS", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    user = {"role": "user", "content": "hi"}
    good = {"model": "m", "max_tokens": 9, "messages": [
        user, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]}
    assert protocol_faults(json.dumps(good).encode()) == []
    turns = good["messages"]
    marks = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}] * 5
    wrong = {
        "no result": turns[:2] + [user], "no call": [user, {"role": "assistant", "content": "a"}, turns[2]],
        "two results": turns[:2] + [{"role": "user", "content": [result, result]}],
        "id again": turns + turns[1:], "roles": [user, user], "assistant first": turns[1:],
        "ends with assistant": turns[:1] + [{"role": "assistant", "content": "a"}],
        "blank": [{"role": "user", "content": [{"type": "text", "text": " \n"}]}], "none": []}
    for name, messages in wrong.items():
        assert protocol_faults(json.dumps({**good, "messages": messages}).encode()), name
    for name, more in {"max_tokens": {"max_tokens": 0}, "marks": {"system": marks},
                       "tool name": {"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}}.items():
        assert protocol_faults(json.dumps({**good, **more}).encode()), name
    assert protocol_faults(b'{"model": "\xff"}') and protocol_faults(b'{"model": "\\ud800"}')
