#!/bin/sh
# Everything that must be the same again after a kernel was taken back. Not the times of links, nor what depmod makes anew.
find /boot -type f | sort | xargs sha256sum
find /lib/modules -type f ! -name 'modules.*' | sort | xargs sha256sum
find /lib/modules /usr/src -maxdepth 1 | sort
find /var/lib/dkms /etc/dkms ! -name '*.log' | sort
dpkg-query -W -f '${binary:Package} ${Version} ${db:Status-Abbrev}\n'
apt-mark showhold
apt-mark showmanual
for link in /vmlinuz /initrd.img; do readlink "$link"; done
cat /etc/apt/preferences.d/baremetal-nvidia /etc/apt/apt.conf.d/52baremetal-nvidia
