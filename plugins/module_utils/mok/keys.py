# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key that modules built on a host are signed with: a private key for root alone, and its certificate (DER).

Both lie where DKMS of the distribution looks for them, so that DKMS signs every later build with the same key.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, Callable

from .. import atomic
from ..errors import HostError

Runner = Callable[..., Any]
KEY_MODE = 0o600
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
#: The last usage says that the key signs modules alone: firmware that has it enrolled starts nothing signed with it.
_REQUEST = """[req]
distinguished_name = who
x509_extensions = what
prompt = no
string_mask = utf8only
[who]
CN = {name}
[what]
basicConstraints = critical,CA:FALSE
keyUsage = digitalSignature
extendedKeyUsage = codeSigning,1.3.6.1.4.1.2312.16.1.2
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
"""


class MokError(HostError):
    """The key cannot be made, used or enrolled; the message says why and what to do."""


class Pair:
    """A certificate and its private key, at the paths that DKMS has for them, below ``root``."""

    def __init__(self, certificate: str, private_key: str, run: Runner, root: str = "/") -> None:
        for path, what in ((certificate, "certificate"), (private_key, "private_key")):
            if not path.startswith("/"):
                raise MokError(f"{what} is {path!r}; allowed is an absolute path. A key in a token (pkcs11:) is "
                               "neither made nor enrolled from here: enrol it with mokutil --import")
        self.certificate = os.path.join(root, certificate.lstrip("/"))
        self.private_key = os.path.join(root, private_key.lstrip("/"))
        self.run = run

    @property
    def data(self) -> bytes | None:
        """The certificate, None when there is none."""
        try:
            with open(self.certificate, "rb") as handle:
                return handle.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def missing(self) -> list[str]:
        """What a call of :meth:`make` would do, one line each; empty when the pair is whole. Raises MokError."""
        lines = []
        if not os.path.exists(self.private_key):
            lines.append(f"make a key in {self.private_key}, and its certificate")
        elif not os.path.exists(self.certificate):
            lines.append(f"make the certificate {self.certificate} of the key that is there")
        else:
            self._see_that_they_fit()
        if os.path.exists(self.private_key) and atomic.mode_of(self.private_key) != KEY_MODE:
            lines.append(f"give {self.private_key} the mode 0600: others could read it")
        return lines

    def make(self, name: str) -> list[str]:
        """Make what is missing; what was done. A key is never replaced. Raises MokError, OSError."""
        if not _NAME.match(name):
            raise MokError(f"name is {name!r}; allowed are letters, digits, blanks, dots and dashes, 64 at most")
        lines = self.missing()
        if os.path.exists(self.private_key):
            if atomic.mode_of(self.private_key) != KEY_MODE:
                os.chmod(self.private_key, KEY_MODE)
            if not os.path.exists(self.certificate):
                self._make(name, self.private_key)
        else:
            if os.path.exists(self.certificate):  # of a key that is lost: nothing can be signed for it any more
                os.rename(self.certificate, self.certificate + ".baremetal-nvidia.old")
            self._make(name, None)
        return lines

    def _make(self, name: str, key: str | None) -> None:
        # the key first: a certificate whose key was never written would be enrolled for nothing
        with self._room() as place:
            config, made, certificate = (os.path.join(place, one) for one in ("request.cnf", "key", "certificate"))
            atomic.write(config, _REQUEST.format(name=name), mode=KEY_MODE)
            source = ["-key", key] if key else ["-newkey", "rsa:2048", "-nodes", "-keyout", made]
            self._openssl(["req", "-new", "-x509", "-days", "36500", "-config", config, *source,
                           "-outform", "DER", "-out", certificate], "make the key")
            if not key:
                os.chmod(made, KEY_MODE)
                atomic.publish(made, self.private_key)
            os.makedirs(os.path.dirname(self.certificate), mode=0o755, exist_ok=True)
            with open(certificate, "rb") as handle:
                atomic.write(self.certificate, handle.read(), mode=0o644)
        self._see_that_they_fit()

    @contextlib.contextmanager
    def _room(self) -> Iterator[str]:
        """A directory for root alone, beside the key; one that a cut-off run left is removed."""
        parent = os.path.dirname(self.private_key)
        os.makedirs(parent, mode=0o700, exist_ok=True)
        for name in os.listdir(parent):
            if name.startswith(atomic.TMP_PREFIX + "mok."):
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        place = tempfile.mkdtemp(prefix=atomic.TMP_PREFIX + "mok.", dir=parent)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _see_that_they_fit(self) -> None:
        mine = self._openssl(["pkey", "-in", self.private_key, "-passin", "pass:", "-pubout"], "read the private key")
        theirs = self._openssl(["x509", "-inform", "DER", "-in", self.certificate, "-noout", "-pubkey"],
                               "read the certificate")
        if mine.split() != theirs.split():
            raise MokError(f"{self.certificate} is not the certificate of {self.private_key}: what is signed with this "
                           "key would be refused although the certificate is enrolled. Move one of them away, then run "
                           "this again")

    def fingerprint(self) -> str:
        """The certificate's SHA-1 fingerprint, as MokManager shows it. Raises MokError."""
        text = self._openssl(["x509", "-inform", "DER", "-in", self.certificate, "-noout", "-fingerprint", "-sha1"],
                             "read the certificate")
        return text.strip().rpartition("=")[2]

    def _openssl(self, arguments: list[str], what: str) -> str:
        result = self.run(["openssl", *arguments], timeout=120)
        if result.rc != 0 or result.timed_out:
            raise MokError(f"openssl cannot {what} ({self.private_key}, {self.certificate}): {result.why('openssl')}")
        return str(result.out)
