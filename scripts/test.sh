#!/usr/bin/env bash
# All tests, part by part, each with its time budget. Ends with one line: N passed, N failed (parts).
# usage: scripts/test.sh [PART …]      (without parts: all of them; --list names them; TEST_JOBS: how many at a time)
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 2
logs=$root/.cache/test
export PATH="$root/.venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 ANSIBLE_FORCE_COLOR=0 PY_COLORS=0 NO_COLOR=1

# name, budget in seconds, the part it needs ('-': none; 'all': runs last and alone, since it measures time).
# A part is stopped at three times its budget. The order is the order of starting.
table='
molecule-site           1500 -
lint                     180 -
ruff                      30 -
mypy                      90 -
generated                 60 -
unit-oldest              300 -
unit-newest              300 -
cases                     60 -
browser                   90 -
sanity                   420 -
build                     60 -
flow                     300 -
kube                     500 -
monitoring                60 -
molecule-gpu_kernel      400 -
molecule-gpu_containerd  480 -
molecule-gpu_containerd_sources 240 -
molecule-gpu_toolkit     420 -
molecule-gpu_preflight   180 -
molecule-gpu_operator    240 -
molecule-gpu_monitoring  180 -
molecule-gpu_cuda        180 -
drills                   240 -
drills-boot              600 -
containers               240 -
distros                  540 -
moves                    300 -
secure-boot              240 -
sources                  300 -
molecule-gpu_driver      480 molecule-site
molecule-gpu_verify      240 molecule-site
molecule-kernel_upgrade  450 molecule-site
awx                      400 molecule-site
bench                    240 all
'

shell_files() {
    git ls-files -- '*.sh' scripts .ci tests molecule/shared/image molecule/shared/repository/files | sort -u |
        while read -r file; do
            [ -f "$file" ] && head -n 1 "$file" | grep -qE '^#!(/bin/sh|/usr/bin/env bash|/bin/bash)' && printf '%s\n' "$file"
        done
}

part_lint() {
    local files
    mapfile -t files < <(shell_files)
    shellcheck --external-sources "${files[@]}" && ansible-lint --offline --strict
}

part_ruff() { ruff check .; }

part_mypy() { mypy plugins molecule/shared/lab && (cd tests/drills && mypy --explicit-package-bases boot); }

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

part_kube() { # real helm and kubernetes.core against an emulated API server
    scripts/helm.sh && python -m pytest tests/kube -q -n 2
}

part_monitoring() { # every alert on series by which it fires, and on their counterparts: a real promtool
    scripts/promtool.sh && python -m pytest tests/monitoring -q -n 2
}

part_browser() { # the HTML report; skipped, and said so, where there is no Chromium
    python -m pytest tests/browser -q
}

part_sanity() {
    if [ ! -x .venv-newest/bin/ansible-test ]; then
        scripts/sanity.sh .venv
        return
    fi
    # pylint reads the code the same way under both: once, under the newer one
    scripts/sanity.sh .venv --skip-test pylint && scripts/sanity.sh .venv-newest
}

part_build() { # the collection as people install it
    local work
    work=$(mktemp -d)
    ansible-galaxy collection build --force --output-path "$work" &&
        ansible-galaxy collection install --no-deps --force -p "$work/installed" "$work"/baremetal-nvidia-*.tar.gz &&
        : >"$work/ansible.cfg" &&
        (cd "$work" && ANSIBLE_CONFIG=$work/ansible.cfg ANSIBLE_COLLECTIONS_PATH=$work/installed ansible-doc baremetal.nvidia.gpu_facts >/dev/null &&
            ANSIBLE_CONFIG=$work/ansible.cfg ANSIBLE_COLLECTIONS_PATH=$work/installed ansible-playbook baremetal.nvidia.site --syntax-check -i localhost,)
    local code=$?
    rm -rf "$work"
    return "$code"
}

converted_lab() { # the lab that the scenario of site.yml leaves behind
    export LAB_NAME=site
    [ -e .cache/lab/site/inventory/hosts.yml ] && return 0
    echo "this part works on the hosts of the part molecule-site: scripts/test.sh molecule-site $1"
    return 1
}

part_awx() { converted_lab awx && python -m pytest tests/awx -q; }

part_bench() { converted_lab bench && python tests/bench/bench.py --quick plan shapes fleet lab; } # once: make bench

part_distros() { python -m pytest tests/distros/test_typed_commands.py -q -s; } # hosts of other distributions, and what people type on them

part_moves() { # a driver moves between branches, flavours, sources; CUDA beside it. In CI two hosts of the four, for the time
    local some=()
    if [ -n "${CI:-}" ]; then
        echo "CI: gpu-ub2404 and gpu-el9; gpu-ub2204 and gpu-sles15 move outside of CI"
        some=(-k "not gpu-ub2204 and not gpu-sles15")
    fi
    python -m pytest tests/distros/moves -q -s -n 2 "${some[@]}"
}

part_sources() { # where packages come from, on bad days: keys, dates, mixed sources, full disk, proxy, runfile, network cut
    local code=0 some=()
    if [ -n "${CI:-}" ]; then
        echo "CI: gpu-ub2404's keys, dates and archives, and a runfile with the network cut; the others outside of CI"
        some=(-k "bad_days or runfile")
    fi
    LAB_NAME=sources python -m pytest tests/distros/sources -q "${some[@]}" || code=$?
    [ "$code" -eq 0 ] || LAB_NAME=sources scripts/lab down || true
    return "$code"
}

part_secure-boot() { # from a blocked plan by the console step to signed modules
    python -m pytest tests/distros/secure_boot -q
    local code=$?
    [ "$code" -eq 0 ] || LAB_NAME=secure-boot scripts/lab down || true
    return "$code"
}

