# Thin: the work is done by cargo, xtask and the scripts. `make help` lists the targets.

HOST       := $(shell rustc -vV | sed -n 's/^host: //p')
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BINARY     := $(TARGET_DIR)/$(HOST)/release/eastwest

.PHONY: help demo test test-engines check bench faults sim fuzz corpus replay setup release site binary

help:
	@echo "make demo    build, emulate a cluster on this machine, qualify it, show the verdict"
	@echo "make test    build and run every test"
	@echo "make test-engines  the same against the real systems: Kubernetes (built once, about 10 minutes), HDFS (jars fetched once), Slurm, packages, the documentation's commands, Grafana's schema and the documentation's site (npm); kept in ~/.cache/eastwest; as root"
	@echo "make check   formatting, lints, rules of the house, documentation, licences and advisories of dependencies"
	@echo "make bench   measure what the documentation claims (takes a while, needs a quiet machine)"
	@echo "make faults  labs with one known fault each, against what eastwest says of them (long; SEEDS=1-20 for fewer)"
	@echo "make sim     simulated worlds with the real controller and agents, and what must always be true of them (SEEDS=1-1000; SEEDS=7 shows one world)"
	@echo "make corpus  record runs with a known truth for make replay (long; as root, SEEDS=1001-1020 for fewer)"
	@echo "make replay  analyse the recorded runs anew, and show what today's analysis makes of them (REPLAY_LIST=1 lists wrong ones)"
	@echo "make fuzz    every fuzz target for MINUTES each (needs nightly and cargo-fuzz); fuzz/LOG.md says what was run"
	@echo "make site    the documentation as a site in dist/site (needs npm)"
	@echo "make release packages for x86-64 and aarch64 in dist/: static binaries, .deb, .rpm, images, SBOM, checksums (long)"
	@echo "make setup   install what tests and demo need (Debian and Ubuntu, as root)"

setup:
	scripts/setup.sh

release:
	scripts/setup.sh --release
	rustup target add aarch64-unknown-linux-gnu
	scripts/release.sh

binary:
	cargo build --locked --release --package eastwest

demo:
	scripts/setup.sh --optional --demo
	$(MAKE) binary
	$(BINARY) demo

check:
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo xtask tidy
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
	scripts/deny.sh
	scripts/check-macos.sh

test:
	scripts/setup.sh --optional --tools
	INSTA_UPDATE=no cargo xtask test

test-engines:
	scripts/setup.sh --optional --tools
	cargo build --locked --workspace --bins --tests
	EASTWEST="$(abspath $(TARGET_DIR)/$(HOST)/debug/eastwest)" tests/all

bench: binary
	scripts/setup.sh --optional --tools
	cargo build --locked --release --package eastwest-agent
	set -e; for script in bench/*.sh; do echo "== $$script"; EASTWEST="$(abspath $(BINARY))" bash "$$script"; done

faults: binary
	scripts/setup.sh --optional
	EASTWEST="$(abspath $(BINARY))" python3 -B bench/measure/faults.py $(if $(SEEDS),--seeds $(SEEDS))

sim:
	cargo run --locked --profile sim --package ew-rehearsal --example rehearse -- $(or $(SEEDS),1-1000)

# Seeds from 1000 on: rules may be tuned with what is recorded here.
corpus: binary
	scripts/setup.sh --optional
	EASTWEST="$(abspath $(BINARY))" python3 -B bench/measure/faults.py --tuning --axes fabrics --seeds $(or $(SEEDS),1001-1300) --corpus bench/corpus

replay:
	cargo test --release --package ew-sim --test replay -- --nocapture

site:
	tests/site/run dist/site

fuzz:
	scripts/fuzz.sh $(or $(MINUTES),30)
