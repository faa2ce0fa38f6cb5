# The front door: `make help` says what there is. Everything is built under build/.

BOOTSTRAP ?= scripts/bootstrap
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
MINUTES ?= 3
SEED ?= $(shell date +%s)
NAME ?= db

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-server test-openapi test-python test-go test-mcp test-mcp-oracle test-mcp-conformance \
        test-asan test-tsan \
        test-long planted crash metamorphic torture fuzz bench benches \
        cache-sim cache-plots map-plots format lint install dist clean

help:  ## Say what there is to make
	@echo 'make TARGET, where TARGET is one of'
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  \1|\2/p' Makefile | \
	  while IFS='|' read -r target text; do printf '  %-15s %s\n' $$target "$$text"; done

demo:  ## Load the packages that apt knows into a database, query it, kill it, recover it
	@$(BOOTSTRAP) build lists
	@$(call build,release,basalt)
	build/release/basalt demo build/demo

test:  ## Build all and run every test (under 10 minutes from nothing on two cores)
	@$(BOOTSTRAP) build
	@$(call build,release,all)
	@$(call ctest,release)
	@$(MAKE) --no-print-directory test-server test-python test-go test-mcp

test-server:  ## Test the server with real clients, and against Debian's redis-server
	@$(BOOTSTRAP) build
	@$(BOOTSTRAP) server || echo "test-server: the clients cannot be installed"
	@$(call build,release,basalt)
	tests/server/run build/release/basalt

test-python:  ## Build and install the Python package, and run its tests
	@$(BOOTSTRAP) build python
	@mkdir -p build && flock build/python.lock scripts/test_python

test-go:  ## Run the tests of the Go package, with the race detector
	@$(BOOTSTRAP) build python
	@$(call build,release,libbasalt_c)
	@scripts/test_go

test-openapi:  ## Test the HTTP routes with requests made from their OpenAPI document (schemathesis, from PyPI)
	@$(BOOTSTRAP) build python
	@$(call build,release,basalt)
	tests/server/schemathesis build/release/basalt

test-mcp:  ## Build basalt-mcp, the memory server for agents, and run its tests
	@$(BOOTSTRAP) build python
	@$(call build,release,libbasalt_c)
	@scripts/test_mcp

test-mcp-oracle:  ## Compare basalt-mcp with the reference memory server, which comes from npm
	@$(BOOTSTRAP) build python
	@$(call build,release,libbasalt_c)
	@scripts/test_mcp oracle

test-mcp-conformance:  ## Run the official conformance suite on basalt-mcp, and call its tools with the Inspector
	@$(BOOTSTRAP) build python
	@$(call build,release,libbasalt_c)
	@scripts/test_mcp conformance

test-asan:  ## The same tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(BOOTSTRAP) build clang
	@$(call build,asan,all)
	@$(call ctest,asan)

test-tsan:  ## Those that have threads under ThreadSanitizer
	@$(BOOTSTRAP) build
	@$(call build,tsan,all)
	@$(call ctest,tsan)

test-long: test test-asan test-tsan planted  ## All of these, and MINUTES=n of the next four
	@$(MAKE) --no-print-directory crash metamorphic torture MINUTES=$$(( ($(MINUTES) + 3) / 4 ))
	@$(MAKE) --no-print-directory fuzz MINUTES=$$(( ($(MINUTES) + 3) / 4 ))

planted:  ## Plant each known bug into a copy of the tree: its suite must fail
	@$(BOOTSTRAP) build
	tests/planted/run

crash:  ## Cut the power of a simulated disk at random for MINUTES=n (SEED=s)
	@$(BOOTSTRAP) build
	@$(call build,release,basalt_crash)
	build/release/basalt_crash --minutes $(MINUTES) --seed $(SEED)

metamorphic:  ## Compare random operations with a model for MINUTES=n (SEED=s)
	@$(BOOTSTRAP) build
	@$(call build,release,basalt_metamorphic)
	build/release/basalt_metamorphic --minutes $(MINUTES) --seed $(SEED)

torture:  ## Check a shared map beside busy and killed writers for MINUTES=n (SEED=s)
	@$(BOOTSTRAP) build
	@$(call build,release,shared_map_processes_test)
	BASALT_TORTURE_SECONDS=$$(( $(MINUTES) * 60 )) BASALT_TORTURE_KILLS=200 BASALT_TORTURE_SEED=$(SEED) \
	  build/release/shared_map_processes_test --gtest_filter='SharedMapProcesses.*'

fuzz:  ## Fuzz every parser of bytes, for MINUTES=n together
	@$(BOOTSTRAP) build clang
	@$(call build,fuzz,all)
	scripts/fuzz $$(( $(MINUTES) * 60 * $(JOBS) / $(words $(wildcard fuzz/*_fuzz.cc)) ))

bench:  ## Compare with other engines: NAME=db gives build/bench/db.json and a table
	@$(BOOTSTRAP) build bench
	@$(call build,bench,$(NAME)_bench)
	@[ "$(NAME)" != server ] || { $(BOOTSTRAP) server && $(call build,release,basalt); }
	@[ ! -x bench/$(NAME)_peers/build ] || bench/$(NAME)_peers/build build/bench
	build/bench/$(NAME)_bench --output build/bench/$(NAME).json

benches:  ## Build all benchmarks, and run none
	@$(BOOTSTRAP) build bench
	@$(call build,bench,all)

cache-sim:  ## Simulate eviction policies on traces, and check our cache against its targets
	@$(BOOTSTRAP) build bench
	@$(call build,bench,cache_sim)
	build/bench/cache_sim --check --output build/bench/cache_sim.json

cache-plots:  ## Draw miss ratio against cache size: build/bench/plots/*.png
	@$(BOOTSTRAP) build bench plots
	@$(call build,bench,cache_sim)
	build/bench/cache_sim --curve --output build/bench/cache_sim_curve.json
	bench/cache_sim/plot.py build/bench/cache_sim_curve.json build/bench/plots

map-plots:  ## Measure a shared map, and draw what changes cost: build/bench/plots/*.png
	@$(BOOTSTRAP) plots
	@$(MAKE) bench NAME=shared_map
	bench/shared_map_plot.py build/bench/shared_map.json

format:  ## Format our C++ in place
	@$(BOOTSTRAP) lint
	scripts/format

lint:  ## Format, order of includes, prose, clang-tidy: every finding is an error
	@$(BOOTSTRAP) build lint
	scripts/lint

install:  ## Install the library, its headers and the program under PREFIX=/usr/local
	@$(BOOTSTRAP) build
	@$(call build,release,libbasalt libbasalt_c libbasalt_embed basalt)
	cmake --install build/release --prefix $(PREFIX)

dist:  ## Make the source archive build/dist/basalt-VERSION.tar.gz, and build from it
	@$(BOOTSTRAP) build
	@JOBS=$(JOBS) scripts/dist

clean:  ## Remove build/
	rm -rf build

# $(call build,PRESET,TARGETS) and $(call ctest,PRESET). Ninja breaks where two of it write one folder: the
# lock makes a second `make` wait.
define build
echo "make: building $(2) ($(1))" && mkdir -p build && flock build/$(1).lock sh -c ' \
  cmake --preset $(1) >/dev/null && cmake --build build/$(1) --parallel $(JOBS) --target $(2)'
endef
define ctest
scripts/run_tests $(1) -j $(JOBS)
endef
