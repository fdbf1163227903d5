#!/usr/bin/env bash
# What is given out for a version, into dist/: for x86-64 and aarch64 a static, stripped binary in a tar file with man pages, completions and
# licences, a .deb, a .rpm, a container image and an SBOM (CycloneDX); and SHA256SUMS over all of it. Each binary brings the agents of all
# architectures that are built here, compressed, in sections that nothing loads (crates/ew-fleet/src/payload.rs reads them).
#
#   scripts/release.sh                     builds for both architectures (aarch64 needs gcc-aarch64-linux-gnu and `rustup target add`)
#   scripts/release.sh ARCHITECTURE...     builds for these only: x86_64, aarch64
#   EASTWEST=BINARY scripts/release.sh ARCHITECTURE   packs a binary that is built already; AGENT=BINARY is its agent
#
# DIST is another folder for the result, MAX_AGENT_BYTES another limit for an agent as it travels, COMPRESSION a level below 9, for less time. Files have the time of the last commit, so the same source gives the same packages.
set -euo pipefail
cd "$(dirname "$0")/.."

architectures=("$@")
[ "$#" -gt 0 ] || architectures=(x86_64 aarch64)
dist=${DIST:-dist}
max_agent_bytes=${MAX_AGENT_BYTES:-9000000}
compression=${COMPRESSION:-9}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
summary="qualifies a cluster's network: one binary, one command, one verdict"
homepage=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)

fail() {
    echo "release: $1" >&2
    exit 1
}

# Prints the folder of the binaries.
build() { # ARCHITECTURE
    local target=$1-unknown-linux-gnu
    if [ "$1" != "$(uname -m)" ]; then
        command -v "$1-linux-gnu-gcc" >/dev/null || fail "no C compiler for $1; install gcc-${1/_/-}-linux-gnu and its libc6-dev cross package (scripts/setup.sh --release)"
        local upper=${target^^}
        export "CARGO_TARGET_${upper//-/_}_LINKER=$1-linux-gnu-gcc" "CC_${target//-/_}=$1-linux-gnu-gcc" "AR_${target//-/_}=$1-linux-gnu-ar"
    fi
    cargo build --locked --release --package eastwest --package eastwest-agent --target "$target" >&2
    echo "${CARGO_TARGET_DIR:-target}/$target/release"
}

# binutils for an architecture.
tool_for() { # ARCHITECTURE TOOL
    if [ "$1" = "$(uname -m)" ]; then echo "$2"; else echo "$1-linux-gnu-$2"; fi
}

# Stripped and compressed, as it travels.
pack_agent() { # ARCHITECTURE BINARY
    check_static "$2"
    "$(tool_for "$1" strip)" -o "$work/agent-$1" "$2"
    gzip "-$compression" -n <"$work/agent-$1" >"$work/agent-$1.gz"
    added_agents+=(--add-section ".eastwest.agent.$1=$work/agent-$1.gz")
    local size
    size=$(stat -c %s "$work/agent-$1.gz")
    echo "release: agent for $1: $size bytes compressed" >&2
    [ "$size" -le "$max_agent_bytes" ] || fail "the agent for $1 has $size bytes compressed, above $max_agent_bytes: every host waits for them; leave a dependency out (cargo bloat --crates)"
}

check_static() { # BINARY
    ! LC_ALL=C readelf --program-headers "$1" | grep -q INTERP || fail "$1 is dynamically linked; build with the project's .cargo/config.toml"
}

# The binary of another architecture runs where qemu-user is set up for it.
runner() { # ARCHITECTURE
    if [ "$1" = "$(uname -m)" ]; then
        echo ""
    else
        command -v "qemu-$1-static" || command -v "qemu-$1" || true
    fi
}

