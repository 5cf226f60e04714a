# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that watches a trial boot on the host: plain POSIX sh, as it runs before anything else is up.

Its text is here and not in a file of a role, so that the module that arms a trial brings exactly the program that it
knows.
"""
from __future__ import annotations

PROGRAM = r"""#!/bin/sh
# Managed by baremetal.nvidia (module boot_once): watches a trial boot of a kernel, and is gone when the trial ends.
#   early   clears next_entry, checks that it is gone, and notes which kernel came up
#   judge   says whether the kernel on trial is healthy; if not, goes back where that is allowed
set -u
PATH=${BAREMETAL_NVIDIA_PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
LC_ALL=C
export PATH LC_ALL
root=${BAREMETAL_NVIDIA_ROOT:-}
directory=$root/var/lib/baremetal-nvidia
conf=$directory/trial.conf
result=$directory/trial

of() {    # FILE KEY: the value in a file of lines KEY=value
    while IFS= read -r line; do
        case $line in "$2="*) printf '%s\n' "${line#*=}"; return ;; esac
    done 2>/dev/null <"$1"
}

record() {    # PHASE REASON: all of it or nothing, whenever the power goes
    echo "trial of $release: $1${2:+: $2}"
    {
        printf 'AT=%s\nPHASE=%s\nSINCE=%s\n' "$(of "$conf" AT)" "$1" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        printf 'RELEASE=%s\nBOOTED=%s\nBOOT_ID=%s\n' "$release" "$running" "$boot_id"
        printf 'REASON=%s\n' "$(printf '%s' "$2" | tr '\n' ' ' | cut -c 1-400)"
    } >"$result.new" && sync "$result.new" && mv "$result.new" "$result" && sync "$directory"
}

next_entry() {    # what boots once; fails when the block cannot be read
    block=$("$editenv" "$grubenv" list) && printf '%s\n' "$block" | sed -n 's/^next_entry=//p'
}

clear_next() {    # succeeds only when next_entry is gone from the disk; else $reason
    reason="the environment of GRUB cannot be read ($grubenv)"
    next=$(next_entry) || return 1
    reason="next_entry cannot be cleared: the next boot starts $next again"
    [ -n "$next" ] || return 0
    # the same size in the same place: no other file, no other inode that GRUB might not find
    cp "$grubenv" "$scratch" && "$editenv" "$scratch" unset next_entry &&
        [ "$(wc -c <"$scratch")" -eq "$(wc -c <"$grubenv")" ] &&
        dd if="$scratch" of="$grubenv" conv=notrunc,fsync 2>/dev/null
    rm -f "$scratch"
    next=$(next_entry) && [ -z "$next" ]
}

bounded() {    # SECONDS COMMAND...: its output in $said; 124 when it has not ended by then (it may hang in the kernel)
    left=$1
    shift
    "$@" >"$scratch" 2>&1 &
    child=$!
    while kill -0 "$child" 2>/dev/null; do
        if [ "$left" -le 0 ]; then
            said="$* did not end in time"
            return 124
        fi
        sleep 1
        left=$((left - 1))
    done
    wait "$child"
    status=$?
    said=
    while IFS= read -r line; do
        said="$said${said:+ }$line"
    done <"$scratch"
    return "$status"
}

