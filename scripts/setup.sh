#!/usr/bin/env bash
# Installs what the tests and the demo need besides Rust, on Debian and Ubuntu, as root. May be run again at any time.
#
#   scripts/setup.sh             fails when something is missing and cannot be installed
#   scripts/setup.sh --optional  says so and goes on: tests that need it skip themselves and say why
#   scripts/setup.sh --tools     the load generators that `make test` and `make bench` compare ours with and `run compare-tools` drives, too; for netperf
#                                and lmbench the archive's non-free part (multiverse on Ubuntu) is added to the archive's existing entry
set -euo pipefail

optional=no
with_tools=no
for word in "$@"; do
    case "$word" in
        --optional) optional=yes ;;
        --tools) with_tools=yes ;;
        *)
            echo "usage: scripts/setup.sh [--optional] [--tools]" >&2
            exit 2
            ;;
    esac
done

# A command, and the package that brings it.
needs=(
    ip:iproute2
    tc:iproute2
    iperf3:iperf3
    sshd:openssh-server
    ssh:openssh-client
    nodeset:clustershell
    ps:procps
    unshare:util-linux
    mount:mount
    busybox:busybox
    prometheus:prometheus
    tcsh:tcsh
    fish:fish
    cc:gcc
    openssl:openssl
)
# What `run --tool` and `run compare-tools` drive. netperf and lmbench are in the archive's non-free part.
tools=(
    iperf:iperf
    nuttcp:nuttcp
    sockperf:sockperf
    qperf:qperf
    NPtcp:netpipe-tcp
    ping:iputils-ping
    netperf:netperf
    lmbench-run:lmbench
)
[ "$with_tools" = no ] || needs+=("${tools[@]}")

missing_packages() {
    local need
    {
        for need in "${needs[@]}"; do
            # sshd, ip and tc live in sbin, which is not on every user's path.
            PATH="$PATH:/usr/sbin:/sbin" command -v "${need%%:*}" >/dev/null || echo "${need##*:}"
        done
        # The binary is linked statically.
        [ -e "$(cc -print-file-name=libc.a 2>/dev/null)" ] || echo libc6-dev
    } | sort -u
}

give_up() {
    echo "setup: $1" >&2
    if [ "$optional" = yes ]; then
        echo "setup: going on without; what needs it is skipped or says so" >&2
        exit 0
    fi
    exit 1
}

# Installing a server must not start it: the tests start their own, inside namespaces.
forbid_service_starts() {
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        trap 'rm -f "$policy"' EXIT
    fi
}

# Their licences keep netperf and lmbench out of the archive's main part.
offer_restricted_part() {
    local part=non-free file
    grep -q '^ID=ubuntu' /etc/os-release && part=multiverse
    for file in /etc/apt/sources.list.d/{debian,ubuntu}.sources; do
        [ ! -e "$file" ] || sed -i -E "/^Components:/{/ $part( |\$)/! s/\$/ $part/}" "$file"
    done
    [ ! -e /etc/apt/sources.list ] \
        || sed -i -E "/^deb .*(debian|ubuntu).* main( |\$)/{/ $part( |\$)/! s/\$/ $part/}" /etc/apt/sources.list
}

mapfile -t packages < <(missing_packages)
if [ "${#packages[@]}" -eq 0 ]; then
    echo "setup: everything is here"
    exit 0
fi

install=(apt-get install -y --no-install-recommends "${packages[@]}")
command -v apt-get >/dev/null \
    || give_up "missing are (by their Debian names): ${packages[*]}. Install them with this system's package manager."
[ "$(id -u)" -eq 0 ] \
    || give_up "missing are: ${packages[*]}. Install them with: sudo apt-get update && sudo ${install[*]}"

echo "setup: installing ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
forbid_service_starts
case " ${packages[*]} " in *" netperf "* | *" lmbench "*) offer_restricted_part ;; esac
apt-get update -q || echo "setup: package lists are not fresh; trying with those at hand" >&2
"${install[@]}" || give_up "apt-get could not install ${packages[*]}; its reasons are above."
mapfile -t packages < <(missing_packages)
[ "${#packages[@]}" -eq 0 ] || give_up "still missing after the installation: ${packages[*]}"
echo "setup: done"
