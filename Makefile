# make run, make test and make check work in a fresh clone with Python 3.10 or newer.
PYTHON ?= python3
VENV := .venv
BINARIES := bin
ifeq ($(OS),Windows_NT)
SHELL := bash
BINARIES := Scripts
endif
BIN := $(VENV)/$(BINARIES)
LAST := .last-release
SETUP := $(VENV)/.set-up

# Python keeps compiled modules even if the environment forbids it: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

# Tests of the database for every engine.
ON_POSTGRES := tests/npl_mcp/stores tests/npl_mcp/app/test_sources.py \
	$(patsubst %,tests/npl_mcp/tools/test_%.py,artifact chat chat_rooms chat_todos review session worklog waiting hostile_arguments search search_at_once) \
	$(patsubst %,tests/npl_mcp/server/test_%.py,commands registry) \
	$(patsubst %,tests/npl_mcp/http/test_%.py,identity replicas) tests/npl_mcp/web/test_stores.py

.PHONY: setup run test oldest coverage lint types check postgres postgres-shell browser pictures hostile durability conformance bench docs package clients weigh pin clean

# Install the pinned requirements of a folder, and its package.
define install
$(PYTHON) -m venv $(1)$(VENV)
$(1)$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(1)requirements.txt
$(1)$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e $(1).
endef

setup: $(SETUP)

$(SETUP): requirements.txt pyproject.toml
	$(call install)
	@touch $@

run: $(SETUP)
	$(BIN)/python -m docs.demo

# All tests except those of `make durability`, with a fourth of the cases of long tables; NPL_THOROUGH=1 tries all, as CI does.
test: $(SETUP)
	$(BIN)/python -m pytest -q -n 3 --dist worksteal -m "not thorough"

# The same tests with line coverage, also of child processes; this takes almost twice as long.
coverage: $(SETUP)
	$(BIN)/python -m pytest -q -n 3 --dist worksteal --cov --cov-report=term:skip-covered

# The same tests with the oldest supported Python, which must be installed and gets an older FastMCP.
oldest: $(SETUP)
	python=$$($(BIN)/python -m tests.packaging.pythons) && $(MAKE) test PYTHON=$$python VENV=.venv-oldest

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

check: lint types test

# The stores on a temporary PostgreSQL server.
postgres: $(SETUP)
	$(BIN)/python -m tests.postgres_server --fast $(BIN)/python -m pytest -q -n 3 --dist worksteal $(ON_POSTGRES)

# A command with NPL_DATABASE_URL of such a server: make postgres-shell CMD='npl-mcp check'
postgres-shell: $(SETUP)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.postgres_server sh -c '$(CMD)'

# The pages in Chromium, which must be installed.
browser: $(SETUP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/browser

# Screenshots of the pages.
pictures: $(SETUP)
	$(BIN)/python -m tests.browser.pictures docs

# The protocol's official suite, its inspector and other clients; needs npm and the network.
conformance: $(SETUP)
	$(BIN)/python tests/conformance/run.py

# All attacks at once on all servers while quiet clients call; this takes three minutes.
hostile: $(SETUP)
	$(BIN)/python -m tests.hostile.run $(ARGS)

# Tests that kill, attack and measure programs. Writers on SQLite and replicas on PostgreSQL are killed 200 times each, more
# often than in the tests.
durability: export NPL_THOROUGH := 1
durability: $(SETUP)
	$(BIN)/python -m pytest -q -n 3 --dist worksteal -m thorough
	$(BIN)/python -m tests.npl_mcp.stores.killing --kills 200
	$(BIN)/python -m tests.postgres_server --fast $(BIN)/python -m tests.npl_mcp.stores.killing --kills 200

clean:
	rm -rf $(VENV) .venv-oldest $(LAST) dist .conformance .clients .peers .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

# The last release, the last commit that changed the version, in its own environment.
$(LAST)/$(SETUP):
	mkdir -p $(LAST)
	git archive $$(git log -1 --format=%H -G'^__version__' -- npl_mcp/__init__.py) | tar -x -C $(LAST)
	$(call install,$(LAST)/)
	@touch $@

# The figures of benchmarks/README.md. Times depend on the machine: compare ratios.
bench: $(SETUP) $(LAST)/$(SETUP)
	$(BIN)/python -m benchmarks.bench_scale --against $(LAST)/$(BIN)/npl-mcp
	$(BIN)/python -m pytest -q benchmarks/bench_steps.py --benchmark-only --benchmark-columns=median,ops
	for part in parse http stores waiting replicas teams cli; do $(BIN)/python -m benchmarks.bench_$$part || exit 1; done
	$(BIN)/python -m benchmarks.relevance

docs: $(SETUP)
	$(BIN)/python -m docs.reference

# Build the packages in dist, check them, and install them on every supported Python, with and without extras; needs the network.
package: $(SETUP)
	$(BIN)/python -m tests.packaging.build

# Print what each package of an installation weighs, and name the heaviest in OPERATIONS.md; needs the network.
weigh: $(SETUP)
	$(BIN)/python -m tests.packaging.weigh

# Clients from npm start the server with our printed entries; needs npm and the network.
clients: $(SETUP)
	$(BIN)/python -m tests.packaging.real_clients

# The extra "exact" is left out: tests make their own vocabulary, and expect estimates otherwise.
pin:
	uv pip compile --universal --python-version 3.10 --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --no-header pyproject.toml --extra postgres --group dev -o requirements.txt
	sed -i '1i # Every package `make` installs, pinned by hash; `make pin` writes it from pyproject.toml' requirements.txt
