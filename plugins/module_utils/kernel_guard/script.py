# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard itself: one POSIX shell script that decides, for every package manager. Texts alone.

It is a text here, since a module carries Python to the host and nothing else.
"""
from __future__ import annotations

DIRECTORY = "/usr/local/lib/baremetal-nvidia"
PATH = f"{DIRECTORY}/kernel-guard"
LIST = "/var/lib/baremetal-nvidia/guard.list"
ONCE = "/run/baremetal-nvidia/allow-once"
VARIABLE = "BAREMETAL_NVIDIA_ALLOW"
REFUSED = 77      # the one exit status that stops a transaction
_HEAD = "# Managed by baremetal.nvidia (module kernel_guard): changes by hand are undone by its next run."
ASIDE = 78        # "look" only: it would be refused, but an override is there

SCRIPT = r"""#!/bin/sh
# Managed by baremetal.nvidia (module kernel_guard): changes by hand are undone by its next run.
#
# Looks at a package transaction before anything is unpacked. Refuses it when it would install a kernel that is not on
# the list of allowed ones, or remove a proved one. Closed on such a match alone; open, with a log line, on any trouble
# of its own. Plain sh, no network.
#
# usage: kernel-guard apt               apt's DPkg::Pre-Install-Pkgs, protocol version 3, on standard input
#        kernel-guard lines look|take   dnf 4's plugin: lines "install|remove NAME VERSION-RELEASE.ARCH"
#        kernel-guard one look|take PID ACTION NAME VERSION-RELEASE.ARCH     dnf 5's actions, a package a call
# exit:  77 refused; 78 (look) refused but for an override; all else lets the transaction through
PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
list=/var/lib/baremetal-nvidia/guard.list
once=/run/baremetal-nvidia/allow-once
what=
installs=' '
removes=' '
stays=' '
bad=

log() {
    logger -t baremetal-nvidia-guard -p "auth.$1" -- "$2" 2>/dev/null || :
}

open() {
    log warning "let a transaction through unseen: $1"
    cat >/dev/null 2>&1
    exit 0
}

listed() {
    grep -qxF -- "$1 $2" "$list"
}

# The release in the name of a Debian or Ubuntu package, empty when it is none. $2: image, or any part of a kernel.
release_of() {
    release=${1%:*}
    case $release in
        *-dbg | *-dbgsym) release= ;;
        linux-image-unsigned-[0-9]*) release=${release#linux-image-unsigned-} ;;
        linux-image-uc-[0-9]*) release=${release#linux-image-uc-} ;;
        linux-image-[0-9]*) release=${release#linux-image-} ;;
        linux-binary-[0-9]*) release=${release#linux-binary-} ;;
        proxmox-kernel-[0-9]*.*.*) release=${release#proxmox-kernel-} release=${release%-signed} ;;
        pve-kernel-[0-9]*.*.*) release=${release#pve-kernel-} ;;
        linux-modules-extra-[0-9]*) release=${release#linux-modules-extra-} ;;
        linux-modules-[0-9]*) release=${release#linux-modules-} ;;
        linux-base-[0-9]*) release=${release#linux-base-} ;;
        *) release= ;;
    esac
    release=${release%-unsigned}
    case $2:$1 in
        image:linux-modules-* | image:linux-base-*) release= ;;
    esac
}

# The same for rpm names. $1: name, $2: VERSION-RELEASE.ARCH, $3: image, or any part of a kernel
release_of_rpm() {
    flavour=${1#kernel}
    part=image
    case $flavour in
        *-modules-core) part=modules flavour=${flavour%-modules-core} ;;
        *-modules-extra) part=modules flavour=${flavour%-modules-extra} ;;
        *-modules) part=modules flavour=${flavour%-modules} ;;
        *-core) flavour=${flavour%-core} ;;
        *-uki-virt) flavour=${flavour%-uki-virt} ;;
    esac
    release=
    [ "$part:$3" != modules:image ] || return 0
    case $flavour in
        '' | -uek | -ml | -lt | -longterm | 6.[0-9] | 6.[0-9][0-9]) release=$2 ;;
        -rt) case $2 in *.rt[0-9]*) release=$2 ;; *) release=$2+rt ;; esac ;;
        -64k | -debug | -rt-debug | -64k-debug | -rt-64k) release=$2+${flavour#-} ;;
    esac
}

