#!/usr/bin/env bash
# Say where promtool is; where there is none, take it out of the distribution's package into .cache/tools, so that no
# Prometheus is installed (and started) for the sake of it.
# usage: scripts/promtool.sh     prints a path
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/.cache/tools

if command -v promtool; then exit 0; fi
if [ -x "$tools/promtool" ]; then
    printf '%s\n' "$tools/promtool"
    exit 0
fi
command -v apt-get >/dev/null || {
    echo "promtool.sh: this machine has no promtool, and only apt is known here: install Prometheus' tools by hand" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt checks the package against the archive's signed index
fetch() { (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download prometheus >&2); }
fetch || { [ "$(id -u)" -eq 0 ] && apt-get -qq update >&2 && fetch; } || {
    echo "promtool.sh: apt-get download prometheus failed (see above); are the package lists here? apt-get update" >&2
    exit 1
}
dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -x -C "$work" ./usr/bin/promtool
mkdir -p "$tools"
mv "$work/usr/bin/promtool" "$tools/promtool.new"
mv "$tools/promtool.new" "$tools/promtool"
printf '%s\n' "$tools/promtool"
