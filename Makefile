# The only task runner. `make help` lists what it does.
.DEFAULT_GOAL := help
.PHONY: help run test guests guest-big build setup lint fmt clean bench-peers bench bench-full bench-guard

# make run PORT=9090 GUEST=hello-p3, or GUEST=path/to/any.wasm, ARGS="--access-log"
PORT ?= 8080
GUEST ?= hello
ARGS ?=

WASM := guest/target/wasm32-wasip2/release
HOST := target/release/cloudgo-host
BENCH := target/release/cloudgo-bench
# A name of guest/examples or guest/fixtures, or a path to a component.
GUEST_FILE = $(if $(findstring /,$(GUEST))$(findstring .,$(GUEST)),$(GUEST),$(WASM)/$(subst -,_,$(GUEST)).wasm)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make run PORT=9090 GUEST=hello-p3 ARGS=\"--access-log\"   GUEST is a name or the path of a .wasm file"

run: setup guests build ## set up, build the guests and the host, and serve a guest on PORT (8080)
	$(HOST) -p $(PORT) $(ARGS) $(GUEST_FILE)

test: setup guests guest-big ## set up, then run every test
	cd guest && cargo test --quiet
	cargo test --workspace --lib --bins --tests

guests: setup ## build the example and fixture guests for wasm32-wasip2
	cd guest && cargo build --quiet --release --target wasm32-wasip2

guest-big: setup ## build the 10 MB guest for measuring start-up, which takes a minute
	cd guest && cargo build --quiet --release --target wasm32-wasip2 -p big

build: setup ## build the host, optimised
	cargo build --release

bench-peers: setup ## build what the host is compared with, some of it from Debian: 10 to 25 minutes at first
	bench/peers/build

# make bench-guard STORE=1 stores what is measured as the new limit.
bench-guard: guests ## compare what one request allocates with what is stored
	$(if $(STORE),BENCH_GUARD_STORE=1 )cargo test --quiet -p cloudgo-bench --test guard -- --nocapture

bench: guests build ## compare the host with its peers, about 5 minutes: bench/results/REPORT.md
	cargo build --release -p cloudgo-bench
	$(BENCH) compare --quick

bench-full: guests build ## compare in every scenario, with more rounds: about an hour
	cargo build --release -p cloudgo-bench
	$(BENCH) compare

setup: ## install what is missing: the wasm target, and on Debian a C compiler
	@.ci/setup

lint: setup ## check formatting, lints, layers and documentation
	cargo fmt --check
	cd guest && cargo fmt --check
	cd bench/peers/native && cargo fmt --check
	.ci/layers
	cargo clippy --workspace --all-targets -- -D warnings
	cd guest && cargo clippy --quiet --release --target wasm32-wasip2 --workspace -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --document-private-items

fmt: ## format everything
	cargo fmt
	cd guest && cargo fmt

clean: ## remove everything that was built
	cargo clean
	cd guest && cargo clean
