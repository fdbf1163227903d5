#!/bin/sh
# How long a fleet takes to come up behind a jump host with sshd's default MaxStartups and a slow
# uplink: as it is by default, where the agent is handed on from host to host, and once more with the
# kept binary, each against its bar; and with a copy for each host, next to what the uplink takes. Everything is in network namespaces of its own, which go with the
# script. Needs root. The binary must bring agents, as a release's does; with an eastwest-agent next
# to it, it is packed first.
#
#   bench/launch.sh [BINARY [HOSTS [UPLINK]]]     default: $EASTWEST, else the release build, 40 hosts, 20mbit
set -eu
binary=${1:-${EASTWEST:-target/x86_64-unknown-linux-gnu/release/eastwest}}
hosts=${2:-40}
uplink=${3:-20mbit}
# Seconds until the last host is up.
max_s=120
max_kept_s=15

binary=$(realpath "$binary")
prefix=ewl$$
work=$(mktemp -d)
remote=$work/remote
servers=

clean() {
    trap '' EXIT INT TERM
    # Only those that this script started.
    for pid in $servers; do kill "$pid" 2>/dev/null || true; done
    for name in ctl jump $(seq 1 "$hosts"); do ip netns del "$prefix-$name" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM

in_ns() { name=$1; shift; ip netns exec "$prefix-$name" "$@"; }

add_ns() { ip netns add "$prefix-$1"; in_ns "$1" ip link set lo up; }

# Host $1 with address $3 on the jump host's bridge, or for ctl on a link of its own.
connect() {
    ip link add "v$$-$1" netns "$prefix-$1" type veth peer name "p$1" netns "$prefix-jump"
    in_ns "$1" ip link set "v$$-$1" name eth0
    in_ns "$1" ip addr add "$2" dev eth0
    in_ns "$1" ip link set eth0 up
    in_ns jump ip link set "p$1" up
}

serve() {
    cat > "$work/sshd.$1" <<CONFIG
ListenAddress $2
HostKey $work/host_key
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
AuthorizedKeysFile $work/user_key.pub
MaxStartups 10:30:100
AllowTcpForwarding yes
CONFIG
    in_ns "$1" "$(command -v sshd)" -D -f "$work/sshd.$1" 2>"$work/log.$1" &
    servers="$servers $!"
}

build() {
    mkdir -p /run/sshd "$remote"
    chmod 700 "$remote"
    for key in host_key user_key; do ssh-keygen -q -t ed25519 -N '' -f "$work/$key"; done
    add_ns jump
    in_ns jump ip link add br0 type bridge
    in_ns jump ip link set br0 up
    in_ns jump ip addr add 198.18.1.254/24 dev br0
    add_ns ctl
    connect ctl 198.18.0.1/24
    in_ns jump ip addr add 198.18.0.2/24 dev pctl
    in_ns ctl tc qdisc add dev eth0 root tbf rate "$uplink" burst 32k latency 100ms
    serve jump 198.18.0.2
    for n in $(seq 1 "$hosts"); do
        add_ns "$n"
        connect "$n" "198.18.1.$n/24"
        in_ns jump ip link set "p$n" master br0
        serve "$n" "198.18.1.$n"
    done
    {
        printf 'Host bastion\n  HostName 198.18.0.2\n'
        for n in $(seq 1 "$hosts"); do
            printf 'Host n%s\n  HostName 198.18.1.%s\n  ProxyJump bastion\n' "$n" "$n"
        done
        printf 'Host *\n  User root\n  IdentityFile %s\n  IdentitiesOnly yes\n' "$work/user_key"
        printf '  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n'
    } > "$work/ssh_config"
}

# Only what a release copies to hosts is worth a figure.
find_agents() {
    brings_agents "$binary" && return
    agent=$(dirname "$binary")/eastwest-agent
    [ -e "$agent" ] || {
        echo "launch: $binary brings no agents, and $agent is not there; build it with \`cargo build --release --package eastwest-agent\`, or unpack a release (scripts/release.sh)" >&2
        exit 2
    }
    architecture=$(uname -m)
    EASTWEST=$binary AGENT=$agent DIST=$work/dist "$(dirname "$0")/../scripts/release.sh" "$architecture" >"$work/packed" 2>&1 || { cat "$work/packed" >&2; exit 2; }
    tar -xzf "$work/dist/"eastwest-*-"$architecture"-linux.tar.gz -C "$work"
    binary=$(echo "$work"/eastwest-*/usr/bin/eastwest)
    brings_agents "$binary"
}

brings_agents() { readelf --section-headers --wide "$1" | grep -q '\.eastwest\.agent\.'; }

agent_bytes() { readelf --section-headers --wide "$binary" | sed -n "s/.*\.eastwest\.agent\.$(uname -m) *PROGBITS *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/0x\1/p"; }

# Little load and few readings: each of these agents reads the processes of the whole machine.
# Seconds until the last host was up, and how many came up, from the run's own events, against the
# bar, or a note instead of it.
launch() { # LABEL MAX_SECONDS|NOTE WORDS...
    label=$1 bar=$2
    shift 2
    in_ns ctl "$binary" run permutation --hosts "n[1-$hosts]" --ssh-config "$work/ssh_config" --runs-dir "$work/runs.$label" \
        --sample-interval 10s --set duration=300ms --set samples=1 --set rate=1M --seed 1 --quiet --yes --format json "$@" > "$work/out.$label" 2> "$work/err.$label" || true
    events=$(ls "$work/runs.$label"/*/events.jsonl)
    up=$(grep -c '"launch_ns"' "$events" || true)
    last=$(grep -o '"launch_ns":[0-9]*' "$events" | cut -d: -f2 | sort -n | tail -1)
    awk -v label="$label" -v up="$up" -v of="$hosts" -v ns="${last:-0}" -v bar="$bar" 'BEGIN {
        met = up == of && ns <= bar * 1e9
        if (bar ~ /^[0-9]+$/) bar = sprintf("bar %d of %d in at most %d s, %s", of, of, bar, met ? "met" : "MISSED")
        printf "%-8s %d of %d up, the last after %.1f s (%s)\n", label, up, of, ns / 1e9, bar
    }'
    cat "$work/err.$label" >&2
}

find_agents
build
echo "uplink $uplink, agent $(($(agent_bytes))) bytes compressed, as it is copied"
launch default "$max_s"
# With what the next one finds; no bar of its own but the same.
launch prepare "$max_s" --keep-binary --remote-dir "$remote"
launch kept "$max_kept_s" --keep-binary --remote-dir "$remote"
bits=$(($(agent_bytes) * 8 * hosts))
case $uplink in *mbit) note="the copies alone take $((bits / 1000000 / ${uplink%mbit})) s" ;; *) note="no bar" ;; esac
launch copy "$note" --relay never
