# Two commands do everything on a fresh machine: `make demo` and `make test`. Each makes .venv by itself.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
SNAKEMAKE := $(BIN)/snakemake --cores all
SYNC := $(if $(filter output-sync,$(.FEATURES)),-O)  # Apple's make, 3.81, has none

.PHONY: apertium triton demo methods contest contest-full mirror docs test test-all test-ci test-unit test-unit-methods test-unit-data test-long test-gpu test-workflow test-quick test-papers test-cluster test-cluster-short test-nodes test-deploy test-deploy-short \
	test-faults test-faults-short test-faults-workflow test-repeat test-fuzz golden soak soak-short lint style format bench gpu release clean help

help:
	@echo "make demo        build the quick-start table, figures and report from real text (9 to 60 minutes on two cores)"
	@echo "make methods     build the second table, all five methods, from the same text (docs/methods.md)"
	@echo "make contest     build the table of the contest at equal budget from parallel text; contest-full: all of them (docs/contest.md)"
	@echo "make golden      write the small results of implementations with a new version (docs/trust.md)"
	@echo "make mirror      score multilingual-e5-small on every data set of a mirror (docs/mirror.md)"
	@echo "make docs        build the documentation site into site/"
	@echo "make test        run the test suite"
	@echo "make test-gpu    run the tests of GPUs, on this machine's GPU or on a simulated one"
	@echo "make test-all    run it, the faults of whole runs, the papers' tables, the cluster and the short soak, two parts at a time"
	@echo "make test-cluster build a table on a real Slurm of this machine, and interrupt it in every way (docs/cluster.md)"
	@echo "make test-nodes  interrupt jobs on a Slurm of six nodes with accounting, after the short tests of one node (docs/cluster-details.md)"
	@echo "make test-deploy use the workflow as a module, by snakedeploy, from object storage, by other schedulers (docs/deploy.md)"
	@echo "make test-faults inject the 42 faults of docs/faults.md"
	@echo "make test-repeat run the tests of parallel work 20 times under load, then in other orders, locales, paths and Pythons"
	@echo "make test-fuzz   run every command over a finished run that is damaged at random, 1,000 times each"
	@echo "make soak        kill the run at scale quick at 25 random moments; its tables must stay byte-equal"
	@echo "make test-quick  run the whole workflow at scale quick, on synthetic data"
	@echo "make test-papers build the smallest table of each paper on synthetic data, and check every cell"
	@echo "make apertium    install Apertium (Debian packages), so that its tests run too"
	@echo "make triton      install Triton beside the packages, to test its kernels without a GPU"
	@echo "make lint        check style, types, rules and their format"
	@echo "make bench       run the benchmarks, each beside a public peer"
	@echo "make gpu         measure and test on a GPU, in parts of ten minutes; writes gpu.txt"
	@echo "make release     build sdist and wheel into dist/, and check both"
	@echo "make clean       remove .venv and what Snakemake remembers of its runs; results stay"

