#!/usr/bin/env bash
# Rewrites the golden files of the tests and the generated parts of the docs from what the program does
# now. The review is `git diff`: a changed golden file is a changed promise.
set -euo pipefail
cd "$(dirname "$0")/.."

make --no-print-directory build
NORMA_REGOLD=1 build/norma_test --test-case='*golden*' || true
python3 scripts/e2e.py --norma build/norma --regold
git status --short -- testdata lib
