#!/usr/bin/env bash
# The same flow by eastwest's engine and by the stock iperf3, in turns: on a link with a known rate, and on loopback.
# As root. Needs ip, tc (iproute2), iperf3 and python3. EASTWEST names the binary; see docs/benchmarks.md for the other variables.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/against_iperf3.py" "$@"
