#!/usr/bin/env bash
# What reading a host's counters costs during a measurement, on hosts with 1,000 TCP sockets: two network namespaces on this machine.
# As root. Needs ip (iproute2) and python3. EASTWEST names the binary; see docs/benchmarks.md for the other variables.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/telemetry.py" "$@"
