# Thin: the work is done by cargo, xtask and the scripts. `make help` lists the targets.

HOST       := $(shell rustc -vV | sed -n 's/^host: //p')
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BINARY     := $(TARGET_DIR)/$(HOST)/release/eastwest

.PHONY: help demo test check bench faults setup release

help:
	@echo "make demo    build, emulate a cluster on this machine, qualify it, show the verdict"
	@echo "make test    build and run every test"
	@echo "make check   formatting, lints, rules of the house, documentation"
	@echo "make bench   measure what the documentation claims (takes a while, needs a quiet machine)"
	@echo "make faults  labs with one known fault each, against what eastwest says of them (long; SEEDS=1-20 for fewer)"
	@echo "make setup   install what tests and demo need (Debian and Ubuntu, as root)"

setup:
	scripts/setup.sh

release:
	cargo build --release --package eastwest

demo: release
	scripts/setup.sh --optional
	$(BINARY) demo

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo xtask tidy
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# The binary comes first, since tests of other packages start it.
test:
	scripts/setup.sh --optional
	cargo build --package eastwest
	INSTA_UPDATE=no cargo test --workspace --no-fail-fast

bench: release
	scripts/setup.sh --optional --bench
	set -e; for script in bench/*.sh; do echo "== $$script"; EASTWEST="$(abspath $(BINARY))" bash "$$script"; done

faults: release
	scripts/setup.sh --optional
	EASTWEST="$(abspath $(BINARY))" python3 -B bench/measure/faults.py $(if $(SEEDS),--seeds $(SEEDS))
