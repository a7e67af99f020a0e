# The commands of this house. `make help` prints them from the words behind the double hash.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
MINISTACK := build/ministack/.ready
SEEDS ?= 200
LOCALES ?= fr,de
RUNS ?= 3
PYTEST_FLAGS ?= -n auto --dist loadfile
# What `make check` has run before it comes to the suite.
DONE_ABOVE := --ignore tests/tidy --deselect tests/simulation/test_simulation.py::test_a_planted_mutant_is_caught
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --annotation-style=line \
	--no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

# Whoever sets it has every process of tests, types and simulation compile all of its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check serve bench simulate chaos evidence fmt lint types rooms docs lock packages clean

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## translate examples/ into two locales (LOCALES=fr,de) and say where the files are
	$(BIN)/dragoman translate examples --to $(LOCALES) --out 'build/demo/{path}.{locale}{ext}'
	@echo; echo "The translated files:"; find build/demo -type f | sort | sed 's/^/  /'

test: $(READY) $(MINISTACK) packages ## run the whole test suite
	$(BIN)/pytest $(PYTEST_FLAGS)

check: lint types rooms ## what CI runs: tidiness, types, simulated worlds, evidence and the whole suite
	$(BIN)/python -m tests.simulation --fresh --seeds 200 --seconds 240
	$(MAKE) evidence
	$(MAKE) test PYTEST_FLAGS="$(PYTEST_FLAGS) $(DONE_ABOVE)"

serve: $(READY) ## run API, dashboard and workers in one process on 127.0.0.1
	$(BIN)/dragoman serve

bench: $(READY) ## measure everything beside its peers, each thing RUNS times (3); an hour and more
	$(BIN)/python -m bench --runs $(RUNS)

simulate: $(READY) ## crash the simulated system everywhere: SEEDS=200, or SEED=7 to replay one, SECONDS=60 to stop early
	$(BIN)/python -m tests.simulation $(if $(SEED),--seeds 1 --seed $(SEED),--seeds $(SEEDS)) $(if $(FRESH),--fresh) $(if $(SECONDS),--seconds $(SECONDS))

chaos: $(READY) $(MINISTACK) ## kill -9 in full: runs of 200 documents on each database, one killed 20 times, 2,000 intents on two engines
	DRAGOMAN_CHAOS_RUNS=20 DRAGOMAN_CHAOS_DOCUMENTS=200 DRAGOMAN_CHAOS_KILLS=20 \
		DRAGOMAN_CHAOS_INTENTS=2000 DRAGOMAN_CHAOS_ENGINE_KILLS=10 $(BIN)/pytest tests/chaos

evidence: $(READY) ## check docs/evidence.md and count what is still open
	$(BIN)/python -m tests.evidence

fmt: $(READY) ## put code in its form
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(READY) ## look for what a reader would stumble over
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY) ## check types, strictly
	$(BIN)/mypy

rooms: $(READY) ## check rooms, doors, sizes, names and documents
	$(BIN)/pytest tests/tidy

docs: $(READY) ## print the pages that come from tables
	$(BIN)/python -m docs

lock: $(READY) ## pin every requirement anew, with hashes
	$(COMPILE) --all-extras --output-file requirements/runtime.txt pyproject.toml
	$(COMPILE) --output-file requirements/dev.txt requirements/dev.in
	$(COMPILE) --output-file requirements/ministack.txt requirements/ministack.in

packages: ## install the Debian packages that tests ask (Apertium, PyICU), where they are missing
	@.ci/packages

clean: ## remove what was built; keeps .venv and .dragoman
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements/dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# an SQS server for the tests, in an environment of its own: it pins what the product does not
$(MINISTACK): requirements/ministack.txt
	test -x build/ministack/bin/python || $(PYTHON) -m venv build/ministack
	build/ministack/bin/python -m pip install --quiet --require-hashes --requirement requirements/ministack.txt
	@touch $@
