# SPDX-License-Identifier: GPL-3.0-or-later
"""Release files: checked before anything is written, whole at any moment, and once is enough."""
from __future__ import annotations

import hashlib
import io
import os
import pathlib
import tarfile
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.archive import (
    BIN,
    CNI,
    RUNC,
    UNIT,
    Archive,
    ArchiveError,
    Part,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result


def tar(members: dict[str, bytes], mode: int = 0o755, kind: bytes = tarfile.REGTYPE) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.type = len(content), 0o644 if name.endswith("LICENSE") else mode, kind
            made.addfile(info, io.BytesIO(content))
    return out.getvalue()


CONTAINERD = tar({"bin/containerd": b"2.1.9", "bin/ctr": b"ctr", "bin/containerd-shim-runc-v2": b"shim"})
FILES = {"c": CONTAINERD, "r": b"1.3.6", "n": tar({"./bridge": b"bridge", "./LICENSE": b"x"})}


def part(name: str = "containerd", url: str = "c", version: str = "2.1.9", sha256: str | None = None) -> Part:
    return Part(name, version, url, sha256 or hashlib.sha256(FILES[url]).hexdigest())


class Machine:
    """Programs that print what is in their file; systemctl that makes the link."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.calls: list[list[str]] = []
        self.fetched: list[str] = []
        (root / "run/systemd/system").mkdir(parents=True)

    def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        if url not in FILES:
            raise OSError("404")
        return FILES[url]

    def __call__(self, argv: Any, timeout: float = 10, **_other: Any) -> Result:
        self.calls.append(list(argv))
        if argv[0] == "systemctl":
            link = self.root / "etc/systemd/system/multi-user.target.wants/containerd.service"
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(UNIT)
            return Result(0)
        return Result(0, f"containerd x v{pathlib.Path(argv[0]).read_text()} y\n")

    def install(self, *parts: Part, check: bool = False) -> list[str]:
        return Archive(self.fetch, self, str(self.root))(list(parts), check).actions


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


def test_without_systemd_nothing_is_enabled(machine: Machine) -> None:
    (machine.root / "run/systemd/system").rmdir()
    machine.install(part())
    assert not any(call[0] == "systemctl" for call in machine.calls) and real(machine, UNIT).exists()
    assert machine.install(part()) == []


def real(machine: Machine, path: str) -> pathlib.Path:
    return machine.root / path.lstrip("/")


def everything() -> tuple[Part, ...]:
    return part(), part("runc", "r", "1.3.6"), part("cni", "n", "1.6.0")


def test_programs_unit_and_link_once(machine: Machine) -> None:
    assert len(machine.install(*everything())) == 4
    assert real(machine, f"{BIN}/ctr").read_bytes() == b"ctr" and os.access(real(machine, RUNC), os.X_OK)
    assert [path.name for path in real(machine, CNI).iterdir()] == ["bridge"]
    assert "ExecStart=/usr/local/bin/containerd" in real(machine, UNIT).read_text()
    assert ["systemctl", "--no-reload", "enable", "containerd.service"] in machine.calls
    assert not any("daemon-reload" in word for call in machine.calls for word in call)
    machine.fetched.clear()
    assert machine.install(*everything()) == [] and machine.fetched == []


def test_check_mode_fetches_nothing(machine: Machine) -> None:
    assert len(machine.install(*everything(), check=True)) == 4
    assert machine.fetched == [] and [path.name for path in machine.root.iterdir()] == ["run"]


def test_a_unit_that_is_there_stays(machine: Machine) -> None:
    unit = real(machine, "/usr/lib/systemd/system/containerd.service")
    unit.parent.mkdir(parents=True)
    unit.write_text("theirs")
    machine.install(part())
    assert unit.read_text() == "theirs" and not real(machine, UNIT).exists()


@pytest.mark.parametrize(("wrong", "words"), [
    (part(sha256="0" * 64), "expected is 0000"),
    (Part("containerd", "2.1.9", "missing", "0" * 64), "cannot be fetched: 404"),
    (part(version="2.1.8"), "is not version 2.1.8"),
    (part("runc", "r", "1.3.60"), "is not version 1.3.60"),
])
def test_nothing_is_written_of_a_wrong_file(machine: Machine, wrong: Part, words: str) -> None:
    with pytest.raises(ArchiveError, match=words):
        machine.install(part("cni", "n", "1.6.0"), wrong)
    assert not real(machine, CNI).exists() and not real(machine, f"{BIN}/containerd").exists()
    assert not real(machine, UNIT).exists()


@pytest.mark.parametrize("data", [
    tar({"bin/../../etc/passwd": b"x"}), tar({"/bin/containerd": b"x"}), tar({"bin/a/b": b"x"}), tar({"etc/x": b"x"}),
    tar({"bin/containerd": b""}, kind=tarfile.SYMTYPE), tar({"bin/ctr": b"no containerd in it"}), b"no archive"])
def test_an_archive_of_another_shape_is_refused(machine: Machine, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "c", data)
    with pytest.raises(ArchiveError, match="nothing was written"):
        machine.install(part())
    assert not real(machine, f"{BIN}/containerd").exists()


def test_a_file_for_another_machine_is_refused(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "__call__", lambda self, argv, **_more: Result(126, "", "Exec format error"))
    with pytest.raises(ArchiveError, match="for this machine"):
        machine.install(part())


def test_a_damaged_program_is_written_anew(machine: Machine) -> None:
    machine.install(part())
    real(machine, f"{BIN}/ctr").write_bytes(b"damaged")
    assert machine.install(part()) == ["install containerd 2.1.9 from c"]
    assert real(machine, f"{BIN}/ctr").read_bytes() == b"ctr"


class Cut(BaseException):
    """The power goes."""


def test_cut_off_at_each_write_the_next_run_finishes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever write is the last: every program is whole, and the next run does what is missing."""
    real_write = atomic.write
    for step in range(1, 40):
        machine = Machine(tmp_path / str(step))
        count = 0

        def write(path: str, *rest: Any, **more: Any) -> None:
            nonlocal count
            count += 1
            if count == step:  # noqa: B023
                raise Cut
            real_write(path, *rest, **more)

        monkeypatch.setattr(atomic, "write", write)
        try:
            machine.install(*everything())
            done = True
        except Cut:
            done = False
        monkeypatch.setattr(atomic, "write", real_write)
        assert [path for path in machine.root.rglob(".baremetal*") if path.is_file()] == []
        machine.install(*everything())
        assert machine.install(*everything()) == []
        assert real(machine, f"{BIN}/containerd").read_bytes() == b"2.1.9" and real(machine, UNIT).exists()
        assert real(machine, "/etc/systemd/system/multi-user.target.wants/containerd.service").is_symlink()
        if done:
            break
    else:
        pytest.fail("a step was never reached")
