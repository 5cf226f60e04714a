#!/bin/sh
# Everything that must be the same again after a kernel was taken back, on any of the distributions. Not what depmod makes anew.
find /boot -type f ! -path '*/.baremetal-nvidia-stage/*' | sort | xargs sha256sum
find /lib/modules /usr/lib/modules -type f ! -name 'modules.*' 2>/dev/null | sort | xargs sha256sum
find /lib/modules/ -maxdepth 1 | sort
find /var/lib/dkms /etc/dkms ! -name '*.log' 2>/dev/null | sort
if command -v dpkg-query >/dev/null; then
    dpkg-query -W -f '${binary:Package} ${Version} ${db:Status-Abbrev}\n'
    apt-mark showhold
    apt-mark showmanual
else
    rpm -qa | sort
    for file in /etc/dnf/plugins/versionlock.list /etc/dnf/dnf.conf /etc/zypp/locks; do
        [ ! -f "$file" ] || sort "$file" | sed "s|^|$file |"
    done
fi
