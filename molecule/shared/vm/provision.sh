#!/bin/sh
# The first process of the first start of a disk on which GRUB is not put from outside (UEFI, /boot on RAID or LVM): lays
# out /boot, installs GRUB with its own tools, and switches the machine off.
# What to do stands on the kernel's command line: lab.firmware=bios|uefi lab.layout=plain|mdraid|lvm
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C

say() { printf '\nLAB-VM: %s\n' "$*" >/dev/ttyS0; }
off() {
    udevadm control --exit || true
    sync
    echo 1 >/proc/sys/kernel/sysrq
    echo u >/proc/sysrq-trigger # every file system read-only
    sleep 1
    echo o >/proc/sysrq-trigger
    sleep 60
}
trap 'say "provision failed"; off' EXIT
exec >/dev/ttyS0 2>&1

value() { sed -n "s/.*lab\\.$1=\\([a-z]*\\).*/\\1/p" /proc/cmdline; }
firmware=$(value firmware)
layout=$(value layout)

mount -o remount,rw /
for place in proc sysfs:sys devtmpfs:dev tmpfs:run; do
    mountpoint -q "/${place#*:}" || mount -t "${place%%:*}" none "/${place#*:}"
done
/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add
udevadm settle

boot_on() { # move /boot to a device of its own
    mkfs.ext4 -q "$1"
    mkdir -p /mnt/boot
    mount "$1" /mnt/boot
    cp -a /boot/. /mnt/boot/
    umount /mnt/boot
    rmdir /mnt/boot
    find /boot -mindepth 1 -delete
    mount "$1" /boot
    printf 'UUID=%s /boot ext4 defaults 0 2\n' "$(blkid -s UUID -o value "$1")" >>/etc/fstab
}

case $layout in
plain) ;;
mdraid)
    modprobe raid1
    mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --metadata=1.2 /dev/vda3 /dev/vda4
    udevadm settle
    boot_on /dev/md0
    ;;
lvm)
    modprobe dm-mod
    pvcreate -y /dev/vda3
    vgcreate lab /dev/vda3
    lvcreate -y -W n -n boot -l 100%FREE lab
    udevadm settle
    boot_on /dev/lab/boot
    ;;
esac

case $firmware in
bios) grub-install /dev/vda ;;
uefi)
    mkfs.vfat -n ESP /dev/vda2
    mkdir -p /boot/efi
    mount -t vfat /dev/vda2 /boot/efi
    grub-install --target=x86_64-efi --efi-directory=/boot/efi --no-nvram --removable
    printf 'UUID=%s /boot/efi vfat umask=0077 0 1\n' "$(blkid -s UUID -o value /dev/vda2)" >>/etc/fstab
    umount /boot/efi
    ;;
esac
update-grub
if [ "$layout" != plain ]; then umount /boot; fi

trap - EXIT
say "provision done"
off
