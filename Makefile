# What one can do here: `make help`. Each recipe is a plain command, which README.md names for people without make.
PYTHON ?= python3
VENV ?= .venv
NOTEBOOK ?= notebooks/00_start_here.ipynb

ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
else
  BIN := $(VENV)/bin
endif

# `make lab BROWSER=none` prints the address instead of opening a browser. Root, as in containers, has to be allowed.
LAB_FLAGS := $(if $(filter none,$(BROWSER)),--no-browser) $(if $(filter 0,$(shell id -u 2>/dev/null)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help environment lab test notebooks lint format record imdb nbgrader-demo

help:  ## list what one can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

environment: $(VENV)/installed  ## make the virtual environment and install requirements.txt into it

$(VENV)/installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -r requirements.txt
	@touch $@

lab: environment  ## open the first lesson in JupyterLab (another one: NOTEBOOK=notebooks/02_….ipynb)
	$(BIN)/jupyter lab $(LAB_FLAGS) --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/$(NOTEBOOK)

test: environment lint  ## run all tests and all lessons, as CI does
	$(BIN)/python -c "import matplotlib.pyplot"
	$(BIN)/python -m pytest -n auto --dist loadfile

notebooks: environment format  ## run all lessons and write them back (one: LESSONS=notebooks/02_….ipynb)
	$(BIN)/python -c "import matplotlib.pyplot"
	$(BIN)/python tools/notebooks.py $(LESSONS)

lint: environment  ## look for faults in code and lessons, and for what is not formatted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: environment  ## format code and lessons (before they are run, never after)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

record: environment  ## record anew what PyTorch, and pretrained models, say about the inputs of the lessons
	$(BIN)/python tools/record.py
	$(BIN)/python tools/maps.py

imdb: environment  ## compare readers of reviews (lesson 11): under 90 minutes on two cores, goes on where it was stopped
	$(BIN)/python tools/imdb.py

nbgrader-demo: environment  ## mark a small class with nbgrader and the sandbox, in build/nbgrader-demo (Linux)
	$(BIN)/python -m pip install -q -e ".[marking]"
	$(BIN)/python -m attnlib.marking.demo build/nbgrader-demo
