# make run, make test and make check work in a fresh clone with Python 3.10 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.set-up

# Tests of what is kept in the database, which hold for every engine.
ON_POSTGRES := tests/npl_mcp/stores tests/npl_mcp/core/test_sets_of_stores.py \
	$(patsubst %,tests/npl_mcp/tools/test_%.py,artifact chat chat_rooms chat_todos review session worklog waiting hostile_arguments) \
	$(patsubst %,tests/npl_mcp/server/test_%.py,commands registry)

.PHONY: setup run test coverage lint types check postgres postgres-shell hostile durability conformance bench docs pin clean

setup: $(SETUP)

$(SETUP): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: $(SETUP)
	$(BIN)/python -m npl_mcp.dev.demo

test: $(SETUP)
	$(BIN)/python -m pytest -q -n 3 --dist worksteal

# The same tests, which take twice as long when every line is counted.
coverage: $(SETUP)
	$(BIN)/python -m pytest -q -n 3 --dist worksteal --cov --cov-report=term:skip-covered

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

check: lint types test

# The stores on PostgreSQL, on a server of their own that ends with them.
postgres: $(SETUP)
	$(BIN)/python -m tests.postgres_server --fast $(BIN)/python -m pytest -q -n 3 --dist worksteal $(ON_POSTGRES)

# A command with NPL_DATABASE_URL of such a server: make postgres-shell CMD='npl-mcp check'
postgres-shell: $(SETUP)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.postgres_server sh -c '$(CMD)'

# The protocol's official suite, its inspector and clients written by others; needs npm and the network.
conformance: $(SETUP)
	$(BIN)/python tests/conformance/run.py

# All attacks at once on both servers while quiet clients measure; takes two minutes.
hostile: $(SETUP)
	$(BIN)/python -m tests.hostile.run

# Writers are killed two hundred times; the tests do it six times.
durability: $(SETUP)
	$(BIN)/python -m tests.npl_mcp.stores.writer --kills 200

clean:
	rm -rf $(VENV) .conformance .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

# Figures of benchmarks/README.md; absolute times depend on the machine, compare ratios.
bench: $(SETUP)
	$(BIN)/python -m pytest -q -o pythonpath=benchmarks benchmarks/bench_steps.py --benchmark-only --benchmark-columns=median,ops
	$(BIN)/python -m benchmarks.bench_server
	$(BIN)/python benchmarks/bench_folder.py
	$(BIN)/python -m benchmarks.bench_scale
	$(BIN)/python benchmarks/bench_memory.py
	$(BIN)/python benchmarks/bench_stores.py
	$(BIN)/python -m benchmarks.bench_waiting
	$(BIN)/python benchmarks/bench_http.py
	$(BIN)/python benchmarks/bench_cli.py
	$(BIN)/python benchmarks/bench_index.py
	$(BIN)/python benchmarks/bench_rank.py
	$(BIN)/python benchmarks/bench_parse.py
	$(BIN)/python -m benchmarks.relevance

docs: $(SETUP)
	$(BIN)/python -m npl_mcp.dev.reference

pin:
	uv pip compile --universal --python-version 3.10 --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --no-header pyproject.toml --group dev -o requirements.txt
