#!/usr/bin/env bash
# Containers over CRI on a machine of its own (scripts/vm): they start through the nvidia handler and live through restarts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export PATH="$PWD/.venv/bin:$PATH"
name=drill-containers
trap 'scripts/vm down "$name"' EXIT
scripts/vm up "$name" --suite trixie --anew
ansible-playbook -i ".cache/vm/$name/inventory" tests/drills/containers_live.yml
