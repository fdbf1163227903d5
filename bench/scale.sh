#!/usr/bin/env bash
# A mesh of 16 hosts against its time bar, start skew, and a qualification of 64 hosts, all emulated on this machine.
# As root. Needs ip, tc (iproute2) and python3. EASTWEST names the binary; see docs/benchmarks.md for the other variables.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/scale.py" "$@"