# What a package holds, below the folder: pages and completions are made once, by a binary that runs here.
lay_out() { # ARCHITECTURE BINARY FOLDER
    local root=$3
    mkdir -p "$root/usr/bin"
    "$(tool_for "$1" strip)" -o "$work/eastwest-$1" "$2"
    "$(tool_for "$1" objcopy)" "${added_agents[@]}" "$work/eastwest-$1" "$root/usr/bin/eastwest"
    mkdir -p "$root"/usr/share/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,doc/eastwest}
    "${maker[@]}" man "$root/usr/share/man/man1"
    gzip -9n "$root"/usr/share/man/man1/*.1
    "${maker[@]}" completions bash >"$root/usr/share/bash-completion/completions/eastwest"
    "${maker[@]}" completions zsh >"$root/usr/share/zsh/vendor-completions/_eastwest"
    "${maker[@]}" completions fish >"$root/usr/share/fish/vendor_completions.d/eastwest.fish"
    cp LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$root/usr/share/doc/eastwest/"
    printf 'Upstream: %s\nLicense: MIT OR Apache-2.0; LICENSE-MIT and LICENSE-APACHE next to this file.\n' "$homepage" >"$root/usr/share/doc/eastwest/copyright"
    find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

pack_tar() { # ARCHITECTURE ROOT
    tar --create --use-compress-program="gzip -$compression -n" --file "$dist/eastwest-$version-$1-linux.tar.gz" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$SOURCE_DATE_EPOCH" --transform "s,^\./,eastwest-$version/," --directory "$2" .
}

pack_deb() { # ARCHITECTURE ROOT
    local architecture=amd64 work
    [ "$1" = x86_64 ] || architecture=arm64
    work=$(mktemp -d)
    cp -a "$2/." "$work"
    mkdir "$work/DEBIAN"
    cat >"$work/DEBIAN/control" <<CONTROL
Package: eastwest
Version: $version
Architecture: $architecture
Maintainer: eastwest developers <noreply@example.org>
Installed-Size: $(du --apparent-size -ks "$2" | cut -f1)
Recommends: openssh-client
Suggests: iproute2
Section: net
Priority: optional
Homepage: $homepage
Description: $summary
 It copies itself to every host, drives synchronised load between them, watches every host, and
 reports what limits the network, with numbers, intervals and evidence.
CONTROL
    chmod 755 "$work"
    # As dpkg-deb does by itself at the most: beyond, unpacking takes 65 MiB of memory (xz(1)).
    dpkg-deb --root-owner-group -Zxz "-z$((compression < 6 ? compression : 6))" --build "$work" "$dist/eastwest_${version}_$architecture.deb" >/dev/null
    rm -r "$work"
}

pack_rpm() { # ARCHITECTURE ROOT
    local top
    top=$(mktemp -d)
    cat >"$top/eastwest.spec" <<SPEC
Name: eastwest
Version: ${version//-/_}
Release: 1
Summary: ${summary^}
License: MIT OR Apache-2.0
URL: $homepage
AutoReqProv: no
Recommends: openssh-clients
%define _build_id_links none
%define __strip /bin/true
%define __os_install_post %{nil}
%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%description
It copies itself to every host, drives synchronised load between them, watches every host, and
reports what limits the network, with numbers, intervals and evidence.
%install
cp -a "$2/." %{buildroot}
%files
%defattr(-,root,root)
/usr/bin/eastwest
/usr/share/man/man1/*
/usr/share/bash-completion/completions/eastwest
/usr/share/zsh/vendor-completions/_eastwest
/usr/share/fish/vendor_completions.d/eastwest.fish
/usr/share/doc/eastwest
SPEC
    rpmbuild --quiet --target "$1-linux" --define "_binary_payload w$compression.gzdio" --define "_topdir $top" --define "_rpmdir $top/rpms" -bb "$top/eastwest.spec" 2>"$top/log" || { cat "$top/log" >&2; fail "rpmbuild failed"; }
    cp "$top"/rpms/*/*.rpm "$dist/"
    rm -r "$top"
}

mkdir -p "$dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declare -A binaries
added_agents=()
for architecture in "${architectures[@]}"; do
    case $architecture in x86_64 | aarch64) ;; *) fail "unknown architecture $architecture; there are x86_64 and aarch64" ;; esac
    if [ -n "${EASTWEST:-}" ]; then
        binaries[$architecture]=$EASTWEST
        [ -z "${AGENT:-}" ] || pack_agent "$architecture" "$AGENT"
    else
        built=$(build "$architecture")
        binaries[$architecture]=$built/eastwest
        pack_agent "$architecture" "$built/eastwest-agent"
    fi
    check_static "${binaries[$architecture]}"
done
maker=()
for architecture in "${architectures[@]}"; do
    run=$(runner "$architecture")
    [ "$architecture" = "$(uname -m)" ] || [ -n "$run" ] || continue
    [ "${#maker[@]}" -gt 0 ] || maker=(${run:+"$run"} "${binaries[$architecture]}")
done
[ "${#maker[@]}" -gt 0 ] || fail "no binary of these runs here to make its man pages; install qemu-user-static"
for architecture in "${architectures[@]}"; do
    root=$work/$architecture
    lay_out "$architecture" "${binaries[$architecture]}" "$root"
    pack_tar "$architecture" "$root"
    if command -v dpkg-deb >/dev/null; then pack_deb "$architecture" "$root"; else echo "release: without dpkg-deb there is no .deb" >&2; fi
    if command -v rpmbuild >/dev/null; then pack_rpm "$architecture" "$root"; else echo "release: without rpmbuild there is no .rpm" >&2; fi
    python3 -B scripts/sbom.py "$architecture-unknown-linux-gnu" >"$dist/eastwest-$version-$architecture.cdx.json"
    run=$(runner "$architecture")
    if [ "$architecture" = "$(uname -m)" ] || [ -n "$run" ]; then
        ${run:+"$run"} "$root/usr/bin/eastwest" image --output "$dist/eastwest-$version-$architecture-image.tar" 2>/dev/null
    fi
done
(cd "$dist" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
ls -l "$dist"
