"""Starting the real binary in a fresh folder, waiting with a bound, and the checks every run must pass.

Each run carries a marker of its own in its environment, so that processes it leaves behind are found even
while other runs go on beside it.
"""
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import e2e_ledger

KEY = "sk-e2e-canary-0123456789abcdef"
PRICE_ROW = {"input": "3", "output": "15", "cache_read": "0.30", "cache_write_5m": "3.75", "cache_write_1h": "6"}
RUN_SECONDS_MAX = 40
SETTINGS = {"norma": os.path.abspath("build/norma"), "keep": False}
numbers = itertools.count(1)


def spec_for(url, **over):
    """A run spec; a dict in `over` is merged into the key of that name, None removes it."""
    spec = {"norma": 1,
            "model": {"format": "anthropic", "name": "fake-model", "base_url": url, "api_key_env": "E2E_KEY",
                      "max_tokens": 1024, "retries": -1,
                      "timeout": {"connect": "2s", "idle": "20s", "total": "30s"}},
            "mode": "dontAsk", "prices": {"fake-model": PRICE_ROW}, "ledger": {"path": "ledger.jsonl"}}
    for key, value in over.items():
        if value is None:
            spec.pop(key, None)
        elif isinstance(value, dict) and isinstance(spec.get(key), dict):
            spec[key] = {**spec[key], **value}
        else:
            spec[key] = value
    return spec


