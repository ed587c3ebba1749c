# What people type. `make demo` and `make test` work on a fresh clone. Longer tests and measurements have names of
# their own: `make test-NAME`, `make bench-NAME`.

CARGO ?= cargo
export CARGO

.PHONY: demo test lint check reference docs bench eval fuzz dist

# `make demo DEMO_PROFILE=dev` takes the program that the tests have been built with.
DEMO_PROFILE ?= release
demo: ## build, then show a correction, a lesson and a skill on real input, without key and network
	@echo "building memctl with its embedder and its libraries: the first time takes some minutes"
	@$(CARGO) $(if $(filter dev,$(DEMO_PROFILE)),test --no-run --test it,build --profile $(DEMO_PROFILE)) --locked
	@tests/demo.sh "$$($(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/$(DEMO_PROFILE:dev=debug)/memctl"

# Many tests wait for a process or a lock, so there are more of them than cores.
test: export RUST_TEST_THREADS ?= $(shell expr 2 \* "$$(getconf _NPROCESSORS_ONLN || echo 2)")
test: ## all tests but those with a command of their own
	$(CARGO) test --locked --workspace --exclude memctl-fuzz

test-%: ## tests with a command of their own: clients, exports, storm, database, dependencies, …; `make test-` lists them
	@tools/suite $*

lint: ## formatting, lints, and documentation without a warning
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --exclude memctl-fuzz --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --exclude memctl-fuzz --no-deps --document-private-items

check: lint test ## everything that has to pass before a change lands

reference: ## write the pages below docs/reference that the program can say again
	UPDATE_REFERENCE=1 $(CARGO) test --locked --test it -- reference

# CI leaves the book out: mdBook takes a minute of processor time to build, and `cargo test book` checks the links.
docs: ## build the book into target/book
	@tools/install mdbook
	@target/tools/bin/mdbook build docs && echo "target/book/index.html"

bench: ## the figures of docs/benchmarks.md
	$(CARGO) bench --locked --bench store --bench hooks --bench review

bench-%: ## measurements with a command of their own: commands, check, search, …; `make bench-` lists them
	@tools/measure $*

EVAL_DATA ?=
TRANSCRIPTS ?=
eval: ## measure on data of your own: EVAL_DATA="DIR …" (docs.jsonl, queries.jsonl), TRANSCRIPTS=DIR
	@test -n "$(EVAL_DATA)$(TRANSCRIPTS)" \
		|| { echo 'usage: make eval EVAL_DATA="DIR …" TRANSCRIPTS=DIR'; exit 2; }
	@$(CARGO) build --quiet --release --locked
	@test -z "$(EVAL_DATA)" || tests/eval.py target/release/memctl $(EVAL_DATA)
	@test -z "$(TRANSCRIPTS)" || TRANSCRIPTS="$(TRANSCRIPTS)" tests/eval-learn.sh target/release/memctl --core

fuzz: ## throw bytes at every reader, for FUZZ_SECONDS each (20), two at a time; needs a C++ compiler
	@tools/fuzz

DIST_TARGET ?=
dist: ## all packages of this platform in `target/dist`: wheel, npm, .deb, tarballs, checksums
	@tools/install dist
	PATH="$(CURDIR)/target/tools/python/bin:$(CURDIR)/target/tools/bin:$$PATH" \
		target/tools/python/bin/python packaging/dist.py $(if $(DIST_TARGET),--target $(DIST_TARGET))
