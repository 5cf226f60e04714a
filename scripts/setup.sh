#!/usr/bin/env bash
# Make this checkout ready: the system packages of the lab and the tests, and a Python environment from the lock.
# usage: scripts/setup.sh [--newest]   (--newest also makes .venv-newest with the newest Python found, for the tests)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf 'setup: %s\n' "$*" >&2; }
die() {
    printf 'setup: error: %s\n' "$*" >&2
    exit 1
}

# command:package, or /path:package
needs=(
    podman:podman crun:crun mmdebstrap:mmdebstrap apt-ftparchive:apt-utils dpkg-deb:dpkg gpg:gnupg ssh:openssh-client
    ssh-keygen:openssh-client shellcheck:shellcheck git:git make:make unshare:util-linux nsenter:util-linux pdftotext:poppler-utils
    modinfo:kmod qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils mke2fs:e2fsprogs /usr/share/OVMF/OVMF_CODE_4M.fd:ovmf
    /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
)

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "root is needed to install packages, and sudo is not here: run scripts/setup.sh as root once"
    fi
}

missing_packages() {
    local need what package
    for need in "${needs[@]}"; do
        what=${need%%:*}
        package=${need##*:}
        case $what in
        /*) [ -e "$what" ] || printf '%s\n' "$package" ;;
        *) command -v "$what" >/dev/null || [ -x "/usr/sbin/$what" ] || printf '%s\n' "$package" ;;
        esac
    done
    browser_packages
    scripts/python.sh oldest >/dev/null 2>&1 || python_packages
}

browser_packages() { # for tests/browser; a system whose archive has no Chromium (Ubuntu: a snap) does without
    local name
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        if command -v "$name" >/dev/null; then return 0; fi
    done
    if apt-cache show chromium >/dev/null 2>&1; then printf 'chromium\n'; fi
}

python_packages() {
    local version
    if command -v python3 >/dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        printf 'python3-venv\n'
        return
    fi
    for version in 3.13 3.12 3.11; do
        if apt-cache show "python$version-venv" >/dev/null 2>&1; then
            printf 'python%s\npython%s-venv\n' "$version" "$version"
            return
        fi
    done
    printf 'python3\npython3-venv\n'
}

install_packages() {
    local packages=()
    mapfile -t packages < <(missing_packages | sort -u)
    [ "${#packages[@]}" -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "this machine lacks ${packages[*]}, and only apt is known here: install them by hand"
    say "installing ${packages[*]}"
    as_root apt-get -qq update || say "the package lists could not all be refreshed; going on with those that are here"
    mapfile -t packages < <(missing_packages | sort -u)
    mkdir -p .cache
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install --yes \
        --no-install-recommends "${packages[@]}" >.cache/setup-apt.log 2>&1 || {
        tail -n 20 .cache/setup-apt.log >&2
        die "these packages could not be installed: ${packages[*]} (see above)"
    }
    mapfile -t packages < <(missing_packages | sort -u)
    [ "${#packages[@]}" -eq 0 ] || die "still missing after the installation: ${packages[*]}"
}

lock_for() {
    if "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
        printf 'requirements/dev-py312.txt\n'
    else
        printf 'requirements/dev-py311.txt\n'
    fi
}

minor() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

make_venv() {
    local venv=$1 python=$2 lock stamp
    lock=$(lock_for "$python")
    stamp="$(minor "$python") $(sha256sum "$lock" | cut -d' ' -f1)"
    if [ "$(cat "$venv/.stamp" 2>/dev/null)" = "$stamp" ] && [ "$(minor "$venv/bin/python")" = "${stamp%% *}" ]; then
        return 0
    fi
    say "$venv: Python ${stamp%% *}, $lock (about a minute) …"
    if [ "$(minor "$venv/bin/python")" != "${stamp%% *}" ]; then
        "$python" -m venv --clear "$venv"
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$lock" >&2 ||
        die "the Python packages of $lock could not be installed (see above); is a package index within reach?"
    printf '%s\n' "$stamp" >"$venv/.stamp"
    say "$venv: $("$venv/bin/ansible" --version | sed -n 1p)"
}

main() {
    local python newest second=""
    install_packages
    python=$(scripts/python.sh oldest) || exit 1
    if [ "${1:-}" = --newest ]; then
        newest=$(scripts/python.sh newest)
        if [ "$(minor "$newest")" = "$(minor "$python")" ]; then
            rm -rf .venv-newest
        else
            make_venv .venv-newest "$newest" &
            second=$!
        fi
    fi
    make_venv .venv "$python"
    [ -z "$second" ] || wait "$second" || exit 1
    say "ready"
}

main "$@"
