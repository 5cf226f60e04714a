/bin/kernel-install add "@release@" "/lib/modules/@release@/vmlinuz" || exit $?
