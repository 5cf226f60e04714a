# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a proof refuses to go on with: each with its own words."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pathlib
import tarfile
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import (
    bundle,
    cache,
    dkms,
    headers,
    labels,
    modinfo,
    rpm,
    scratch,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.apt import Apt, Offer
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.errors import ProofError
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.shape import Shape
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from proof_host import KERNEL, NAME, VERSION

SHAPE = Shape("debian-12", "x86_64", KERNEL, "6.1.176-1", "gcc-12 12.2.0", VERSION, "proprietary", NAME, {})


def fails(rc: int = 1, err: str = "", out: str = "") -> Any:
    return lambda *_words, **_options: Result(rc=rc, err=err, out=out)


# module files


def test_a_module_that_modinfo_cannot_read() -> None:
    with pytest.raises(ProofError, match=r"modinfo cannot read /x/nvidia.ko: modinfo: ERROR: invalid ELF"):
        modinfo.read("/x/nvidia.ko", fails(err="modinfo: ERROR: invalid ELF\nmore\n"))


def test_modules_that_cannot_be_uncompressed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=r"cannot uncompress /x/nvidia.ko.zst: zstd is not installed"):
        bundle.plain_copy("/x/nvidia.ko.zst", str(tmp_path / "y"), fails(127))
    torn = tmp_path / "nvidia.ko.gz"
    torn.write_bytes(gzip.compress(b"module" * 1000)[:-9])
    with pytest.raises(ProofError, match=r"cannot uncompress .*nvidia.ko.gz: "):
        bundle.plain_copy(str(torn), str(tmp_path / "y"), fails())


def test_a_module_that_dkms_conf_does_not_name(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=r"DKMS built other.ko, which dkms.conf does not name"):
        bundle.create(str(tmp_path), ["/x/other.ko"], [dkms.Built("nvidia", "nvidia", ".")], SHAPE, 1, "now", fails())


def test_a_dkms_conf_without_modules(tmp_path: pathlib.Path) -> None:
    conf = tmp_path / "dkms.conf"
    with pytest.raises(ProofError, match=r"dkms.conf names no modules \(BUILT_MODULE_NAME\): it is empty"):
        dkms.read_conf(str(conf), KERNEL, "x86_64", fails(0))
    with pytest.raises(ProofError, match=r"names no modules .*: syntax error"):
        dkms.read_conf(str(conf), KERNEL, "x86_64", fails(2, "syntax error"))


# what is kept


def test_a_manifest_that_is_not_one_or_is_anothers(tmp_path: pathlib.Path) -> None:
    manifest = tmp_path / bundle.MANIFEST
    manifest.write_text("{}")
    with pytest.raises(ProofError, match=r"manifest.json cannot be used: 'modules'"):
        bundle.load(str(tmp_path), SHAPE, fails())
    other = {**SHAPE.as_dict(), "compiler": "gcc-13"}
    manifest.write_text(json.dumps({"format": bundle.FORMAT, "shape": other, "modules": {}, "built": []}))
    with pytest.raises(ProofError, match=r"is for another kernel, driver, headers or compiler"):
        bundle.load(str(tmp_path), SHAPE, fails())


def test_a_bundle_with_a_file_more_or_less_than_its_manifest_names(tmp_path: pathlib.Path) -> None:
    names = {"files/nvidia.ko": {"sha256": "x"}}
    rows = {"format": bundle.FORMAT, "shape": SHAPE.as_dict(), "modules": names, "built": []}
    (tmp_path / bundle.MANIFEST).write_text(json.dumps(rows))
    with pytest.raises(ProofError, match=r"does not hold the files its manifest names: \['files/nvidia.ko'\]"):
        bundle.load(str(tmp_path), SHAPE, fails())


def tarball(where: pathlib.Path, raw: bytes) -> pathlib.Path:
    path = where / f"x_{hashlib.sha256(raw).hexdigest()}.tar.gz"
    path.write_bytes(raw)
    return path


def test_a_tarball_that_is_a_link_and_one_that_is_none(tmp_path: pathlib.Path) -> None:
    keeper = cache.Cache(str(tmp_path))
    real = tarball(tmp_path, b"no archive")
    with pytest.raises(ProofError, match=r"cannot be opened: "):
        keeper.open(str(real), SHAPE, str(tmp_path / "into"))
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / real.name
    link.symlink_to(real)
    with pytest.raises(ProofError, match=r"is not a file of root's own"):
        keeper.open(str(link), SHAPE, str(tmp_path / "into"))


