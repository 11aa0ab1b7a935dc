# SPDX-License-Identifier: Apache-2.0
# Needs python3 (>= 3.11, with venv), make and git; everything else is installed into .venv.

PYTHON ?= python3
ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install -qq --disable-pip-version-check -c constraints/cpu.txt
# The place is part of the stamp's name: a folder copied together with its .venv installs itself anew,
# where its editable install would otherwise still point to the original.
READY := $(VENV)/.ready-$(firstword $(shell pwd | cksum))
DEMO := build/demo-model

# As the command line sets it for itself: on a busy machine libgomp's long waits cost an order of magnitude.
export GOMP_SPINCOUNT ?= 1000

.DEFAULT_GOAL := help
.PHONY: help demo test test-full test-target check format bench bench-operator bench-stream bench-quality plots rendering docs \
	wheel wheel-test clean distclean
.PRECIOUS: $(READY)-%

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24
	@echo "  ARGS=... goes to pytest or to the benchmark; PYTHON=... chooses the interpreter of .venv."

demo: $(READY)-all  ## the embedded voice speaks; then 119 codes to demo.wav with random weights
	$(VENV)/bin/blockwave demo
	rm -rf $(DEMO)
	$(VENV)/bin/blockwave make-checkpoint --size small $(DEMO)
	$(VENV)/bin/blockwave speak examples/codes_119.json -o demo.wav --model $(DEMO)

test: $(READY)-test  ## the core tests, minutes on two cores
	$(RUN) -m pytest -n auto --dist loadfile $(ARGS)

test-full: $(READY)-test  ## core, released size and long properties
	$(RUN) -m pytest -m "not target" $(ARGS)

test-target: $(READY)-test  ## what needs a GPU or an idle machine
	$(RUN) -m pytest -m target $(ARGS)

check: $(READY)-check  ## format, lint, types, spelling, architecture
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(RUN) -m pyright --pythonpath $(RUN)
	$(VENV)/bin/typos
	$(RUN) -m pytest tests/architecture

format: $(READY)-check  ## rewrites what format and lint can repair
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

bench: $(READY)-test  ## the benchmark; JSON under benchmarks/results
	$(RUN) -m benchmarks.evaluation $(ARGS)

bench-operator: $(READY)-bench  ## block attention beside its peers, 10 minutes; JSON under benchmarks/results
	$(RUN) -m benchmarks.operator $(ARGS)

wheel: $(READY)-all  ## dist/: wheel and source archive
	$(RUN) -m hatchling build -d dist

wheel-test: $(READY)-all  ## the wheel in an empty environment, outside the repository, without a compiler
	PYTHON=$(PYTHON) bash .ci/wheel

bench-stream: $(READY)-test  ## streaming and throughput, 20 minutes; ARGS="playback", ARGS=--quick; JSON, tables, pictures
	$(RUN) -m benchmarks.streaming $(ARGS)
	$(RUN) -m benchmarks.streaming.page

plots: $(READY)-test  ## tables and pictures of docs/streaming.md from that JSON
	$(RUN) -m benchmarks.streaming.page

bench-quality: $(READY)-test $(READY)-pesq  ## what each shortcut does to the sound; JSON under benchmarks/results
	$(RUN) -m benchmarks.quality $(ARGS)

rendering: $(READY)-test  ## rewrites the sound that tests/guard holds the voice to, after a change that was meant
	$(RUN) -m tests.guard.guard

docs: $(READY)-all  ## docs/command-line.md from the program itself
	$(RUN) docs/generate.py

clean:  ## removes what was built, keeps .venv
	rm -rf build dist demo.wav blockwave-demo-* .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## removes .venv too
	rm -rf $(VENV)

# $(READY)-NAME: the package, editable, with the extra NAME. Nothing runs while pyproject.toml and the constraints are older.
$(READY)-%: pyproject.toml constraints/cpu.txt
	@$(PYTHON) -c 'import sys; sys.exit("make: got Python %d.%d, expected 3.11 or newer; say make PYTHON=python3.11" \
		% sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing blockwave[$*] into $(VENV): minutes the first time (torch), seconds later"
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation -e '.[$*]'
	@touch $@
