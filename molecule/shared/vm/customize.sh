#!/bin/sh
# Runs in a container of one of the lab's images (a fresh Debian, or a host that site.yml has converted) and makes of its
# root what a disk holds: what the lab had put in the way of devices and boot loader is taken out, a real boot loader put in.
# usage: customize.sh bios|uefi [PACKAGE …]
set -eu
firmware=$1
shift
here=$(dirname "$0")
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C

# A container leaves devices, clock and consoles to its machine; here the host is a machine of its own.
for link in /etc/systemd/system/*; do
    if [ "$(readlink "$link" || true)" = /dev/null ]; then rm "$link"; fi
done
rm -f /etc/ssh/sshd_config.d/port.conf

# The container has no disk, so grub-probe's stand-in stays until the packages are in, and grub-install waits for the
# machine (provision.sh). Debian's own answer for "install nowhere now" is install_devices_empty.
case $firmware in
bios)
    printf 'grub-pc grub-pc/install_devices_empty boolean true\n' | debconf-set-selections
    set -- grub-pc "$@"
    ;;
uefi) set -- grub-efi-amd64 "$@" ;;
esac
apt-get update -qq
apt-get install --yes --no-install-recommends "$@"
apt-get purge --yes needrestart
apt-get clean

# The console is a file on the machine below, so that a start which fails can be read.
mkdir -p /etc/default/grub.d
cat >/etc/default/grub.d/lab-vm.cfg <<'END'
GRUB_TIMEOUT=1
GRUB_RECORDFAIL_TIMEOUT=1
GRUB_DISABLE_OS_PROBER=true
GRUB_TERMINAL=serial
GRUB_SERIAL_COMMAND="serial --speed=115200"
GRUB_CMDLINE_LINUX="console=ttyS0,115200 mitigations=off"
GRUB_CMDLINE_LINUX_DEFAULT=""
END

# The stand-in of grub-probe names the file system that the disk will have, so the menu is right from the first start on.
# GRUB's two images for the disk's start are made as grub-install makes them; where /boot is elsewhere than on the root's own
# partition, or the firmware is UEFI, the machine runs grub-install itself (provision.sh).
uuid=$(grub-probe --target=fs_uuid /)
mkdir -p /dev/disk/by-uuid
: >"/dev/disk/by-uuid/$uuid"
if [ "$firmware" = bios ]; then
    mkdir -p /boot/grub/i386-pc
    cp /usr/lib/grub/i386-pc/*.mod /usr/lib/grub/i386-pc/*.lst /usr/lib/grub/i386-pc/boot.img /boot/grub/i386-pc/
    grub-mkimage --format=i386-pc --output=/boot/grub/i386-pc/core.img --prefix='(,msdos1)/boot/grub' \
        biosdisk part_msdos ext2
fi
update-grub
if [ -e /usr/sbin/grub-probe.real ]; then
    rm -f /usr/sbin/grub-probe
    dpkg-divert --local --rename --divert /usr/sbin/grub-probe.real --remove /usr/sbin/grub-probe
fi
if [ "$firmware" = bios ]; then
    printf 'grub-pc grub-pc/install_devices_empty boolean false\ngrub-pc grub-pc/install_devices multiselect /dev/vda\n' |
        debconf-set-selections
fi

cat >/etc/systemd/network/80-lab-vm.network <<'END'
[Match]
Type=ether
[Network]
DHCP=ipv4
END
systemctl enable systemd-networkd.service
systemctl disable systemd-networkd-wait-online.service

# Emulated processors are ten times slower, and slowest at starting processes: no session bookkeeping for each login, an
# initrd of what these machines have, and no services that nobody here waits for.
printf 'UsePAM no\n' >/etc/ssh/sshd_config.d/00-lab-vm.conf
if id ops >/dev/null 2>&1; then usermod -p '*' ops; fi
printf 'MODULES=list\n' >/etc/initramfs-tools/conf.d/lab-vm
printf '%s\n' virtio_pci virtio_blk ext4 crc32c_generic crc32c_intel >>/etc/initramfs-tools/modules
update-initramfs -u -k all
printf 'blacklist %s\n' kvm_amd powernow_k8 ccp psmouse pcspkr i2c_piix4 ata_piix ata_generic parport_pc ppdev floppy \
    joydev serio_raw binfmt_misc qemu_fw_cfg >/etc/modprobe.d/lab-vm.conf
for unit in proc-sys-fs-binfmt_misc.automount systemd-binfmt.service systemd-udev-load-credentials.service \
    sys-kernel-config.mount sys-fs-fuse-connections.mount modprobe@configfs.service modprobe@fuse.service \
    modprobe@drm.service modprobe@efi_pstore.service systemd-pstore.service; do
    systemctl mask "$unit"
done
for unit in unattended-upgrades.service e2scrub_reap.service getty@tty1.service e2scrub_all.timer fstrim.timer \
    dpkg-db-backup.timer logrotate.timer; do
    systemctl disable "$unit" || true
done

# A PCI tree of the project's own: laid over the real one once the machine's own devices are set up.
install -d /usr/local/share/lab-vm /usr/local/lib/lab-vm
cp -a "$here/pci" /usr/local/share/lab-vm/pci
install -m 0755 "$here/provision.sh" /usr/local/lib/lab-vm/provision
cat >/etc/systemd/system/lab-vm-pci.service <<'END'
[Unit]
Description=Simulated GPUs: a PCI tree of files over /sys/bus/pci/devices
DefaultDependencies=no
After=systemd-udev-trigger.service local-fs.target
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=mount --bind -o ro /usr/local/share/lab-vm/pci /sys/bus/pci/devices
[Install]
WantedBy=sysinit.target
END
# Many machines share this disk: each one's name stands where a server has its serial number.
cat >/etc/systemd/system/lab-vm-name.service <<'END'
[Unit]
Description=Name of the machine
DefaultDependencies=no
After=systemd-remount-fs.service
Before=sysinit.target systemd-networkd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=sh -c 'cat /sys/class/dmi/id/product_serial >/etc/hostname; hostname -F /etc/hostname'
[Install]
WantedBy=sysinit.target
END
systemctl enable lab-vm-pci.service lab-vm-name.service

# What the lab's hosts see of this machine: proved modules, and the repository of stand-ins.
install -d /var/cache/baremetal-nvidia /srv/baremetal-nvidia-lab
cat >/etc/fstab <<END
UUID=$uuid / ext4 errors=remount-ro 0 1
modules /var/cache/baremetal-nvidia 9p trans=virtio,version=9p2000.L,msize=262144,nofail,x-systemd.device-timeout=5 0 0
repository /srv/baremetal-nvidia-lab 9p trans=virtio,version=9p2000.L,msize=262144,ro,nofail,x-systemd.device-timeout=5 0 0
END

# One key for all of these machines: they share a disk image, and stay on this machine's loopback.
for home in /root /home/ops; do
    [ -d "$home" ] || continue
    install -d -m 0700 "$home/.ssh"
    install -m 0600 "$here/keys/id_ed25519.pub" "$home/.ssh/authorized_keys"
    chown -R --reference="$home" "$home/.ssh"
done
install -m 0600 "$here/keys/host_ed25519" /etc/ssh/ssh_host_ed25519_key
install -m 0644 "$here/keys/host_ed25519.pub" /etc/ssh/ssh_host_ed25519_key.pub
rm -f /etc/machine-id
systemd-machine-id-setup
