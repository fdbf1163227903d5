#!/usr/bin/env bash
# What others' load costs round trips in labs with one queue for all and with fair queues, and whether messages alone on an idle network take
# equally long in every pass. As root. Needs ip, tc (iproute2) and python3. EASTWEST names the binary; BENCH_RUNS=10 is the number of labs of each kind.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/congestion.py" "$@"
