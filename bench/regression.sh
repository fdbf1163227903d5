#!/usr/bin/env bash
# Every workload by this build and by an older one, in turns between two namespaces. BENCH_OLDER names the older one.
# As root. Needs ip (iproute2) and python3. EASTWEST names the binary; see docs/benchmarks.md.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/regression.py" "$@"
