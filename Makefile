# What people and CI type. `make demo` and `make test` work on a fresh clone.

CARGO ?= cargo

.PHONY: demo test lint check bench fmt

demo: ## build, then run the main job on real input: no key, no network
	@echo "building (the first time takes some minutes) …"
	@$(CARGO) build --quiet --release --locked
	@tests/demo.sh "$$($(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/memctl"

test: ## all tests
	$(CARGO) test --locked

lint: ## formatting, lints, and documentation without a warning
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

check: lint test ## everything that has to pass before a change lands

bench: ## the figures of the README
	$(CARGO) bench --locked --bench store

fmt: ## format the code
	$(CARGO) fmt
