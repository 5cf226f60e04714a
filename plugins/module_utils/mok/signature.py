# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signature at the end of a module file: taken apart, verified against a certificate, made anew.

Verified by cryptography, not by name: a key that was made again has the name of the former one.
Source: kernel/module/signing.c, include/linux/module_signature.h, scripts/sign-file.c.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import tempfile
from collections.abc import Iterable
from typing import Any, Callable

from .. import atomic
from ..proof.bundle import plain_copy
from .keys import MokError

Runner = Callable[..., Any]
MARK = b"~Module signature appended~\n"
_HEAD = struct.Struct(">BBBBB3xI")
_PKCS7 = 2
SCRATCH = "/var/tmp"  # modules have a hundred megabytes; /tmp is memory on many hosts
_PACKERS = {".xz": ["xz", "--check=crc32", "--lzma2=dict=1MiB"], ".gz": ["gzip", "-n"], ".zst": ["zstd", "-q", "--rm"]}


def split(data: bytes) -> tuple[bytes, bytes | None]:
    """A module without its signature, and the signature (None: it has none that the kernel would read)."""
    if not data.endswith(MARK):
        return data, None
    head = len(data) - len(MARK) - _HEAD.size
    if head < 0:
        return data, None
    *_unused, kind, _signer, _key, length = _HEAD.unpack(data[head:-len(MARK)])
    if kind != _PKCS7 or length > head:
        return data[:head], None
    return data[: head - length], data[head - length : head]


class Signer:
    """Verifies and signs module files with one certificate (DER) and its key."""

    def __init__(self, certificate: str, run: Runner, private_key: str | None = None, root: str = "/") -> None:
        self.certificate, self.private_key, self.run, self.root = certificate, private_key, run, root

    def problems(self, paths: Iterable[str]) -> list[str]:
        """What keeps a kernel that trusts this certificate from loading each of these files, in sentences."""
        found = []
        with tempfile.TemporaryDirectory(prefix="baremetal-nvidia-signature.", dir=SCRATCH) as place:
            pem = os.path.join(place, "certificate.pem")
            result = self.run(["openssl", "x509", "-inform", "DER", "-in", self.certificate, "-out", pem], timeout=30)
            if result.rc != 0:
                return [f"the signatures cannot be verified: {self.certificate}: {result.why('openssl')}"]
            for path in sorted(paths):
                why = self._problem(path, pem, place)
                found += [f"{os.path.basename(path)} {why}"] if why else []
        return found

    def _problem(self, path: str, pem: str, place: str) -> str | None:
        plain, body, signature = (os.path.join(place, one) for one in ("plain", "body", "signature"))
        plain_copy(path, plain, self.run)
        with open(plain, "rb") as handle:
            content, signed = split(handle.read())
        if signed is None:
            return "is not signed: with Secure Boot on the kernel refuses it"
        for target, data in ((body, content), (signature, signed)):
            with open(target, "wb") as handle:
                handle.write(data)
        result = self.run(["openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", signature, "-content", body,
                           "-certfile", pem, "-nointern", "-noverify", "-out", os.devnull], timeout=120)
        if result.rc != 0:
            return f"is not signed with the key of {self.certificate}: the kernel refuses it"
        return None

    def sign(self, path: str, release: str) -> None:
        """Sign one file anew, in its place, in one step. Raises MokError, OSError; the file is then as it was."""
        if self.private_key is None:
            raise MokError(f"{path} cannot be signed: no private key is named")
        suffix = os.path.splitext(path)[1]
        place = tempfile.mkdtemp(prefix=atomic.TMP_PREFIX, dir=os.path.dirname(path))
        try:
            plain = os.path.join(place, "module.ko")
            plain_copy(path, plain, self.run)
            with open(plain, "rb") as handle:
                body, _former = split(handle.read())
            atomic.write(plain, body)
            self._append(plain, release, place)
            if suffix in _PACKERS:
                self._checked([*_PACKERS[suffix], plain], f"pack {path}")
                plain += suffix
            status = os.stat(path)
            os.chmod(plain, status.st_mode & 0o777)
            os.chown(plain, status.st_uid, status.st_gid)
            atomic.publish(plain, path)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _append(self, plain: str, release: str, place: str) -> None:
        digest, program, key = self._digest(release), self._program(release), str(self.private_key)
        if program is not None:
            self._checked([program, digest, key, self.certificate, plain], f"sign {plain}")
            return
        # what sign-file does, by openssl alone
        signature, pem = os.path.join(place, "signature"), os.path.join(place, "certificate.pem")
        self._checked(["openssl", "x509", "-inform", "DER", "-in", self.certificate, "-out", pem],
                      "read the certificate")
        self._checked(["openssl", "cms", "-sign", "-binary", "-noattr", "-nocerts", "-nosmimecap", "-md", digest,
                       "-in", plain, "-signer", pem, "-inkey", key, "-outform", "DER", "-out", signature],
                      f"sign {plain}")
        with open(signature, "rb") as handle:
            data = handle.read()
        with open(plain, "ab") as handle:
            handle.write(data + _HEAD.pack(0, 0, _PKCS7, 0, 0, len(data)) + MARK)

    def _program(self, release: str) -> str | None:
        """The kernel's sign-file where DKMS would take it from, or Ubuntu's kmodsign."""
        series = ".".join(re.split(r"[.-]", release)[:2])
        for path in ("usr/bin/kmodsign", f"usr/lib/linux-kbuild-{series}/scripts/sign-file",
                     f"usr/lib/linux-kbuild-{release.rpartition('-')[0]}/scripts/sign-file",
                     f"usr/src/linux-headers-{release}/scripts/sign-file",
                     f"lib/modules/{release}/build/scripts/sign-file"):
            full = os.path.join(self.root, path)
            if os.path.isfile(full) and os.access(full, os.X_OK):
                return full
        return None

    def _digest(self, release: str) -> str:
        text = atomic.read_text(os.path.join(self.root, "boot", f"config-{release}")) or ""
        found = re.search(r'^CONFIG_MODULE_SIG_HASH="(\w+)"', text, re.M)
        return found.group(1) if found else "sha512"

    def _checked(self, argv: list[str], what: str) -> None:
        result = self.run(argv, timeout=300)
        if result.rc != 0 or result.timed_out:
            raise MokError(f"cannot {what}: {result.why(os.path.basename(argv[0]))}")
