#!/usr/bin/env bash
# Installs what the tests and the demo need besides Rust, on Debian and Ubuntu, as root. May be run again at any time.
#
#   scripts/setup.sh             fails when something is missing and cannot be installed
#   scripts/setup.sh --optional  says so and goes on: tests that need it skip themselves and say why
#   scripts/setup.sh --demo      what building and the demo need, and nothing for tests
#   scripts/setup.sh --release   what `make release` needs: a C compiler and an emulator for aarch64, and rpmbuild
#   scripts/setup.sh --tools     the load generators that `make test` and `make bench` compare ours with and `run compare-tools` drives, too; for netperf
#                                and lmbench the archive's non-free part (multiverse on Ubuntu) is added to the archive's existing entry
set -euo pipefail

optional=no
with_tools=no
demo_only=no
release_only=no
for word in "$@"; do
    case "$word" in
        --optional) optional=yes ;;
        --tools) with_tools=yes ;;
        --demo) demo_only=yes ;;
        --release) release_only=yes ;;
        *)
            echo "usage: scripts/setup.sh [--optional] [--demo] [--release] [--tools]" >&2
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
    jq:jq
    ps:procps
    unshare:util-linux
    mount:mount
    busybox:busybox
    prometheus:prometheus
    tcsh:tcsh
    fish:fish
    cc:gcc
    openssl:openssl
    rpmbuild:rpm
    chromium:chromium
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
[ "$demo_only" = no ] || needs=(ip:iproute2 tc:iproute2 cc:gcc)
if [ "$release_only" = yes ]; then
    needs=(cc:gcc strip:binutils git:git python3:python3 dpkg-deb:dpkg rpmbuild:rpm)
    case $(uname -m) in
        x86_64) needs+=(aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static) ;;
        aarch64) needs+=(x86_64-linux-gnu-gcc:gcc-x86-64-linux-gnu qemu-x86_64-static:qemu-user-static) ;;
    esac
fi
[ "$with_tools" = no ] || needs+=("${tools[@]}")

# Ubuntu's package of this name is a snap, which root's tests cannot drive: there the report's browser tests skip themselves.
! grep -q '^ID=ubuntu' /etc/os-release || needs=("${needs[@]/chromium:chromium/}")

missing_packages() {
    local need
    {
        for need in "${needs[@]}"; do
            # sshd, ip and tc live in sbin, which is not on every user's path.
            [ -z "$need" ] || PATH="$PATH:/usr/sbin:/sbin" command -v "${need%%:*}" >/dev/null || echo "${need##*:}"
        done
        # The binary is linked statically.
        [ -e "$(cc -print-file-name=libc.a 2>/dev/null)" ] || echo libc6-dev
        # Without a font the browser's pictures are boxes.
        [[ " ${needs[*]} " != *" chromium:"* ]] || [ -n "$(find /usr/share/fonts -name '*.ttf' -print -quit 2>/dev/null)" ] || echo fonts-dejavu-core
        [ "$release_only" = no ] || case $(uname -m) in
            x86_64) [ -e "$(aarch64-linux-gnu-gcc -print-file-name=libc.a 2>/dev/null)" ] || echo libc6-dev-arm64-cross ;;
            aarch64) [ -e "$(x86_64-linux-gnu-gcc -print-file-name=libc.a 2>/dev/null)" ] || echo libc6-dev-amd64-cross ;;
        esac
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
