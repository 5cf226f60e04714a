# SPDX-License-Identifier: GPL-3.0-or-later
"""What a move of packages replaces is kept as files: fetched, packed again, or named as lost."""
from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.former import SUMS, Keeper
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.transaction import Todo, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.errors import ProofError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

OLD = "3:570.211.01-1.el9"
THERE = {"driver": (OLD,), "kmod": ("570-1",), "kmod-570-1": ("570-1",)}
WISH = Wish({"driver": "3:580.1-1.el9"})
MOVE = Todo(install=WISH.packages, remove=("kmod-570-1",))
FOLDER = "/var/lib/baremetal-nvidia/former/driver"


class Archive:
    """Offers some packages, as rpm names their files."""

    def __init__(self, *offers: str, form: str = "{name}-{version}.x86_64.rpm") -> None:
        self.offers, self.form = offers, form
        self.asked: list[list[str]] = []

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        self.asked.append(sorted(wanted))
        if not set(wanted) <= set(self.offers):
            raise ProofError("cannot fetch")
        paths = []
        for name, version in wanted.items():
            paths.append(f"{into}/{self.form.format(name=name, version=version.partition(':')[2] or version)}")
            pathlib.Path(paths[-1]).write_text(name)
        return paths


def keeper(root: pathlib.Path, archive: Archive, manager: str = "dnf", run: Any = None) -> Keeper:
    return Keeper(run or (lambda _argv, **_more: Result(0)), manager, FOLDER, str(root), archive)


def there(root: pathlib.Path) -> list[str]:
    return sorted(path.name for path in (root / FOLDER[1:]).glob("*.*m") if path.suffix == ".rpm")


def test_what_leaves_is_fetched_at_its_version_with_checksums(tmp_path: pathlib.Path) -> None:
    kept = keeper(tmp_path, Archive("driver", "kmod")).keep(MOVE, WISH, THERE)
    assert kept is not None and kept.lost == []
    assert there(tmp_path) == kept.files == ["driver-570.211.01-1.el9.x86_64.rpm", "kmod-570-1.x86_64.rpm"]
    sums = (tmp_path / FOLDER[1:] / SUMS).read_text()
    assert f"{hashlib.sha256(b'kmod').hexdigest()}  kmod-570-1.x86_64.rpm\n" in sums
    assert not (tmp_path / FOLDER[1:] / ".partial").exists()


def test_a_first_install_keeps_nothing(tmp_path: pathlib.Path) -> None:
    assert keeper(tmp_path, Archive()).keep(Todo(install={"driver": "1"}), WISH, {}) is None
    assert not (tmp_path / FOLDER[1:]).exists()


def test_one_that_no_source_has_any_more_is_named(tmp_path: pathlib.Path) -> None:
    archive = Archive("kmod")
    kept = keeper(tmp_path, archive).keep(MOVE, WISH, THERE)
    assert kept is not None and kept.lost == [f"driver {OLD}"] and there(tmp_path) == ["kmod-570-1.x86_64.rpm"]
    assert archive.asked == [["driver", "kmod"], ["driver"], ["kmod"]]


def test_a_move_that_was_cut_off_keeps_what_it_had_and_the_next_one_begins_anew(tmp_path: pathlib.Path) -> None:
    keeper(tmp_path, Archive("driver", "kmod")).keep(MOVE, WISH, THERE)
    archive = Archive()
    again = keeper(tmp_path, archive).keep(Todo(remove=("kmod-570-1",)), WISH, {**THERE, "driver": ("3:580.1-1.el9",)})
    assert again is not None and again.lost == [] and archive.asked == [] and len(there(tmp_path)) == 2
    other = Wish({"driver": "3:595.1-1.el9"})
    keeper(tmp_path, Archive("driver")).keep(Todo(install=other.packages), other, {"driver": ("3:580.1-1.el9",)})
    assert there(tmp_path) == ["driver-580.1-1.el9.x86_64.rpm"]


def test_with_package_files_alone_nothing_is_fetched(tmp_path: pathlib.Path) -> None:
    archive = Archive("driver", "kmod")
    kept = keeper(tmp_path, archive).keep(MOVE, Wish(WISH.packages, only_files=True), THERE)
    assert archive.asked == [] and kept is not None and len(kept.lost) == 2


def test_a_debian_package_is_packed_again_where_no_source_has_it(tmp_path: pathlib.Path) -> None:
    def run(argv: list[str], **_more: Any) -> Result:
        if argv[:2] == ["dpkg-query", "--status"]:
            return Result(0, "Package: libcuda1\nStatus: install ok installed\nVersion: 1:535-1\n")
        if argv[0] == "dpkg-deb" and "-b" in argv:
            control = pathlib.Path(argv[-2], "DEBIAN/control").read_text()
            pathlib.Path(argv[-1]).write_text(control)
        if argv[:2] == ["dpkg-deb", "--field"]:
            return Result(0, "amd64\n")
        return Result(0, "libcuda1\n" if argv[0] == "dpkg-query" else "")

    todo, former = Todo(install={"libcuda1": "2"}), {"libcuda1": ("1:535-1",)}
    kept = keeper(tmp_path, Archive(), "apt", run).keep(todo, Wish({"libcuda1": "2"}), former)
    assert kept is not None and (kept.files, kept.lost) == (["libcuda1_1%3a535-1_amd64.deb"], [])
    assert "Status" not in (tmp_path / FOLDER[1:] / kept.files[0]).read_text()


def test_a_full_disk_is_told_before_anything_moves(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: Any, **_more: Any) -> None:
        raise OSError(28, "No space left on device", FOLDER)

    one = keeper(tmp_path, Archive("driver", "kmod"))
    monkeypatch.setattr(one, "_take", full)
    with pytest.raises(OSError, match="No space left on device"):
        one.keep(MOVE, WISH, THERE)