has_device() {    # is there an NVIDIA GPU on the bus, as the kernel itself lists it?
    if [ -r "$root/proc/bus/pci/devices" ]; then
        cut -f 2 "$root/proc/bus/pci/devices" | grep -qi '^10de' || return 1
    fi
    for device in "$root"/sys/bus/pci/devices/*; do
        [ "$(cat "$device/vendor" 2>/dev/null)" = 0x10de ] || continue
        case $(cat "$device/class" 2>/dev/null) in 0x03*) return 0 ;; esac
    done
    return 1
}

module_fits() {    # 0 yes, 1 no (in $reason), 2 not yet
    bounded 60 modinfo -k "$release" -F vermagic "$module" ||
        { reason="no module $module for $release: $said"; return 1; }
    [ "${said%% *}" = "$release" ] || { reason="module $module was built for ${said%% *}"; return 1; }
    bounded 60 modinfo -k "$release" -F version "$module" || { reason="modinfo: $said"; return 1; }
    found=${said%% *}
    if [ -n "$version" ] && [ "$found" != "$version" ]; then
        reason="module $module is version $found and not $version"
        return 1
    fi
    is_loaded && return 0
    [ -z "$reason" ] || return 1
    if bounded 120 modprobe "$module"; then
        is_loaded && return 0
        [ -n "$reason" ] || reason="modprobe $module succeeded and the module is not loaded"
        return 1
    fi
    case $said in
        *"No such device"*)    # the kernel took the module, which then found no GPU
            has_device || return 0
            reason="module $module does not take the GPU of this host: $said" ;;
        *"did not end in time") reason=$said; return 2 ;;
        *) reason="module $module does not load: $said" ;;
    esac
    return 1
}

is_loaded() {    # is the module there, in the version that was proved? Another version is said in $reason
    reason=
    for name in nvidia "$(printf '%s' "$module" | tr - _)"; do
        [ -d "$root/sys/module/$name" ] || continue
        loaded=$(cat "$root/sys/module/$name/version" 2>/dev/null)
        if [ -z "$version" ] || [ "$loaded" = "$version" ]; then
            return 0
        fi
        reason="module $name is loaded in version ${loaded:-unknown} and not $version"
    done
    return 1
}

has_route() {    # a default route, IPv4 or IPv6
    while read -r _interface destination _gateway _flags _refcnt _use _metric mask _rest; do
        [ "$destination$mask" = 0000000000000000 ] && return 0
    done 2>/dev/null <"$root/proc/net/route"
    while read -r destination length _source _slen _hop _metric _ref _use _flags device; do
        [ "$destination/$length" = 00000000000000000000000000000000/00 ] && [ "$device" != lo ] && return 0
    done 2>/dev/null <"$root/proc/net/ipv6_route"
    return 1
}

healthy() {    # as module_fits, of the whole host; nothing is loaded before the host has loaded its own
    bounded 20 systemctl is-active --quiet default.target || { reason="the host has not finished booting"; return 2; }
    module_fits || return
    if [ "$(of "$conf" ROUTE)" = yes ] && ! has_route; then
        reason="there is no default route"
        return 2
    fi
}

seconds_up() {
    read -r up _idle <"$root/proc/uptime"
    echo "${up%%.*}"
}

go_back() {    # restart into the default, which is the proved kernel
    next=$(next_entry)
    if [ -n "$next" ]; then
        record failed "$1; not restarted, as next_entry is still set"
        return 1
    fi
    echo "restarting into the default kernel"
    systemctl --no-block reboot
    sleep 180
    systemctl reboot --force
    sleep 60
    echo b >"$root/proc/sysrq-trigger"
}

early() {
    phase=$(of "$result" PHASE)
    [ "$(of "$result" AT)" = "$(of "$conf" AT)" ] || phase=
    clear_next || { record failed "$reason"; return 1; }
    if [ "$running" = "$release" ]; then
        [ "$phase" = failed ] || record booted ""
        return 0
    fi
    case $phase in
        failed) ;;
        booted) record failed "booted $running instead: $release was cut off before it was judged" ;;
        healthy) record failed "booted $running instead: $release was healthy, but not made the default in time" ;;
        *) record failed "booted $running instead: $release did not come up (panic, hang or power cycle)" ;;
    esac
}

judge() {
    [ "$running" = "$release" ] || return 0
    if [ "$(of "$result" AT)" = "$(of "$conf" AT)" ]; then
        case $(of "$result" PHASE) in healthy | failed) return 0 ;; esac
    fi
    module=$(of "$conf" MODULE)
    version=$(of "$conf" VERSION)
    timeout=$(of "$conf" TIMEOUT)
    refused=0
    while :; do
        reason=
        healthy
        case $? in
            0) record healthy ""; return 0 ;;
            1) refused=$((refused + 1)) pause=5 ;;    # udev may load it just now: what is wrong stays wrong
            *) refused=0 pause=10 ;;
        esac
        [ "$refused" -lt 3 ] || break
        if [ "$(seconds_up)" -ge "$timeout" ]; then
            reason="$reason (after $timeout s)"
            break
        fi
        sleep "$pause"
    done
    record failed "$reason"
    [ "$(of "$conf" FALLBACK_REBOOT)" = yes ] && go_back "$reason"
    return 1
}

[ -r "$conf" ] || exit 0    # no trial is open
release=$(of "$conf" RELEASE)
grubenv=$root$(of "$conf" GRUBENV)
editenv=$(of "$conf" EDITENV)
running=$(uname -r)
boot_id=$(cat "$root/proc/sys/kernel/random/boot_id")
[ "$boot_id" != "$(of "$conf" BOOT_ID)" ] || exit 0    # armed in this boot: it comes with the next one
scratch=$root/run/baremetal-nvidia-trial.$$
trap 'rm -f "$scratch"' EXIT
case ${1:-} in
    early | judge) "$1" ;;
    *) echo "usage: $0 early|judge" >&2; exit 64 ;;
esac
"""
