#!/usr/bin/env bash
# Checks that the crates which a controller needs compile for macOS: names and types, without an Apple SDK. C code is not compiled, and
# nothing is linked or run. Skips where the target's standard library is not installed (`rustup target add aarch64-apple-darwin`).
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-apple-darwin
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    echo "skipped: check-macos: no standard library for $target; rustup target add $target"
    exit 0
fi
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
# In place of C compiler and archiver: what they would write, empty.
cat >"$tools/cc" <<'SCRIPT'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in -o) : >"$2"; shift ;; esac
    shift
done
SCRIPT
cat >"$tools/ar" <<'SCRIPT'
#!/bin/sh
for word; do
    case $word in *.a) : >"$word" ;; esac
done
SCRIPT
chmod 755 "$tools"/*
export CC_aarch64_apple_darwin=$tools/cc AR_aarch64_apple_darwin=$tools/ar SDKROOT=$tools
"${CARGO:-cargo}" check --locked --target "$target" --package ew-controller --package ew-report --package ew-sim
