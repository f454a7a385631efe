# Everything a newcomer needs: `make demo` and `make test` set themselves up.
# Needs Python 3.11 or newer and make; Java comes with a wheel.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
RUNS   ?= runs
EXAMPLE ?= examples/fenced_follower.yaml
# A fault that this example finds; another example has to name its own.
FAULT   ?= $(if $(filter examples/fenced_follower.yaml,$(EXAMPLE)),Z01)

# Where it is set, each process that a test starts compiles the package once more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test slow soak kafka zookeeper apps check format lint types wheel bench instructions docs site clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "minicluster needs Python 3.11 or newer; this is %d.%d (set PYTHON=...)" % sys.version_info[:2])'
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing minicluster into $(VENV) (once: some minutes, 1 GB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed
	@echo "installing the test and development tools"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## play an example scenario, let Spark judge it, show the report
	@$(BIN)/minicluster demo $(EXAMPLE) --runs $(RUNS) $(if $(FAULT),--fault $(FAULT))

# Four workers on two cores: clients on real time, and processes that tests start, are waited for.
test: $(VENV)/.installed-dev  ## the test suite
	@$(BIN)/python -m pytest -q -n 4 --dist loadgroup -m "not slow"

slow: $(VENV)/.installed-dev  ## the tests that take longer
	@$(BIN)/python -m pytest -q -n 4 --dist loadgroup -m slow

soak: $(VENV)/.installed-dev  ## an hour of real clients and a simulated day: memory over time (SOAK_MINUTES, SOAK_HOURS)
	@$(BIN)/python -m pytest -q -s -n 0 -m soak tests/soak

kafka: $(VENV)/.installed-dev  ## Apache Kafka's own nodes beside a cluster's (Java, Maven)
	@$(BIN)/python -m tests.kafka fetch
	@$(BIN)/python -m pytest -q -m kafka tests/kafka

zookeeper: $(VENV)/.installed-dev  ## ZooKeeper's own server below a cluster's brokers (Java, Maven)
	@$(BIN)/python -m tests.zookeeper.real fetch
	@$(BIN)/python -m pytest -q -m zookeeper tests/zookeeper/real

apps: $(VENV)/.installed-dev  ## Streams, Connect, Kafka's tools, franz-go, KafkaJS on a cluster (Java, Maven, Go, node)
	@$(BIN)/python -m tests.apps fetch
	@$(BIN)/python -m pytest -q -m apps tests/apps

check: format lint types test wheel  ## what CI runs

format: $(VENV)/.installed-dev  ## is the code formatted?
	@$(BIN)/ruff format --check .

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	@$(BIN)/mypy
	@$(BIN)/python -m tests.examples.typed_examples

wheel: $(VENV)/.installed-dev  ## build the wheel and try it in an empty environment
	@rm -rf dist build/wheel-venv
	@$(BIN)/python -m build --outdir dist . >/dev/null
	@$(BIN)/python -m twine check --strict dist/*
	@$(PYTHON) -m venv build/wheel-venv
	@build/wheel-venv/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	@build/wheel-venv/bin/python -I tests/house/wheel_probe.py

bench: $(VENV)/.installed-dev  ## measure; results as ratios, with the machine named
	@$(BIN)/python -m pytest -q tests/bench --benchmark-only

instructions: $(VENV)/.installed-dev  ## the part of it that counts instructions of the processor (valgrind)
	@$(BIN)/python -m pytest -q -rs tests/bench/test_instructions.py --benchmark-only

docs: $(VENV)/.installed-dev  ## write the generated parts of the pages again
	@$(BIN)/python -m docs.generate.write_docs

site: $(VENV)/.installed  ## the documentation as pages in build/site
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs build/site
	@echo "build/site/index.html"

clean:  ## forget everything that was built
	rm -rf $(VENV) build dist runs .mypy_cache .ruff_cache .pytest_cache
