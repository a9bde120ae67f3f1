# matnb's commands. `make demo` and `make test` each do all of their own set-up in .venv.

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
REPORT := out/pagerank.html
# Taken literally, so that a dollar sign or a space in a file's name survives.
export GRAPH_FILE := $(value GRAPH)
# Images often set it; the many processes of tests, demos and reports would each compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test slow browser lint docs bench lab clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

# Machine code that is missing is made beside what a user does first: at low priority, by one process a machine.
COMPILING = [ -n "$$CI$$MATNB_COMPILE" ] || nice -n 10 .venv/bin/matnb compile < /dev/null > /dev/null 2>&1 &

demo: .venv/.installed-notebook ## Write the PageRank report of a generated graph, or of GRAPH=FILE.
	@$(COMPILING)
	@mkdir -p $(dir $(REPORT))
	@if [ -z "$$GRAPH_FILE" ]; then \
		.venv/bin/matnb report example_notebooks/01_pagerank.ipynb -o $(REPORT); \
	else \
		case "$$GRAPH_FILE" in \
			/*|*://*) ;; \
			*) GRAPH_FILE="$$PWD/$$GRAPH_FILE" ;; \
		esac; \
		.venv/bin/matnb report example_notebooks/01_pagerank.ipynb -p graph "$$GRAPH_FILE" -o $(REPORT); \
	fi
	@echo "The report is in $(REPORT): open it in a browser."

test: .venv/.installed-test ## Run the tests, but the slow ones.
	@$(VENV_PYTHON) -m pytest -q -m "not slow" -n 3 --dist loadfile --no-loadscope-reorder

# Slow tests that time what runs, or need all processors.
ALONE := tests/laws/test_memory.py tests/session/test_rebalance_scenarios.py tests/widgets/test_monitor_costs.py

slow: .venv/.installed-test ## Run the slow tests, but those in JupyterLab.
	@$(VENV_PYTHON) -m pytest -q -m slow -n 2 --dist loadfile --ignore=tests/browser $(addprefix --ignore=,$(ALONE))
	@$(VENV_PYTHON) -m pytest -q -m slow $(ALONE)

browser: .venv/.installed-test ## Run the tests in JupyterLab, in Debian's chromium.
	@$(VENV_PYTHON) -m pytest -q tests/browser

lint: .venv/.installed-lint ## Check style, formatting and types.
	@$(VENV_PYTHON) -m ruff check .
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m mypy

docs: .venv/.installed-docs ## Build the documentation in out/docs, with every notebook and example run.
	@rm -rf docs/api/generated # pages of names that are gone would be warned of
	@$(VENV_PYTHON) docs/gallery.py
	@$(VENV_PYTHON) -m sphinx -q -W --keep-going -b html -d out/doctrees docs out/docs
	@echo "The documentation is in out/docs/index.html: open it in a browser."

# No claims: idle.py refuses a busy machine, report.py writes docs/performance.md from what the others found, and
# checkouts.py compares two checkouts.
CLAIMS := $(filter-out $(addprefix benchmarks/,checkouts.py idle.py report.py),$(sort $(wildcard benchmarks/*.py)))

bench: .venv/.installed-test,bench ## Run every benchmark and write docs/performance.md; BUSY=1 goes on though the machine is not idle.
	@[ -n "$(BUSY)" ] || $(VENV_PYTHON) benchmarks/idle.py
	@for script in $(CLAIMS); do \
		echo "== $$script"; $(VENV_PYTHON) "$$script" $(if $(BUSY),--busy) || exit 1; \
	done
	@$(VENV_PYTHON) benchmarks/report.py

lab: .venv/.installed-notebook ## Open JupyterLab on the example notebooks.
	@$(COMPILING)
	@$(VENV_PYTHON) -m jupyterlab example_notebooks

clean: ## Remove .venv, reports, caches and builds.
	rm -rf .venv out docs/gallery docs/api/generated dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find matnb tests benchmarks example_notebooks \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune \
		-exec rm -rf {} +

# The stamps stand for "this Python" and "these extras of pyproject.toml are installed"; both steps may be repeated.
.venv/.created:
	@command -v "$(PYTHON)" > /dev/null || { \
		echo "matnb needs Python 3.11 or newer: $(PYTHON) was not found; name one with PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "matnb needs Python 3.11 or newer: $(PYTHON) is $$("$(PYTHON)" --version 2>&1); name another with PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || { \
		echo "matnb needs Python's venv module: install it (on Debian and Ubuntu the package python3-venv)" >&2; exit 1; }
	@"$(PYTHON)" -m venv .venv
	@touch $@

.venv/.installed-%: pyproject.toml .venv/.created
	@echo "Installing matnb[$*] into .venv; the first time takes a while."
	@$(VENV_PYTHON) -m pip install -q --disable-pip-version-check -e ".[$*]"
	@touch $@
