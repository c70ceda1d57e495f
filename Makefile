# Run `make` for the list of what it can do. It needs python3.11 and Java 17 or 21; `make test` also PostgreSQL and Chromium, `make nightly` MariaDB and iproute2, which .ci/run installs.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BASE_PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := $(VENV)/packages.stamp
PROJECT := $(VENV)/project.stamp
JARS := $(VENV)/jars.stamp
# uv is three times as fast, and removes what left the lock; pip (make setup INSTALLER=pip) honours a machine's pip configuration.
INSTALLER ?= uv

# Another order of sets and hashes in each run finds code that depends on it; printed by the tests, so that a run can be repeated.
PYTHONHASHSEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
PYTHONHASHSEED := $(PYTHONHASHSEED)
export PYTHONHASHSEED

# What `make pictures` shows.
URL ?= http://127.0.0.1:8080
DAG ?= flights

QUICK := not slow and not airflow and not kafka and not opensearch and not postgres and not debezium and not browser and not nightly
PYTEST := $(BIN)/python -m pytest

##@ Use
.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(PROJECT) $(JARS) ## Make .venv from the locks and fetch Spark's jars (once; the others do it when needed)

.PHONY: demo
demo: setup ## Show the whole thing on real data: a DAG in an Airflow that is started for it
	@$(BIN)/rejoin demo --airflow

.PHONY: up
up: setup ## Start Airflow with the DAGs of dags/ and a Spark Connect server; print the login (PORT=8080)
	@$(BIN)/rejoin up --port $(PORT)

.PHONY: down
down: ## Stop what `make up` has started
	@$(BIN)/rejoin down

PORT := 8080

.PHONY: compose-env
compose-env: ## Make .env with random secrets for docker-compose.yaml (docs/compose.md)
	@mkdir -p landing plugins
	@$(BASE_PYTHON) docker/make_env.py .env

##@ Develop
.PHONY: test
test: test-java ## Run what CI runs: every test but the nightly ones (WORKERS=3)
	@$(ALL_PYTEST) -m "not nightly"

.PHONY: test-all
test-all: test-java ## Run every test, the nightly ones too
	@$(ALL_PYTEST)

.PHONY: nightly
nightly: export REJOIN_CODEGEN := 1
nightly: test-java ## Run only the nightly tests: exhaustive repetitions of others
	@$(ALL_PYTEST) -m nightly

.PHONY: mutants
mutants: setup ## Make one thing wrong in a statement, a thousand times, and see whether quick tests notice (half an hour)
	@$(BIN)/python tests/mutation/hunt.py

.PHONY: versions
versions: versions-oldest versions-newest ## Run the quick tests with the oldest and the newest versions that pyproject.toml allows

RESOLUTION_oldest := lowest-direct
RESOLUTION_newest := highest
# The jars are those of `make setup`: they are Spark's, whose version is one. The tools are the newest that go with the rest.
versions-%: VERSIONS = $(CURDIR)/build/versions/$*
versions-%: setup
	@rm -rf $(VERSIONS) && $(BIN)/uv venv --quiet --python $(BASE_PYTHON) $(VERSIONS)
	@VIRTUAL_ENV=$(VERSIONS) $(BIN)/uv pip install --quiet --resolution $(RESOLUTION_$*) -r pyproject.toml --all-extras --editable .
	@VIRTUAL_ENV=$(VERSIONS) $(BIN)/uv pip install --quiet --group dev
	@PATH="$(VERSIONS)/bin:$$PATH" REJOIN_JARS="$(CURDIR)/$(VENV)/share/rejoin/jars" $(VERSIONS)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "$(QUICK)"

