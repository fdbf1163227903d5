#!/usr/bin/env bash
# What a run of 1,000 hosts of 128 CPUs for 600 s costs: the controller's memory and CPU time, the run directory, the analysis, the page.
# The hosts are processes that only report; links, sessions, recorder and analysis are the real ones. Needs cargo; see docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
cargo run --quiet --release --locked -p ew-controller --example thousand_hosts -- --runs-dir "$runs" \
    --hosts "${BENCH_HOSTS:-1000}" --cpus "${BENCH_CPUS:-128}" --samples "${BENCH_SAMPLES:-600}" --speed "${BENCH_SPEED:-4}"
