#!/usr/bin/env python3
"""The real binary, end to end, against a loopback provider. Prints one line a check and a closing count.

    scripts/e2e.py [--norma build/norma] [--jobs N] [--crashes N] [--regold] [--keep] [SUBSTRING]

SUBSTRING picks checks by name. --keep leaves every run's folder; --regold rewrites the golden cases,
lib/FAULTS.md and the README's screen instead of comparing. Python standard library only.
"""
import argparse
import concurrent.futures
import os
import sys
import time
import traceback

import e2e_cases
import e2e_checks
import e2e_faults
import e2e_kit
import e2e_readme


def outcome(check):
    """(name, seconds, error or None)"""
    began = time.monotonic()
    try:
        check()
        error = None
    except Exception as failure:  # a check that breaks is a failed check, whatever broke
        at = traceback.extract_tb(failure.__traceback__)[-1]
        error = f"{type(failure).__name__}: {failure} ({os.path.basename(at.filename)}:{at.lineno})"
    return check.__name__, time.monotonic() - began, error


def main():
    parser = argparse.ArgumentParser(description="end-to-end checks of the real binary")
    parser.add_argument("only", nargs="?", default="")
    parser.add_argument("--norma", default="build/norma")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--crashes", type=int, default=20, help="how often the crash check kills")
    parser.add_argument("--regold", action="store_true")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    norma = os.path.abspath(arguments.norma)
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if not os.access(norma, os.X_OK):
        print(f"e2e: no program {norma}; run make build", file=sys.stderr)
        return 2
    e2e_kit.SETTINGS.update(norma=norma, keep=arguments.keep)
    e2e_checks.CRASHES = arguments.crashes

    checks = e2e_cases.cases(arguments.regold)
    if arguments.regold:
        e2e_faults.write_doc()
        e2e_readme.write_readme()
    else:
        e2e_faults.doc_is_current.__name__ = "fault: lib/FAULTS.md is the table"
        checks += e2e_checks.CHECKS + [e2e_faults.check_of(row) for row in e2e_faults.FAULTS]
        checks += [e2e_faults.doc_is_current, e2e_readme.readme_is_true]
    checks = [check for check in checks if arguments.only in check.__name__]
    # Some rows wait (timeouts, retries) and some compute: more workers than cores pays off.
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, seconds, error in pool.map(outcome, checks):
            passed, failed = passed + (not error), failed + bool(error)
            print(f"FAIL {name}: {error}" if error else f"ok   {name} ({seconds:.1f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
