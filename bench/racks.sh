#!/usr/bin/env bash
# Racks that nobody named, guessed from a run in a lab of three racks of three hosts: how often the guess is the truth.
# As root. Needs ip, tc (iproute2) and python3. EASTWEST names the binary; BENCH_RUNS=10 is the number of labs, BENCH_SAMPLES=40 of rounds in each.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/racks.py" "$@"
