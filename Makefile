# Needs: make, a POSIX shell, Python 3.11 to 3.14 with venv; the package registry for the first run only.
# PYTHON=/path/to/python chooses the interpreter that .venv is made with, ARGS='-k kl' is handed to pytest.

PYTHON =
ARGS =
PY = .venv/bin/python
READY = .venv/ready

# An environment that was set up in another folder (moved, or copied with the tree) runs that folder's code: not ready.
STALE := $(shell test ! -e $(READY) || test "$$(cat $(READY))" = "$$(pwd -P)" || rm -f $(READY))

.PHONY: help check test lint format coverage clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile

check: $(READY) ## judge the reference implementation, then a wrong one, and show both verdicts
	@echo '=== rlassay check rlassay_impl: the reference, which should pass'
	@reference=0; wrong=0; \
	$(PY) -m rlassay check rlassay_impl || reference=$$?; \
	echo; echo '=== rlassay check examples/wrong_std.py: a wrong implementation, which should fail'; \
	$(PY) -m rlassay check examples/wrong_std.py || wrong=$$?; \
	echo; echo "=== the reference: exit code $$reference, 0 expected; the wrong one: exit code $$wrong, 1 expected"; \
	test $$reference -eq 0 && test $$wrong -eq 1

test: $(READY) ## run the tests, then (without ARGS) the suite on every known fault and correct variant
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n 2 $(ARGS)
	@test -n "$(ARGS)" || $(PY) -m rlassay faults

lint: $(READY) ## check style and types
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy

format: $(READY) ## mend what of the style can be mended without you
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

coverage: $(READY) ## run the tests and show which lines and branches they miss
	@OMP_NUM_THREADS=1 $(PY) -m coverage run -m pytest $(ARGS)
	@$(PY) -m coverage report --show-missing --skip-covered

clean: ## remove the environment, the caches and what was built
	rm -rf .venv .tox build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Hatchling is installed beside the package and builds it without isolation: what is there already is not fetched again.
$(READY): pyproject.toml constraints.txt
	@set -e; log=.venv/setup.log; \
	fail() { echo "setup failed: $$1" >&2; exit 2; }; \
	usable() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; }; \
	if ! usable $(PY); then \
	    python='$(PYTHON)'; \
	    if [ -z "$$python" ]; then \
	        for name in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	            if usable "$$name"; then python=$$name; break; fi; \
	        done; \
	    fi; \
	    [ -n "$$python" ] || fail "found no Python 3.11 to 3.14 with venv (Debian and Ubuntu: python3-venv); name one with PYTHON=/path/to/python"; \
	    usable "$$python" || fail "'$$python' is not a Python 3.11 to 3.14 with venv (Debian and Ubuntu: python3-venv)"; \
	    echo "[1/4] making .venv with $$("$$python" --version)"; \
	    rm -rf .venv; "$$python" -m venv .venv; \
	fi; \
	install() { \
	    $(PY) -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt "$$@" >>$$log 2>&1 || { \
	        grep -v '^WARNING' $$log | tail -n 15 >&2; \
	        fail "pip could not install $$* (all it said: $$log); is the package registry reachable?"; }; }; \
	: >$$log; \
	echo '[2/4] installing the build tool'; install hatchling; \
	echo '[3/4] installing torch (the largest download, minutes the first time)'; install torch; \
	echo '[4/4] installing rlassay, what it needs and the development tools'; \
	install --no-build-isolation -e '.[test,lint]'; \
	pwd -P >$(READY); \
	echo 'ready'
