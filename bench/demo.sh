#!/usr/bin/env bash
# `eastwest demo` over and over, half of the runs next to a process that takes 30% of a CPU: how often it names the slow host and the
# ratio and nothing else. As root. Needs ip, tc (iproute2) and python3. EASTWEST names the binary; DEMO_RUNS the number of runs [50].
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/demo.py" "$@"
