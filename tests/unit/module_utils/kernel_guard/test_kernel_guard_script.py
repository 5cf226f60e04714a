# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's shell script, run by a real sh on what package managers say. Each way in which it fires, and each not."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.kernel_guard import dnf_plugin, script

OLD, NEW = "6.12.118+deb13-amd64", "7.2.12+deb14-amd64"
EL_OLD, EL_NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-503.11.1.el9_5.x86_64"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


class Host:
    """The script with its paths below a directory, and a logger that writes a file."""

    def __init__(self, root: pathlib.Path, shell: str) -> None:
        self.root = root
        self.shell = [shell, "sh"] if shell == "busybox" else [shell]
        self.once = root / "run/baremetal-nvidia/allow-once"
        self.once.parent.mkdir(parents=True)
        self.list = root / "var/lib/baremetal-nvidia/guard.list"
        self.list.parent.mkdir(parents=True)
        self.log = root / "log"
        self.log.touch()
        (root / "bin").mkdir()
        logger = root / "bin/logger"
        logger.write_text(f'#!/bin/sh\necho "$*" >>{self.log}\n')
        logger.chmod(0o755)
        text = script.SCRIPT.replace(script.LIST, str(self.list)).replace(script.ONCE, str(self.once))
        text = text.replace("PATH=/usr/sbin", f"PATH={root}/bin:/usr/sbin", 1)
        self.script = root / "kernel-guard"
        self.script.write_text(text)
        self.allow([OLD, EL_OLD], [OLD, EL_OLD])

    def allow(self, allowed: list[str], proved: list[str]) -> None:
        self.list.write_text(script.allowed_list(allowed, proved))

    def __call__(self, *args: str, said: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if k != script.VARIABLE}
        return subprocess.run([*self.shell, str(self.script), *args], input=said, capture_output=True, text=True,
                              env={**clean, **env}, timeout=30, check=False)

    def apt(self, *lines: str, **env: str) -> subprocess.CompletedProcess[str]:
        head = "VERSION 3\nAPT::Architecture=amd64\nCommandLine::AsString=apt-get%20install%20x\n\n"
        return self("apt", said=head + "".join(f"{line}\n" for line in lines), **env)


