# `make demo` and `make test` need only Python 3.11+ with pip: each sets up .venv for itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TYPES := types-linux types-darwin types-win32
# Tests start some hundred processes: without bytecode on disk each translates all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-quick test-gpu lint types $(TYPES) docs docs-quick bench bench-quick bench-parts bench-gpu results campaigns fuzz crafted chaos faults soak prove tamper tables clean

demo: $(VENV)/.demo
	$(BIN)/zerogap compare --out demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 15

# A minute of tests from every room, for the loop at the keyboard.
test-quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal @tests/quick.txt

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/check_docstrings.py

# Each system has calls of its own: mypy sees those that another one lacks.  A cache for each lets
# `make --jobs 2 types` run two at once.
types: $(TYPES)

$(TYPES): types-%: $(VENV)/.dev
	$(BIN)/mypy --platform $* --cache-dir .mypy_cache/$*

# Against every peer, on the data of ZEROGAP_DATA: 60 minutes on 2 cores, or 5.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/race.py

bench-quick: $(VENV)/.bench
	$(BIN)/python benchmarks/race.py --quick

bench-parts: $(VENV)/.dev
	$(BIN)/python benchmarks/latency.py
	$(BIN)/python benchmarks/sdca_epochs.py
	$(BIN)/python benchmarks/ablation.py
	$(BIN)/python benchmarks/epoch_cost.py
	$(BIN)/python benchmarks/mnist.py
	$(BIN)/python benchmarks/frank_wolfe.py
	$(BIN)/python benchmarks/svmlight.py
	mkdir -p benchmarks/out
	$(BIN)/python benchmarks/certified.py --out benchmarks/out/certified.png
	$(BIN)/python benchmarks/path.py
	$(BIN)/python benchmarks/updates.py
	$(BIN)/python benchmarks/many_classes.py
	$(BIN)/python benchmarks/leave_one_out.py
	$(BIN)/python benchmarks/out_of_core.py
	$(BIN)/python benchmarks/cluster.py

# RESULTS.md and its pictures, from the recorded figures of TABLES.md.
results: $(VENV)/.dev
	$(BIN)/python benchmarks/page.py

# On a machine with an NVIDIA GPU.
test-gpu: $(VENV)/.gpu
	$(BIN)/python -m pytest -m gpu tests/test_gpu.py

bench-gpu: $(VENV)/.gpu
	$(BIN)/python benchmarks/gpu.py
	$(BIN)/python benchmarks/gpu_columns.py

# The campaigns end after so many minutes if told, as by `make chaos MINUTES=1`.
UNTIL := $(if $(MINUTES),--minutes $(MINUTES))

# A minute of each, all at once: part of `.ci/run`.
campaigns: $(VENV)/.dev
	$(MAKE) --jobs 5 chaos faults fuzz crafted soak MINUTES=1

# Damaged files through every reader: 500 000 of each of ten formats take hours.
FUZZ ?= 500000
fuzz: $(VENV)/.dev
	$(BIN)/python benchmarks/fuzz.py all --runs $(FUZZ) $(UNTIL)

# Files made to harm, with right checksums: 20 000 of each of five kinds take a quarter of an hour.
CRAFTED ?= 20000
crafted: $(VENV)/.dev
	$(BIN)/python benchmarks/crafted.py all --runs $(CRAFTED) $(UNTIL)

# Certified statements against exact optima: an hour or two of two cores; PROOFS=1000 takes minutes.
PROOFS ?= 100000
prove: $(VENV)/.dev
	$(BIN)/python benchmarks/prove.py --count $(PROOFS)
	$(BIN)/python benchmarks/prove.py --count $(PROOFS) --extreme

# Proofs that were made false, all to be refused by the verifier: two minutes.
tamper: $(VENV)/.dev
	$(BIN)/python benchmarks/tamper.py

# Default fits of tables that nobody scaled; TABLES=500 takes a minute.
TABLES ?= 10000
tables: $(VENV)/.dev
	$(BIN)/python benchmarks/tables.py --count $(TABLES) --peers

# Distributed fits whose workers are killed: 500 kills take an hour; KILLS=10 a minute.
KILLS ?= 500
chaos: $(VENV)/.dev
	$(BIN)/python benchmarks/chaos.py --kills $(KILLS) $(UNTIL)

# Small fits in one process, whose memory must not grow: a million take an hour.
FITS ?= 1000000
soak: $(VENV)/.dev
	$(BIN)/python benchmarks/soak.py --fits $(FITS) $(UNTIL)

# Commands that are killed, or have no disk, memory or rights: 5000 take half an hour.
FAULTS ?= 5000
faults: $(VENV)/.dev
	$(BIN)/python benchmarks/faults.py --count $(FAULTS) $(UNTIL)

# The documentation as plain files, docs/build/html/index.html; docs-quick leaves out the gallery's
# pictures, and is part of `.ci/run`.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/build/html

docs-quick: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -D plot_gallery=0 docs docs/build/quick

clean:
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[cli,lab]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

$(VENV)/.gpu: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .[gpu] --group test
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group docs
	touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group bench
	touch $@
