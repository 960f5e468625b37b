"""A second reader of the ledger, written from the format page alone: what it finds, norma's own reader
must not have missed. Knows nothing of how norma writes."""
import collections
import hashlib
import json
import re
from decimal import ROUND_CEILING, Decimal

ENVELOPE = ("v", "seq", "t", "run", "agent", "kind", "prev")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
CLASSES = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


def unique(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("duplicate key")
    return dict(pairs)


def refuse(word):
    raise ValueError(f"{word} is no JSON")


def read(data):
    """(records, faults, torn): the whole lines, what is wrong with the chain, bytes after the last newline."""
    records, faults, prev = [], [], "0" * 64
    *lines, torn = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            break
        lacking = [key for key in ENVELOPE if key not in record]
        if lacking:
            faults.append(f"line {number}: lacks {lacking}")
        if list(record)[-1] != "prev":
            faults.append(f"line {number}: prev is not last")
        if record.get("seq") != number:
            faults.append(f"line {number}: seq is {record.get('seq')}")
        if record.get("prev") != prev:
            faults.append(f"line {number}: the chain breaks")
        if not TIME.fullmatch(str(record.get("t"))):
            faults.append(f"line {number}: t is {record.get('t')!r}")
        prev = hashlib.sha256(line).hexdigest()
        records.append(record)
    return records, faults, len(torn)


def pairs(records, first, last, key):
    """(faults, still open keys): every `last` has its `first` before it, and none comes twice."""
    faults, opened, closed = [], collections.Counter(), collections.Counter()
    for record in records:
        if record["kind"] == first:
            opened[key(record)] += 1
            if opened[key(record)] > 1:
                faults.append(f"line {record['seq']}: {first} {key(record)} again")
        elif record["kind"] in last:
            closed[key(record)] += 1
            if closed[key(record)] > opened[key(record)]:
                faults.append(f"line {record['seq']}: {record['kind']} {key(record)} without its {first}")
    return faults, [k for k in opened if closed[k] < opened[k]]


def nano_cost(usage, row):
    """Exact price of one reply in nano-dollars, rounded up; row: USD per million tokens as strings."""
    price = {name: Decimal(row[name]) for name in row}
    read_price = price.get("cache_read", price["input"])
    write_5m = price.get("cache_write_5m", price["input"] * Decimal("1.25"))
    write_1h = price.get("cache_write_1h", price["input"] * 2)
    count = {name: usage.get(name) or 0 for name in CLASSES}
    fresh = count["input"] - count["cache_read"] - count["cache_write_5m"] - count["cache_write_1h"]
    dollars = (fresh * price["input"] + count["cache_read"] * read_price
               + count["cache_write_5m"] * write_5m + count["cache_write_1h"] * write_1h
               + count["output"] * price["output"])
    return int((dollars * 1000).to_integral_value(ROUND_CEILING))  # USD/1e6 tokens = 1000 nano each


def total_faults(records, ended):
    """run.ended.totals against the sum of the records."""
    totals = ended.get("totals", {})
    for name, kind in (("requests", "request.sent"), ("replies", "reply.received"),
                       ("calls", "call.judged"), ("actions", "action.started")):
        number = sum(record["kind"] == kind for record in records)
        if totals.get(name) != number:
            yield f"totals.{name} is {totals.get(name)}, the records say {number}"
    billed = [r for r in records if r["kind"] in ("reply.received", "request.failed")]
    for name in ("input", "output", "cache_read"):
        number = sum((r.get("usage") or {}).get(name) or 0 for r in billed)
        if totals.get(name) != number:
            yield f"totals.{name} is {totals.get(name)}, the records say {number}"
    cost = sum(r.get("cost") or 0 for r in billed)
    if totals.get("cost") is not None and totals["cost"] != cost:
        yield f"totals.cost is {totals['cost']}, the records say {cost}"


def run_faults(records, complete, price_row):
    if records[0]["kind"] != "run.started":
        yield f"first record is {records[0]['kind']}"
    for first, last, key in (
            ("request.sent", ("reply.received", "request.failed"), lambda r: (r.get("id"), r.get("attempt"))),
            ("action.started", ("action.finished",), lambda r: r.get("id")),
            ("call.judged", ("call.finished",), lambda r: r.get("call"))):
        found, still_open = pairs(records, first, last, key)
        yield from found
        if complete and still_open:
            yield f"{first} never ends: {still_open}"
    verdict = {r["call"]: r["verdict"] for r in records if r["kind"] == "call.judged"}
    for record in records:
        if record["kind"] == "action.started" and record.get("call") and \
                verdict.get(record["call"]) != "allow":
            yield f"line {record['seq']}: an action of a call judged {verdict.get(record['call'])}"
        if price_row and record["kind"] == "reply.received":
            want = nano_cost(record["usage"], price_row)
            if record.get("cost") != want:
                yield f"line {record['seq']}: cost is {record.get('cost')}, the price table says {want}"
    ended = [record for record in records if record["kind"] == "run.ended"]
    if complete:
        if len(ended) != 1 or records[-1]["kind"] != "run.ended":
            yield f"{len(ended)} run.ended, the last record is {records[-1]['kind']}"
        else:
            yield from total_faults(records, ended[0])


def faults_of(data, complete=True, price_row=None):
    """Every way in which these bytes break the promises of the format; [] is good."""
    records, faults, torn = read(data)
    if torn and complete:
        faults.append(f"torn last line of {torn} bytes")
    if not records:
        return faults + (["empty"] if complete else [])
    runs = {}
    for record in records:
        runs.setdefault(record.get("run"), []).append(record)
    for name, mine in runs.items():
        faults += [f"run {name}: {fault}" for fault in run_faults(mine, complete, price_row)]
    return faults
