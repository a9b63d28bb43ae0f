# Two commands: `make demo` and `make test`. Both install into .venv the first time. `make docs`: the site.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
JOBS ?= 2

.PHONY: demo test docs nightly lint types benchmarks browser clean

demo: .venv/.installed
	$(BIN)/advlab run generalization/fig3 convergence/kernel_parity cgro/phases --out demo
	$(BIN)/advlab run benign/theory_regime --seeds 3 --out demo
	$(BIN)/advlab run purification/lottery_tickets --seeds 3 --out demo
	$(BIN)/advlab report --out demo --to report.html
	@echo
	@echo "Open report.html in a browser. Look at:"
	@echo "  generalization/fig3           in high dimension training fits everything and learns nothing"
	@echo "  cgro/phases                   learn part of the signal, stall, memorise the rest"
	@echo "  convergence/kernel_parity     what a tangent kernel can and cannot fit"
	@echo "  benign/theory_regime          inside the assumptions of benign overfitting (3 seeds: mostly undecided)"
	@echo "  purification/lottery_tickets  which neuron wins which atom (3 seeds: mostly undecided)"
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
