#!/bin/sh
# Runs in the base image: installs the system from the first release of its archive, then tells it of the rest.
set -eu
archive=/srv/archive
family="" first_archives="" first_packages="" first_sources="" archives=""
# shellcheck source=/dev/null
. "$archive/host.sh"

rm -f /etc/os-release
cp "$archive/os-release" /usr/lib/os-release
ln -s ../usr/lib/os-release /etc/os-release

apt_sources() { # SUITE …
    for suite in "$@"; do
        echo "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] file:$archive $suite main restricted universe multiverse"
    done >/etc/apt/sources.list
}

# The words are lists of names.
# shellcheck disable=SC2086
case $family in
ubuntu)
    # shellcheck source=/dev/null
    . /etc/os-release
    printf 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=%s\nDISTRIB_CODENAME=%s\nDISTRIB_DESCRIPTION="%s"\n' \
        "$VERSION_ID" "$VERSION_CODENAME" "$PRETTY_NAME" >/etc/lsb-release
    rm -f /etc/apt/sources.list.d/* /etc/apt/trusted.gpg.d/* /usr/share/keyrings/debian-archive-*
    cp "$archive/key.gpg" /usr/share/keyrings/ubuntu-archive-keyring.gpg
    export DEBIAN_FRONTEND=noninteractive
    apt_sources $first_archives
    apt-get -q update
    # an initial ramdisk needs a module to be one
    printf 'virtio\n' >>/etc/initramfs-tools/modules
    apt-get -q install -y $first_packages
    update-grub
    apt_sources $archives
    apt-get -q update
    ;;
el | suse)
    # Debian's own package manager is not there for anyone to find
    rm -rf /usr/bin/apt /usr/bin/apt-* /usr/bin/dpkg* /usr/sbin/dpkg* /etc/apt /var/lib/apt /var/cache/apt \
        /etc/kernel/postinst.d/* /etc/kernel/header_postinst.d/* /etc/kernel/prerm.d/* /etc/kernel/install.d/*
    mv /var/lib/dpkg /usr/share/lab-dpkg
    # a machine keeps its id over its life, and its boot entries are named after it
    echo 6f0d4d5e9c703a4a4d1b7c105f0c2f1e >/etc/machine-id
    rpm --import "$archive/key.asc"
    where=/etc/yum.repos.d
    [ "$family" = el ] || where=/etc/zypp/repos.d
    mkdir -p "$where" /etc/products.d
    for name in $first_sources; do cp "$archive/$name.repo" "$where/"; done
    if [ "$family" = el ]; then
        # Debian switches a plugin on that Red Hat does not
        sed -i 's/^enabled = true/enabled = false/' /etc/dnf/plugins/local.conf
        dnf -y install $first_packages
    else
        cat >/etc/products.d/SLES.prod <<'PRODUCT'
<?xml version="1.0" encoding="UTF-8"?>
<product schemeversion="0">
  <vendor>SUSE</vendor><name>SLES</name><version>15.6</version><release>0</release><arch>x86_64</arch>
  <summary>SUSE Linux Enterprise Server 15 SP6</summary><shortsummary>SLES15-SP6</shortsummary>
</product>
PRODUCT
        ln -s SLES.prod /etc/products.d/baseproduct
        zypper --non-interactive --no-refresh refresh
        zypper --non-interactive install --no-confirm $first_packages
    fi
    ;;
esac