# torch goes first and alone: pinned in one call with the rest, its build stays the one chosen here (README, Install).
$(VENV)/.installed: envs/requirements.lock pyproject.toml
	@case "$$PWD" in *[:\$$\`\"\\{}]*) echo "no job can be started below $$PWD: rename the folder, without any of : \$$ \` \" \\ { }"; exit 2;; esac
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=python3.x"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv"; exit 2; }
	@echo "Installing the locked packages into $(VENV) (one to three minutes) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check "$(TORCH)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -r envs/requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(VENV)/.installed
	$(SNAKEMAKE)
	@$(SNAKEMAKE) --report results/snakemake_report.html --quiet all
	@echo "Snakemake's own report: results/snakemake_report.html"

methods: $(VENV)/.installed
	$(SNAKEMAKE) --config 'papers=[quickstart,five_methods]' 'targets=[methods,methods_retrieval,methods_curves]'

contest: $(VENV)/.installed
	$(SNAKEMAKE) --config scale=contest 'papers=[contest]' 'targets=[contest_parallel]'

contest-full: $(VENV)/.installed
	$(SNAKEMAKE) --config scale=contest 'papers=[contest]' 'targets=[$(if $(CROSSLIGN_MIRROR),contest,contest_parallel,contest_tuned,contest_nli,contest_unlabelled,contest_e5)]'

mirror: $(VENV)/.installed
	$(SNAKEMAKE) --config 'papers=[mirror]' 'targets=[mirror_sets,mirror_geometry]'

# Strictly: a link or an anchor that leads nowhere ends it (with --quiet none would: mkdocs then counts no warnings). Nothing is fetched, neither here nor by whoever reads the pages.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site: site/index.html"

# Three at once, one process each: on two cores, since each waits for a third of its time. Their output comes when each is done. The longest begin.
test: $(VENV)/.installed
	@$(MAKE) --no-print-directory -j 3 $(SYNC) test-unit test-workflow test-faults-short test-gpu

# Whatever one part waits for, another computes meanwhile. The longest begin; a part that fails does not stop the others.
# The tests of the cluster, beside others, are given more time before they call something late.
test-all: $(VENV)/.installed
	@CROSSLIGN_PATIENCE=3 $(MAKE) --no-print-directory -j 2 -k $(SYNC) \
		test-unit test-workflow test-faults-short test-papers test-faults-workflow test-nodes soak-short test-gpu test-long

# What CI runs, within 45 minutes on two slow cores: all of it but what takes longest. The types are checked beside the tests, and tell first.
test-ci: $(VENV)/.installed
	@CROSSLIGN_PATIENCE=3 $(MAKE) --no-print-directory -j 3 -k $(SYNC) lint test-unit test-workflow test-cluster-short test-faults-short test-deploy-short soak-short test-gpu

# They hold the bytes of a CPU: a GPU is hidden from them.
test-unit: test-unit-data test-unit-methods

METHODS := $(addprefix tests/unit/,encoders mining objectives tasks training)

test-unit-methods: $(VENV)/.installed
	CUDA_VISIBLE_DEVICES= $(BIN)/pytest $(METHODS) tests/golden -m "not long"

test-unit-data: $(VENV)/.installed
	CUDA_VISIBLE_DEVICES= $(BIN)/pytest tests/unit $(addprefix --ignore=,$(METHODS)) -m "not long"

# What of it takes minutes: `make test` leaves it out.
test-long: $(VENV)/.installed
	CUDA_VISIBLE_DEVICES= $(BIN)/pytest tests/unit tests/golden tests/faults tests/workflow -m "long and not workflow" -rs

# What `make test` then holds: small results of each stage and implementation under their versions (docs/trust.md).
golden: $(VENV)/.installed
	CUDA_VISIBLE_DEVICES= $(BIN)/python tests/golden/golden.py

# On a machine with little more than torch, transformers, accelerate and pyarrow: PYTHONPATH=src python -m pytest tests/gpu
test-gpu: $(VENV)/.installed
	$(BIN)/pytest tests/gpu -rs

test-workflow: $(VENV)/.installed
	$(BIN)/pytest tests/workflow -m "not long"

# A Slurm of one node, started by hand: needs root and Debian's slurm-wlm and munge, else it is skipped with the reason.
test-cluster: $(VENV)/.installed
	$(BIN)/pytest tests/cluster -rs --timeout 1800

test-cluster-short: $(VENV)/.installed
	$(BIN)/pytest tests/cluster -rs --timeout 1800 -m "not long"

# A Slurm of six nodes: needs Debian's slurmdbd and mariadb-server, too. Jobs read /etc/slurm, so it comes after the one of one node.
test-nodes: test-cluster-short
	$(BIN)/pytest tests/nodes -rs --timeout 1800

# The workflow as others deploy it: as a module, by snakedeploy, from object storage, by another scheduler, on other versions (docs/deploy.md).
test-deploy: $(VENV)/.installed
	$(BIN)/pytest tests/deploy -rs --timeout 1800

test-deploy-short: $(VENV)/.installed
	$(BIN)/pytest $(addprefix tests/deploy/test_,modules.py storage.py editor.py catalogue.py) -rs --timeout 1800 -m "not long"

# Every fault of docs/faults.md; those that run the smallest whole workflow take about ten minutes on two cores.
test-faults: $(VENV)/.installed
	$(BIN)/pytest tests/faults -rs

# Those of them that take seconds.
test-faults-short: $(VENV)/.installed
	$(BIN)/pytest tests/faults -m "not workflow and not long"

# Those of them that run a workflow, which `make test` leaves out.
test-faults-workflow: $(VENV)/.installed
	$(BIN)/pytest tests/faults -m workflow -rs

# What works side by side: 20 times under load, then once in each surrounding that a user may have; at most 90 minutes.
test-repeat: $(VENV)/.installed
	$(BIN)/python tests/repeat.py

# All commands over the smallest finished run, 1,000 times damaged at random each; about two hours.
test-fuzz: $(VENV)/.installed
	$(BIN)/python tests/faults/fuzz.py --damages 1000

soak: $(VENV)/.installed
	$(BIN)/python tests/faults/soak.py --kills 25 --seed 1 --project quick --longest 60

soak-short: $(VENV)/.installed
	$(BIN)/python tests/faults/soak.py --kills 5 --seed 1

test-quick: $(VENV)/.installed
	$(SNAKEMAKE) --config scale=quick

# Under ten minutes on two cores; the tables of all five papers, whole, are `snakemake all_tables --config scale=quick`.
test-papers: $(VENV)/.installed
	$(BIN)/pytest tests/papers

# Triton comes with torch's builds for CUDA alone, and its interpreter works with no later numpy: both lie apart from the packages.
triton: $(VENV)/.installed
	@test -d $(VENV)/triton/triton || $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/triton \
		triton==3.7.1 numpy==2.3.5 2>/dev/null || echo "Triton cannot be installed here: the tests of its kernels are skipped"

# Without it the tests of its translator are skipped; where there is no apt-get, or no right to use it, this says so and goes on.
apertium:
	@apertium -l 2>/dev/null | grep -q es-pt || { apt-get update -q && apt-get install -y -q apertium apertium-eng-spa apertium-fr-es apertium-es-pt; } \
		>/dev/null 2>&1 || echo "Apertium is not installed and cannot be: its tests are skipped"

# What takes a second: CI asks for it before all else.
style: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy
	$(BIN)/snakefmt --check --compact-diff Snakefile workflow
	$(BIN)/snakemake --lint

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

bench: $(VENV)/.installed
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

gpu: $(VENV)/.installed
	PYTHON=$(BIN)/python sh benchmarks/on_gpu.sh

# Builds what is committed; uploads nothing.
release: $(VENV)/.installed
	$(BIN)/python tests/release.py

clean:
	rm -rf $(VENV) .snakemake