rpm() {
    case $1 in
        install | I | U | D | R)
            release_of_rpm "$2" "$3" image
            if [ -n "$release" ]; then install "$2" "$release"; fi
            ;;
        remove | E)
            release_of_rpm "$2" "$3" any
            if [ -n "$release" ]; then remove "$2" "$release"; fi
            ;;
        command) what="$2 $3" ;;
    esac
}

install() {
    installs="$installs$1=$2 "
    case $1 in
        *-unsigned*) ;;    # does not boot where Secure Boot is on
        *) stays="$stays=$2 " ;;
    esac
}

remove() {
    removes="$removes$1=$2 "
}

# apt: "VERSION 3", its settings, an empty line; then NAME OLD ARCH MULTI-ARCH COMPARED NEW ARCH MULTI-ARCH FILE
read_apt() {
    IFS= read -r line || open "apt said nothing"
    [ "$line" = "VERSION 3" ] || open "apt speaks another protocol: $line"
    while IFS= read -r line; do
        [ -n "$line" ] || break
        case $line in
            CommandLine::AsString=*) what=$(printf '%s\n' "${line#*=}" | sed 's/%20/ /g; s/%3d/=/g; s/%25/%/g') ;;
        esac
    done
    while read -r name old _arch _multi _compared _new _arch2 _multi2 file; do
        case $file in
            '**CONFIGURE**') ;;
            '**REMOVE**')
                release_of "$name" any
                if [ -n "$release" ] && [ "$old" != - ]; then remove "$name" "$release"; fi
                ;;
            *)
                release_of "$name" image
                if [ -n "$release" ]; then install "$name" "$release"; fi
                ;;
        esac
    done
}

read_lines() {
    while read -r verb name version; do
        rpm "$verb" "$name" "$version"
    done
}