part_drills() { tests/drills/run.sh short; }

part_drills-boot() { VM_NICE=0 tests/drills/run.sh boot; } # a machine that boots, in software emulation: slow, and patient

part_containers() { tests/drills/containers.sh lab; }

scenario() { # molecule's own colours off; a scenario that was cut off is taken down
    local code=0 keep=()
    if [ "$1" = site ]; then # its hosts stay: other parts work on them, or start from their snapshots
        molecule destroy --scenario-name site || return
        keep=(--destroy never)
    fi
    molecule test --scenario-name "$1" "${keep[@]}" || code=$?
    if [ "$1" = site ] && [ "$code" -eq 0 ]; then
        LAB_NAME=site scripts/lab snapshot gpu-deb12 ready && LAB_NAME=site scripts/lab snapshot gpu-deb13 ready
        return
    fi
    [ "$code" -eq 0 ] || LAB_NAME=$1 scripts/lab down || true
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

declare -A budget need state started pid_of
order=()

startable() { # whether what a part needs has passed, or was not asked for
    local name=$1 other
    case ${need[$name]} in
    -) return 0 ;;
    all)
        for other in "${order[@]}"; do
            [ "$other" = "$name" ] || case ${state[$other]} in waiting | running) return 1 ;; esac
        done
        ;;
    *) case ${state[${need[$name]}]:-passed} in passed) ;; *) return 1 ;; esac ;;
    esac
}

start() {
    local name=$1
    printf '== %s: started (budget %s s)\n' "$name" "${budget[$name]}"
    timeout --kill-after=30 $((budget[$name] * 3)) bash "$root/scripts/test.sh" --inner "$name" </dev/null >"$logs/$name.log" 2>&1 &
    pid_of[$!]=$name
    state[$name]=running
    started[$name]=$SECONDS
}

finish() { # print what a part said and how it ended
    local name=$1 code=$2 took late=""
    took=$((SECONDS - started[$name]))
    [ "$took" -le "${budget[$name]}" ] || late=", over its budget"
    [ "$code" -ne 124 ] || late=", stopped at its deadline"
    state[$name]=$([ "$code" -eq 0 ] && echo passed || echo FAILED)
    printf '\n==== output of %s\n' "$name"
    if [ "$code" -eq 0 ]; then tail -n "${TEST_LINES:-60}" "$logs/$name.log"; else tail -n 1500 "$logs/$name.log"; fi
    printf '==== %s: %s in %s s of %s s%s (rc %s)\n\n' "$name" "${state[$name]}" "$took" "${budget[$name]}" "$late" "$code"
    summary+=("$(printf '%-26s %-7s %5s s of %4s s%s' "$name" "${state[$name]}" "$took" "${budget[$name]}" "$late")")
}

running() {
    local name
    for name in "${order[@]}"; do
        [ "${state[$name]}" != running ] || printf '%s (%s s) ' "$name" $((SECONDS - started[$name]))
    done
}

schedule() { # keep $jobs parts at work until none is left
    local name pid code ticker="" begun
    while :; do
        begun=$(running | wc -w)
        for name in "${order[@]}"; do
            [ $((begun / 3)) -lt "$jobs" ] || break
            [ "${state[$name]}" = waiting ] || continue
            if startable "$name"; then
                start "$name"
                begun=$((begun + 3))
            elif [ "${state[${need[$name]}]:-}" = FAILED ]; then
                state[$name]=FAILED
                summary+=("$(printf '%-26s FAILED  not run: %s failed' "$name" "${need[$name]}")")
            fi
        done
        [ "$begun" -gt 0 ] || break
        if [ -z "$ticker" ]; then
            sleep 60 &
            ticker=$!
        fi
        code=0
        wait -n -p pid || code=$?
        if [ "${pid:-}" = "$ticker" ]; then
            ticker=""
            printf '   … %s s, at work: %s\n' "$SECONDS" "$(running)"
        elif [ -n "${pid:-}" ] && [ -n "${pid_of[$pid]:-}" ]; then
            finish "${pid_of[$pid]}" "$code"
        fi
    done
    [ -z "$ticker" ] || kill "$ticker" 2>/dev/null || true
}

main() {
    local name passed=0 failed=0 seconds needs
    summary=()
    for name in "$@"; do
        if ! awk -v want="$name" 'NF && ($1 == want || index($1, want "-") == 1) {found = 1} END {exit !found}' <<<"$table"; then
            echo "no such part: $name; scripts/test.sh --list names them" >&2
            exit 2
        fi
    done
    mkdir -p "$logs"
    jobs=${TEST_JOBS:-3}
    while read -r name seconds needs; do
        if [ -z "$name" ] || ! wanted "$name" "$@"; then continue; fi
        order+=("$name")
        budget[$name]=$seconds need[$name]=$needs state[$name]=waiting
    done <<<"$table"
    if [ "${#order[@]}" -eq 0 ]; then
        echo "no such part: $*; scripts/test.sh --list names them" >&2
        exit 2
    fi
    if ! scripts/setup.sh --newest; then
        printf '0 passed, 1 failed\n'
        exit 1
    fi
    scripts/lab simulated
    schedule
    if [ "${state[molecule-site]:-}" != "" ]; then molecule destroy --scenario-name site >/dev/null 2>&1 || true; fi
    printf '%s\n' "${summary[@]}"
    for name in "${order[@]}"; do
        if [ "${state[$name]}" = passed ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
    printf 'all parts: %s s\n' "$SECONDS"
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}

case ${1:-} in
--list) printf '%s\n' "$table" | awk 'NF {print $1}' ;;
--inner)
    case $2 in
    molecule-*) scenario "${2#molecule-}" ;;
    *) "part_$2" ;;
    esac
    ;;
*) main "$@" ;;
esac
