# These commands do everything on a new machine with Python ≥ 3.11, make and git:
#   make reproduce   sets up and runs the paper's prediction study; leaves reproduction/report.html
#   make test        sets up and runs the linters, the type checker and the tests of every day
#   make docs        sets up and builds the documentation site; leaves docs/_build/index.html
# Others: docs-serve, results (about 40 minutes: every experiment and benchmark, for the site), peers, test-apart (tests of the documentation,
# of benchmarks and in a browser), test-slow (studies of minutes), test-hostile (20 minutes of damaged files, kills and bad calls),
# test-lowest (the lowest versions of other packages), dist (build a release and try it), coverage, bench, format, clean.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that run the tests side by side. Some tests mostly wait, so this is one more than a machine of two cores has:
JOBS ?= 3

# An interpreter that has the packages that the benchmarks compare with. `make peers` makes this one.
PEERS ?= $(VENV)/peers/bin/python

.PHONY: reproduce test docs docs-serve results peers test-apart test-slow test-hostile test-lowest dist coverage bench format clean
.DELETE_ON_ERROR:

# Tests start many commands, and every process that runs tests imports all of them: 15 s without bytecode, 7 s with it.
test test-apart test-slow test-hostile coverage: export PYTHONDONTWRITEBYTECODE :=

reproduce: $(VENV)/installed
	$(BIN)/trueonline verify
	$(BIN)/trueonline reproduce --out reproduction

test: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -m "not slow and not apart" -n $(JOBS) --dist loadfile

# Every warning stops it. Tutorials and the gallery are executed; a page that did not change is not executed again. Pages are read one
# after another: kernels of notebooks that start together may take each other's ports.
docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build -n -W -q -b html -d docs/_build/.doctrees docs docs/_build
	@echo "Open docs/_build/index.html, or run: make docs-serve"

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build 8000

# What the documentation shows: runs what is missing in docs/results/data, and resumes after an interruption. What needs a GPU is left out
# without one. RESULTS names parts or takes options: RESULTS="--again fig4", RESULTS=--list.
results: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.store --peers-python $(PEERS) $(RESULTS)

# Other packages, which cannot share an environment with this one. One that cannot be installed is left out.
peers:
	$(PYTHON) -m venv $(VENV)/peers
	-$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check mushroom-rl
	-SKBUILD_MINIMUM_VERSION=0.7 $(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check numpy swifttd
	-$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check river lightgbm statsforecast

test-apart: $(VENV)/installed-dev
	$(BIN)/pytest -m "apart and not slow" -n $(JOBS) --dist loadfile

test-slow: $(VENV)/installed-dev
	$(BIN)/pytest -m slow

# HOSTILE takes options, such as HOSTILE="--seed 1 --minutes 5".
test-hostile: $(VENV)/installed-dev
	$(BIN)/python -m tests.hostile $(HOSTILE)

# TESTS takes files and folders, such as TESTS="tests/core".
test-lowest: $(VENV)/installed-dev
	$(BIN)/python -m tools.lowest --jobs $(JOBS) $(TESTS)

# PYTHONS takes versions, such as PYTHONS="3.11 3.13". By default all that the package supports and that are found.
dist: $(VENV)/installed-dev
	$(BIN)/python -m tools.dist --pythons "$(PYTHONS)"

# The lines that tests do not run. Numba's kernels are machine code, which coverage cannot measure: pyproject.toml leaves them out.
coverage: $(VENV)/installed-dev
	$(BIN)/pytest -m "not slow" -n $(JOBS) --dist loadfile --cov --cov-report=term-missing:skip-covered

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks --peers-python $(PEERS)

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# With uv if it is installed, otherwise with venv and pip. Bytecode is compiled now, so that the first import is fast.
$(VENV)/installed: pyproject.toml src/trueonline/__init__.py
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[all]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --compile --disable-pip-version-check -e '.[all]'; \
	fi
	@touch $@

# What developers need, and what the documentation needs, are groups of pyproject.toml.
$(VENV)/installed-%: $(VENV)/installed
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python --group $*; \
	else \
	  $(BIN)/python -m pip install --quiet --compile --disable-pip-version-check --upgrade 'pip>=25.1' && \
	  $(BIN)/python -m pip install --quiet --compile --disable-pip-version-check --group $*; \
	fi
	@touch $@
