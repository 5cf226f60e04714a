#!/bin/sh
# SIMULATED: what NVIDIA-Linux-x86_64-VERSION.run leaves on a host, by the same names and in the same places, with an uninstaller
# that works by the same log. Nothing of NVIDIA's is in it: libraries are empty, modules are the lab's stand-ins.
# usage: runfile.sh VERSION KERNEL [OTHER-KERNEL]     (a module for OTHER-KERNEL stays outside the log, as after an older install)
set -eu
version=$1 kernel=$2 other=${3:-}
lib=/usr/lib/x86_64-linux-gnu
[ -d "$lib" ] && [ -e /etc/debian_version ] && [ ! -d /etc/yum.repos.d ] && [ ! -d /etc/zypp ] || lib=/usr/lib64
log=/var/lib/nvidia/log
mkdir -p /var/lib/nvidia "$lib" /usr/share/nvidia "/lib/firmware/nvidia/$version"
printf '%s\nNVIDIA Accelerated Graphics Driver for Linux-x86_64\n' "$version" >"$log"

put() { # PATH: an installed file
    [ -e "$1" ] || : >"$1"
    printf '1: %s\n0\n' "$1" >>"$log"
}

link() { # PATH TARGET: an installed link
    ln -sf "$2" "$1"
    printf '0: %s\n%s\n' "$1" "$2" >>"$log"
}

modules() { # KERNEL FOLDER: the lab's stand-ins, proprietary
    mkdir -p "/lib/modules/$1/kernel/drivers/video" /tmp/runfile-modules
    cat >/tmp/runfile-modules/stand-in.json <<JSON
{"modules": ["nvidia", "nvidia-uvm"], "license": "NVIDIA", "version": "$version"}
JSON
    python3 "/lib/modules/$1/build/scripts/mkmodule" "$1" /tmp/runfile-modules
    cp /tmp/runfile-modules/nvidia*.ko "/lib/modules/$1/kernel/drivers/video/"
    rm -rf /tmp/runfile-modules
}

cat >/usr/bin/nvidia-installer <<'PROGRAM'
#!/bin/sh
# SIMULATED uninstaller: unlinks what its log names, one after the other, then brings back what it had set aside.
set -eu
case "$0 $*" in *nvidia-uninstall*--silent* | *--uninstall*--silent*) ;; *) echo "this stand-in only uninstalls, and silently" >&2; exit 2 ;; esac
log=/var/lib/nvidia/log
[ -e "$log" ] || { echo "No driver backed up." >&2; exit 1; }
version=$(head -n 1 "$log")
dkms remove -m nvidia -v "$version" --all >/dev/null 2>&1 || true
rm -rf "/usr/src/nvidia-$version"
entries=$(sed -nE 's/^[01]: (.*)/\1/p' "$log")
for path in $entries; do
    [ ! -e /run/runfile-hook ] || /run/runfile-hook "$path"
    rm -f "$path"
done
rm -rf /var/lib/nvidia
ldconfig
echo "Uninstallation of existing driver: NVIDIA Accelerated Graphics Driver for Linux-x86_64 ($version) is complete." | tee /var/log/nvidia-uninstall.log
PROGRAM
chmod +x /usr/bin/nvidia-installer
put /usr/bin/nvidia-installer
link /usr/bin/nvidia-uninstall nvidia-installer
printf '#!/bin/sh\nexit 9\n' >/usr/bin/nvidia-smi
chmod +x /usr/bin/nvidia-smi
put /usr/bin/nvidia-smi
for name in libnvidia-ml libcuda libnvidia-ptxjitcompiler libnvidia-cfg; do
    put "$lib/$name.so.$version"
    link "$lib/$name.so.1" "$name.so.$version"
done
: >"$lib/libnvidia-older.so.$version" # outside the log
put "/lib/firmware/nvidia/$version/gsp_ga10x.bin"
put /usr/share/nvidia/nvidia-application-profiles-rc
modules "$kernel"
for path in "/lib/modules/$kernel/kernel/drivers/video"/nvidia*.ko; do put "$path"; done
[ -z "$other" ] || modules "$other"
mkdir -p "/usr/src/nvidia-$version"
printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="%s"\nBUILT_MODULE_NAME[0]="nvidia"\nDEST_MODULE_LOCATION[0]="/kernel/drivers/video"\nMAKE[0]="true"\n' \
    "$version" >"/usr/src/nvidia-$version/dkms.conf"
dkms add -m nvidia -v "$version" >/dev/null
depmod "$kernel"
