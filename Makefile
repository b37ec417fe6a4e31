# `make` lists the targets. Nothing needs to be installed but make and Python 3.11 or newer
# (with venv and pip) and a C compiler, with which Rust links; Rust itself is fetched if it is not
# here. Tests on a real Kafka also want Java 17 and Maven, and say so.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=

# Only wheels, only what the locks name, and no build isolation: nothing unlocked is fetched.
LOCKED  := --require-hashes --only-binary :all: -r
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet install
# uv takes seconds where pip takes minutes, but doesn't read pip's configuration: pip installs where uv can't.
INSTALL  = { $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || \
           { echo "uv can't install: pip does"; $(PIP) $(1); }; }
LOCK    := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
           --no-header --no-emit-index-url $(ARGS)

# Commands that need Rust run with the cargo on the PATH, or with one that is fetched.
RUST    := $(BIN)/python tools/rust.py
CRATE   := --manifest-path core/Cargo.toml
# Without libFuzzer, which stable Rust has no use for.
FUZZ    := --manifest-path core/fuzz/Cargo.toml --no-default-features --target-dir core/target
# The compiled core stands in the tree, where every environment finds it; `build/editable` has the
# wheel that points there. PROFILE is one of those in core/Cargo.toml.
CORE    := lsh/_core.abi3.so
SOURCES := $(shell find core \( -name target -o -name fuzz \) -prune -o -type f -print)
PROFILE := release
# What the core is linked for: the C library that is here; or, as wheels are, by zig for that of RHEL 7
# and Debian 8, and all later ones. `make .venv/.wheel` installs zig.
LINKED  ?= here
FOR_here := --compatibility off
FOR_any  := --zig --compatibility manylinux2014
WHEEL   := --quiet maturin build --release $(FOR_any)

# Tests start hundreds of processes, which would each compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# Three processes take file after file, in the order of tests/support/order.py.
BESIDE := --numprocesses 3 --dist loadfile --no-loadscope-reorder