judge() {
    [ -r "$list" ] || open "$list cannot be read"
    listed version 1 || open "$list is of another version"
    grep -q '^allowed .' "$list" || open "$list allows nothing at all"
    for pair in $installs; do
        if ! listed allowed "${pair#*=}"; then
            bad="$bad
  ${pair%%=*} would be installed: kernel ${pair#*=} has no proved NVIDIA module on this host"
        fi
    done
    for pair in $removes; do
        case $stays in
            *"=${pair#*=} "*) continue ;;    # one package of it replaces another
        esac
        if listed proved "${pair#*=}"; then
            bad="$bad
  ${pair%%=*} would be removed: kernel ${pair#*=} is one that this host is known to work with"
        fi
    done
}

short() {
    printf '%s' "$bad" | tr '\n' ';' | sed 's/^;  *//; s/;  */; /g'
}

# Whether one command may pass: 0 = yes. $1: look = do not use it up
override() {
    if [ "${BAREMETAL_NVIDIA_ALLOW-}" = 1 ]; then
        [ "$1" = look ] || log warning "let through by BAREMETAL_NVIDIA_ALLOW=1 (${SUDO_USER:-root}: $what): $(short)"
        return 0
    fi
    if [ -n "$process" ] && [ -f "$once.$process" ]; then return 0; fi
    if [ ! -f "$once" ] || [ -L "$once" ]; then return 1; fi
    # shellcheck disable=SC2012
    if [ "$(ls -ldn "$once" | awk '{print $3}')" != 0 ]; then
        log warning "$once is not root's and has no effect"
        return 1
    fi
    [ "$1" = look ] && return 0
    if [ -n "$process" ]; then
        for left in "$once".*; do
            [ -d "/proc/${left##*.}" ] || rm -f -- "$left"
        done
        mv -f -- "$once" "$once.$process" || return 1
    else
        rm -f -- "$once" || return 1
    fi
    log warning "let through once by $once (${SUDO_USER:-root}: $what): $(short)"
    return 0
}

say() {
    allowed=$(sed -n 's/^allowed //p' "$list" | tr '\n' ' ')
    cat >&2 <<TEXT

baremetal.nvidia: this transaction is refused. Nothing was changed.$bad
Kernels with a proved module here: $allowed
To move the kernel, its driver proved first, run where Ansible is:
    ansible-playbook baremetal.nvidia.kernel_upgrade --limit $(uname -n)
To let one command through all the same: as root
    mkdir -p ${once%/*} && touch $once
and type it again, or put BAREMETAL_NVIDIA_ALLOW=1 before it.

TEXT
}

main() {
    mode=${1-}
    how=take
    process=
    case $mode in
        apt) read_apt ;;
        lines) how=$2; read_lines ;;
        one)
            how=$2 process=$3 what="process $3: $(tr '\0' ' ' <"/proc/$3/cmdline" 2>/dev/null)"
            rpm "$4" "$5" "$6"
            ;;
        *) open "called as kernel-guard $*" ;;
    esac
    judge
    [ -n "$bad" ] || exit 0
    if override "$how"; then
        [ "$how" = look ] && exit 78
        exit 0
    fi
    log warning "refused (${SUDO_USER:-root}: $what): $(short)"
    say
    exit 77
}

(main "$@")
status=$?
case $status in
    0 | 77 | 78) exit $status ;;
esac
log err "the guard failed with status $status and let a transaction through"
exit 0
"""

APT_HOOK_PATH = "/etc/apt/apt.conf.d/53baremetal-nvidia-guard"
APT_HOOK = f"""// Managed by baremetal.nvidia (module kernel_guard): changes by hand are undone by its next run.
// Only status {REFUSED} stops apt. A missing script, or one that fails, does not.
DPkg::Pre-Install-Pkgs {{ "{PATH} apt || test $? -ne {REFUSED}"; }};
DPkg::Tools::Options::{PATH}::Version "3";
"""

_CALL = (f"x={PATH}; test -x $x || exit 0; $x one HOW ${{pid}} '${{pkg.action}}' '${{pkg.name}}' "
         f"'${{pkg.version}}-${{pkg.release}}.${{pkg.arch}}'; "
         f"test $? -ne {REFUSED} || echo stop=refused by the kernel guard of baremetal.nvidia")
ACTIONS_PATH = "/etc/dnf/libdnf5-plugins/actions.d/baremetal-nvidia-guard.actions"


def actions() -> str:
    """The actions file of libdnf5: each kernel package that comes or goes, when that is known and just before it."""
    lines = [_HEAD, "# An action that fails is logged and stops nothing; only the word stop does."]
    for hook, how in (("goal_resolved", "look"), ("pre_transaction", "take")):
        command = _CALL.replace("HOW", how).replace(" ", "\\ ")
        lines.append(f"{hook}:kernel*:::/bin/sh -c {command}")
    return "\n".join(lines) + "\n"


def allowed_list(allowed: list[str], proved: list[str]) -> str:
    """The list that the script reads."""
    lines = [_HEAD, "version 1"]
    lines += [f"allowed {release}" for release in sorted(set(allowed) | set(proved))]
    lines += [f"proved {release}" for release in sorted(set(proved))]
    return "\n".join(lines) + "\n"


def parse_list(text: str) -> tuple[list[str], list[str]]:
    """(allowed, proved) of such a list."""
    words = [line.split(" ", 1) for line in text.splitlines() if " " in line and not line.startswith("#")]
    return [w[1] for w in words if w[0] == "allowed"], [w[1] for w in words if w[0] == "proved"]
