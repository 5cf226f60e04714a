#!/usr/bin/env bash
# All tests, part by part, each with its time budget. Ends with one line: N passed, N failed (parts).
# usage: scripts/test.sh [PART …]      (without parts: all of them; --list names them)
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 2
logs=$root/.cache/test
export PATH="$root/.venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 ANSIBLE_FORCE_COLOR=0 PY_COLORS=0 NO_COLOR=1

# name:budget in seconds, in the order in which they run. A part is stopped at three times its budget.
parts=(
    setup:300 lint:150 ruff:20 mypy:60 generated:30 unit-oldest:120 unit-newest:120 cases:60 flow:240 sanity:240
    build:60 site:900 molecule-gpu_preflight:120 molecule-gpu_kernel:240 molecule-gpu_driver:420 molecule-gpu_toolkit:180
    molecule-gpu_containerd:240 molecule-gpu_verify:180 molecule-site:420 awx:180 bench:180 drills:240
)

shell_files() {
    git ls-files -- '*.sh' scripts .ci tests molecule/shared/image molecule/shared/repository/files | sort -u |
        while read -r file; do
            [ -f "$file" ] && head -n 1 "$file" | grep -qE '^#!(/bin/sh|/usr/bin/env bash|/bin/bash)' && printf '%s\n' "$file"
        done
}

part_setup() { scripts/setup.sh --newest; }

part_lint() {
    local files
    mapfile -t files < <(shell_files)
    shellcheck --external-sources "${files[@]}" && ansible-lint --offline --strict
}

part_ruff() { ruff check .; }

part_mypy() { mypy plugins molecule/shared/lab; }

part_generated() { python scripts/generate.py --check; }

part_unit-oldest() { .venv/bin/python -m pytest tests/unit -q -n 2; }

part_unit-newest() {
    if [ ! -x .venv-newest/bin/python ]; then
        echo "the oldest and the newest Python of this machine are the same: nothing more to run"
        return 0
    fi
    PATH="$root/.venv-newest/bin:$PATH" .venv-newest/bin/python -m pytest tests/unit -q -n 2
}

part_cases() {
    local files
    mapfile -t files < <(git ls-files -- 'tests/cases/*.yml' | grep -v /containerd/)
    python tests/cases/run.py "${files[@]}"
}

part_flow() { python -m pytest tests/flow -q -n 2; }

part_sanity() {
    scripts/sanity.sh .venv || return
    if [ -x .venv-newest/bin/ansible-test ]; then scripts/sanity.sh .venv-newest; fi
}

part_build() { # the collection as people install it
    local work
    work=$(mktemp -d)
    ansible-galaxy collection build --force --output-path "$work" &&
        ansible-galaxy collection install --no-deps --force -p "$work/installed" "$work"/baremetal-nvidia-*.tar.gz &&
        (cd "$work" && ANSIBLE_CONFIG=/dev/null ANSIBLE_COLLECTIONS_PATH=$work/installed ansible-doc baremetal.nvidia.gpu_facts >/dev/null &&
            ANSIBLE_CONFIG=/dev/null ANSIBLE_COLLECTIONS_PATH=$work/installed ansible-playbook baremetal.nvidia.site --syntax-check -i localhost,)
    local code=$?
    rm -rf "$work"
    return "$code"
}

part_site() { # a lab of its own, so that a person's lab stays as it is; twice: the second run changes nothing
    local inventory=.cache/lab/tests/inventory
    export LAB_NAME=tests
    scripts/lab down && scripts/lab up || return
    ansible-playbook playbooks/site.yml -i "$inventory" || return
    ansible-playbook playbooks/site.yml -i "$inventory" | tee "$logs/site-second.log" || return
    if grep -E '^gpu-deb1[23] ' "$logs/site-second.log" | grep -v 'changed=0 .*failed=0'; then
        echo "the second run of site.yml changed something (above)"
        return 1
    fi
    grep -cE '^gpu-deb1[23] .*changed=0 ' "$logs/site-second.log" | grep -qx 2 || {
        echo "the recap of the second run does not show both hosts"
        return 1
    }
    scripts/lab snapshot gpu-deb12 ready && scripts/lab snapshot gpu-deb13 ready
}

part_awx() { LAB_NAME=tests python -m pytest tests/awx -q; }

part_bench() { LAB_NAME=tests python tests/bench/bench.py --quick; }

part_drills() { tests/drills/run.sh short; }

scenario() { # molecule's own colours off; a scenario that was cut off is taken down
    molecule test --scenario-name "$1"
    local code=$?
    [ "$code" -eq 0 ] || LAB_NAME=$1 scripts/lab down || true
    return "$code"
}

run_part() { # one part in a process group of its own, with its log and its deadline
    local name=$1 budget=$2 started=$SECONDS code
    printf '\n== %s (budget %s s)\n' "$name" "$budget"
    timeout --kill-after=30 $((budget * 3)) bash "$root/scripts/test.sh" --inner "$name" </dev/null 2>&1 | tee "$logs/$name.log"
    code=${PIPESTATUS[0]}
    local took=$((SECONDS - started)) late=""
    [ "$took" -le "$budget" ] || late=" — over its budget"
    [ "$code" -ne 124 ] || late=" — stopped at its deadline"
    if [ "$code" -eq 0 ]; then
        printf '== %s: passed in %s s of %s s%s\n' "$name" "$took" "$budget" "$late"
    else
        printf '== %s: FAILED (rc %s) in %s s of %s s%s; log: %s\n' "$name" "$code" "$took" "$budget" "$late" "$logs/$name.log"
    fi
    summary+=("$(printf '%-26s %-7s %5s s of %4s s' "$name" "$([ "$code" -eq 0 ] && echo passed || echo FAILED)" "$took" "$budget")")
    return "$code"
}

wanted() { # the parts whose name was asked for, or begins with it
    local part=$1 want
    shift
    [ $# -gt 0 ] || return 0
    for want in "$@"; do
        case $part in "$want" | "$want"-*) return 0 ;; esac
    done
    return 1
}

main() {
    local entry name budget passed=0 failed=0 started=$SECONDS
    summary=()
    mkdir -p "$logs"
    for entry in "${parts[@]}"; do
        name=${entry%%:*}
        budget=${entry##*:}
        wanted "$name" "$@" || continue
        if run_part "$name" "$budget"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            if [ "$name" = setup ]; then break; fi # nothing else can run
        fi
    done
    LAB_NAME=tests scripts/lab down >/dev/null 2>&1 || true
    printf '\n'
    [ "${#summary[@]}" -eq 0 ] || printf '%s\n' "${summary[@]}"
    printf 'all parts: %s s\n' $((SECONDS - started))
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

case ${1:-} in
--list) printf '%s\n' "${parts[@]}" ;;
--inner)
    mkdir -p "$logs"
    case $2 in
    molecule-*) scenario "${2#molecule-}" ;;
    *) "part_$2" ;;
    esac
    ;;
*) main "$@" ;;
esac
