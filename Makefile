# The verbs of this project; CI (.ci/run) calls the same ones. `make demo` and `make test` are all that
# a fresh Debian or Ubuntu machine needs: they install what is missing, build, and run.
.DEFAULT_GOAL := build
.PHONY: help demo build test sim asan tsan lint tidy format e2e fuzz bench clean

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
GENERATOR := $(if $(shell command -v ninja),-G Ninja,)
CLANGXX ?= $(shell command -v clang++ || ls /usr/bin/clang++-[0-9]* 2>/dev/null | tail -n 1)
# Asked for only by the verbs that need it.
clang = $(or $(CLANGXX),$(error this verb needs clang++; scripts/bootstrap dev installs it))
ASAN := -DNORMA_SANITIZE=address,undefined
FUZZ_SECONDS ?= 30
# $(call compile,FOLDER,CMAKE OPTIONS,TARGETS): an existing build folder keeps its generator.
compile = cmake -S . -B $(1) $(if $(wildcard $(1)/CMakeCache.txt),,$(GENERATOR)) $(2) \
          -Wno-dev >/dev/null && cmake --build $(1) --parallel $(JOBS) --target $(3)
clang_compile = $(call compile,$(1),-DCMAKE_CXX_COMPILER=$(clang) $(2) $(CMAKE_FLAGS),$(3))

help:             ## lists the verbs
	@sed -n 's/^\([a-z0-9]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo:             ## the main job on the scripted model: real tools, a denied call, a ledger
	@scripts/bootstrap build
	@$(call compile,build,$(CMAKE_FLAGS),norma)
	@scripts/demo build/norma

build:            ## build/norma and build/norma_test
	@$(call compile,build,$(CMAKE_FLAGS),norma norma_test)

test:             ## sets up, builds and runs all unit tests
	@scripts/bootstrap build test
	@$(call compile,build,$(CMAKE_FLAGS),norma norma_test)
	build/norma_test

sim:              ## 10,000 simulated runs: model, network, disk and cancellation from one seed each
	@$(call compile,build,$(CMAKE_FLAGS),norma_test)
	NORMA_SIM_RUNS=10000 build/norma_test --test-case='sim*'

asan:             ## the same tests under AddressSanitizer and UBSan (clang)
	@$(call clang_compile,build/asan,$(ASAN),norma_test)
	build/asan/norma_test

tsan:             ## the same tests under ThreadSanitizer (clang)
	@$(call clang_compile,build/tsan,-DNORMA_SANITIZE=thread,norma_test)
	build/tsan/norma_test

lint:             ## format, rooms, repo rules, shell and python syntax
	@scripts/lint

tidy: build       ## clang-tidy over everything (minutes)
	@run-clang-tidy -quiet -p build '$(CURDIR)/(lib|cmd)/.*\.cc$$'

format:           ## clang-format in place
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs clang-format -i

e2e: build        ## the real binary against a loopback provider: cases, faults, crashes, signals
	@python3 scripts/e2e.py --norma build/norma

fuzz:             ## every fuzz target for FUZZ_SECONDS (clang)
	@$(call clang_compile,build/fuzz,-DNORMA_FUZZ=ON $(ASAN),fuzzers)
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS)

bench:            ## speed and memory as ratios to curl and a bare loop
	@$(call compile,build/bench,-DNORMA_BENCH=ON $(CMAKE_FLAGS),norma bench_floor)
	@python3 scripts/bench.py --norma build/bench/norma --floor build/bench/bench_floor

clean:            ## removes build/
	rm -rf build