@pytest.fixture(params=SHELLS)
def host(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Host:
    return Host(tmp_path, request.param)


def new(name: str, version: str = "7.2.12-1") -> str:
    return f"{name} - - none < {version} amd64 none /var/cache/apt/archives/{name}_{version}_amd64.deb"


def gone(name: str) -> str:
    return f"{name} 6.12.118-1 amd64 none > - - none **REMOVE**"


@pytest.mark.parametrize("name", [
    f"linux-image-{NEW}", f"linux-binary-{NEW}", f"linux-image-unsigned-{NEW}", "linux-image-6.8.0-60-generic",
    "linux-image-uc-6.8.0-60-generic", "proxmox-kernel-6.8.12-4-pve-signed", "linux-image-6.12.118+deb13-rt-amd64"])
def test_another_kernel_is_refused(host: Host, name: str) -> None:
    answer = host.apt(new("hostname"), new(name))
    assert answer.returncode == script.REFUSED
    assert f"{name} would be installed" in answer.stderr and "Nothing was changed" in answer.stderr
    assert "ansible-playbook baremetal.nvidia.kernel_upgrade" in answer.stderr and OLD in answer.stderr
    assert f"touch {host.once}" in answer.stderr and "BAREMETAL_NVIDIA_ALLOW=1" in answer.stderr
    assert "auth.warning" in host.log.read_text() and "refused (" in host.log.read_text()
    assert "apt-get install x" in host.log.read_text()


@pytest.mark.parametrize("line", [
    new(f"linux-image-{OLD}"),                        # the allowed one, again
    new("linux-image-amd64"),                         # a meta package: what it brings is judged
    new(f"linux-headers-{NEW}"), new(f"linux-image-{NEW}-dbg"), new("linux-libc-dev"), new("hostname"),
    new(f"linux-modules-{NEW}"), new("linux-image-rt-amd64"),
    f"linux-image-{NEW} - - none < 7.2.12-1 amd64 none **CONFIGURE**",
    gone(f"linux-image-{NEW}"), gone(f"linux-headers-{OLD}"), gone("linux-image-amd64"),
    f"linux-image-{OLD} - - none > - - none **REMOVE**",      # only its configuration files were left
])
def test_everything_else_passes_without_a_word(host: Host, line: str) -> None:
    answer = host.apt(line)
    assert (answer.returncode, answer.stderr, host.log.read_text()) == (0, "", "")


@pytest.mark.parametrize("name", [f"linux-image-{OLD}", f"linux-modules-{OLD}", f"linux-modules-extra-{OLD}",
                                  f"linux-binary-{OLD}", f"linux-image-unsigned-{OLD}"])
def test_a_proved_kernel_is_not_removed(host: Host, name: str) -> None:
    answer = host.apt(gone(name))
    assert answer.returncode == script.REFUSED and f"{name} would be removed" in answer.stderr


def test_an_allowed_kernel_that_is_not_proved_may_go(host: Host) -> None:
    host.allow([OLD, NEW], [OLD])
    assert host.apt(gone(f"linux-image-{NEW}")).returncode == 0


def test_the_same_kernel_by_another_package_is_no_removal(host: Host) -> None:
    assert host.apt(gone(f"linux-image-unsigned-{OLD}"), new(f"linux-image-{OLD}")).returncode == 0
    assert host.apt(gone(f"linux-image-{OLD}-unsigned"), new(f"linux-image-{OLD}")).returncode == 0


@pytest.mark.parametrize("name", [f"linux-image-unsigned-{OLD}", f"linux-image-{OLD}-unsigned"])
def test_an_unsigned_kernel_is_no_substitute_for_the_proved_one(host: Host, name: str) -> None:
    """What apt does when the signed one is removed: with Secure Boot it does not boot."""
    answer = host.apt(gone(f"linux-image-{OLD}"), new(name))
    assert answer.returncode == script.REFUSED and "would be installed" not in answer.stderr


def test_the_collections_own_transaction_passes(host: Host) -> None:
    """It puts the kernel on the list before."""
    assert host.apt(new(f"linux-image-{NEW}")).returncode == script.REFUSED
    host.allow([OLD, NEW], [OLD])
    assert host.apt(new(f"linux-image-{NEW}")).returncode == 0


# open on its own errors


def broken(host: Host, how: str) -> None:
    if how == "absent":
        host.list.unlink()
    elif how == "directory":
        host.list.unlink()
        host.list.mkdir()
    else:
        host.list.write_text(how)


@pytest.mark.parametrize("how", ["absent", "directory", "", "version 2\nallowed 1\n", "version 1\n", "\0\0", "garbage"])
def test_it_is_open_when_its_list_is_no_use(host: Host, how: str) -> None:
    broken(host, how)
    answer = host.apt(new(f"linux-image-{NEW}"))
    assert answer.returncode == 0 and "let a transaction through unseen" in host.log.read_text()


@pytest.mark.parametrize("said", ["", "VERSION 2\n\n", "/var/cache/apt/archives/x.deb\n"])
def test_it_is_open_when_apt_speaks_otherwise(host: Host, said: str) -> None:
    assert host("apt", said=said).returncode == 0 and "unseen" in host.log.read_text()


@pytest.mark.parametrize("args", [(), ("nonsense",), ("one",)])
def test_it_is_open_when_it_is_called_wrongly(host: Host, args: tuple[str, ...]) -> None:
    assert host(*args).returncode == 0


def test_it_is_open_without_a_logger_and_refuses_without_one(host: Host) -> None:
    (host.root / "bin/logger").write_text("#!/bin/sh\nexit 1\n")
    assert host.apt(new(f"linux-image-{NEW}")).returncode == script.REFUSED
    host.list.unlink()
    assert host.apt(new(f"linux-image-{NEW}")).returncode == 0


def test_a_failure_that_nobody_thought_of_is_open_and_logged(host: Host) -> None:
    host.script.write_text(host.script.read_text().replace("    judge\n", "    return 5\n"))
    assert host.apt(new(f"linux-image-{NEW}")).returncode == 0
    assert "failed with status 5" in host.log.read_text()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("body, rc", [(None, 0), ("exit 1", 0), ("exit 127", 0), ("kill -9 $$", 0), ("syntax (", 0),
                                      ("exit 77", 1), ("exit 0", 0)])
def test_the_line_in_apts_configuration_stops_on_77_alone(
        tmp_path: pathlib.Path, shell: str, body: str | None, rc: int) -> None:
    """What apt hands to sh: a script that is missing, broken or killed is harmless."""
    command = script.APT_HOOK.split('"')[1].replace(script.PATH, str(tmp_path / "guard"))
    if body is not None:
        (tmp_path / "guard").write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "guard").chmod(0o755)
    argv = [shell, "sh", "-c", command] if shell == "busybox" else [shell, "-c", command]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == rc


# overrides


def test_a_variable_lets_a_command_through_and_is_logged(host: Host) -> None:
    answer = host.apt(new(f"linux-image-{NEW}"), BAREMETAL_NVIDIA_ALLOW="1", SUDO_USER="kim")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "let through by BAREMETAL_NVIDIA_ALLOW=1 (kim: apt-get install x): linux-image-7" in host.log.read_text()
    for value in ("0", "", "yes"):
        assert host.apt(new(f"linux-image-{NEW}"), BAREMETAL_NVIDIA_ALLOW=value).returncode == script.REFUSED


def test_a_file_lets_one_command_through(host: Host) -> None:
    host.once.touch()
    assert host.apt(new("hostname")).returncode == 0 and host.once.exists(), "not used up by what needs none"
    assert host.apt(new(f"linux-image-{NEW}")).returncode == 0 and not host.once.exists()
    assert "let through once" in host.log.read_text()
    assert host.apt(new(f"linux-image-{NEW}")).returncode == script.REFUSED


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_file_that_is_not_roots_has_no_effect(host: Host) -> None:
    host.once.touch()
    os.chown(host.once, 1000, 1000)
    assert host.apt(new(f"linux-image-{NEW}")).returncode == script.REFUSED
    assert "is not root's" in host.log.read_text() and host.once.exists()


