#!/usr/bin/env bash
# Runs every fuzz target for so many minutes and adds a line for each to fuzz/LOG.md: when, how long, executions, edges covered,
# and whether it crashed. What it finds is in fuzz/artifacts; new inputs that cover more are in fuzz/found, and a few of them, small ones,
# are put next to the committed ones. All targets are built first: what changes later is not fuzzed.
#
# usage: scripts/fuzz.sh MINUTES [TARGET...]         MINUTES 0 only keeps what was found before
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:?how many minutes for each target}
shift
cargo +nightly fuzz --version >/dev/null 2>&1 || {
    echo "fuzzing needs a nightly compiler and cargo-fuzz: rustup toolchain install nightly; cargo install --locked cargo-fuzz" >&2
    exit 2
}
log=fuzz/LOG.md
[ -s "$log" ] || printf '%s\n' '# What was fuzzed' '' '| date (UTC) | commit | target | minutes | executions | edges | outcome |' \
    '| --- | --- | --- | ---: | ---: | ---: | --- |' > "$log"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list)
# Inputs that are directories are written to memory.
if [ -z "${TMPDIR:-}" ] && [ -d /dev/shm ]; then export TMPDIR=/dev/shm; fi
for target in "${targets[@]}"; do cargo +nightly fuzz build "$target"; done
commit=$(git rev-parse --short HEAD)
git diff --quiet HEAD -- crates fuzz/fuzz_targets || commit+=" and changes"
built=fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release

# Of the inputs that cover what the committed ones do not, the smallest: tests replay them with their neighbours at each `make test`.
kept_inputs=16
kept_bytes=2048
keep() { # TARGET
    local corpus=fuzz/corpus/$1 merged count=0 input
    merged=$(mktemp -d)
    # Those that are there are the beginning, so that only what adds to them is written.
    cp "$corpus"/* "$merged"
    "$built/$1" -merge=1 -rss_limit_mb=2048 -timeout=30 "$merged" "fuzz/found/$1" >/dev/null 2>&1 || echo "$1: what was found could not be merged" >&2
    while read -r _ input; do
        [ ! -e "$corpus/$input" ] || continue
        cp "$merged/$input" "$corpus/found-${input:0:12}"
        [ $((++count)) -lt "$kept_inputs" ] || break
    done < <(find "$merged" -type f -size "-$((kept_bytes + 1))c" -printf '%s %f\n' | sort -n)
    rm -rf "$merged"
}

worst=0
for target in "${targets[@]}"; do
    if [ "$minutes" = 0 ]; then keep "$target"; continue; fi
    words=$(mktemp)
    outcome=clean
    mkdir -p "fuzz/artifacts/$target" "fuzz/found/$target"
    # A target counts its own memory; the limit is for what the sanitizer adds. No input takes half a minute.
    "$built/$target" -max_total_time=$((minutes * 60)) -rss_limit_mb=2048 -timeout=30 -print_final_stats=1 \
        "-artifact_prefix=fuzz/artifacts/$target/" "fuzz/found/$target" "fuzz/corpus/$target" > "$words" 2>&1 || { outcome=crashed; worst=1; tail -30 "$words" >&2; }
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$words" | tail -1)
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$words" | tail -1)
    echo "| $(date -u +%F\ %H:%M) | $commit | $target | $minutes | ${executions:--} | ${edges:--} | $outcome |" >> "$log"
    rm -f "$words"
    keep "$target"
    echo "$target: ${executions:--} executions, $outcome"
done
exit "$worst"
