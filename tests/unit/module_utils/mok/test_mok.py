# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of a host and its enrolment: real openssl and signatures, with a stand-in for the firmware and mokutil."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import secure_boot
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.modinfo import signer
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.mok import enrol, keys, signature

ROOT = pathlib.Path(__file__).parents[4]
FIRMWARE = ROOT / "molecule/shared/secure_boot/firmware.py"
PASSWORD = "Once-only-7"
NAME = "gpu-a01 module signing key"
CERTIFICATE, KEY = "/var/lib/dkms/mok.pub", "/var/lib/dkms/mok.key"

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


class Host:
    """A root directory with the variables of the firmware, and every command that ran."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root, self.calls, self.mokutil = root, [], True
        self.firmware("on")

    def firmware(self, *words: str) -> str:
        environment = {**os.environ, "FIRMWARE_ROOT": str(self.root)}
        return subprocess.run([sys.executable, str(FIRMWARE), *words], env=environment, check=True, capture_output=True,
                              text=True).stdout

    def run(self, argv, **more):
        self.calls.append(list(argv))
        if argv[0] != "mokutil":
            return children.run(argv, **more)
        if not self.mokutil:
            return children.Result(rc=children.RC_MISSING)
        return children.run([sys.executable, str(FIRMWARE), *argv], env={"FIRMWARE_ROOT": str(self.root)}, **more)

    @property
    def pair(self) -> keys.Pair:
        return keys.Pair(CERTIFICATE, KEY, self.run, str(self.root))

    def bring(self, password: str | None = PASSWORD, check: bool = False) -> enrol.Outcome:
        return enrol.Enrolment(self.pair, self.run, str(self.root)).bring(NAME, password, check)

    def path(self, path: str) -> pathlib.Path:
        return self.root / path.lstrip("/")

    def key_facts(self) -> dict:
        return secure_boot.signing_key(Tree(str(self.root)))


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return Host(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """A host with a key, which others copy: keys take their time."""
    host = Host(tmp_path_factory.mktemp("made"))
    host.pair.make(NAME)
    return host


def have_key(host: Host, made: Host) -> None:
    host.path(KEY).parent.mkdir(parents=True, exist_ok=True)
    for path in (KEY, CERTIFICATE):
        shutil.copy(made.path(path), host.path(path))


def test_from_no_key_to_an_enrolled_one(host):
    asked = host.bring()
    assert (asked.state, asked.changed, asked.name) == ("requested", True, NAME)
    assert host.path(KEY).stat().st_mode & 0o777 == 0o600
    assert host.key_facts() == {"certificate": CERTIFICATE, "private_key": KEY, "name": NAME, "mode": "0600",
                                "enrolled": False, "requested": True}
    again = host.bring(password=None)
    assert (again.state, again.changed) == ("requested", False)
    assert "enrolled" in host.firmware("restart", PASSWORD)
    done = host.bring(password=None)
    assert (done.state, done.changed, done.actions) == ("enrolled", False, [])
    assert host.key_facts()["enrolled"] is True
    assert not [path.name for path in host.path(KEY).parent.iterdir() if path.name.startswith(".")]


def test_the_password_is_on_no_command_line_and_in_no_result(host):
    asked = host.bring()
    assert ["mokutil", "--import", str(host.path(CERTIFICATE))] in host.calls
    assert PASSWORD not in repr(host.calls) and PASSWORD not in repr(asked)


def test_a_request_that_nobody_confirmed_is_made_again_with_the_same_key(host, made):
    have_key(host, made)
    host.bring()
    before = host.path(KEY).read_bytes()
    assert "the request is gone" in host.firmware("restart")
    asked = host.bring()
    assert asked.changed and asked.state == "requested" and host.path(KEY).read_bytes() == before


def test_the_console_steps_name_the_key_and_its_fingerprint(host, made):
    have_key(host, made)
    asked = host.bring()
    text = "; ".join(enrol.console_steps(asked.name, asked.fingerprint))
    assert NAME in text and str(asked.fingerprint) in text and "Enroll MOK" in text and "ten seconds" in text


@pytest.mark.parametrize(("password", "words"), [
    (None, "choose a one-time password (gpu_mok_password)"),
    ("short", "password has 5 characters; allowed are 8 to 64"),
    ("passwörter", "cannot be typed at the console"),
    ("with a blank", "without blanks"),
])
def test_without_a_password_that_can_be_typed_nothing_is_made(host, password, words):
    with pytest.raises(keys.MokError) as refused:
        host.bring(password=password)
    assert words in str(refused.value) and str(password) not in str(refused.value).replace("None", "")
    assert not host.path(KEY).exists() and not host.path(CERTIFICATE).exists()


def test_without_mokutil_nothing_is_made(host):
    host.mokutil = False
    with pytest.raises(keys.MokError, match="Install the package mokutil"):
        host.bring()
    assert not host.path(KEY).exists()


def test_without_uefi_there_is_nothing_to_enrol(tmp_path):
    host = Host.__new__(Host)
    host.root, host.calls, host.mokutil = tmp_path, [], True
    with pytest.raises(keys.MokError, match="not started by UEFI"):
        host.bring()


def test_a_firmware_that_takes_no_request_is_told(host, made):
    have_key(host, made)

    def run(argv, **more):
        if argv[:2] == ["mokutil", "--import"]:
            return children.Result(rc=255, err=f"Failed to enroll new keys {PASSWORD}")
        return host.run(argv, **more)

    with pytest.raises(keys.MokError, match="mounted for writing") as refused:
        enrol.Enrolment(host.pair, run, str(host.root)).bring(NAME, PASSWORD, False)
    assert PASSWORD not in str(refused.value) and "Failed to enroll new keys ***" in str(refused.value)


def test_check_mode_changes_nothing(host):
    before = sorted(str(path) for path in host.root.rglob("*"))
    asked = host.bring(check=True)
    assert asked.changed and asked.state == "wanted" and len(asked.actions) == 2
    assert sorted(str(path) for path in host.root.rglob("*")) == before


def test_a_key_that_others_can_read_gets_its_mode(host, made):
    have_key(host, made)
    host.bring()
    host.firmware("restart", PASSWORD)
    host.path(KEY).chmod(0o644)
    done = host.bring(password=None)
    assert done.changed and "0600" in done.actions[0] and host.path(KEY).stat().st_mode & 0o777 == 0o600


def test_a_lost_certificate_is_made_from_the_key_and_a_lost_key_is_not_guessed(host, made):
    have_key(host, made)
    key, certificate = host.path(KEY).read_bytes(), host.path(CERTIFICATE).read_bytes()
    host.path(CERTIFICATE).unlink()
    host.bring()
    assert host.path(KEY).read_bytes() == key
    host.firmware("restart", PASSWORD)
    assert host.key_facts()["enrolled"] is True
    host.path(KEY).unlink()
    assert host.key_facts()["enrolled"] is False
    with pytest.raises(keys.MokError, match="password is empty"):
        host.bring(password=None)
    asked = host.bring()
    assert asked.state == "requested" and asked.changed and host.path(KEY).read_bytes() != key
    kept = host.path(CERTIFICATE + ".baremetal-nvidia.old").read_bytes()
    assert kept != host.path(CERTIFICATE).read_bytes() and len(kept) > 0 and certificate


def test_a_certificate_of_another_key_is_refused(host, made):
    host.pair.make(NAME)
    host.path(CERTIFICATE).write_bytes(made.path(CERTIFICATE).read_bytes())
    with pytest.raises(keys.MokError, match="is not the certificate of"):
        host.bring()


def test_a_key_in_a_token_is_refused():
    with pytest.raises(keys.MokError, match="pkcs11"):
        keys.Pair(CERTIFICATE, "pkcs11:object=x", children.run)


@pytest.mark.parametrize(("os_release", "conf", "paths"), [
    ("ID=debian\n", None, (CERTIFICATE, KEY)),
    ("ID=ubuntu\n", None, ("/var/lib/shim-signed/mok/MOK.der", "/var/lib/shim-signed/mok/MOK.priv")),
    ("ID=ubuntu\n", 'mok_signing_key="/root/own.key"\n# mok_certificate=/no\nmok_certificate=/root/own.der # ours\n',
     ("/root/own.der", "/root/own.key")),
    ("ID=debian\n", 'mok_signing_key=$HOME/x\n', (CERTIFICATE, KEY)),
])
def test_the_key_is_where_dkms_has_it(host, os_release, conf, paths):
    host.path("/etc/dkms").mkdir(parents=True)
    host.path("/etc/os-release").write_text(os_release)
    if conf:
        host.path("/etc/dkms/framework.conf").write_text(conf)
    assert secure_boot.key_paths(Tree(str(host.root))) == paths


# ---- signatures


@pytest.fixture
def module(host) -> pathlib.Path:
    path = host.path("/lib/modules/6.1.0-50-amd64/updates/dkms/nvidia.ko")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    return path


def sign(host, path):
    signature.Signer(str(host.path(CERTIFICATE)), host.run, str(host.path(KEY)), str(host.root)).sign(
        str(path), "6.1.0-50-amd64")


def problems(host, path):
    return signature.Signer(str(host.path(CERTIFICATE)), host.run, root=str(host.root)).problems([str(path)])


def test_an_unsigned_module_is_refused_and_a_signed_one_is_not(host, module, made):
    have_key(host, made)
    assert problems(host, module) == ["nvidia.ko is not signed: with Secure Boot on the kernel refuses it"]
    body = module.read_bytes()
    sign(host, module)
    assert problems(host, module) == [] and signer(module.read_bytes()) == NAME
    assert signature.split(module.read_bytes())[0] == body
    sign(host, module)
    assert signature.split(module.read_bytes())[0] == body and problems(host, module) == []


def test_a_module_signed_with_a_key_of_the_same_name_is_refused(host, module, made, tmp_path_factory):
    have_key(host, made)
    other = Host(tmp_path_factory.mktemp("other"))
    other.pair.make(NAME)
    sign(other, module)
    assert signer(module.read_bytes()) == NAME
    assert "is not signed with the key of" in problems(host, module)[0]


def test_a_module_changed_after_it_was_signed_is_refused(host, module, made):
    have_key(host, made)
    sign(host, module)
    data = bytearray(module.read_bytes())
    data[100] ^= 1
    module.write_bytes(data)
    assert len(problems(host, module)) == 1


@pytest.mark.parametrize("tool", ["xz", "gzip", "zstd"])
def test_compressed_modules_are_signed_inside(host, module, made, tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    have_key(host, made)
    subprocess.run([tool, "-q", *(["--rm"] if tool == "zstd" else []), str(module)], check=True)
    (packed,) = module.parent.iterdir()
    assert "is not signed" in problems(host, packed)[0]
    sign(host, packed)
    assert problems(host, packed) == [] and [path.name for path in module.parent.iterdir()] == [packed.name]


def test_the_kernels_own_program_signs_where_it_is(host, module, made):
    have_key(host, made)
    program = host.path("/lib/modules/6.1.0-50-amd64/build/scripts/sign-file")
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nprintf '%s %s' \"$1\" \"$2\" > " + str(host.root / "used") + "\n")
    program.chmod(0o755)
    host.path("/boot").mkdir()
    host.path("/boot/config-6.1.0-50-amd64").write_text('CONFIG_MODULE_SIG_HASH="sha256"\n')
    sign(host, module)
    assert (host.root / "used").read_text() == f"sha256 {host.path(KEY)}"


def test_what_is_no_signature_is_none():
    assert signature.split(b"body") == (b"body", None)
    assert signature.split(signature.MARK) == (signature.MARK, None)
    assert signature.split(bytes(40) + signature.MARK)[1] is None