def test_a_link_has_no_effect(host: Host) -> None:
    (host.root / "elsewhere").touch()
    host.once.symlink_to(host.root / "elsewhere")
    assert host.apt(new(f"linux-image-{NEW}")).returncode == script.REFUSED


# rpm


def lines(host: Host, *said: str, how: str = "take") -> int:
    return host("lines", how, said="command dnf upgrade\n" + "".join(f"{line}\n" for line in said)).returncode


@pytest.mark.parametrize("name", ["kernel", "kernel-core", "kernel-uki-virt", "kernel-uek-core", "kernel-rt-core",
                                  "kernel-rt", "kernel-64k-core", "kernel-debug-core", "kernel6.12"])
def test_another_rpm_kernel_is_refused(host: Host, name: str) -> None:
    assert lines(host, f"install {name} {EL_NEW}") == script.REFUSED
    assert "dnf upgrade" in host.log.read_text()


@pytest.mark.parametrize("name", ["kernel-headers", "kernel-tools", "kernel-tools-libs", "kernel-devel",
                                  "kernel-srpm-macros", "kernel-modules", "kernel-modules-core", "kernel-doc",
                                  "kernel-firmware", "kernelshark"])
def test_what_follows_an_rpm_kernel_passes(host: Host, name: str) -> None:
    assert lines(host, f"install {name} {EL_NEW}") == 0


@pytest.mark.parametrize("name, version, release", [
    ("kernel-core", EL_OLD, EL_OLD),
    ("kernel-rt-core", EL_OLD, f"{EL_OLD}+rt"),
    ("kernel-rt-core", "4.18.0-372.9.1.rt7.166.el8.x86_64", "4.18.0-372.9.1.rt7.166.el8.x86_64"),
    ("kernel-64k-core", "5.14.0-503.el9.aarch64", "5.14.0-503.el9.aarch64+64k"),
    ("kernel-uek-core", "5.15.0-200.131.27.el9uek.x86_64", "5.15.0-200.131.27.el9uek.x86_64"),
])
def test_releases_are_those_that_uname_prints(host: Host, name: str, version: str, release: str) -> None:
    host.allow([release], [])
    assert lines(host, f"install {name} {version}") == 0
    host.allow(["1.0"], [])
    assert lines(host, f"install {name} {version}") == script.REFUSED


def test_a_flavour_is_another_kernel(host: Host) -> None:
    assert lines(host, f"install kernel-rt-core {EL_OLD}") == script.REFUSED


@pytest.mark.parametrize("name", ["kernel", "kernel-core", "kernel-modules", "kernel-modules-core",
                                  "kernel-modules-extra"])
def test_a_proved_rpm_kernel_is_not_removed(host: Host, name: str) -> None:
    assert lines(host, f"remove {name} {EL_OLD}") == script.REFUSED
    assert lines(host, f"remove {name} {EL_NEW}") == 0


def test_a_reinstallation_is_no_removal(host: Host) -> None:
    assert lines(host, f"install kernel-core {EL_OLD}", f"remove kernel-core {EL_OLD}") == 0


def test_a_look_uses_nothing_up(host: Host) -> None:
    host.once.touch()
    assert lines(host, f"install kernel-core {EL_NEW}", how="look") == script.ASIDE and host.once.exists()
    assert lines(host, f"install kernel-core {EL_NEW}") == 0 and not host.once.exists()
    assert lines(host, f"install kernel-core {EL_NEW}", how="look") == script.REFUSED


def test_one_process_of_dnf5_uses_one_file_for_all_its_packages(host: Host) -> None:
    def one(pid: int, name: str, how: str = "take", action: str = "I") -> int:
        return host("one", how, str(pid), action, name, EL_NEW).returncode

    me = os.getpid()
    assert one(me, "kernel-core", "look") == script.REFUSED
    host.once.touch()
    stale = host.once.with_name("allow-once.999999999")
    stale.touch()
    assert one(me, "kernel-core", "look") == script.ASIDE
    assert one(me, "kernel") == 0 and one(me, "kernel-core") == 0 and not host.once.exists()
    assert one(1, "kernel-core") == script.REFUSED, "it was let through for that process alone"
    assert not stale.exists()
    assert one(1, "kernel-core", action="O") == 0 and one(1, "kernel-core", action="?") == 0


def test_the_texts_are_sound(tmp_path: pathlib.Path) -> None:
    compile(dnf_plugin.PLUGIN, "plugin", "exec")
    (tmp_path / "guard").write_text(script.SCRIPT)
    checker = shutil.which("shellcheck")
    if checker:
        subprocess.run([checker, "-s", "sh", str(tmp_path / "guard")], check=True)
    assert script.parse_list(script.allowed_list(["b"], ["a"])) == (["a", "b"], ["a"])
    assert all(line.count(":") >= 4 and "\n" not in line for line in script.actions().splitlines() if line[0] != "#")
