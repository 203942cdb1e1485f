# Everything a newcomer needs: `make demo` and `make test`. Both make the virtual environment they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
READY := $(VENV)/.ready

.PHONY: help demo test lint types check docs hooks bench reproduce audit faults fuzz clean

help:
	@echo "make demo    fit a private model on generated census data"
	@echo "make test    run the tests"
	@echo "make lint    format check, lint and import walls"
	@echo "make types   mypy --strict"
	@echo "make check   lint, types and test: what CI runs"
	@echo "make docs    build the site, docs/_build/html/index.html; runs the code of every page"
	@echo "make hooks   run format, lint and types before each commit"
	@echo "make bench   accuracy on real data and speed against peers (minutes)"
	@echo "make reproduce  every figure of the five papers, quickly (minutes)"
	@echo "make audit   the long statistical attacks"
	@echo "make faults  kills, races, full disks and flipped bits against ledgers (hours; FAULTS=\"--kills 500\")"
	@echo "make fuzz    hostile schemas, models, ledgers, tables and command lines (FUZZ=\"models --seconds 600\")"

# What somebody who tries it needs: less than tests and the site do.
$(CORE): pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plots,explore]"
	@touch $(CORE)

$(READY): $(CORE) pyproject.toml papers/pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]" --editable ./papers
	@touch $(READY)

demo: $(CORE)
	$(BIN)/privfit demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

check: lint types test

docs: $(READY)
	$(BIN)/python -m sphinx --builder html --jobs auto --fail-on-warning --keep-going --quiet docs docs/_build/html

hooks: $(READY)
	$(BIN)/pre-commit install

bench: $(READY)
	$(BIN)/privfit bench accuracy
	$(BIN)/privfit bench speed

reproduce: $(READY)
	$(BIN)/privfit reproduce all --quick

audit: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

faults: $(READY)
	$(BIN)/python -m tests.faults $(FAULTS)

fuzz: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[fuzz]"
	$(BIN)/python -m tests.fuzz $(FUZZ)

clean:
	rm -rf $(VENV) build dist docs/_build docs/api docs/gallery docs/tutorials .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
