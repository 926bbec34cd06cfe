# SPDX-License-Identifier: GPL-2.0-only
.PHONY: help bench check check-long check-vm clean

help:
	@echo 'make bench       time base and patched kernel code, into out/bench.json (BENCH_ARGS=...)'
	@echo 'make check       lint, type-check and test'
	@echo 'make check-long  the same with many more random cases'
	@echo 'make check-vm    the same on debug kernels in guests as well: an hour'
	@echo 'make clean       remove .venv, out and the tool caches; the download cache stays'

bench:
	@sh scripts/setup
	@mkdir -p out
	@.venv/bin/pagemint bench --json out/bench.json $(BENCH_ARGS)

check:
	@sh scripts/setup dev
	@.venv/bin/ruff check -q
	@.venv/bin/ruff format -q --check
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/pytest

check-long:
	@PAGEMINT_LONG=1 $(MAKE) --no-print-directory check

check-vm:
	@PAGEMINT_VM=1 $(MAKE) --no-print-directory check

clean:
	rm -rf .venv out .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
