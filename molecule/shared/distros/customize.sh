#!/bin/sh
# Runs as mmdebstrap's customize hook: makes a minimal Debian look like a server of another distribution.
# usage: customize.sh ROOT FAMILY      (ubuntu, el or suse; what only the archive knows comes later, in install.sh)
set -eu
root=$1
family=$2
here=$(cd "$(dirname "$0")" && pwd)

in_root() { DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

# A boot loader as on a disk. Only grub-probe has a stand-in, since a container's root is not a disk.
in_root dpkg-divert --local --rename --divert /usr/sbin/grub-probe.real --add /usr/sbin/grub-probe >/dev/null
install -m 0755 "$here/../image/grub-probe" "$root/usr/sbin/grub-probe"
cp -R "$here/root/$family/." "$root/"

case $family in
ubuntu)
    mkdir -p "$root/boot/grub"
    in_root grub-editenv /boot/grub/grubenv create
    ;;
*) # the names that Red Hat and SUSE give to GRUB's tools
    mkdir -p "$root/boot/grub2" "$root/boot/loader/entries"
    ln -s grub2 "$root/boot/grub"
    for tool in editenv file install mkconfig mkimage mkrelpath probe reboot script-check set-default; do
        path=$(in_root sh -c "command -v grub-$tool") || continue
        ln -sf "$path" "$root${path%/*}/grub2-$tool"
    done
    in_root grub-editenv /boot/grub2/grubenv create
    mkdir -p "$root/var/lib/rpm"
    in_root rpm --initdb
    ;;
esac

# The machine's devices, kernel settings and clock are not the host's to manage.
for unit in systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udev-trigger.service \
    systemd-udev-load-credentials.service systemd-modules-load.service systemd-sysctl.service systemd-binfmt.service \
    systemd-remount-fs.service systemd-timesyncd.service systemd-random-seed.service sys-kernel-debug.mount \
    sys-kernel-tracing.mount sys-kernel-config.mount dev-hugepages.mount proc-sys-fs-binfmt_misc.automount \
    getty.target console-getty.service getty@tty1.service ssh.socket; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
for timer in apt-daily apt-daily-upgrade; do
    [ "$family" = ubuntu ] || break
    mkdir -p "$root/etc/systemd/system/$timer.timer.d"
    printf '[Timer]\nOnCalendar=\nOnCalendar=yearly\nPersistent=false\n' >"$root/etc/systemd/system/$timer.timer.d/lab.conf"
done

in_root useradd --create-home --shell /bin/bash --groups sudo ops
printf 'ops ALL=(ALL) NOPASSWD: ALL\n' >"$root/etc/sudoers.d/ops"
chmod 0440 "$root/etc/sudoers.d/ops"
mkdir -p "$root/etc/ssh/sshd_config.d"
printf 'UseDNS no\nMaxStartups 100\nMaxSessions 100\nPasswordAuthentication no\n' >"$root/etc/ssh/sshd_config.d/lab.conf"
rm -f "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"
