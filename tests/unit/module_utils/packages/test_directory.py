# SPDX-License-Identifier: GPL-3.0-or-later
"""Package files in a directory: of them what is needed, all of it, and nothing from elsewhere."""
from __future__ import annotations

import hashlib
import pathlib
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import directory
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.base import PackageError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.transact_apt import AptTransaction
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.transact_rpm import chosen_files
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.transact_zypper import ZypperTransaction
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.transaction import Todo, Transaction, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import headers
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.apt import Apt, Offer
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.errors import ProofError
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.files import Files
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.rpm import Dnf, Zypper
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

DEBS = {
    "nvidia-dkms-580": "Version: 580.1-1\nDepends: dkms (>= 3), nvidia-kernel-source-580 (= 580.1-1), gcc | cc\n",
    "nvidia-kernel-source-580": "Version: 580.1-1\n",
    "dkms": "Version: 3.0-1\nPre-Depends: kmod:any\nDepends: dctrl-tools\n",
    "dctrl-tools": "Version: 2:1-1\n",
    "unasked": "Version: 1\n",
}
INSTALLED = "installed|kmod|\ninstalled|gcc-13|cc (= 13), gcc\nconfig-files|dctrl-tools|\n"


def run(argv: list[str], **_more: Any) -> Result:
    if argv[0] == "dpkg-deb":
        name = pathlib.Path(argv[2]).name.partition("_")[0]
        return Result(0, f"Package: {name}\n{DEBS[name]}") if name in DEBS else Result(2, "", "dpkg-deb: error: no\n")
    if argv[:2] == ["dpkg-query", "-W"] and "Provides" in argv[-1]:
        return Result(0, INSTALLED)
    if argv[:2] == ["dpkg-query", "-W"]:
        return Result(0, "kmod\tkmod\t30-1\tinstalled\tok\ngcc-13\tgcc-13\t13-1\tinstalled\tok\n")
    raise AssertionError(argv)


