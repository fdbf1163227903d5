#!/usr/bin/env bash
# `scripts/test.sh ARGUMENTS`: `cargo test ARGUMENTS`, and each test that failed once more, alone. Tests of labs measure real flows, and a
# machine that others use, too, takes a CPU away for a while now and then. What fails twice has failed; what passes the second time is
# listed as unsteady. More failures than accidents explain are not tried again.
set -uo pipefail
cd "$(dirname "$0")/.."

accidents=3
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cargo test "$@" 2>&1 | tee "$log" && exit
mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
if [ ${#failed[@]} -eq 0 ] || [ ${#failed[@]} -gt $accidents ]; then
	echo "test.sh: ${#failed[@]} tests failed in 'cargo test $*': not tried again"
	exit 1
fi
for name in "${failed[@]}"; do
	echo "test.sh: again, alone: $name"
	cargo test "$@" -- --exact "$name" 2>&1 | tee "$log" || exit 1
	# It did run: no name that is filtered out passes.
	grep -qE '^test result: ok\. [1-9][0-9]* passed' "$log" || exit 1
done
printf 'test.sh: UNSTEADY, passed the second time: %s\n' "${failed[@]}"
