# Two commands: `make demo` and `make test`. Both install into .venv the first time. `make docs`: the site.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
JOBS ?= 2

.PHONY: demo test docs nightly lint types benchmarks browser clean

# One of each paper, decided at laptop scale, in less than three minutes together (tests/test_site.py).
demo: .venv/.installed
	$(BIN)/advlab run generalization/fig3 convergence/kernel_parity cgro/phases --out demo
	$(BIN)/advlab run purification/pure_start benign/theory_regime --out demo
	$(BIN)/advlab report --out demo --to report.html
	@echo
	@echo "Open report.html in a browser. Look at:"
	@echo "  generalization/fig3        in high dimension training fits everything and learns nothing"
	@echo "  convergence/kernel_parity  what a tangent kernel can and cannot fit"
	@echo "  cgro/phases                learn part of the signal, stall, memorise the rest"
	@echo "  purification/pure_start    clean training adds dense mixtures to neurons, adversarial training removes them"
	@echo "  benign/theory_regime       which lemmas of benign overfitting hold inside their assumptions"
	@echo "Next: .venv/bin/advlab list, docs/five-minutes.md, or the site: make docs"

test: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) $(ARGS)

docs: .venv/.docs
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	@echo "Open site/index.html"

nightly: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m nightly $(ARGS)

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed
	$(BIN)/pyright

benchmarks: .venv/.installed
	$(BIN)/python -m benchmarks

browser:
	bash scripts/install-chromium.sh

# The stamp is younger than what it was made from, so an unchanged checkout installs once.
.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

# Only the site needs these, so a stamp of their own.
.venv/.docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

clean:
	rm -rf .venv demo report.html site