def test_a_tarball_with_a_link_in_it(tmp_path: pathlib.Path) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        link = tarfile.TarInfo("files/nvidia.ko")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
        archive.addfile(link)
    with pytest.raises(ProofError, match=r"holds 'files/nvidia.ko', which no proved build has"):
        cache.Cache(str(tmp_path)).open(str(tarball(tmp_path, raw.getvalue())), SHAPE, str(tmp_path / "into"))


def test_labels_that_cannot_be_set(tmp_path: pathlib.Path) -> None:
    assert labels.restore(["/x"], fails(), str(tmp_path)) is False, "there is no SELinux"
    enforce = tmp_path / labels.ENFORCE
    enforce.parent.mkdir(parents=True)
    enforce.write_text("1")
    with pytest.raises(ProofError, match=r"the modules' SELinux labels are not known to be right: .*denied"):
        labels.restore(["/x"], fails(err="restorecon: denied"), str(tmp_path))


def test_a_scratch_directory_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=r"scratch_dir .*/gone cannot be used: No such file or directory. Make it"):
        scratch.free_mb(str(tmp_path / "gone"))


# headers


class Archive:
    """An archive that offers what it is told, and whose packages have nothing in them."""

    offered, way_out = Apt.offered, Apt.way_out

    def __init__(self, **offers: str) -> None:
        self.offers = {name.replace("_", "-"): depends for name, depends in offers.items()}

    def headers_name(self, release: str) -> str:
        return f"linux-headers-{release}"

    def offer(self, name: str, _version: str | None = None) -> Offer | None:
        depends = self.offers.get(name)
        return None if depends is None else Offer(name, "1", tuple(depends.split()))

    def installed(self, _name: str) -> str | None:
        return None

    def download(self, wanted: dict[str, str], _into: str) -> list[str]:
        return list(wanted)

    def unpack(self, _package: str, _into: str) -> None:
        pass


def wanted(depends: str = "") -> headers.Headers:
    offer = Offer(f"linux-headers-{KERNEL}", "1", tuple(depends.split()))
    return headers.Headers(KERNEL, offer.name, "1", False, "gcc-12", offer=offer)


def test_headers_that_do_not_name_their_compiler(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".config").write_text("CONFIG_MODULES=y\n")
    with pytest.raises(ProofError, match=r"does not say which compiler built the kernel: reinstall the headers"):
        headers.compiler_of(str(tmp_path))


def test_headers_that_need_what_nobody_offers(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=f"linux-headers-{KERNEL} 1 needs linux-headers-6.1.0-50-common, which is not "
                                         "offered by this host's package sources: refresh the package lists"):
        headers.fetch(wanted("libc6 linux-headers-6.1.0-50-common"), Archive(), str(tmp_path))


def test_headers_that_are_laid_out_otherwise(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=f"has no usr/src/linux-headers-{KERNEL}/include: it is not laid out as"):
        headers.fetch(wanted(), Archive(), str(tmp_path))


# rpm


class Programs:
    """dnf, which brings a package; rpm, which trusts it or not; sh, which cannot open it."""

    def __init__(self, brings: bool, trusted: bool = True) -> None:
        self.brings, self.trusted = brings, trusted

    def __call__(self, argv: list[str], **_options: Any) -> Result:
        if "download" in argv:
            if not self.brings:
                return Result(rc=1, err="Error: No package kmod-x-1 available.")
            pathlib.Path(argv[argv.index("--destdir") + 1], "kmod-x-1.rpm").write_text("x")
            return Result(rc=0)
        if argv[:2] == ["rpm", "--checksig"]:
            return Result(rc=0 if self.trusted else 1, out=f"{argv[2]}: digests SIGNATURES NOT OK")
        return Result(rc=1, err="cpio: premature end of archive")


def test_a_package_that_is_not_on_offer_any_more(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=r"cannot fetch kmod-x-1: Error: No package kmod-x-1 available.. Look at"):
        rpm.Dnf(Programs(False), str(tmp_path)).download({"kmod-x": "1"}, str(tmp_path))


def test_a_package_that_nobody_signed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=r"kmod-x-1.rpm is not signed by a key that this host trusts: .*NOT OK"):
        rpm.Dnf(Programs(True, trusted=False), str(tmp_path)).download({"kmod-x": "1"}, str(tmp_path))


def test_a_package_that_does_not_open(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=r"cannot open kmod-x-1.rpm: cpio: premature end of archive"):
        rpm.Dnf(Programs(True), str(tmp_path)).unpack("/x/kmod-x-1.rpm", str(tmp_path))
