#!/usr/bin/env bash
# Drills: bad days played for real. usage: tests/drills/run.sh short|boot|long|DRILL … [--seed N] [--cuts N]
# short: apt's transactions simulated on a fresh lab host (CI). boot: a machine that boots, in its shortest form (CI).
# long: everything. DRILL: some of those on a machine that boots; tests/drills/README.md lists them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LAB_NAME=drills PATH="$PWD/.venv/bin:$PATH"
inventory=.cache/lab/drills/inventory
mode=${1:-short}
[ $# -eq 0 ] || shift

play() { ansible-playbook -i "$inventory" "$@"; }

boot() { # the machines have a lab of their own, which takes no LAB_NAME
    env -u LAB_NAME PYTHONPATH=tests/drills python -B -m boot "$@"
}

ready() { # a host as site.yml leaves it: from the snapshot of an earlier run, or converted now
    scripts/lab reset "$1" --snapshot ready && return
    scripts/lab reset "$1"
    play playbooks/site.yml
    scripts/lab snapshot "$1" ready
}

older() { # the machines' disk: a converted host of some weeks ago
    ready gpu-deb12
    play tests/drills/older_kernel.yml
    scripts/lab snapshot gpu-deb12 older
    scripts/lab down
}

if [ "$mode" = boot ]; then # no lab host: another drill's may be at work
    boot short "$@"
    exit
fi
trap 'scripts/lab down' EXIT
case $mode in
short)
    scripts/lab reset gpu-deb13
    play tests/drills/debian14_kernel.yml
    ;;
long)
    ready gpu-deb13
    play tests/drills/debian14_kernel.yml -e drill_long=true
    scripts/lab reset gpu-deb13
    play tests/drills/kernel_guard.yml
    scripts/lab reset gpu-deb13
    play tests/drills/driver_does_not_fit.yml
    scripts/lab down
    scripts/lab up --hosts gpu-el9
    play tests/drills/kernel_guard_el.yml
    scripts/lab down
    tests/drills/dnf5.sh
    older
    boot all "$@"
    tests/drills/containers.sh
    ;;
*)
    older
    boot "$mode" "$@"
    ;;
esac
