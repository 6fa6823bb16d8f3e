# Two commands for a fresh machine: `make demo` and `make test`. Both set everything up in .venv first.
# Needs Python ≥ 3.11.5, pip and make. PYTHON=python3.12 picks another interpreter.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
UV     := uv==0.13.7

# Bytecode is kept whatever the environment says: the commands that tests start would compile the library anew each time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-all quick style lint format lock bench docs docs-serve reference postgresql chromium java compiler wheel-test golden clean

help:
	@echo "make demo      a private mean by group and a regression of a real data set: plan, release, verify, audit, report"
	@echo "make test      lint, type-check and test (under 15 minutes on two cores)"
	@echo "make test-all  the same with the longer checks"
	@echo "make quick     the same without what takes long, for the inner loop (under 90 seconds on two cores)"
	@echo "make docs      build the documentation site into build/docs/site (make docs-serve shows it on port 8000)"
	@echo "make reference write the pages on the command line and the Python names anew from the code"
	@echo "make bench     the benchmarks, printed as ratios"
	@echo "make wheel-test  build the wheel, install it where nothing is, use it there; sizes and times (needs PyPI)"
	@echo "make golden    write the kept certificates, plans and reports of tests/golden anew"
	@echo "make lock      resolve requirements.lock anew after a change of pyproject.toml"

setup: $(READY)

# uv first because it is quick; plain pip reads the same lock where uv cannot be had.
# Bytecode is compiled once here: without it every process of the tests would import slowly.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || \
	  { echo "onedraw needs Python 3.11.5 or newer, $(PYTHON) is older: run make with PYTHON=python3.12, say."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	if $(BIN)/python -m pip install -q --disable-pip-version-check "$(UV)"; then \
	  VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q --compile-bytecode --require-hashes -r requirements.lock && \
	  VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q --no-deps -e . ; \
	else \
	  $(BIN)/python -m pip install -q --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install -q --no-deps -e . ; \
	fi
	touch $(READY)

demo: setup
	$(BIN)/onedraw demo

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

# The ledger's conformance suite also runs against a real PostgreSQL server that the tests start themselves.
postgresql:
	@sh tools/install_postgresql.sh

# The report is looked at in a real browser, at two widths.
chromium:
	@sh tools/install_chromium.sh

# Spark runs for real, as two workers on this machine.
java:
	@sh tools/install_java.sh

# System calls that fail come from a small C library.
compiler:
	@sh tools/install_compiler.sh

# A command beside the check of types, whose errors are printed when the command is done.
define beside_types
	@mkdir -p build
	$(BIN)/mypy > build/types.txt 2>&1 & types=$$!; \
	  $(1); tests=$$?; \
	  wait $$types; types=$$?; cat build/types.txt; test $$tests = 0 && test $$types = 0
endef

# Spark's tests share one cluster, of two processes that mostly wait for each other: they leave room for another command, and
# what they compile is there for the other tests.
test: SELECTED := not slow
test-all: SELECTED := slow or not slow
test test-all: setup style postgresql chromium java compiler
	$(call beside_types,$(BIN)/python -m pytest -m "$(SELECTED)" tests/spark)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "($(SELECTED)) and not spark"

# The files that check most for their time (tools/test_seconds.py), without a server, a browser or a cluster.
quick: style
	$(call beside_types,$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not postgresql" @tests/quick.txt)

golden: setup
	$(BIN)/python -m tests.golden.golden_cases

wheel-test: setup
	$(BIN)/python tools/wheel_test.py

bench: setup
	$(BIN)/python benchmarks/parquet_release.py
	$(BIN)/python benchmarks/gibbs_speed.py

docs: setup
	$(BIN)/python tools/build_site.py

docs-serve: docs
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory build/docs/site

reference: setup
	$(BIN)/python tools/write_reference.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11.5 \
	  --generate-hashes --no-header --no-annotate -o requirements.lock

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
