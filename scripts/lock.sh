#!/usr/bin/env bash
# Write the locks of the development dependencies anew: one for Python 3.11, one for 3.12 and later.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

lock() {
    local version=$1 target=$2 python
    python=$(scripts/python.sh all | awk -v want="$version" '$1 == want {print $2}')
    if [ -z "$python" ]; then
        echo "lock: no Python $version here; $target stays as it is" >&2
        return
    fi
    echo "lock: $target with Python $version …" >&2
    "$python" -m venv "$work/$version"
    "$work/$version/bin/python" -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.in
    "$work/$version/bin/python" -m pip freeze --all --exclude pip |
        awk -F == '{name = tolower($1); gsub(/[._]+/, "-", name); print name "==" $2}' | sort >"$work/lock.txt"
    cat "$work/lock.txt" >"$target"
}

lock 3.11 requirements/dev-py311.txt
lock 3.12 requirements/dev-py312.txt