# Half of it is waiting for servers, so three processes keep two cores busy.
WORKERS := 3
ALL_PYTEST = $(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=20

.PHONY: test-java
test-java: setup
	@$(BIN)/python -W ignore tests/integration/server_jars.py
	@$(BIN)/python -W ignore tests/quick_java.py

.PHONY: check
check: setup ## Lint, format, types, spelling and the quick tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/codespell
	@$(PYTEST) -n $(WORKERS) --dist loadfile -m "$(QUICK)"

.PHONY: bench
bench: setup ## Measure at 1 and 10 million rows, and write docs/benchmarks.md
	@$(BIN)/python bench/run.py

.PHONY: bench-large
bench-large: setup ## The same, and at 50 million rows (hours)
	@$(BIN)/python bench/run.py 1000000 10000000 50000000

.PHONY: bench-more
bench-more: setup ## Measure many runs in a row, wide rows, many outputs and what strains (hours)
	@$(BIN)/python bench/steady.py
	@$(BIN)/python bench/wide.py
	@$(BIN)/python bench/fanout.py
	@$(BIN)/python bench/joins.py
	@$(BIN)/python bench/strain.py

.PHONY: docs
docs: setup ## Write docs/commands.md, the results in docs/joins.md and docs/groups.md and the flow in docs/architecture.md anew and build the documentation as a site in build/docs
	@$(BIN)/python docs/command_pages.py
	@$(BIN)/python docs/join_pages.py
	@$(BIN)/python docs/group_page.py
	@$(BIN)/python tests/architecture/flow.py docs/architecture.md
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open build/docs/index.html"

.PHONY: pictures
pictures: setup ## Make the README's pictures of a running Airflow (URL, DAG; the password is in REJOIN_PASSWORD)
	@$(BIN)/python docs/pictures.py --url "$(URL)" --dag "$(DAG)"

.PHONY: lock
lock: $(PROJECT) ## Recompile requirements*.txt from pyproject.toml (UPGRADE=--upgrade for newer versions)
	@$(COMPILE) --group dev --output-file requirements-dev.txt
	@$(COMPILE) --constraints requirements-dev.txt --output-file requirements.txt

.PHONY: clean
clean: ## Remove .venv and everything that tools leave behind
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build include/*.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What `setup` is made of. A stamp is written when its step is complete, so an interrupted set-up goes on where it was.

COMPILE = $(BIN)/uv pip compile --quiet $(UPGRADE) pyproject.toml --all-extras --group pins --generate-hashes --no-header --no-annotate --no-emit-index-url \
	--no-emit-find-links --python-version 3.11 --python-platform x86_64-manylinux_2_28

# The sdists among the packages (pyspark) and rejoin itself build with this setuptools, not with one fetched on the side.
BOOTSTRAP := setuptools|uv
INSTALL_uv = VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --require-hashes --no-build-isolation --compile-bytecode requirements-dev.txt
INSTALL_pip = $(BIN)/pip install --quiet --require-hashes --no-build-isolation -r requirements-dev.txt

$(PACKAGES): requirements-dev.txt | preflight
	@echo "installing the packages of requirements-dev.txt into $(VENV) (about a minute)"
	@$(BASE_PYTHON) -m venv $(VENV)
	@sed -nE '/^($(BOOTSTRAP))==/,/[^\]$$/p' requirements-dev.txt > $(VENV)/bootstrap.txt
	@$(BIN)/pip install --quiet --require-hashes -r $(VENV)/bootstrap.txt
	@$(INSTALL_$(INSTALLER))
	@touch $@

$(PROJECT): pyproject.toml $(PACKAGES)
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --no-index -e .
	@touch $@

$(JARS): include/rejoin/lake/spark/setup_check.py $(PROJECT)
	@$(BIN)/python -m rejoin.lake.spark.setup_check
	@touch $@

# Before anything is downloaded: one line that says what is missing and how to get it.
HAS_PYTHON = $(shell $(BASE_PYTHON) -c 'import sys, venv, ensurepip; print(sys.version_info[:2] == (3, 11))' 2>/dev/null)
JAVA_PROBLEM = $(shell $(BASE_PYTHON) -I include/rejoin/lake/spark/setup_check.py --java 2>&1)
GET_PYTHON := rejoin needs $(BASE_PYTHON) with venv, and there is none in the PATH: \
	install it (Debian: apt-get install python3.11 python3.11-venv) or name one with BASE_PYTHON=

.PHONY: preflight
preflight:
	$(if $(filter True,$(HAS_PYTHON)),,$(error $(GET_PYTHON)))
	$(eval problem := $(JAVA_PROBLEM))$(if $(problem),$(error $(problem)))
	@:
