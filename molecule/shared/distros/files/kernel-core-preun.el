/bin/kernel-install remove "@release@" || exit $?
