# Everything a developer runs. `make` lists it. Needs Python 3.11 or newer and nothing else: uv is brought
# into .venv-tools when the machine has none. Nothing here needs root, and root may run all of it.

PYTHON ?= python3
BIN := .venv/bin
TESTS ?= tests
DATA ?= .outlast

IMAGE ?= outlast:local
# Of the build: --build-arg BASE_IMAGE=..., --build-arg PACKAGE_INDEX=..., --no-cache.
BUILD_FLAGS ?=
# A file of certificates that the build trusts, where the network has some of its own.
CA_BUNDLE ?=

UV := $(shell uv --version >/dev/null 2>&1 && command -v uv || echo .venv-tools/bin/uv)

# Hundreds of processes are started here: where no bytecode may be written, half of their work is to compile.
unexport PYTHONDONTWRITEBYTECODE

COMPOSE = $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose) \
	--project-name $(PROJECT) --env-file $(CURDIR)/compose/.env --file compose/compose.yaml $(if $(CHAOS),--file compose/chaos.yaml)
PROJECT ?= outlast
API_PORT_1 ?= 8080
export API_PORT_1
export OUTLAST_IMAGE = $(IMAGE)

.DEFAULT_GOAL := help

.PHONY: help
help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.venv-tools/bin/uv:
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet uv

.venv/.synced: pyproject.toml uv.lock | $(filter .venv-tools/%,$(UV))
	UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --compile-bytecode
	@touch $@

.PHONY: setup
setup: .venv/.synced ## The locked environment in .venv

.PHONY: check
check: setup ## Formatting, lint, types, import contracts, the lock, the shape of the tree
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/architecture

.PHONY: test
test: setup ## All tests, on real embedded servers, three at a time
	$(BIN)/python -m pytest -q -n 3 --dist worksteal $(TESTS)

.PHONY: chaos
chaos: setup ## Runs under faults with a checker; SEED=n does the same again
	$(BIN)/python -m tests.chaos

.PHONY: chaos-long
chaos-long: setup ## The same at full size: hundreds of kills, minutes of outages, long throughput windows
	LONG=1 $(BIN)/python -m tests.chaos

.PHONY: fmt
fmt: setup ## Formats and fixes what can be fixed by a machine
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: demo
demo: setup ## Tickets through throttling, crashes and a dead letter, up to its replay
	$(BIN)/python -m examples.demo

.PHONY: dev
dev: setup ## API, relay, workers, PostgreSQL and Redis on this machine, in DATA
	$(BIN)/outlast dev --data $(DATA)

.PHONY: image
image: ## The image of every role, as IMAGE
	@test -z "$(CA_BUNDLE)" || cp "$(CA_BUNDLE)" ca-bundle.crt
	@trap 'test -z "$(CA_BUNDLE)" || rm -f ca-bundle.crt' EXIT; docker build $(BUILD_FLAGS) --tag $(IMAGE) .

compose/.env:
	@umask 077; word() { $(PYTHON) -c 'import secrets; print(secrets.token_hex(32))'; }; \
	printf 'OUTLAST_API_TOKEN=%s\nPOSTGRES_PASSWORD=%s\n' "$$(word)" "$$(word)" > $@

.PHONY: up
up: compose/.env $(if $(filter outlast:local,$(IMAGE)),image) ## The image and all it needs, in containers; its token is in compose/.env
	$(COMPOSE) up --detach
	$(PYTHON) compose/ready.py http://127.0.0.1:$(API_PORT_1)/readyz 180

.PHONY: down
down: compose/.env ## Removes these containers, their network and their data
	$(COMPOSE) --profile metrics down --volumes --remove-orphans

.PHONY: containers
containers: setup ## The image and the whole of it in containers, killed, cut off, upgraded; skipped without an engine
	$(BIN)/python -m tests.containers

.PHONY: bench
bench: setup ## What it costs, how fast it is, beside other libraries: one table, and bench/out/latest.json
	$(BIN)/python -m bench

.PHONY: bench-full
bench-full: setup ## The same with a million jobs and three times each; seconds until a job runs again; list pages
	FULL=1 $(BIN)/python -m bench
	$(BIN)/python -m bench.recovery
	$(BIN)/python -m bench.read_pages

.PHONY: soak
soak: setup ## Half an hour at 70 % of what can be done, and whether anything grows
	$(BIN)/python -m bench.soak

.PHONY: terraform
terraform: ## Formatting, validation, tests and plans of deploy/terraform; TF_PLUGIN_DIR where there is no registry
	deploy/terraform/check.sh

.PHONY: clean
clean: ## Removes the environment and caches, and nothing that holds data
	rm -rf .venv .venv-tools .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
