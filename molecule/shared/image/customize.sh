#!/bin/sh
# Runs as mmdebstrap's customize hook: makes a minimal Debian look like a server that someone installed.
# usage: customize.sh ROOT SUITE
set -eu
root=$1
suite=$2
here=$(dirname "$0")

in_root() { DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

# A boot loader as on a disk. Only grub-probe has a stand-in, since a container's root is not a disk.
in_root dpkg-divert --local --rename --divert /usr/sbin/grub-probe.real --add /usr/sbin/grub-probe >/dev/null
install -m 0755 "$here/grub-probe" "$root/usr/sbin/grub-probe"
mkdir -p "$root/boot/grub" "$root/etc/default"
install -m 0644 "$here/grub-default" "$root/etc/default/grub"
in_root grub-editenv /boot/grub/grubenv create

if [ "$suite" = bookworm ]; then
    # A second kernel that can be booted: the oldest of this series in the archive, without its headers.
    older=$(in_root apt-cache pkgnames linux-image-6.1.0- | grep -E '^linux-image-6\.1\.0-[0-9]+-amd64$' | sort -V | head -n 1)
    if [ -n "$older" ] && ! in_root dpkg-query -W "$older" >/dev/null 2>&1; then
        in_root apt-get install -y --no-install-recommends "$older"
    fi
fi
in_root update-grub

if [ "$suite" != bookworm ]; then
    in_root apt -y modernize-sources # deb822, as newer installations have them
    rm -f "$root"/etc/apt/sources.list*.bak "$root"/etc/apt/*.bak
fi

# The machine's devices, kernel settings and clock are not the host's to manage.
for unit in systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udev-trigger.service \
    systemd-udev-load-credentials.service systemd-modules-load.service systemd-sysctl.service systemd-binfmt.service \
    systemd-remount-fs.service systemd-timesyncd.service systemd-random-seed.service sys-kernel-debug.mount \
    sys-kernel-tracing.mount sys-kernel-config.mount dev-hugepages.mount proc-sys-fs-binfmt_misc.automount \
    getty.target console-getty.service getty@tty1.service ssh.socket; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
# apt's own timers stay what they are, but do not catch up in the middle of a test.
for timer in apt-daily apt-daily-upgrade; do
    mkdir -p "$root/etc/systemd/system/$timer.timer.d"
    printf '[Timer]\nOnCalendar=\nOnCalendar=yearly\nPersistent=false\n' >"$root/etc/systemd/system/$timer.timer.d/lab.conf"
done

in_root useradd --create-home --shell /bin/bash --groups sudo ops
printf 'ops ALL=(ALL) NOPASSWD: ALL\n' >"$root/etc/sudoers.d/ops"
chmod 0440 "$root/etc/sudoers.d/ops"
printf 'UseDNS no\nMaxStartups 100\nMaxSessions 100\nPasswordAuthentication no\n' >"$root/etc/ssh/sshd_config.d/lab.conf"
rm -f "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"
