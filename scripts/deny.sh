#!/usr/bin/env bash
# Licences, sources, bans and advisories of every dependency, by deny.toml. Skips what cannot be had here, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deny --version >/dev/null 2>&1; then
    echo "skipped: cargo-deny is not installed (cargo install --locked cargo-deny)"
    exit 0
fi
cargo deny --locked check bans licenses sources
# The advisories are a repository on the network, of which an older copy will do.
cargo deny --locked check advisories || {
    status=$?
    if cargo deny --locked check --disable-fetch advisories; then
        echo "advisories: only the copy here could be looked at, the newest could not be fetched"
    elif [ -d "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs" ]; then
        exit "$status"
    else
        echo "skipped: the advisories could not be fetched"
    fi
}
