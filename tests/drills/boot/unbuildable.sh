#!/bin/sh
# Puts an archive on the machine that offers a newer kernel, whose headers no module can be built with: real names, no real content.
set -eu
release=6.1.0-90-amd64
version=6.1.900-1
work=$(mktemp -d)
archive=/srv/unbuildable
mkdir -p "$archive"

package() { # NAME DEPENDS
    mkdir -p "$work/$1/DEBIAN"
    printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nSection: kernel\nPriority: optional\nMaintainer: Lab <lab@localhost>\n' \
        "$1" "$version" >"$work/$1/DEBIAN/control"
    [ -z "$2" ] || printf 'Depends: %s\n' "$2" >>"$work/$1/DEBIAN/control"
    printf 'Description: stand-in of a drill\n' >>"$work/$1/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip --build "$work/$1" "$archive/$1_${version}_amd64.deb" >/dev/null
}

headers=$work/linux-headers-$release/usr/src/linux-headers-$release
mkdir -p "$headers/include/generated" "$headers/include/config" "$work/linux-image-$release/boot" \
    "$work/linux-image-$release/lib/modules/$release/kernel" "$work/linux-headers-$release/lib/modules/$release"
printf '#define UTS_RELEASE "%s"\n' "$release" >"$headers/include/generated/utsrelease.h"
printf '%s\n' "$release" >"$headers/include/config/kernel.release"
cp "/usr/src/linux-headers-$(uname -r)/.config" "$headers/.config"
cat >"$headers/Makefile" <<'END'
%:
	@echo "mm.c:1:1: error: implicit declaration of function 'get_user_pages_remote'" >&2; exit 2
END
ln -s "/usr/src/linux-headers-$release" "$work/linux-headers-$release/lib/modules/$release/build"
cp "/boot/vmlinuz-$(uname -r)" "$work/linux-image-$release/boot/vmlinuz-$release"
cp "/boot/config-$(uname -r)" "$work/linux-image-$release/boot/config-$release"
package "linux-headers-$release" linux-compiler-gcc-12-x86
package "linux-image-$release" ""
package linux-headers-amd64 "linux-headers-$release (= $version)"
package linux-image-amd64 "linux-image-$release (= $version)"
(cd "$archive" && apt-ftparchive packages . >Packages)
printf 'deb [trusted=yes] file:%s ./\n' "$archive" >/etc/apt/sources.list.d/unbuildable.list
rm -r "$work"
