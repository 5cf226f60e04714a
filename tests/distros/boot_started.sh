#!/bin/sh
# usage: boot_started.sh RELEASE: what the host's early unit does in the boot after the one in which a trial was armed, if this kernel came up
set -eu
bin=$(mktemp -d)
trap 'rm -r "$bin"' EXIT
printf '#!/bin/sh\necho %s\n' "$1" >"$bin/uname"
chmod 0755 "$bin/uname"
sed -i 's/^BOOT_ID=.*/BOOT_ID=the-boot-before/' /var/lib/baremetal-nvidia/trial.conf
BAREMETAL_NVIDIA_PATH=$bin:$PATH sh /usr/local/lib/baremetal-nvidia/kernel-trial early
