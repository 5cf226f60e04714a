# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With Secure Boot an installed module counts only when it is signed with the enrolled key; real openssl."""

from __future__ import annotations

import pathlib
import shutil

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.mok import keys, signature
from proof_host import KERNEL, NAME, VERSION, Host

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A directory with a key and its certificate."""
    made = Host(tmp_path_factory.mktemp("pair"))
    keys.Pair("/mok.pub", "/mok.key", made.run, str(made.root)).make("host key")
    return made.root


@pytest.fixture
def host(tmp_path: pathlib.Path, pair: pathlib.Path) -> Host:
    """A host on which DKMS has installed what was proved, unsigned; and a key."""
    made = Host(tmp_path)
    made.headers()
    made.prover().prove()
    made.install()
    (made.root / "var/lib/dkms").mkdir(parents=True, exist_ok=True)
    for name in ("mok.pub", "mok.key"):
        shutil.copy(pair / name, made.root / "var/lib/dkms" / name)
    return made


def certificate(host: Host) -> str:
    return str(host.root / "var/lib/dkms/mok.pub")


def private_key(host: Host) -> str:
    return str(host.root / "var/lib/dkms/mok.key")


def module(host: Host) -> pathlib.Path:
    return next((host.root / "lib/modules" / KERNEL).rglob("nvidia-current.ko"))


def test_an_unsigned_module_is_refused_by_the_proof(host: Host) -> None:
    report = host.prover(certificate=certificate(host)).settle()
    assert "nvidia-current.ko is not signed: with Secure Boot on the kernel refuses it" in str(report.failed[0].error)
    assert host.prover().installed(KERNEL) and not host.prover(certificate=certificate(host)).installed(KERNEL)


def test_it_is_signed_where_it_lies_and_in_the_tree_of_dkms(host: Host) -> None:
    own = host.root / "var/lib/dkms" / NAME / VERSION / KERNEL / host.prover().arch / "module/nvidia-current.ko"
    own.parent.mkdir(parents=True)
    shutil.copy(module(host), own)
    before = module(host).read_bytes()
    asked = {"certificate": certificate(host), "private_key": private_key(host)}
    report = host.prover(**asked).settle()
    assert report.changed and not report.failed
    for path in (own, module(host)):
        assert signature.split(path.read_bytes())[0] == before
        assert signature.Signer(certificate(host), host.run).problems([str(path)]) == []
    assert not host.prover(**asked).settle().changed and host.prover(**asked).installed(KERNEL)


def test_check_mode_signs_nothing(host: Host) -> None:
    before = module(host).read_bytes()
    host.prover(certificate=certificate(host), private_key=private_key(host)).settle(check=True)
    assert module(host).read_bytes() == before


def test_without_the_private_key_it_says_so_and_leaves_the_module(host: Host) -> None:
    before = module(host).read_bytes()
    pathlib.Path(private_key(host)).unlink()
    with pytest.raises(keys.MokError, match="cannot sign"):
        host.prover(certificate=certificate(host), private_key=private_key(host)).settle()
    assert module(host).read_bytes() == before