class Run:
    """One process of norma in a folder of its own; its outputs go to files, so that no pipe can fill."""

    def __init__(self, folder=None):
        self.made = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="norma-e2e-")
        self.marker = f"NORMA_E2E_RUN={os.getpid()}-{next(numbers)}"
        self.exit, self.seconds, self.hung = None, 0.0, False
        self.peak_kib, self.peak_disk = 0, 0  # of norma alone, of its folder; filled by watch()
        self.process, self.ledger_name = None, "ledger.jsonl"

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        if self.process and self.exit is None:
            self.wait(0)
        if self.made and not SETTINGS["keep"]:
            shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def read(self, name):
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def environment(self, extra=None):
        return {"PATH": os.environ["PATH"], "HOME": self.folder, "LANG": "C.UTF-8", "TMPDIR": self.folder,
                "E2E_KEY": KEY, **dict([self.marker.split("=", 1)]), **(extra or {})}

    def start(self, arguments, stdin=subprocess.DEVNULL, env=None, stdout=None, stderr=None, **popen):
        """stdin: a file object, descriptor or bytes. stdout/stderr: default files out and err."""
        if isinstance(stdin, bytes):
            self.write(".stdin", stdin)
            stdin = open(self.path(".stdin"), "rb")
        self.began = time.monotonic()
        with open(self.path(".out"), "wb") as out, open(self.path(".err"), "wb") as err:
            self.process = subprocess.Popen(
                [SETTINGS["norma"], *arguments], stdin=stdin, cwd=self.folder, start_new_session=True,
                stdout=out if stdout is None else stdout, stderr=err if stderr is None else stderr,
                env=self.environment() if env is None else env, **popen)
        if hasattr(stdin, "close"):
            stdin.close()
        return self

    def run_spec(self, spec, prompt="go", arguments=(), **start):
        """`norma run spec.yaml`; the spec is written as JSON, which is YAML."""
        self.write("spec.yaml", json.dumps(spec, indent=1))
        asked = [] if prompt is None else ["-p", prompt]
        return self.start(["run", "spec.yaml", *asked, *arguments], **start)

    def wait(self, seconds=RUN_SECONDS_MAX):
        """Reaps the process; one that does not end in time is killed and marked as hung."""
        descriptor = os.pidfd_open(self.process.pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(seconds * 1000):
                self.hung = True
                os.killpg(self.process.pid, signal.SIGKILL)
                poll.poll(5000)
        finally:
            os.close(descriptor)
        _, status = os.waitpid(self.process.pid, 0)
        self.exit = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - self.began
        return self

    def watch(self):
        """Waits like wait() and samples memory and disk meanwhile. The kernel's high-water mark of the
        process itself: the resource usage that wait4 reports includes what this suite was before exec."""
        waiter = threading.Thread(target=self.wait)
        waiter.start()
        while waiter.is_alive():
            for line in slurp(f"/proc/{self.process.pid}/status").splitlines():
                if line.startswith(b"VmHWM:"):
                    self.peak_kib = max(self.peak_kib, int(line.split()[1]))
            self.peak_disk = max(self.peak_disk, folder_bytes(self.folder))
            waiter.join(0.01)
        return self

    @property
    def out(self):
        return self.read(".out")

    @property
    def err(self):
        return self.read(".err")

    @property
    def ledger(self):
        return self.read(self.ledger_name)

    @property
    def records(self):
        return e2e_ledger.read(self.ledger)[0]

    def kinds(self, kind):
        return [record for record in self.records if record["kind"] == kind]

    def left_over(self, grace=0.5):
        """Processes that carry this run's marker or live in its folder, after a moment to vanish."""
        end = time.monotonic() + grace
        while True:
            left = [pid for pid in os.listdir("/proc") if pid.isdigit() and self.owns(pid)]
            if not left or time.monotonic() > end:
                break
            time.sleep(0.02)
        names = []
        for pid in left:
            names.append(f"{pid} {slurp(f'/proc/{pid}/cmdline').replace(bytes(1), b' ').decode()}")
            os.kill(int(pid), signal.SIGKILL)
        return names

    def owns(self, pid):
        try:
            if open(f"/proc/{pid}/stat", "rb").read().rsplit(b")", 1)[1].split()[0] in (b"Z", b"X"):
                return False
            here = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return False
        if int(pid) == os.getpid():
            return False
        return here.startswith(self.folder) or self.marker.encode() in slurp(f"/proc/{pid}/environ")

    def tell(self):
        return f"exit {self.exit}, stderr: {self.err[-500:].decode('utf-8', 'replace')}"


def folder_bytes(folder):
    """What the files below really take on disk."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(here, name)).st_blocks * 512
            except OSError:
                pass  # gone between the two looks
    return total


def slurp(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def norma(*arguments, cwd=None, stdin=b"", timeout=RUN_SECONDS_MAX):
    """Any other command of the binary: (exit, stdout, stderr)."""
    done = subprocess.run([SETTINGS["norma"], *arguments], input=stdin, capture_output=True, cwd=cwd,
                          timeout=timeout, check=False)
    return done.returncode, done.stdout, done.stderr


def until(condition, what, seconds=15):
    """Polls until the condition holds and returns what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come within {seconds} s")


def check_ledger(run, complete=True, price_row=PRICE_ROW):
    """The second reader and `norma ledger verify` agree that the file is what it should be."""
    faults = e2e_ledger.faults_of(run.ledger, complete, price_row)
    assert not faults, f"ledger: {faults[:3]}"
    code, out, err = norma("ledger", "verify", run.path(run.ledger_name))
    assert code == (0 if complete else 3), f"ledger verify: exit {code}: {(out + err).decode()[-300:]}"
    assert KEY.encode() not in run.ledger, "the key is in the ledger"
    assert oct(os.stat(run.path(run.ledger_name)).st_mode & 0o777) == "0o600", "ledger mode"


def check(run, code, reason=None, price_row=PRICE_ROW):
    """What holds for every finished run."""
    assert not run.hung, f"hung for {run.seconds:.0f} s; {run.tell()}"
    assert run.exit == code, f"wanted exit {code}; {run.tell()}"
    if reason:
        last = run.records[-1] if run.records else {}
        assert last.get("reason") == reason, f"reason {last.get('reason')}, wanted {reason}; {run.tell()}"
        assert last.get("exit_code") == code, f"run.ended says exit_code {last.get('exit_code')}"
        check_ledger(run, price_row=price_row)
    if code > 0:
        assert run.err.strip(), "an end that is no success, and nothing on stderr"
    for stream in (run.out, run.err):
        assert KEY.encode() not in stream, "the key was printed"
    left = run.left_over()
    assert not left, f"left over: {left}"
    return run
