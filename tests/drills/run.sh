#!/usr/bin/env bash
# Drills: bad days played on a lab host. usage: tests/drills/run.sh short|long
# short simulates apt's transactions on a fresh host (CI); long does them on a host that site.yml has converted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LAB_NAME=drills PATH="$PWD/.venv/bin:$PATH"
inventory=.cache/lab/drills/inventory
mode=${1:-short}
trap 'scripts/lab down' EXIT

play() { ansible-playbook -i "$inventory" "$@"; }

case $mode in
short)
    scripts/lab reset gpu-deb13
    play tests/drills/debian14_kernel.yml
    ;;
long)
    # A host that is as planned: from the snapshot of an earlier run, or converted now.
    if ! scripts/lab reset gpu-deb13 --snapshot ready; then
        scripts/lab reset gpu-deb13
        play playbooks/site.yml
        scripts/lab snapshot gpu-deb13 ready
    fi
    play tests/drills/debian14_kernel.yml -e drill_long=true
    scripts/lab reset gpu-deb13
    play tests/drills/driver_does_not_fit.yml
    ;;
*)
    echo "usage: tests/drills/run.sh short|long" >&2
    exit 2
    ;;
esac
