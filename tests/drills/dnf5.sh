#!/usr/bin/env bash
# dnf 5, which no lab host has: a real one from Debian's archive in a chroot, with a repository of empty packages of the real
# names. Pins and guards it with this checkout's own code, then types what people type. Needs root, mmdebstrap and about a minute.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ "$(id -u)" -eq 0 ] || exec sudo --preserve-env=LAB_MIRROR,LAB_CACHE "$0" "$@"
root=$(realpath -m "${LAB_CACHE:-.cache}")/dnf5-root
mirror=${LAB_MIRROR:-http://deb.debian.org}/debian
old=5.14.0-427.el9 new=5.14.0-570.el9

say() { printf '%s\n' "$*"; }
fail() { say "FAIL $*"; exit 1; }
in_root() { chroot "$root" env LC_ALL=C.UTF-8 "$@"; }
dnf() { in_root dnf5 --assumeyes --releasever=9 "$@" 2>&1 || return $?; }
kernels() { in_root rpm -qa 'kernel*' | sort | tr '\n' ' '; }

if [ ! -x "$root/usr/bin/dnf5" ]; then
    say "making $root"
    rm -rf "$root"
    mkdir -p "$(dirname "$root")"
    mmdebstrap --quiet --variant=minbase --include=dnf5,rpm,createrepo-c,python3 --aptopt='Apt::Install-Recommends "false"' \
        --aptopt='Acquire::Check-Valid-Until "false"' forky "$root" "$mirror"
fi
for place in proc work/plugins; do mkdir -p "$root/$place"; done
mkdir -p "$root/code/ansible_collections/baremetal/nvidia/plugins"
trap 'umount "$root/proc" "$root/code/ansible_collections/baremetal/nvidia/plugins" 2>/dev/null || true' EXIT
mount --bind /proc "$root/proc"
mount --bind -o ro plugins "$root/code/ansible_collections/baremetal/nvidia/plugins"

# packages, and a host that has the older kernel
if [ ! -d "$root/repo/repodata" ]; then
    in_root sh -e -s <<'SCRIPT'
mkdir -p /repo /tmp/specs
make() {
    printf 'Name: %s\nVersion: 5.14.0\nRelease: %s\nSummary: x\nLicense: x\n%b\n%%description\nx\n%%files\n' "$1" "$2" "$3" >/tmp/specs/x.spec
    rpmbuild --quiet --define '_topdir /tmp/build' --define '_rpmdir /repo' --target x86_64 -bb /tmp/specs/x.spec >/tmp/log 2>&1 ||
        { cat /tmp/log; exit 1; }
}
for release in 427.el9 570.el9; do
    make kernel "$release" "Requires: kernel-core = 5.14.0-$release"
    make kernel-core "$release" "Provides: installonlypkg(kernel)"
    make kernel-devel "$release" "Provides: installonlypkg(kernel)"
    make other "$release" ""
done
make kernel-rt 570.el9 "Requires: kernel-rt-core"
make kernel-rt-core 570.el9 ""
createrepo_c --quiet /repo
mkdir -p /etc/yum.repos.d
printf '[t]\nname=t\nbaseurl=file:///repo\ngpgcheck=0\n' >/etc/yum.repos.d/t.repo
sed -i 's/enabled = true/enabled = false/' /etc/dnf/libdnf5-plugins/local.conf 2>/dev/null || :
SCRIPT
fi
in_root sh -c "rpm -qa 'kernel*' other | xargs -r rpm -e --nodeps; rm -rf /var/lib/baremetal-nvidia /run/baremetal-nvidia"
printf '[main]\ngpgcheck=False\n' >"$root/etc/dnf/dnf.conf"
rm -f "$root/etc/dnf/versionlock.toml"
dnf --quiet install "kernel-$old" "kernel-devel-$old" "other-$old" >/dev/null || fail "the host could not be made"
before=$(kernels)

act() { # pin|guard present|absent
    in_root env PYTHONPATH=/code PYTHONDONTWRITEBYTECODE=1 python3 - "$@" <<'SCRIPT'
import sys
from ansible_collections.baremetal.nvidia.plugins.module_utils.kernel_guard.guard import Guard
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.detect import backend
from ansible_collections.baremetal.nvidia.plugins.module_utils.pin import Pin, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
what, present = sys.argv[1], sys.argv[2] == "present"
if what == "guard":
    release = "5.14.0-427.el9.x86_64"
    done = Guard("dnf", run).run(present, [release], [release], check=False)
    print(done.changed, ",".join(done.via))
else:
    names = {"packages": ("kernel", "kernel-core", "kernel-devel"), "deny": ("kernel-rt*", "kernel-64k")} if present else {}
    done = Pin(backend(run, "/", "dnf"), Store()).run(Request(present=present, why="drill", **names), check=False)
    print(done.changed, len(done.held))
SCRIPT
}
refused() { # words…: the command must end badly and say so
    local words=$1 out
    shift
    if out=$(dnf "$@"); then fail "went through: dnf5 $*"; fi
    case $out in *"$words"*) say "refused: dnf5 $*" ;; *) fail "dnf5 $*: $out" ;; esac
}

[ "$(act pin present)" = "True 5" ] || fail "pin"
[ "$(act pin present)" = "False 5" ] || fail "the second pin changed something"
dnf upgrade >/dev/null || fail "an upgrade beside the pin"
[ "$(kernels)" = "$before" ] || fail "the pin did not hold: $(kernels)"
in_root rpm -q --quiet "other-5.14.0-570.el9" || fail "the upgrade moved nothing at all"
say "held: dnf5 upgrade"
refused "excluded by versionlock" install "kernel-core-$new"
refused "excluded by versionlock" install kernel-rt
dnf versionlock add other >/dev/null
[ "$(act pin present)" = "False 6" ] || fail "dnf5 wrote the file anew and the pin is another"
act pin absent >/dev/null
grep -q 'name = "other"' "$root/etc/dnf/versionlock.toml" || fail "a person's lock is gone"
grep -q kernel "$root/etc/dnf/versionlock.toml" && fail "a lock of ours is left"
[ ! -e "$root/etc/dnf/libdnf5.conf.d/90-baremetal-nvidia.conf" ] || fail "our drop-in is left"

[ "$(act guard present)" = "True actions" ] || fail "guard"
refused "this transaction is refused" upgrade
refused "this transaction is refused" install kernel-rt
refused "this transaction is refused" remove kernel-core
[ "$(kernels)" = "$before" ] || fail "the guard did not hold: $(kernels)"
mkdir -p "$root/run/baremetal-nvidia"
touch "$root/run/baremetal-nvidia/allow-once"
dnf install "kernel-core-$new" >/dev/null || fail "the one command that was to pass"
refused "this transaction is refused" install "kernel-$new"
rm "$root/usr/local/lib/baremetal-nvidia/kernel-guard"
dnf upgrade >/dev/null || fail "a missing script stopped dnf5"
act guard absent >/dev/null
say "$(in_root dnf5 --version | head -n 1): all as it should be"
