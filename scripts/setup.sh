# Sourced by the other scripts: installs what glasslet needs on this machine. Prints what it does; does nothing twice.
#
#   setup_system    Debian packages: containerd, runc, CNI plugins, busybox (needs root and apt)
#   setup_python    .venv with glasslet and its pinned dependencies; "dev" adds the test tools

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${GLASSLET_VENV:-$ROOT/.venv}
PACKAGES=(containerd runc containernetworking-plugins busybox-static iptables iproute2)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }

setup_system() {
    local missing=() package
    for package in "${PACKAGES[@]}" "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "not installed: ${missing[*]} (needs root on Debian 12); what depends on them will be skipped"
        return 0
    fi
    say "installing Debian packages: ${missing[*]}"
    # A service that the package brings along is not started: glasslet runs a private containerd.
    local policy=/usr/sbin/policy-rc.d ours=
    [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"; ours=1; }
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
    [ -z "$ours" ] || rm -f "$policy"
}

setup_python() {
    local extra=${1:-} python=${PYTHON:-python3} stamp want
    want=$(cat "$ROOT/pyproject.toml" "$ROOT/constraints.txt" | sha256sum)" $extra"
    stamp=$VENV/.glasslet-setup
    [ "$(cat "$stamp" 2>/dev/null)" != "$want" ] && [ "$(cat "$stamp" 2>/dev/null)" != "${want}dev" ] || return 0
    command -v "$python" >/dev/null && "$python" -c 'import ensurepip, venv' 2>/dev/null || setup_system python3 python3-venv
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "glasslet needs Python 3.11 or newer"; exit 1; }
    say "installing glasslet into $VENV"
    [ -x "$VENV/bin/python" ] || "$python" -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check -c "$ROOT/constraints.txt" -e "$ROOT${extra:+[$extra]}"
    echo "$want" >"$stamp"
}
