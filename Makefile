# Three commands do everything on a machine that has Python and make:
#   make demo   creates .venv, installs the package and trains CSNN, GCN and MLP on minesweeper
#   make test   creates .venv, installs the development tools, then lint, types and tests
#   make docs   builds the documentation, its tutorials run: docs/_build/html/index.html

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types unit thorough format docs clean

demo: $(VENV)/installed
	$(BIN)/python examples/02_minesweeper.py

test: lint types unit

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

# Compiled kernels are tested where there is a compiler. What they stand in for is tested without them,
# too: the parts of the suite that know of kernels run a second time as if they were not installed.
# Set COOPSHEAF_DATA to a folder of published files to run the tests that need them; -rs says why a
# test was skipped. Two processes with one thread each finish sooner than one process with two threads.
unit: $(VENV)/installed-dev $(VENV)/installed-kernels
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -rs -m "not thorough"
	if $(BIN)/python -c "import coopsheaf_kernels" 2>/dev/null; then \
		OMP_NUM_THREADS=1 COOPSHEAF_KERNEL=factored $(BIN)/pytest -n 2 --dist worksteal -q -m "not thorough" \
			tests/nn tests/sheaves/kernels/test_factored.py tests/models/test_csnn.py; fi

# Tests that take long and find little that the others do not: compilers, every network in every form
# of export, services of others. Continuous integration runs them after `make test`.
thorough: $(VENV)/installed-dev $(VENV)/installed-kernels
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -rs -m thorough

# Everything anew: what a tutorial prints depends on the code, not on the page alone.
docs: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fresh-env --fail-on-warning --keep-going --quiet \
		--jobs 2 docs docs/_build/html

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# torch goes first and by its exact version: other packages ask for "any torch".
$(VENV)/torch: constraints.txt | $(VENV)/bin/python
	$(INSTALL) "$$(grep '^torch==' constraints.txt)"
	touch $@

$(VENV)/installed: pyproject.toml constraints.txt $(VENV)/torch
	$(INSTALL) --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt $(VENV)/torch
	$(INSTALL) --editable ".[dev]"
	touch $@ $(VENV)/installed

# Faster, never needed: without a C++ compiler, or where it does not build, nothing else changes.
$(VENV)/installed-kernels: $(wildcard native/csrc/*) native/setup.py native/pyproject.toml | $(VENV)/installed-dev
	if command -v $${CXX:-c++} >/dev/null; then $(INSTALL) ./native; \
		else echo "no C++ compiler: coopsheaf-kernels is not built, and its tests are skipped"; fi
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build docs/_build docs/_written \
		native/build native/src/*.egg-info
