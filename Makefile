# `make run` and `make test` need python3 (3.11 or later) and make, and install the rest themselves.
.DEFAULT_GOAL := help
VENV := .venv
PY := $(VENV)/bin/python
ARGS ?=

help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: $(VENV)/runtime.stamp ## the environment in .venv/, embedded Postgres included

# A host sets PORT; a person who sets it still means this machine alone.
run: export HOST ?= 127.0.0.1
run: $(VENV)/runtime.stamp ## serve http://127.0.0.1:8000 (or PORT) with demo data in an empty database
	@exec $(PY) app.py serve --demo $(ARGS)

test: $(VENV)/dev.stamp ## everything the tests need, then all tests (ARGS="-k word" for some)
	@sh scripts/debian.sh chromium chromium chromium-browser google-chrome google-chrome-stable
	@sh scripts/debian.sh pgbouncer pgbouncer
	$(PY) -m pytest -n 2 $(ARGS)

check: $(VENV)/dev.stamp ## format, lint, types
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy

format: $(VENV)/dev.stamp ## write the format that check asks for
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench: $(VENV)/bench.stamp ## the figures (ARGS goes to bench/run.py)
	$(PY) bench/run.py $(ARGS)

chaos: $(VENV)/dev.stamp ## the fault campaign (ARGS="--short", "--seed 7")
	$(PY) -m bench.chaos $(ARGS)

screenshots: $(VENV)/dev.stamp ## the README's pictures
	@sh scripts/debian.sh chromium chromium chromium-browser google-chrome google-chrome-stable
	$(PY) bench/screenshots.py $(ARGS)

lighthouse: $(VENV)/dev.stamp ## what Lighthouse thinks of the dashboard and the acknowledge page
	@sh scripts/debian.sh chromium chromium chromium-browser google-chrome google-chrome-stable
	@sh scripts/debian.sh nodejs node nodejs
	@sh scripts/debian.sh npm npm
	@test -x $(VENV)/lighthouse/node_modules/.bin/lighthouse || \
		npm install --silent --no-audit --no-fund --prefix $(VENV)/lighthouse lighthouse@12.2.3
	$(PY) bench/lighthouse.py $(ARGS)

lock: $(VENV)/dev.stamp ## requirements.txt again, from pyproject.toml (ARGS="--extra push" with Web Push)
	$(PY) -m pip install --quiet --disable-pip-version-check pip-tools
	CUSTOM_COMPILE_COMMAND='make lock' $(PY) -m piptools compile --quiet --generate-hashes --strip-extras --no-annotate \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(ARGS) -o requirements.txt pyproject.toml

clean: ## remove the environment and the caches; .data/ stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/runtime.stamp: requirements.txt pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh runtime

$(VENV)/dev.stamp: $(VENV)/runtime.stamp
	@sh scripts/setup.sh dev

$(VENV)/bench.stamp: $(VENV)/dev.stamp
	@sh scripts/setup.sh bench

.PHONY: help setup run test check format bench chaos screenshots lighthouse lock clean
