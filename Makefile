# `make demo` shows it, `make test` tests everything, `make quick` what fits in a minute. Each creates
# its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: demo test quick docs sanitize quick-list lint style format clean
# What `make quick` tests: laws, descriptions and contracts, without what is marked slow.
QUICK := tests/laws tests/substrate tests/hw_models/test_quantize_laws.py \
	tests/test_config.py tests/test_imports.py tests/test_light_import.py \
	tests/test_metrics.py tests/test_replicas.py tests/test_solvers.py tests/test_verdict.py

demo: $(STAMP)
	$(BIN)/pcsim demo

test: $(STAMP) lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

quick: $(STAMP) style
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m 'not slow and not brian and not spice' $(QUICK)

# What `make sanitize` runs: all engines' steps in C, batches, places, and the pulses of a batch.
SANITIZED := tests/conformance tests/substrate/test_counter.py tests/substrate/test_compiled_places.py \
	tests/substrate/test_kernel_functions.py tests/substrate/test_threads.py \
	tests/hw_models/test_pulses_of_samples.py

# Compiled steps under the address and undefined-behaviour sanitizers: wrong sizes stop the run. Nothing
# is optimised: what is compiled is run for a few steps, and a compiler takes five times as long with -O1 -g.
sanitize: $(STAMP)
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 OMP_NUM_THREADS=1 \
	PCSIM_CFLAGS="-O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all" \
	$(BIN)/pytest -q -p no:cacheprovider --timeout 3000 -o faulthandler_timeout=0 $(SANITIZED) \
	-m "not brian and not spice" -k "native or quiet or compiled or substrate or pulses_of_samples"

# The documentation site, in build/site; any warning (a broken link, an anchor, a page outside the
# navigation) is an error.
docs: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs,brian]'
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/mkdocs build --strict

quick-list:
	@echo $(QUICK)

lint: $(STAMP) style
	$(BIN)/mypy

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,brian]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) out build dist
