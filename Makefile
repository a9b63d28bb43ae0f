# Two commands: `make demo` and `make test`. Both install into .venv the first time.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
JOBS ?= 2

.PHONY: demo test nightly lint types benchmarks browser clean

demo: .venv/.installed
	$(BIN)/advlab run generalization/fig3 convergence/kernel_parity cgro/phases --out demo
	$(BIN)/advlab run benign/theory_regime --seeds 3 --out demo
	$(BIN)/advlab run purification/lottery_tickets --seeds 3 --out demo
	$(BIN)/advlab report --out demo --to report.html

test: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) $(ARGS)

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

clean:
	rm -rf .venv demo report.html
