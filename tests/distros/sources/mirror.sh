#!/bin/sh
# A mirror of NVIDIA's repository on the host itself, over http, with keys of its own, and a proxy before it (serve.sh). Run once as root.
# usage: mirror.sh ADDRESS
#   http://mirror.lab:8081/compute/cuda/repos/ubuntu2404/x86_64/   the lab's repository, signed by the key in /srv/www/key.asc
#   …/ubuntu2204/x86_64/    another release's        …/expired/    Valid-Until has passed        …/other/    signed by another key
#   http://proxy.lab:8082   a proxy that writes what it is asked for to /srv/proxy.log, and refuses while /srv/proxy.refuses exists
set -eu
www=/srv/www
export GNUPGHOME=/srv/gnupg
mkdir -p "$www" "$GNUPGHOME"
chmod 0700 "$GNUPGHOME"
# what made the lab's image has dates not looked at
rm -f /etc/apt/apt.conf.d/99mmdebstrap
for name in mirror other; do
    gpg --batch --quiet --passphrase '' --quick-generate-key "$name@lab" ed25519 sign never
    gpg --batch --quiet --armor --export "$name@lab" >"$www/$name.asc"
    gpg --batch --with-colons --list-keys "$name@lab" | sed -n 's/^fpr:*\([0-9A-F]*\):$/\1/p' | head -n 1 >"$www/$name.fingerprint"
done
ln -sf /srv/archive/pool "$www/pool"

repository() { # PATH KEY VALID-UNTIL
    mkdir -p "$www/$1"
    ln -sfn /srv/archive/pool "$www/$1/pool"
    sed 's|^Filename: .*/pool/|Filename: pool/|' /srv/archive/cuda/Packages >"$www/$1/Packages"
    {
        printf 'Origin: NVIDIA\nLabel: NVIDIA CUDA\nArchitecture: x86_64\nDate: Sun, 01 Nov 2026 00:00:00 UTC\n'
        [ -z "$3" ] || printf 'Valid-Until: %s\n' "$3"
        printf 'SHA256:\n %s %s Packages\n' "$(sha256sum <"$www/$1/Packages" | cut -d' ' -f1)" "$(wc -c <"$www/$1/Packages")"
    } >"$www/$1/Release"
    gpg --batch --quiet --yes --local-user "$2@lab" --clear-sign --output "$www/$1/InRelease" "$www/$1/Release"
}

repository compute/cuda/repos/ubuntu2404/x86_64 mirror ''
repository compute/cuda/repos/ubuntu2204/x86_64 mirror ''
repository expired mirror 'Sun, 15 Nov 2026 00:00:00 UTC'
repository other other ''
gpgconf --kill all
/root/serve.sh "$1" "$www" mirror.asc
