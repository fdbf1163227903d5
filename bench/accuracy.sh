#!/usr/bin/env bash
# Accuracy against the truth of emulated networks: one flow alone, oversubscription, slow hosts, and no false accusation.
# As root. Needs ip, tc (iproute2) and python3. EASTWEST names the binary; see docs/benchmarks.md for the other variables.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/accuracy.py" "$@"
