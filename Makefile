# SPDX-License-Identifier: GPL-2.0-only
.PHONY: help bench patches replicate check check-fast check-long check-mutants check-foreign check-vm module install-module deb docs lock docs-results clean

KDIR ?= /lib/modules/$(shell uname -r)/build

help:
	@echo 'make bench       time base and patched kernel code, into out/bench.json (BENCH_ARGS=...)'
	@echo 'make patches     write an archive of the patches for each kernel line into out/patches, with git alone'
	@echo 'make replicate   time binds, first uses and unbinds, into out/replicate.json (REPLICATE_ARGS=...)'
	@echo 'make check       lint, type-check and test (PYTEST_ARGS=...)'
	@echo 'make check-fast  make check with the tests that build no kernel code'
	@echo 'make check-long  make check with many more random cases, on every kernel line, patch by patch'
	@echo 'make check-mutants  make faults in the kernel part, and list those that no test sees'
	@echo 'make check-foreign  run fio, stress-ng and selftests of the kernel in guests, base and patched;'
	@echo '                 xfstests and the tests of ndctl too, if they were built (XFSTESTS=DIR NDCTL=DIR)'
	@echo 'make check-vm    make check, and all tests that run in guests: some hours'
	@echo 'make module      build the module for stock kernels, for the running kernel (KDIR=...)'
	@echo 'make install-module  install the module, as root; see docs/stock.md'
	@echo 'make deb         build the Debian packages pagemint-dkms and pagemint, into out/deb'
	@echo 'make docs        write the manual page and shell completions into out/docs'
	@echo 'make docs-results write docs/results.md and the table of the README again, from docs/results'
	@echo 'make lock        resolve the Python packages of a checkout again, into scripts/requirements*.txt'
	@echo 'make clean       remove .venv, out, the module and the tool caches; the download cache stays'

bench:
	@sh scripts/setup
	@mkdir -p out
	@.venv/bin/pagemint bench --json out/bench.json $(BENCH_ARGS)

# The same commit makes the same archives.
patches:
	@mkdir -p out/patches
	@for line in 6.12 7.3; do \
		name=pagemint-$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)-linux-$$line; \
		(cd kernel/series && git archive --prefix=$$name/ HEAD README.md topics $$line) | \
			gzip -n >out/patches/$$name.tar.gz || exit; \
	done
	@cd out/patches && sha256sum *.tar.gz >SHA256SUMS && ls -d "$$PWD"/*

replicate:
	@sh scripts/setup
	@mkdir -p out
	@.venv/bin/python scripts/replicate.py $(REPLICATE_ARGS)

check:
	@sh scripts/setup dev
	@.venv/bin/ruff check -q
	@.venv/bin/ruff format -q --check
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/pytest $(PYTEST_ARGS)

check-fast:
	@$(MAKE) --no-print-directory check PYTEST_ARGS=tests/fast

check-long:
	@PAGEMINT_LONG=1 $(MAKE) --no-print-directory check

check-mutants:
	@sh scripts/setup dev
	@PYTHONPATH=scripts .venv/bin/python -m mutants $(MUTANTS_ARGS)

check-foreign:
	@PAGEMINT_VM=1 sh scripts/setup dev
	@mkdir -p out
	@.venv/bin/pagemint vm --scenario foreign,private,migrate --rebinds 2 --json out/check-foreign.json \
		$(if $(XFSTESTS),--xfstests $(XFSTESTS)) $(if $(NDCTL),--ndctl $(NDCTL)) $(FOREIGN_ARGS)

check-vm:
	@PAGEMINT_VM=1 $(MAKE) --no-print-directory check

module:
	@test -e $(KDIR)/Makefile || \
		{ echo 'no kernel headers in $(KDIR): install the package with those of this kernel, or set KDIR' >&2; exit 1; }
	@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR)/stock modules

install-module: module
	@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR)/stock INSTALL_MOD_DIR=updates \
		CONFIG_MODULE_SIG_ALL= modules_install
	@# Without System.map, which kernel headers lack, modules_install does not run depmod.
	@depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) \
		$$(modinfo -F vermagic stock/pagemint.ko | cut -d' ' -f1)

deb:
	@sh scripts/deb

docs:
	@sh scripts/setup
	@mkdir -p out/docs
	@.venv/bin/argparse-manpage --module pagemint.cli --function parser --prog pagemint \
		--format single-commands-section --manual-title pagemint --project-name pagemint \
		--description 'build patches that initialise memmaps faster, and measure their gain' \
		--output out/docs/pagemint.1 >/dev/null
	@for shell in bash zsh fish; do \
		.venv/bin/shtab --shell $$shell --output out/docs/pagemint.$$shell pagemint.cli.parser || exit; \
	done
	@ls out/docs/*

docs-results:
	@sh scripts/setup
	@.venv/bin/python scripts/results_page.py

LOCK = out/lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command 'make lock' $(LOCK_ARGS)

# Leaves out the packages of other lock files: scripts/setup installs all files.
beside = $(addprefix -c ,$(1)) $$(sed -n 's/^\([^=]*\)==.*/--no-emit-package \1/p' $(1))

lock:
	@python3 -m venv out/lock
	@out/lock/bin/pip install -q --disable-pip-version-check uv
	@printf 'hatchling==1.33.0\nsetuptools\n' | $(LOCK) -o scripts/requirements-build.txt -
	@$(LOCK) $(call beside,scripts/requirements-build.txt) -o scripts/requirements.txt \
		--extra report --extra vm --extra docs pyproject.toml
	@$(LOCK) $(call beside,scripts/requirements-build.txt scripts/requirements.txt) \
		-o scripts/requirements-dev.txt --extra dev pyproject.toml
	@rm -rf out/lock

clean:
	rm -rf .venv out .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	cd stock && rm -rf *.o *.ko *.mod *.mod.c .*.cmd .*.d .tmp_versions Module.symvers modules.order
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
