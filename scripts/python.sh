#!/usr/bin/env bash
# Find usable Python interpreters: scripts/python.sh [oldest|newest|all] prints paths of 3.11 or newer, oldest first.
# One that does not start (a shim of a version manager), or that cannot make a venv, does not count.
set -euo pipefail

probe='import ensurepip, ssl, sys, venv
if sys.version_info < (3, 11) or sys.prefix != sys.base_prefix: sys.exit(1)
print("%d.%d" % sys.version_info[:2], sys.executable)'

candidates() {
    local dir name
    for name in 11 12 13 14 15 16; do
        for dir in /usr/bin /usr/local/bin /opt/python3."$name"/bin "$HOME"/.pyenv/versions/3."$name"*/bin; do
            [ -x "$dir/python3.$name" ] && printf '%s\n' "$dir/python3.$name"
        done
        command -v "python3.$name" || true
    done
    command -v python3 || true
}

found() {
    local path
    while read -r path; do
        timeout 20 "$path" -c "$probe" 2>/dev/null </dev/null || true
    done < <(candidates | awk '!seen[$0]++') | sort -V -k1,1 -u
}

list=$(found)
if [ -z "$list" ]; then
    echo "No Python 3.11 or newer with venv was found; install one (Debian 12 and later: apt-get install python3 python3-venv)." >&2
    exit 1
fi
case ${1:-all} in
oldest) printf '%s\n' "$list" | head -n 1 | cut -d' ' -f2 ;;
newest) printf '%s\n' "$list" | tail -n 1 | cut -d' ' -f2 ;;
all) printf '%s\n' "$list" ;;
*)
    echo "usage: scripts/python.sh [oldest|newest|all]" >&2
    exit 2
    ;;
esac