@pytest.fixture
def files(tmp_path: pathlib.Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in DEBS:
        path = tmp_path / f"{name}_1_amd64.deb"
        path.write_text(name)
        found[str(path)] = hashlib.sha256(name.encode()).hexdigest()
    return found


def transaction() -> Transaction:
    return Transaction(AptTransaction(run), lambda timeout: 0.0)


def test_what_is_needed_comes_with_it_and_nothing_else(files: dict[str, str | None]) -> None:
    wish = transaction().from_files(Wish({"nvidia-dkms-580": "580.1-1"}, files=files, only_files=True))
    assert dict(wish.packages) == {"nvidia-dkms-580": "580.1-1", "nvidia-kernel-source-580": "580.1-1", "dkms": "3.0-1",
                                   "dctrl-tools": "2:1-1"}
    assert len(wish.files) == 4 and not any("unasked" in path for path in wish.files)
    argv = AptTransaction(run)._argv(transaction().todo(wish), wish)
    assert "Dir::Etc::SourceList=/dev/null" in argv and "Dir::Etc::SourceParts=/dev/null" in argv
    assert sorted(word for word in argv if word.endswith(".deb")) == sorted(wish.files)


def test_an_epoch_is_the_file_s_own(files: dict[str, str | None]) -> None:
    wish = transaction().from_files(Wish({"dctrl-tools": "1-1"}, files=files, only_files=True))
    assert dict(wish.packages) == {"dctrl-tools": "2:1-1"}


def test_what_lacks_is_named_with_what_needs_it(files: dict[str, str | None]) -> None:
    left = {path: digest for path, digest in files.items() if "dctrl" not in path}
    with pytest.raises(PackageError, match=r"dkms 3\.0-1 needs dctrl-tools, which is neither installed nor"):
        transaction().from_files(Wish({"nvidia-dkms-580": "580.1-1"}, files=left, only_files=True))
    with pytest.raises(PackageError, match=r"nvidia-dkms-580 580\.9-1 is not among the package files \(580\.1-1\)"):
        transaction().from_files(Wish({"nvidia-dkms-580": "580.9-1"}, files=files, only_files=True))


def test_another_checksum_ends_it(files: dict[str, str | None]) -> None:
    wrong = dict.fromkeys(files, "0" * 64)
    with pytest.raises(PackageError, match=r"has the SHA-256 .* expected is 0000"):
        transaction().from_files(Wish({"dkms": None}, files=wrong, only_files=True))


def test_what_is_installed_needs_no_file(files: dict[str, str | None]) -> None:
    wish = transaction().from_files(Wish({"kmod": None}, files=files, only_files=True))
    assert dict(wish.packages) == {"kmod": None} and not wish.files


def test_a_dependency_in_another_version_moves_along() -> None:
    lib, tool = directory.File("/l", "lib", "2", frozenset({"lib"})), directory.File(
        "/t", "tool", "2", frozenset({"tool"}), ((("lib", True),),))

    def has(argv: list[str], **_more: Any) -> Result:
        return Result(0, "installed|lib|\n")

    assert set(directory.chosen({"tool": "2"}, [lib, tool], {"lib": ("1",)}, has, "apt")) == {"tool", "lib"}
    assert set(directory.chosen({"tool": "2"}, [lib, tool], {"lib": ("2",)}, has, "apt")) == {"tool"}


def test_zypper_looks_at_no_repository_and_still_finds_the_files(tmp_path: pathlib.Path) -> None:
    """With --disable-repositories it would not find its own one of package files."""
    path = str(tmp_path / "a-1-1.noarch.rpm")
    zypper = ZypperTransaction(lambda _argv, **_more: Result(0, "a\n"))
    for only in (True, False):
        argv = zypper._argv(Todo(install={"a": "1-1"}, files=(path,)), Wish({"a": "1-1"}, only_files=only))
        assert path in argv and "--disable-repositories" not in argv
        assert ("--reposd-dir" in argv[:argv.index("install")]) is only


@pytest.mark.parametrize(("manager", "release", "name"), [
    (Dnf, "5.14.0-687.5.3.el9_8.x86_64", "kernel-devel-5.14.0-687.5.3.el9_8.x86_64"),
    (Zypper, "6.4.0-150600.23.73-default", "kernel-default-devel"),
    (Apt, "6.1.0-50-amd64", "linux-headers-6.1.0-50-amd64"),
])
def test_headers_are_called_as_the_hosts_own_manager_calls_them(
        manager: Any, release: str, name: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=f"{name} is neither installed nor among the package files"):
        headers.find(release, Files(manager(run), {}, run, "dnf"), str(tmp_path))
    with pytest.raises(ProofError, match=f"{name} is neither installed nor offered"):
        none = type("None", (manager,), {"offer": lambda *_args: None})(run)
        headers.find(release, none, str(tmp_path))


def test_headers_of_files_that_lack_a_part_are_told_to_be_put_there(tmp_path: pathlib.Path) -> None:
    offer = Offer("linux-headers-6.1.0-50-amd64", "1", ("linux-headers-6.1.0-50-common",))
    wanted = headers.Headers("6.1.0-50-amd64", offer.name, "1", False, "gcc-12", offer=offer)
    with pytest.raises(ProofError, match="which is not among the package files: put it there, with its checksum"):
        headers.fetch(wanted, Files(Apt(run), {}, run, "apt"), str(tmp_path))


def test_headers_of_one_of_several_kernels_are_found_by_their_label(tmp_path: pathlib.Path) -> None:
    """On rpm a kernel's package is asked for with its version in its name."""
    paths = {}
    for kernel in ("687.5", "687.12"):
        path = tmp_path / f"kernel-devel-5.14.0-{kernel}.el9.x86_64.rpm"
        path.write_text("")
        paths[str(path)] = None

    def rpm(argv: list[str], **_more: Any) -> Result:
        if argv[:2] == ["rpm", "-qa"]:
            return Result(0, "")
        version = argv[-1].rpartition("kernel-devel-")[2].partition(".x86_64")[0]
        if "PROVIDENAME" in " ".join(argv):
            return Result(0, f"N\x1fkernel-devel\x1f{version}\n")
        return Result(0, f"kernel-devel|{version}|x86_64\n")

    for label in ("kernel-devel-5.14.0-687.5.el9", "kernel-devel-5.14.0-687.5.el9.x86_64"):
        one = Transaction(ZypperTransaction(rpm), lambda timeout: 0.0)
        wish = one.from_files(Wish({label: None}, files=paths, only_files=True))
        todo = one.todo(wish)
        assert dict(todo.install) == {label: "5.14.0-687.5.el9"} and len(todo.files) == 1
        assert chosen_files(todo, rpm) == {label: todo.files[0]} and "687.5" in todo.files[0]
