#!/usr/bin/env bash
# Pods against their nodes on a real Kubernetes of two nodes with NICs of 200 Mb/s: routed, over
# VXLAN, with a CPU limit; the exec link next to ssh's. As root. Needs what tests/kubernetes/run
# needs. EASTWEST names the binary; see docs/benchmarks.md for the other variables.
set -euo pipefail
exec python3 -B "$(dirname "$0")/measure/kubernetes.py" "$@"