# What `make test` leaves out draws twice as many examples, unless told otherwise.
DOUBLE := NEARDUP_TEST_SCALE=$${NEARDUP_TEST_SCALE:-double}

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-core test-slow test-faults test-soak test-image test-pythons lint format bench \
        bench-index wheel docs docs-links pictures lock notices sbom helm chart compose-check pin-images clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1mmake %-14s\033[0m %s\n", $$1, $$2}' Makefile

venv: $(VENV)/.runtime ## Create .venv with the locked runtime and neardup itself

demo: $(VENV)/.runtime ## Watch neardup filter a sample on this machine, without Kafka (ARGS=--page: in a browser)
	@$(BIN)/neardup demo $(ARGS)

test: $(VENV)/.dev ## Run the tests in about 5 minutes, with a real Kafka if Java 17 and Maven are here (ARGS="-k name")
	@$(BIN)/python -m pytest $(BESIDE) -m "not slow" $(ARGS)

test-core: $(VENV)/.dev ## Run the tests of the core in Rust (ARGS="name")
	@$(RUST) cargo test $(CRATE) --lib --profile quick --locked --quiet --no-default-features $(ARGS)

test-slow: $(VENV)/.dev ## Run the tests that `make test` leaves out: more faults, schedules and characters
	@echo "running what make test leaves out: half an hour and more"
	@$(DOUBLE) $(BIN)/python -m pytest $(BESIDE) -m slow $(ARGS)

test-faults: $(VENV)/.dev ## Break workers, brokers and their network while documents stream (hours; ARGS="--help")
	@$(BIN)/python -m chaos matrix $(ARGS)

test-soak: $(VENV)/.dev ## An hour of faults under each protocol, with an eye on leaks (ARGS="--minutes 10")
	@$(BIN)/python -m chaos soak $(ARGS)

lint: $(VENV)/.dev ## Check style, format, spelling and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/codespell
	@$(BIN)/mypy
	@$(BIN)/stubtest lsh._core
	@$(RUST) cargo fmt $(CRATE) --check
	@$(RUST) cargo clippy $(CRATE) --all-targets --features testing --locked --quiet -- -D warnings
	@$(RUST) cargo fmt --manifest-path core/fuzz/Cargo.toml --check
	@$(RUST) cargo clippy $(FUZZ) --all-targets --locked --quiet -- -D warnings

format: $(VENV)/.dev ## Format the code, and fix what the linter can
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@$(RUST) cargo fmt $(CRATE)
	@$(RUST) cargo fmt --manifest-path core/fuzz/Cargo.toml

wheel: $(VENV)/.wheel ## Build wheels for any Linux into dist/: neardup, and lsh by itself
	@rm -rf dist
	@$(RUST) $(WHEEL) --out dist
	@cd lsh && ../$(BIN)/python ../tools/rust.py $(WHEEL) --out ../dist
	@ls dist/*

docs: $(VENV)/.docs ## Build the pages into build/docs; a warning or a dead link is an error
	@$(BIN)/sphinx-build -q -W --keep-going -n -j auto -b html -d build/doctrees docs build/docs
	@echo "build/docs/index.html"

pictures: $(VENV)/.dev ## Take the pictures of the page that the docs show (needs chromium)
	@$(BIN)/python -m tools.pictures

docs-links: $(VENV)/.docs ## Ask for every address outside that the pages name (needs the internet)
	@$(BIN)/sphinx-build -q -b linkcheck -d build/doctrees docs build/links

bench: $(VENV)/.dev ## Run the benchmarks
	@$(BIN)/python -m bench $(ARGS)

bench-index: $(VENV)/.dev ## Measure the index up to 20 million documents (ARGS="--documents 2000000")
	@$(BIN)/python -m bench index --documents 20000000 $(ARGS)

lock: $(VENV)/.dev ## Write requirements/*.txt anew from pyproject.toml (ARGS=--upgrade for newer versions)
	@$(LOCK) pyproject.toml --extra serve --output-file requirements/runtime.txt
	@$(LOCK) pyproject.toml --constraint requirements/runtime.txt --extra serve --extra registry --extra s3 --extra gcs --extra azure \
	    --output-file requirements/image.txt
	@$(LOCK) --group build --output-file requirements/build.txt
	@$(LOCK) --constraint requirements/build.txt --group wheel --output-file requirements/wheel.txt
	@$(LOCK) pyproject.toml --constraint requirements/runtime.txt --constraint requirements/build.txt \
	    --extra parquet --extra plots --extra registry --extra serve --group dev --output-file requirements/dev.txt
	@$(LOCK) --constraint requirements/dev.txt --group docs --output-file requirements/docs.txt

notices: $(VENV)/.dev ## Write LICENSES-CRATES: the licences of what is linked into the core
	@$(BIN)/python -m tools.crates

sbom: $(VENV)/.dev ## Write dist/neardup.cdx.json: what is in the wheel, and what it needs, as CycloneDX
	@mkdir -p dist && $(BIN)/python -m tools.sbom > dist/neardup.cdx.json && echo dist/neardup.cdx.json

helm: $(VENV)/bin/python ## Find what the tests of the chart want, helm first, or build it with Go (some minutes, once)
	@$(BIN)/python -m tools.go_programs

chart: $(VENV)/.dev helm ## Write what follows from the settings, the rights and the chart in deploy/
	@$(BIN)/python -m tools.chart

compose-check: $(VENV)/.dev ## Check docker-compose.yml (needs no Docker engine)
	@if docker compose version >/dev/null 2>&1; then docker compose config --quiet; \
	else echo "no docker compose here: checking the file alone"; fi
	@$(BIN)/python -m pytest --quiet tests/deploy

test-image: $(VENV)/.dev ## Build the image without an engine, and check it (root on Debian with buildah, debootstrap and Rust)
	@PYTHON=$(BIN)/python deploy/test-image

pin-images: ## Renew the digests of the images that deploy/ and compose name (needs docker and a registry)
	@deploy/pin-images

test-pythons: ## Run the tests without Kafka on each Python from 3.11 to 3.14 that is here
	@.ci/pythons $(ARGS)

clean: ## Remove the environment and everything generated
	@rm -rf $(VENV) .venv-3.* build dist docs/reference/commands.md docs/reference/lsh.md core/target core/fuzz/target $(CORE) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find lsh neardup worker tests chaos bench localkafka -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "neardup needs Python 3.11 or newer: make PYTHON=python3.12")'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.locked: requirements/runtime.txt requirements/build.txt | $(VENV)/bin/python
	@echo "installing the locked runtime into $(VENV)"
	@$(PIP) $(LOCKED) requirements/build.txt
	@$(call INSTALL,$(LOCKED) requirements/runtime.txt)
	@touch $@

# The core is as new as its sources were when the compiler began: what is edited meanwhile is newer.
$(CORE): $(SOURCES) pyproject.toml build/$(PROFILE)-$(LINKED) | $(VENV)/.locked
	@echo "compiling the core (a minute the first time)"
	@rm -rf build/editable && touch build/.began
	@$(RUST) --quiet maturin pep517 build-wheel --editable --profile $(PROFILE) $(FOR_$(LINKED)) \
	    --interpreter $(BIN)/python --out build/editable
	@touch -r build/.began $@

# What the core was compiled with last: it is compiled again if that changes.
build/$(PROFILE)-$(LINKED):
	@rm -rf build && mkdir build && touch $@

$(VENV)/.runtime: pyproject.toml core/Cargo.toml $(VENV)/.locked | $(CORE)
	@$(call INSTALL,--no-deps --no-index --force-reinstall build/editable/*.whl)
	@touch $@

$(VENV)/.tools: requirements/dev.txt $(VENV)/.locked
	@echo "installing the locked development tools into $(VENV)"
	@$(call INSTALL,$(LOCKED) requirements/dev.txt)
	@touch $@

$(VENV)/.dev: $(VENV)/.tools | $(VENV)/.runtime
	@touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.locked | $(VENV)/.runtime
	@echo "installing the locked Sphinx into $(VENV)"
	@$(call INSTALL,$(LOCKED) requirements/docs.txt)
	@touch $@

$(VENV)/.wheel: requirements/wheel.txt $(VENV)/.locked
	@echo "installing the locked compiler of wheels into $(VENV)"
	@$(call INSTALL,$(LOCKED) requirements/wheel.txt)
	@touch $@
