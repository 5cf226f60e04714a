# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys: fingerprints without gpg, wrong and damaged ones refused."""
from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import openpgp

ARCHIVE = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def packet(tag: int, body: bytes) -> bytes:
    """A packet with an old header, as gpg writes keys."""
    return bytes([0x80 | tag << 2 | 1]) + len(body).to_bytes(2, "big") + body


def key(seed: bytes, version: int = 4) -> bytes:
    """A made-up public key with a user id and a subkey; only its shape matters."""
    body = bytes([version]) + b"\x00\x00\x00\x01\x16" + hashlib.sha256(seed).digest()
    return packet(6, body) + packet(13, b"someone <a@example.net>") + packet(14, b"\x04sub" + seed)


def fingerprint(seed: bytes) -> str:
    body = b"\x04\x00\x00\x00\x01\x16" + hashlib.sha256(seed).digest()
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()


def test_fingerprint_of_a_key_and_not_of_its_subkey() -> None:
    assert openpgp.fingerprints(key(b"one")) == [fingerprint(b"one")]
    assert openpgp.fingerprints(key(b"one") + key(b"two")) == [fingerprint(b"one"), fingerprint(b"two")]


@pytest.mark.skipif(not ARCHIVE.exists() or not shutil.which("gpg"), reason="needs Debian's keyring and gpg")
def test_the_same_as_gpg_says() -> None:
    told = subprocess.run(["gpg", "--show-keys", "--with-colons", str(ARCHIVE)], capture_output=True, text=True,
                          check=True).stdout
    wanted, primary = [], False
    for line in told.splitlines():
        primary = line.startswith("pub:") or (primary and not line.startswith("sub:"))
        if line.startswith("fpr:") and primary:
            wanted.append(line.split(":")[9])
            primary = False
    assert openpgp.fingerprints(ARCHIVE.read_bytes()) == wanted
    assert openpgp.fingerprints(openpgp.armored(ARCHIVE.read_bytes())) == wanted


def test_armor_there_and_back() -> None:
    packets = key(b"one") * 20
    text = openpgp.armored(packets)
    assert openpgp.binary(text) == packets
    assert openpgp.binary(text.replace(b"\n", b"\r\n")) == packets
    assert openpgp.keyring(packets, "/etc/apt/keyrings/x.asc") == text
    assert openpgp.keyring(text, "/etc/apt/keyrings/x.asc") == text
    assert openpgp.keyring(text, "/usr/share/keyrings/x.gpg") == packets
    headed = text.replace(b"BLOCK-----\n\n", b"BLOCK-----\nComment: x\n\n", 1)
    assert openpgp.binary(headed) == packets


def test_the_right_key_passes_in_any_spelling() -> None:
    spaced = " ".join(fingerprint(b"one")[at : at + 4] for at in range(0, 40, 4)).lower()
    openpgp.verify(key(b"one"), spaced, "here")
    openpgp.verify(key(b"one"), "0x" + fingerprint(b"one"), "here")


@pytest.mark.parametrize("content", [key(b"two"), key(b"one") + key(b"two")])
def test_another_key_or_one_more_is_refused(content: bytes) -> None:
    with pytest.raises(openpgp.KeyFault) as caught:
        openpgp.verify(content, fingerprint(b"one"), "at https://example.net/key")
    assert fingerprint(b"one") in str(caught.value) and fingerprint(b"two") in str(caught.value)
    assert "https://example.net/key" in str(caught.value)


@pytest.mark.parametrize("content", [
    b"", b"<html>not found</html>", key(b"one")[:-3], b"\xff\xff\xff", packet(13, b"nobody"), key(b"one", 3),
    b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!!!\n-----END PGP PUBLIC KEY BLOCK-----\n"])
def test_what_is_no_key_is_refused(content: bytes) -> None:
    with pytest.raises(openpgp.KeyFault):
        openpgp.verify(content, fingerprint(b"one"), "here")


@pytest.mark.parametrize("text", ["7fa2af80", "", "Z" * 40, fingerprint(b"one")[:39]])
def test_a_short_id_is_no_fingerprint(text: str) -> None:
    with pytest.raises(openpgp.KeyFault, match="full fingerprint"):
        openpgp.normal(text)


def test_a_key_is_taken_out_of_a_keyring() -> None:
    both = key(b"one") + key(b"two")
    assert openpgp.without(both, [fingerprint(b"one")]) == key(b"two")
    assert openpgp.without(key(b"one"), [fingerprint(b"one")]) == b""
