#!/bin/sh
# Puts /boot on a partition with ext4, which GRUB can write: a loop device with one partition, of which the kernel is told, since not
# every kernel reads partition tables. Takes it away again with "away".
set -eu
image=/root/boot-disk.img

forget_partition() { # DEVICE: one that is left of an earlier disk, too (an error is none if it went: there is no disk below any more)
    [ ! -e "/sys/class/block/${1##*/}p1" ] || partx -d --nr 1 "$1" || [ ! -e "/sys/class/block/${1##*/}p1" ]
}

if [ "${1:-}" = away ]; then
    partition=$(findmnt -n -o SOURCE /boot)
    umount /boot
    forget_partition "${partition%p1}"
    rm -f "$image" "$partition"
    exit 0
fi
truncate -s 96M "$image"
device=$(losetup -f --show "$image")
forget_partition "$device"
partition=${device}p1
python3 - "$image" <<'TABLE'
import struct
import sys

with open(sys.argv[1], "r+b") as disk:
    disk.seek(446)
    disk.write(struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", 2048, 95 * 2048))
    disk.seek(510)
    disk.write(b"\x55\xaa")
TABLE
partx -a "$device"
numbers=$(cat "/sys/class/block/${partition##*/}/dev")
mknod "$partition" b "${numbers%:*}" "${numbers#*:}"
mkfs.ext4 -q -F "$partition"
mount "$partition" /mnt
cp -a /boot/. /mnt/
umount /mnt
mount "$partition" /boot
losetup -d "$device" # it goes with the last mount
