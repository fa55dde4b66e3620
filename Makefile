# What people type here is what CI runs; `make help` lists it.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip -qq --no-input --disable-pip-version-check
# It needs a tenth of the time of pip, but reads no pip.conf: pip does it where uv cannot.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes
PACKAGES := app domain projections workers
TEST_SECONDS_MAX := 240
# On two cores, because a process waits for over half of its time. Each collects all tests and
# starts servers of its own; tests/servers/scheduling.py says which tests it gets.
TEST_PROCESSES ?= 5
# At which moment the tests run, such as AT=2028-02-29T10:00 (UTC); under CI the date chooses one.
CLOCK = $(BIN)/python -m tests.servers.clock "$(AT)"
# Tests without servers wait for a third of their time.
QUICK_PROCESSES := 3
# Of `make quick`: what is worked on most, and fails soonest.
QUICK := tests/tidy tests/golden tests/domain tests/contracts tests/projections tests/workers
QUICK += tests/simulation/test_seeds.py::test_whatever_goes_wrong_everything_ends_well
QUICK_SEEDS := 4
SOAK_SECONDS_MAX := 7200
MAKEFLAGS += --no-print-directory
# Tests start some hundred processes; each would compile the service anew, for 0.2 s of a processor.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install run start quick test check again lint types imports bench soak ready release
.PHONY: sbom advisories manifests

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: .venv/.runtime ## Make .venv with the locked dependencies of the service

run: .venv/.runtime ## Install, then serve a demo on 127.0.0.1:8080 (Ctrl-C stops it)
	@exec $(BIN)/python -m app serve --demo

start: .venv/.dev ## Install, then run all processes of the Procfile on PostgreSQL and RabbitMQ
	$(foreach each,DATABASE_URL BROKER_URL,$(if $($(each))$($(each)_FILE)$(wildcard .env),,$(error $(UNSET))))
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec $(BIN)/honcho start

# One process of make checks while the tests run; mypy looks only at what has changed.
quick: .venv/.dev ## The inner loop, a minute: lint, types, and the tests that need no server
	@$(MAKE) --jobs --output-sync=target lint types imports quick-tests

quick-tests:
	@SIMULATION_SEEDS=$(QUICK_SEEDS) $(BIN)/python -m pytest --quiet -n $(QUICK_PROCESSES) \
		--dist worksteal --timeout=$(TEST_SECONDS_MAX) -m "not (server or slow or soak)" $(QUICK) $(ARGS)

test: .venv/.dev ## Install, then run the tests; ARGS="tests/domain -k wallet" picks some
	@$(BIN)/python -m tests.servers.install
	@rm -f .pytest_cache/outcome.json
	@$(CLOCK) $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder \
		--timeout=$(TEST_SECONDS_MAX) --durations=12 $(ARGS)

# The tests start only when the quick checks have passed. Those need one core, so meanwhile the other
# makes ready what the tests need.
check: .venv/.dev ## What CI runs: lint, types and imports, then the tests
	@$(MAKE) --jobs=2 --output-sync=target types lint imports ready
	@$(MAKE) test || $(MAKE) again

# Collecting keeps each test as pytest compiles it, or every process of `make test` would do so anew.
# What is wrong there `make test` tells.
ready: .venv/.dev
	@$(BIN)/python -m tests.servers.install
	@$(BIN)/python -m pytest --collect-only --quiet >/dev/null || true

# What lost a race against a crowded machine passes alone; what is broken does not. The
# record of the run is taken away first, or one that ended before it began would leave an old one.
again: .venv/.dev
	@$(BIN)/python -m tests.servers.second_try $(CLOCK) $(BIN)/python -m pytest --verbose \
		--timeout=$(TEST_SECONDS_MAX)

lint: .venv/.dev ## Check rules and format (ruff)
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m ruff format --check --quiet .

types: .venv/.dev ## Check types (mypy, strict)
	@$(BIN)/python -m mypy $(PACKAGES)

imports: .venv/.dev ## Check who imports whom (import-linter)
	@$(BIN)/lint-imports --no-logo

soak: .venv/.dev ## Inflict every fault more often; writes docs/reliability.md (an hour and a half)
	@SOAK=1 $(BIN)/python -m tests.servers.install
	@SOAK=1 $(BIN)/python -m pytest --timeout=$(SOAK_SECONDS_MAX) -m "soak or rounds" $(ARGS)

bench: .venv/.dev ## Measure beside limits; DATABASE=postgresql measures that
	@$(BIN)/python -m tests.bench

release: .venv/.dev ## VERSION=1.2.3 becomes the release of the change logs, if nothing broke
	@$(BIN)/python -m tests.release "$(VERSION)"

# Three looks at a release, none a part of CI: their tools have a lock and a place of their own.
sbom: .venv/.release ## Write sbom.json, the bill of materials of what runs (CycloneDX)
	@.venv/release/bin/cyclonedx-py requirements --output-reproducible --output-file sbom.json requirements.lock

advisories: .venv/.release ## Ask for known holes of the locked packages; needs the internet
	@.venv/release/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.lock -r requirements-tracing.lock

manifests: .venv/.release ## Hold ops/kubernetes, or OVERLAY=DIR, to the schemas of Kubernetes; needs kubectl
	@kubectl kustomize "$(or $(OVERLAY),ops/kubernetes)" >.venv/manifests.yaml
	@.venv/release/bin/kubernetes-validate --strict .venv/manifests.yaml
	@$(if $(OVERLAY),! grep 'image:' .venv/manifests.yaml | grep -v '@sha256:' || { echo 'pin it by its digest'; false; },:)

# A stamp is touched last, so an install that was cut short starts again.
# Most of the tools is never imported, so Python compiles what is, when it is.
.venv/.runtime: requirements.lock requirements-uv.lock
	$(if $(call python,import sys; sys.exit(sys.version_info < (3, 11))),,$(error $(OLD)))
	$(if $(call python,import ensurepip; import venv),,$(error $(NO_VENV)))
	@echo 'Installing the locked dependencies into .venv'
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@$(PIP) install --require-hashes -r requirements-uv.lock && $(UV) --compile-bytecode -r $< \
		|| $(PIP) install --require-hashes -r $<
	@touch $@

.venv/.dev: requirements-dev.lock .venv/.runtime
	@echo 'Installing the tools of tests and checks into .venv'
	@$(UV) -r $< || $(PIP) install --no-compile --require-hashes -r $<
	@touch $@

.venv/.release: requirements-release.lock
	@echo 'Installing what looks at a release into .venv/release'
	@$(PYTHON) -m venv --clear .venv/release
	@.venv/release/bin/python -m pip -qq --no-input --disable-pip-version-check install --require-hashes -r $<
	@touch $@

# Empty unless the statements run and exit with 0.
python = $(shell $(PYTHON) -c '$(1)' >/dev/null 2>&1 && echo yes)
UNSET = $(each) is not set; name a PostgreSQL and a RabbitMQ, or use: make run
OLD = Python 3.11 or newer is needed and "$(PYTHON)" is not; name one: make PYTHON=python3.11
NAMED = $(shell $(PYTHON) -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
NO_VENV = $(PYTHON) cannot make virtual environments; on Debian: apt install $(NAMED)-venv
