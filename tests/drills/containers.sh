#!/usr/bin/env bash
# Containers over CRI: they start through the nvidia handler and live through restarts. usage: tests/drills/containers.sh lab|vm
# lab: on a host of the lab, a minute or two. vm: on a machine with control groups of its own, where GPU containers are counted too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export PATH="$PWD/.venv/bin:$PATH"
case ${1:-lab} in
lab)
    export LAB_NAME=containers
    trap 'scripts/lab down' EXIT
    scripts/lab reset gpu-deb13
    ansible-playbook -i .cache/lab/containers/inventory tests/drills/containers_live.yml -e cgroups=false
    ;;
vm)
    trap 'scripts/vm down drill-containers' EXIT
    scripts/vm up drill-containers --suite trixie --anew
    ansible-playbook -i .cache/vm/drill-containers/inventory tests/drills/containers_live.yml
    ;;
*)
    echo "usage: tests/drills/containers.sh lab|vm" >&2
    exit 2
    ;;
esac
