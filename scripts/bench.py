#!/usr/bin/env python3
"""Speed and memory as ratios to a floor measured in the same run: curl, and one tool turn done by hand.

    scripts/bench.py --norma build/bench/norma --floor build/bench/bench_floor [--rounds N] [--json]

Ratios travel between machines, milliseconds do not. Nothing here fails a build; a number over its bound is
marked. Commands alternate, so that a slow moment of the machine meets both sides.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HEADERS = ["-H", "content-type: application/json", "-H", "x-api-key: bench", "-H", "anthropic-version: 2023-06-01"]


class Bench:
    def __init__(self, norma, floor, folder, rounds):
        self.norma, self.floor, self.folder, self.rounds = norma, floor, folder, rounds
        self.rows = []

    def __enter__(self):
        port_file = os.path.join(self.folder, "port")
        self.server = subprocess.Popen([self.floor, "serve", port_file])
        end = time.monotonic() + 10
        while not os.path.exists(port_file):
            if time.monotonic() > end:
                raise SystemExit("bench: the server did not start")
            time.sleep(0.01)
        with open(port_file, encoding="utf-8") as file:
            self.url = f"http://127.0.0.1:{file.read()}"
        return self

    def __exit__(self, *ignored):
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()

    def spec(self, name, path, **over):
        spec = {"norma": 1, "model": {"format": "anthropic", "name": "floor", "base_url": self.url + path,
                                      "api_key_env": "BENCH_KEY", "max_tokens": 1024},
                "mode": "dontAsk", "allow": ["Bash"], "prices": {"floor": {"input": "3", "output": "15"}},
                "context": {"window": 1_000_000_000}, **over}
        file = os.path.join(self.folder, name + ".yaml")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(spec, out)
        return [self.norma, "run", file, "-p", "What is the answer?", "-q"]

    def launch(self, count, *commands):
        """[(median ms, median user ms, peak KiB)] of whole processes."""
        words = [word for command in commands for word in ["--", *command]]
        done = subprocess.run([self.floor, "launch", str(count), os.path.join(self.folder, "out"), *words],
                              cwd=self.folder, env={**os.environ, "BENCH_KEY": "bench-key-0123456789"},
                              check=True, capture_output=True, text=True)
        return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]

    def row(self, name, value, floor, unit, bound=None, bound_is_ratio=True):
        ratio = value / floor if floor else float("nan")
        over = bound is not None and (ratio if bound_is_ratio else value) > bound
        self.rows.append({"name": name, "value": round(value, 3), "floor": round(floor, 3), "unit": unit,
                          "ratio": round(ratio, 3), "bound": bound, "over": over})

    def one_answer(self):
        body = os.path.join(self.folder, "body")
        with open(body, "w", encoding="utf-8") as file:
            file.write("x" * 9000)  # about what norma sends: the tools' schemas
        curl = ["curl", "-sS", "--data-binary", "@" + body, *HEADERS, self.url + "/text/v1/messages"]
        (wall, _, peak), (floor_wall, _, floor_peak) = self.launch(
            self.rounds, self.spec("text", "/text"), curl)
        self.row("one streamed answer, whole process", wall, floor_wall, "ms", 1.5)
        self.row("peak memory of that process", peak / 1024, floor_peak / 1024, "MiB", 16, False)

    def tool_turn(self):
        """Both sides as the difference of a long and a short process, so that start-up drops out."""
        many = 100
        floor = [self.floor, "turn", self.url + "/text/v1/messages"]
        rest = ["25000", os.path.join(self.folder, "floor.jsonl")]  # what a request weighs on average
        one, all_, floor_one, floor_all = (wall for wall, _, _ in self.launch(
            9, self.spec("turn1", "/turns/1"), self.spec("turns", f"/turns/{many + 1}"),
            [*floor, "1", *rest], [*floor, str(many + 1), *rest]))
        self.row("one tool turn (Bash true)", (all_ - one) / many, (floor_all - floor_one) / many, "ms", 1.5)

    def growth(self):
        """User CPU of runs of 250, 500 and 1,000 turns: encoding once a message keeps it nearly linear."""
        user = {}
        for turns in (250, 500, 1000):
            (_, user[turns], _), = self.launch(1, self.spec(f"big{turns}", f"/big/{turns}"))
        self.row("user CPU of 500 turns against 250", user[500], user[250], "ms")
        self.row("user CPU of 1,000 turns against 500", user[1000], user[500], "ms", 2.6)

    def printed(self):
        lines = ["| measure | norma | floor | ratio | asked |", "|---|---:|---:|---:|---:|"]
        for row in self.rows:
            asked = "" if row["bound"] is None else f"≤ {row['bound']}" + (" MiB" if row["unit"] == "MiB" else "")
            mark = " **over**" if row["over"] else ""
            lines.append(f"| {row['name']} | {row['value']:.2f} {row['unit']} | {row['floor']:.2f} {row['unit']} "
                         f"| {row['ratio']:.2f}{mark} | {asked} |")
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="speed and memory as ratios to a floor")
    parser.add_argument("--norma", default="build/bench/norma")
    parser.add_argument("--floor", default="build/bench/bench_floor")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="norma-bench-") as folder, \
            Bench(os.path.abspath(arguments.norma), os.path.abspath(arguments.floor), folder,
                  arguments.rounds) as bench:
        bench.one_answer()
        bench.tool_turn()
        bench.growth()
        print(json.dumps(bench.rows, indent=1) if arguments.json else bench.printed())
    return 0


if __name__ == "__main__":
    sys.exit(main())
