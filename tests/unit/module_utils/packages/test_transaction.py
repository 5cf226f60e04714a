# SPDX-License-Identifier: GPL-3.0-or-later
"""One transaction: what differs, what nobody asked for, what a cut-off one left, whether it was really done."""
from __future__ import annotations

import hashlib
import pathlib
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import managers, transact_apt, transact_dnf
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.base import NotSupported, PackageError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.transaction import (
    DENY,
    POLICY,
    Todo,
    Transaction,
    Wish,
    reason,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

OLD, NEW = "3:570.211.01-1.el9", "3:580.178.04-1.el9"


class Fake:
    """A manager that does what it is told, unless it is told not to."""

    def __init__(self, name: str = "dnf", **installed: str) -> None:
        self.name = name
        self.installed = {key.replace("_", "-"): (value,) for key, value in installed.items()}
        self.also_goes: list[str] = []
        self.half: list[str] = []
        self.on: dict[str, str] = {}
        self.lies = False
        self.offers_streams = True
        self.done: list[Todo] = []
        self.seen: list[str] = []
        self.root: pathlib.Path | None = None

    def versions(self) -> dict[str, tuple[str, ...]]:
        return dict(self.installed)

    def broken(self) -> list[str]:
        return list(self.half)

    def streams(self) -> dict[str, str]:
        return dict(self.on)

    def has_stream(self, name: str, stream: str) -> bool:
        return self.offers_streams

    def duplicates(self, names: Any) -> dict[str, tuple[str, ...]]:
        return {name: self.installed[name][:-1] for name in names if len(self.installed.get(name, ())) > 1}

    def forecast(self, todo: Todo, wish: Wish) -> list[str]:
        return [*todo.remove, *self.also_goes]

    def carry_out(self, todo: Todo, wish: Wish) -> None:
        self.done.append(todo)
        if self.root is not None:
            self.seen.append((self.root / POLICY).read_text())
        if self.lies:
            return
        self.half = []
        for name, gone in todo.duplicates.items():
            self.installed[name] = tuple(one for one in self.installed[name] if one not in gone)
        self.on.update(todo.streams)
        for name, version in todo.install.items():
            self.installed[name] = (version or "1-1",)
        for name in todo.remove:
            self.installed.pop(name)


def transact(fake: Fake, wish: Wish, check: bool = False, root: str = "/nonexistent") -> Any:
    return Transaction(fake, lambda timeout: 0.0, root).run(wish, check)


def moved() -> Wish:
    return Wish({"nvidia-driver-cuda": NEW, "kmod-nvidia-latest-dkms": NEW}, ("kmod-nvidia-open-dkms",),
                streams={"nvidia-driver": "580-dkms"})


def test_a_move_is_one_transaction_and_then_nothing_more() -> None:
    fake = Fake(nvidia_driver_cuda=OLD, kmod_nvidia_open_dkms=OLD)
    fake.on = {"nvidia-driver": "570-open"}
    planned = transact(fake, moved(), check=True)
    assert planned.changed and fake.done == []
    outcome = transact(fake, moved())
    assert outcome.actions == planned.actions == [
        "switch module nvidia-driver to stream 580-dkms", f"install kmod-nvidia-latest-dkms {NEW}",
        f"replace nvidia-driver-cuda {OLD} by {NEW}", f"remove kmod-nvidia-open-dkms {OLD}"]
    assert outcome.after == planned.after and len(fake.done) == 1
    assert not transact(fake, moved()).changed and len(fake.done) == 1


def test_a_mirror_without_streams_is_no_reason_to_try_again_and_again() -> None:
    fake = Fake()
    fake.offers_streams = False
    assert transact(fake, moved()).changed and fake.on == {}
    assert not transact(fake, moved()).changed


def test_what_nobody_asked_for_stays() -> None:
    fake = Fake(kmod_nvidia_open_dkms=OLD, cuda_12_4="12.4-1", nvidia_driver_cuda=OLD)
    fake.also_goes = ["cuda-12-4"]
    for check in (True, False):
        with pytest.raises(PackageError, match=r"also take out cuda-12-4, which nobody asked for.*No package was"):
            transact(fake, moved(), check)
    assert fake.done == []
    wish = Wish({"nvidia-driver-cuda": NEW}, may_go="cuda-.*")
    assert transact(fake, wish).changed, "a name that may go is no reason to stop"


def test_a_manager_that_says_done_and_has_not_is_not_believed() -> None:
    fake = Fake(kmod_nvidia_open_dkms=OLD)
    fake.lies = True
    with pytest.raises(PackageError, match=r"without an error, but .*kmod-nvidia-open-dkms is still there"):
        transact(fake, moved())


def test_what_a_cut_off_transaction_left_is_finished_first() -> None:
    fake = Fake(nvidia_driver_cuda=OLD)
    fake.installed["nvidia-driver-cuda"] = (OLD, NEW)
    fake.half = ["something"]
    outcome = transact(fake, Wish({"nvidia-driver-cuda": NEW}))
    assert outcome.changed and fake.installed["nvidia-driver-cuda"] == (NEW,)
    assert fake.done[0].repair and not fake.done[0].install, "before anything is installed"
    assert not transact(fake, Wish({"nvidia-driver-cuda": NEW})).changed


def test_a_package_that_goes_and_stays_is_a_mistake() -> None:
    with pytest.raises(PackageError, match="both name dkms"):
        transact(Fake(), Wish({"dkms": None}, ("dkms",)))


@pytest.mark.parametrize("theirs", [None, "#!/bin/sh\nexit 0\n"])
def test_services_are_denied_while_it_lasts(tmp_path: pathlib.Path, theirs: str | None) -> None:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    policy = tmp_path / POLICY
    if theirs:
        policy.write_text(theirs)
    fake = Fake("apt")
    fake.root, fake.lies = tmp_path, True
    with pytest.raises(PackageError):
        transact(fake, Wish({"dkms": "1"}), root=str(tmp_path))
    assert fake.seen == [theirs or DENY], "a policy of the host's own is respected"
    assert (policy.read_text() if policy.exists() else None) == theirs


def test_a_denial_that_a_killed_run_left_is_taken_away_though_no_package_is_lacking(tmp_path: pathlib.Path) -> None:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    policy = tmp_path / POLICY
    policy.write_text(DENY)
    looked = Transaction(Fake("apt"), lambda _limit: 0.0, root=str(tmp_path)).run(Wish({}), check=True)
    assert looked.changed and policy.exists()
    done = Transaction(Fake("apt"), lambda _limit: 0.0, root=str(tmp_path)).run(Wish({}), check=False)
    assert done.changed and "start services again" in done.actions[0] and not policy.exists()
    assert not Transaction(Fake("apt"), lambda _limit: 0.0, root=str(tmp_path)).run(Wish({}), check=False).changed
    policy.write_text("#!/bin/sh\nexit 101\n")
    assert not Transaction(Fake("apt"), lambda _limit: 0.0, root=str(tmp_path)).run(Wish({}), check=False).changed


def test_package_files_have_to_be_the_ones_that_were_meant(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "dkms_3.0_all.deb"
    file.write_text("x")
    right = hashlib.sha256(b"x").hexdigest()
    assert transact(Fake(), Wish({"dkms": "3.0"}, files={str(file): right})).changed
    fake = Fake()
    with pytest.raises(PackageError, match=r"has the SHA-256 .* expected is 00"):
        transact(fake, Wish({"dkms": "3.0"}, files={str(file): "00"}))
    with pytest.raises(PackageError, match="is not a file of this host"):
        transact(fake, Wish({"dkms": "3.0"}, files={"dkms.deb": None}))
    assert fake.done == []


def test_table_of_dnf() -> None:
    table = """\
Upgrading:
 libnvidia-ml                x86_64     3:580.178.04-1.el9      cuda      6.0 k
Removing:
 kmod-nvidia-580.178.04-5.14.0-687.12.1
                             x86_64     3:580.178.04-1.el9      @cuda       0
 nvidia-open                 x86_64     3:570.211.01-1.el9      @cuda       0
Removing dependent packages:
 somelib                     x86_64     1.0-1.el9               @cuda       0

Transaction Summary
"""
    found = transact_dnf.goes(table)
    assert [one.name for one in found] == ["kmod-nvidia-580.178.04-5.14.0-687.12.1", "nvidia-open", "somelib"]
    assert found[0].labels[2] == "kmod-nvidia-580.178.04-5.14.0-687.12.1-580.178.04-1.el9.x86_64"
    assert found[2].labels == ("somelib", "somelib-1.0-1.el9", "somelib-1.0-1.el9.x86_64")


class Programs:
    """Answers to programs by the first words that fit; everything that was started is remembered."""

    def __init__(self, *answers: tuple[str, int, str]) -> None:
        self.answers = answers
        self.started: list[list[str]] = []
        self.inputs: list[str | None] = []

    def __call__(self, argv: list[str], **options: Any) -> SimpleNamespace:
        self.started.append(argv)
        self.inputs.append(options.get("input"))
        line = " ".join(argv)
        for mark, code, text in self.answers:
            if mark in line:
                return SimpleNamespace(rc=code, out=text, err="", timed_out=False)
        return SimpleNamespace(rc=0, out="", err="", timed_out=False)


def test_dnf_4_gets_a_script(tmp_path: pathlib.Path) -> None:
    run = Programs(("repoquery", 0, f"a-3:2-1.el9.x86_64|a-{NEW}|a\n"), ("--assumeno", 1, "Transaction Summary\n"),
                   ("--assumeyes", 0, "Complete!\n"))
    manager = managers.transactions(run, str(tmp_path), "dnf")
    todo, wish = Todo(install={"a": NEW}, remove=("b",), streams={"nvidia-driver": "580-dkms"}), Wish({"a": NEW})
    assert manager.forecast(todo, wish) == []
    manager.carry_out(todo, wish)
    assert run.started[-2][:2] == ["dnf", "--assumeyes"]
    assert run.started[-2][-2:] == ["enable", "nvidia-driver:580-dkms"]
    assert run.inputs[-1] == f"remove b\ninstall a-{NEW}\nrun\n"


def test_the_shell_of_dnf_always_ends_with_status_0(tmp_path: pathlib.Path) -> None:
    run = Programs(("shell", 0, "Error: Transaction test error:\n  file /a conflicts\n"))
    with pytest.raises(PackageError, match="dnf failed: Error: Transaction test error"):
        managers.transactions(run, str(tmp_path), "dnf").carry_out(Todo(remove=("b",)), Wish({}))


def test_dnf_is_not_asked_to_remove_where_it_cannot_install(tmp_path: pathlib.Path) -> None:
    run = Programs(("repoquery", 0, "a-3:1-1.el9.x86_64|a-3:1-1.el9|a\n"))
    manager = managers.transactions(run, str(tmp_path), "dnf")
    with pytest.raises(PackageError, match=f"no repository of this host offers a-{NEW}.*No package was touched"):
        manager.forecast(Todo(install={"a": NEW}, remove=("b",)), Wish({"a": NEW}))
    assert not any("shell" in argv for argv in run.started)


def test_dnf_5_does_both_at_once(tmp_path: pathlib.Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/dnf5").touch()
    run = Programs()
    manager = managers.transactions(run, str(tmp_path), "dnf")
    manager.carry_out(Todo(install={"a": NEW}, remove=("b",)), Wish({"a": NEW}))
    assert run.started[-1][:2] == ["dnf5", "do"]
    assert run.started[-1][-4:] == ["--action=remove", "b", "--action=install", f"a-{NEW}"]


def test_zypper_says_what_it_would_take_out(tmp_path: pathlib.Path) -> None:
    answer = ('<stream><install-summary><to-remove><solvable type="package" name="kmp" edition="1-1"/>'
              '<solvable type="package" name="somelib" edition="1-1"/></to-remove></install-summary></stream>')
    run = Programs(("--dry-run", 0, answer))
    manager = managers.transactions(run, str(tmp_path), "zypper")
    assert manager.forecast(Todo(install={"a": "1-1"}, remove=("kmp",)), Wish({"a": "1-1"})) == ["kmp", "somelib"]
    assert run.started[-1][-2:] == ["a=1-1", "-kmp"]
    refused = Programs(("--dry-run", 4, '<message type="error">nothing provides b</message>'))
    with pytest.raises(PackageError, match=r"nothing provides b.*No package was touched"):
        managers.transactions(refused, str(tmp_path), "zypper").forecast(Todo(install={"a": "1"}), Wish({"a": "1"}))


def test_apt_installs_and_removes_in_one_command(tmp_path: pathlib.Path) -> None:
    run = Programs(("--simulate", 0, "Remv b [1]\nRemv c:amd64 [1]\nInst a [1] (2 x)\n"))
    manager = managers.transactions(run, str(tmp_path), "apt")
    todo = Todo(install={"a": "2"}, remove=("b",), reinstall=("d",))
    assert manager.forecast(todo, Wish({"a": "2"})) == ["b", "c"]
    manager.carry_out(todo, Wish({"a": "2"}))
    assert run.started[-1][-4:] == ["install", "a=2", "d", "b-"] and "--reinstall" in run.started[-1]
    failing = Programs(("--yes", 100, "Reading…\nE: Unable to correct problems\n"))
    with pytest.raises(PackageError, match="Unable to correct problems"):
        managers.transactions(failing, str(tmp_path), "apt").carry_out(todo, Wish({"a": "2"}))


def test_what_dpkg_has_half_unpacked_goes_before_apt_looks_for_it(tmp_path: pathlib.Path) -> None:
    rows = "a\ta\t2\thalf-installed\treinstreq\nb\tb\t1\tunpacked\tok\n"
    run = Programs(("dpkg-query", 0, rows))
    manager = managers.transactions(run, str(tmp_path), "apt")
    assert manager.broken() == ["a", "b"] and manager.versions() == {}
    manager.carry_out(Todo(repair=True), Wish({}))
    started = [argv for argv in run.started if argv[0] != "dpkg-query"]
    assert [argv[1] for argv in started] == ["--remove", "--configure", "--yes"] and started[0][-1] == "a"
    failing = Programs(("dpkg-query", 0, "b\tb\t1\tunpacked\tok\n"), ("--configure", 1, "dpkg: error processing b"))
    with pytest.raises(PackageError, match=r"dpkg cannot finish: dpkg: error processing b.*apt-get purge"):
        managers.transactions(failing, str(tmp_path), "apt").carry_out(Todo(repair=True), Wish({}))


def test_rpm_leaves_two_versions_when_it_is_killed(tmp_path: pathlib.Path) -> None:
    text = "\n".join(["nvidia-driver-cuda\t3\t570.211.01-1.el9\tx86_64",
                      "nvidia-driver-cuda\t3\t580.178.04-1.el9\tx86_64",
                      "kernel-core\t0\t5.14.0-1.el9\tx86_64", "kernel-core\t0\t5.14.0-2.el9\tx86_64",
                      "kernel-devel\t0\t5.14.0-1.el9\tx86_64"])
    run = Programs(("rpm -qa", 0, text))
    manager = managers.transactions(run, str(tmp_path), "dnf")
    found = manager.duplicates({"nvidia-driver-cuda": NEW, "kernel-core": None})
    assert found == {"nvidia-driver-cuda": (OLD,)}
    manager.carry_out(Todo(duplicates=found), Wish({}))
    assert run.started[-1] == ["rpm", "--erase", "--nodeps", "nvidia-driver-cuda-570.211.01-1.el9"]
    assert manager.duplicates({"nvidia-driver-cuda": OLD}) == {"nvidia-driver-cuda": (NEW,)}, "the wanted one stays"
    assert manager.versions()["kernel-devel-5.14.0-1.el9.x86_64"] == ("5.14.0-1.el9",)


def test_another_manager_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotSupported, match="pacman is not supported"):
        managers.transactions(Programs(), str(tmp_path), "pacman")


def test_a_kernel_that_broke_off_is_taken_out_before_the_rest_is_finished() -> None:
    fake = Fake("apt", linux_image_amd64="1")
    fake.half = ["linux-image-6.1.0-51-amd64"]
    fake.installed["linux-image-6.1.0-51-amd64"] = ("1",)  # what dpkg has of it
    wish = Wish({}, ("linux-image-6.1.0-51-amd64",), may_go="linux-.*")
    fake.also_goes = ["sshd"]
    with pytest.raises(PackageError, match="also take out sshd"):
        transact(fake, wish)
    assert fake.done == []
    fake.also_goes = ["linux-image-amd64"]
    outcome = transact(fake, wish)
    assert outcome.changed and fake.done == [Todo(remove=("linux-image-6.1.0-51-amd64",), repair=True)]
    assert not transact(fake, wish).changed


def test_apt_takes_out_what_does_not_configure_before_dpkg_tries_to(tmp_path: pathlib.Path) -> None:
    row = "linux-image-6.1.0-51-amd64\tlinux-image-6.1.0-51-amd64\t1\thalf-configured\tok\n"
    run = Programs(("dpkg-query", 0, row))
    manager = managers.transactions(run, str(tmp_path), "apt")
    wish = Wish({}, ("linux-image-6.1.0-51-amd64",), purge=True)
    manager.carry_out(Todo(remove=wish.remove, repair=True), wish)
    done = [" ".join(argv) for argv in run.started if argv[0] != "dpkg-query"]
    assert "--purge" in done[0] and done[0].endswith("install linux-image-6.1.0-51-amd64-")
    assert done[1].startswith("dpkg --configure -a") and "--fix-broken" in done[2] and len(done) == 3


def test_one_of_several_versions_is_told_from_the_others(tmp_path: pathlib.Path) -> None:
    """The kernel that goes was asked for; another version of it was not."""
    table = ("Removing:\n kernel-core  x86_64  5.14.0-570.el9  @baseos  1 k\n"
             " kernel-core  x86_64  5.14.0-687.el9  @baseos  1 k\n\nTransaction Summary\n")
    run = Programs(("--assumeno", 1, table))
    asked = ("kernel-core-5.14.0-570.el9",)
    manager = managers.transactions(run, str(tmp_path), "dnf")
    assert manager.forecast(Todo(remove=asked), Wish({}, asked)) == ["kernel-core-5.14.0-570.el9", "kernel-core"]


def test_zypper_takes_one_of_several_versions(tmp_path: pathlib.Path) -> None:
    rows = "".join(f"kernel-default|0|6.4.0-{one}|x86_64\n" for one in ("47.1", "60.1"))
    answer = ('<stream><install-summary><to-remove><solvable type="package" name="kernel-default" edition="6.4.0-47.1" '
              'arch="x86_64"/></to-remove></install-summary></stream>')
    run = Programs(("rpm -qa", 0, rows.replace("|", "\t")), ("--dry-run", 0, answer))
    asked = ("kernel-default-6.4.0-47.1",)
    manager = managers.transactions(run, str(tmp_path), "zypper")
    assert manager.forecast(Todo(remove=asked), Wish({}, asked)) == list(asked)
    assert run.started[-1][-1] == "-kernel-default=6.4.0-47.1"


def test_package_scripts_find_our_programs_first(tmp_path: pathlib.Path) -> None:
    paths: list[Any] = []
    started: list[list[str]] = []

    def run(argv: list[str], **options: Any) -> SimpleNamespace:
        paths.append(options["env"].get("PATH"))
        started.append(argv)
        return SimpleNamespace(rc=0, out="Complete!", err="", timed_out=False)

    for name in ("apt", "dnf", "zypper"):
        manager = managers.transactions(run, str(tmp_path), name)
        for wish in (Wish({}, ("b",)), Wish({}, ("b",), search=("/run/first",))):
            manager.carry_out(Todo(remove=("b",)), wish)
    assert paths[::2] == [None] * 3 and all(path.startswith("/run/first:/usr/local/sbin:") for path in paths[1::2])
    # apt sets dpkg's PATH itself (DPkg::Path), so that what is in the environment never reaches a package's script
    assert f"DPkg::Path={paths[1]}" in started[1] and not any("DPkg::Path" in word for word in started[0])


@pytest.mark.parametrize("name", ["apt", "dnf", "zypper"])
def test_no_transaction_asks_or_restarts_anything(tmp_path: pathlib.Path, name: str) -> None:
    seen: list[dict[str, str]] = []

    def run(argv: list[str], **options: Any) -> SimpleNamespace:
        seen.append(options["env"])
        return SimpleNamespace(rc=0, out="Complete!", err="", timed_out=False)

    managers.transactions(run, str(tmp_path), name).carry_out(Todo(remove=("b",)), Wish({}, ("b",)))
    assert seen, "the transaction starts a program"
    for env in seen:
        assert env["NEEDRESTART_SUSPEND"] == "1" and env["SYSTEMD_OFFLINE"] == "1"
        assert env["DEBIAN_FRONTEND"] == "noninteractive"


def test_the_lock_of_apts_lists_is_waited_for(tmp_path: pathlib.Path) -> None:
    now = [0.0]
    locked = SimpleNamespace(rc=100, out="", timed_out=False,
                             err="E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)\n")
    answers = [locked, locked, SimpleNamespace(rc=0, out="", err="", timed_out=False)]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    manager = transact_apt.AptTransaction(lambda argv, **options: answers.pop(0), sleep, lambda: now[0])
    manager.refresh(Wish({}))
    assert not answers and now[0] == 4.0
    answers += [locked] * 9
    with pytest.raises(PackageError, match=r"cannot be fetched: Could not get lock .*held by process 7"):
        manager.refresh(Wish({}, lock_timeout=6))


def test_a_repository_that_another_key_signs_is_told_with_the_key() -> None:
    said = SimpleNamespace(
        rc=100, timed_out=False, out="",
        err="W: OpenPGP signature verification failed: http://m/o  InRelease: Missing key 89A3, which is needed\n"
            "E: The repository 'http://m/o  InRelease' is not signed.\n")
    manager = transact_apt.AptTransaction(lambda argv, **options: said)
    with pytest.raises(PackageError, match=r"fetched: The repository .* is not signed\. \(OpenPGP .* Missing key 89A3"):
        manager.refresh(Wish({}))
    gone = SimpleNamespace(rc=100, timed_out=True, out="", err="")
    manager = transact_apt.AptTransaction(lambda argv, **options: gone)
    with pytest.raises(PackageError, match=r"fetched: apt-get did not end in time"):
        manager.refresh(Wish({}))


def test_dpkg_s_reason_stands_below_the_package_that_it_names() -> None:
    said = ("dpkg: error processing archive /tmp/x/7-nvidia-firmware-580_1_amd64.deb (--unpack):\n"
            " unable to create 'stand-in': No space left on device\n")
    result = Result(100, "", f"{said}E: Sub-process /usr/bin/dpkg returned an error code (1)\n")
    told = reason(result, ("E:", "dpkg: error", "Error!"), "apt-get")
    assert told.startswith("dpkg: error processing archive /tmp/x/7-nvidia-firmware-580")
    assert "(--unpack): unable to create 'stand-in': No space left on device; E: Sub-process" in told
