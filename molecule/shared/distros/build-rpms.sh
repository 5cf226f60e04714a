#!/bin/sh
# Runs in a base image: builds, signs and indexes what lab/rpms.py has laid out below /build/work.
set -eu
cd /build/work
export SOURCE_DATE_EPOCH=1790000000 GNUPGHOME=/build/work/gnupg
for spec in SPECS/*.spec; do
    rpmbuild --quiet -bb --define "_topdir /build/work" --define "_dbpath /tmp/rpmdb" "$spec"
done
key=$(gpg --batch --with-colons --list-keys | sed -n 's/^fpr:*\([0-9A-F]*\):$/\1/p' | head -n 1)
find RPMS -name '*.rpm' -print0 |
    xargs -0 rpmsign --define "__gpg /usr/bin/gpg" --define "_gpg_name $key" --define "_gpg_path $GNUPGHOME" --define "_dbpath /tmp/rpmdb" --addsign >/dev/null
for list in *.list; do
    name=${list%.list}
    while read -r file; do ln "$(find RPMS -name "$file")" "/build/$name/$file"; done <"$list"
    createrepo_c --quiet --no-database "/build/$name"
    for extra in updateinfo.xml modules.yaml; do
        [ ! -f "$name.$extra" ] || {
            cp "$name.$extra" "/tmp/$extra"
            modifyrepo_c --mdtype "${extra%.*}" "/tmp/$extra" "/build/$name/repodata" >/dev/null
        }
    done
done
gpgconf --kill all
