# The two commands of a newcomer are `make demo` and `make test`; `make help` lists the rest.
# Needed: make and Python 3.11 to 3.14. Another interpreter: make PYTHON=/path/to/python3.13 test

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WHEEL_FOLDER := build/wheel
PIP_QUIET := --quiet --disable-pip-version-check --no-input
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --no-header
LOCK_HEADER := \# Written by `make lock` from pyproject.toml, for Python 3.11 to 3.14.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test docs lint lint-rego parity test-wheel bench bench-large bench-peers bench-recall eval-detectors eval-curator mutation lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup: $(STAMP)  ## the locked environment in .venv, every package checked by its hash
	@echo "$(VENV) is ready"

# The environment is made anew only where there is none; packages follow the lock.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || \
		{ echo "$(PYTHON) is missing or not Python 3.11 to 3.14; name one: make PYTHON=python3.12 setup" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) comes without venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(STAMP): requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "installing the locked packages into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_QUIET) --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install $(PIP_QUIET) --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)  ## set up, then run the guided example
	@$(BIN)/agent-runtime-ref demo

test: $(STAMP)  ## set up, then run the tests on all cores; ARGS="-n 0 -k forget" goes to pytest
	@$(BIN)/python -m pytest -q -n auto --dist loadfile $(ARGS)

docs: $(STAMP)  ## write the reference pages anew
	@$(BIN)/python -m docs.generate

lint: $(STAMP)  ## style, types, layers, documents, and Rego where an opa binary is found
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --check; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >$(VENV)/.lint-imports || { cat $(VENV)/.lint-imports; exit 1; }
	@$(BIN)/agent-runtime-ref lint
	@$(MAKE) lint-rego

# opa is no Python package, so it is optional here; .ci/run has it built.
lint-rego: $(STAMP)
	@$(BIN)/python -m tests.rego_checks

parity: $(STAMP)  ## the embedded engine against a real OPA on 12,000 documents; ARGS="--seed 2" for others
	@$(BIN)/python -m tests.parity $(ARGS)

test-wheel: $(STAMP)  ## build the wheel, install it into an empty environment, test it outside the checkout
	@rm -rf $(WHEEL_FOLDER)
	@$(BIN)/python -m build --wheel --no-isolation --outdir $(WHEEL_FOLDER) . >$(VENV)/.build 2>&1 || { cat $(VENV)/.build; exit 1; }
	@BASE_PYTHON="$(BIN)/python" .ci/test-wheel $(WHEEL_FOLDER)/*.whl

bench: $(STAMP)  ## the numbers at 100,000 records, in about five minutes
	@$(BIN)/python -m bench

bench-large: $(STAMP)  ## the numbers at 1,000,000 records
	@$(BIN)/python -m bench --large

bench-peers: $(STAMP)  ## what a user might pick instead, each in its own environment
	@$(BIN)/python -m bench.peers

bench-recall: $(STAMP)  ## how well each ranker recalls, on a labelled set in English and Chinese
	@$(BIN)/python -m bench.recall

eval-detectors: $(STAMP)  ## how many attacks the detectors catch, and how many harmless texts they flag
	@$(BIN)/python -m tests.eval_detectors

eval-curator: $(STAMP)  ## how well the curator tells a preference from a wish for now, in English and Chinese
	@$(BIN)/python -m tests.eval_curator

mutation: $(STAMP)  ## change the policies in small ways, and see that their tests notice each
	@$(BIN)/agent-runtime-ref policy test --mutate

lock: $(STAMP)  ## resolve requirements/*.txt anew; UPGRADE=--upgrade takes newer versions
	@$(LOCK) $(UPGRADE) --all-extras --group dev -o requirements/dev.txt >/dev/null
	@$(LOCK) -c requirements/dev.txt -o requirements/runtime.txt >/dev/null
	@for file in requirements/dev.txt requirements/runtime.txt; do \
		{ echo '$(LOCK_HEADER)'; cat $$file; } >$$file.new && mv $$file.new $$file; done

clean:  ## remove the environment and all that was built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
