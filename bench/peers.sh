#!/usr/bin/env bash
# Every workload against the tools of the field and against raw loops in C, in turns between two namespaces: the table of bars.
# As root. Needs ip (iproute2), cc, python3 and the peers (scripts/setup.sh --tools). EASTWEST names the binary; see docs/benchmarks.md.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/peers.py" "$@"
