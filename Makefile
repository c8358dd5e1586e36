# `make run` and `make test` set up what they need; everything lands in .venv and in Bakeoff's cache folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test calibrate lint clean

run: $(VENV)/.run
	$(BIN)/bakeoff run

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

# The published figures of SciFact, from our own rows: make calibrate DATA=folder with BEIR's scifact/ in it
calibrate: $(VENV)/.run
	$(BIN)/python bench/calibrate.py $(DATA)

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[local]'
	$(BIN)/bakeoff models pull minilm
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/pip install --quiet -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
