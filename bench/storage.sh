#!/usr/bin/env bash
# HDFS on emulated hosts with known NICs and disks: fan-in against the truth, a slow disk named,
# dfsio next to Hadoop's own TestDFSIO. As root. Needs what tests/hadoop/run needs. EASTWEST names
# the binary; see docs/benchmarks.md for the other variables.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/storage.py" "$@"
