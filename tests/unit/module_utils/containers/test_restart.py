# SPDX-License-Identifier: GPL-3.0-or-later
"""The restart: its guard, what counts as working again, and the way back."""
from __future__ import annotations

import json
import pathlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import config_files
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import restart as module
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.config_files import Placed
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.restart import Restart, RestartError, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

PLUGINS = """TYPE                                  ID                  PLATFORMS      STATUS
io.containerd.internal.v1             restart             -              ok
io.containerd.grpc.v1                 cri                 linux/amd64    {cri}
"""
DUMP = """[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes."odd.name"]
"""


class Host:
    """systemctl, ctr, crictl and containerd as a test wants them; ``good`` says whether the present file works."""

    def __init__(self, main: pathlib.Path) -> None:
        self.main = main
        self.calls: list[list[str]] = []
        self.cri = "ok"
        self.crictl: str | None = None

    def good(self) -> bool:
        return "bad" not in self.main.read_text()

    def restarts(self) -> int:
        return sum(call[:2] == ["systemctl", "restart"] for call in self.calls)

    def __call__(self, argv: Any, timeout: float = 10, **_other: Any) -> Result:
        self.calls.append(list(argv))
        program = argv[0].rpartition("/")[2]
        if program == "systemctl" and argv[1] == "restart":
            return Result(0) if self.good() else Result(1, "", "Job for containerd.service failed")
        if program == "systemctl" and argv[1] == "is-active":
            return Result(0, "active\n") if self.good() else Result(3, "failed\n")
        if program == "journalctl":
            return Result(0, "containerd: failed to load TOML: row 2\n")
        if program == "ctr":
            return Result(0, PLUGINS.format(cri=self.cri))
        if program == "crictl":
            return Result(0, self.crictl or "{}")
        if program == "containerd":
            return Result(0, DUMP)
        return Result(0)


@pytest.fixture
def main(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "config.toml"
    path.write_text("good\n")
    return path


@pytest.fixture
def address(tmp_path: pathlib.Path) -> Iterator[str]:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(tmp_path / "s"))
    server.listen(50)
    yield str(tmp_path / "s")
    server.close()


@pytest.fixture
def host(main: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(main)
    monkeypatch.setattr(module.shutil, "which", lambda name: name if name == "ctr" or made.crictl else None)
    return made


def restart(host: Host, containers: Any = 0, systemd: bool = True) -> Restart:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    def count() -> int:
        if isinstance(containers, Exception):
            raise containers
        return int(containers)

    return Restart(host, count, Store(str(host.main.parent)), pause=pause, clock=lambda: now[0],
                   has_systemd=lambda: systemd)


def open_step(host: Host) -> Store:
    store = Store(str(host.main.parent))
    store.begin("r1", "gpu_containerd", "x")
    store.step("restart")
    return store


def test_restarts_once_and_closes_the_step(host: Host, address: str) -> None:
    store = open_step(host)
    outcome = restart(host)(Wish(address=address, handlers=("nvidia",)), check=False)
    assert outcome.changed and host.restarts() == 1
    assert outcome.handlers == ["nvidia", "odd.name", "runc"]
    assert store.read()["open"] is None
    assert not any("daemon-reload" in call for call in host.calls)


def test_check_mode_only_says_so(host: Host, address: str) -> None:
    store = open_step(host)
    outcome = restart(host)(Wish(address=address), check=True)
    assert outcome.changed and host.calls == [] and store.read()["open"] is not None


def test_never_under_gpu_containers_without_leave(host: Host, address: str) -> None:
    store = open_step(host)
    outcome = restart(host, 3)(Wish(address=address), check=False)
    assert not outcome.changed and host.restarts() == 0 and outcome.gpu_containers == 3
    assert "3 GPU containers" in str(outcome.skipped_reason)
    assert "gpu_containerd_restart_allowed" in str(outcome.skipped_reason)
    assert store.read()["open"] is not None, "the next run has to know that a restart is due"


def test_with_leave_it_goes_through(host: Host, address: str) -> None:
    assert restart(host, 3)(Wish(address=address, allowed=True), check=False).changed


def test_what_cannot_be_counted_counts_as_there(host: Host, address: str) -> None:
    outcome = restart(host, PermissionError("not root"))(Wish(address=address), check=False)
    assert not outcome.changed and "not root" in str(outcome.skipped_reason)
    assert restart(host, PermissionError("not root"))(Wish(address=address, allowed=True), check=False).changed


def test_without_systemd_nothing_is_due(host: Host, address: str) -> None:
    store = open_step(host)
    outcome = restart(host, systemd=False)(Wish(address=address), check=False)
    assert not outcome.changed and "systemd" in str(outcome.skipped_reason) and store.read()["open"] is None


def test_a_broken_result_is_taken_back(host: Host, main: pathlib.Path, address: str) -> None:
    saved = main.parent / "saved"
    saved.write_text("good\n")
    main.write_text("bad\n")
    with pytest.raises(RestartError, match="put back and it runs again") as caught:
        restart(host)(Wish(address=address, restore=(Placed(str(main), str(saved)),)), check=False)
    assert main.read_text() == "good\n" and host.restarts() == 2
    assert "failed to load TOML" in str(caught.value)


def test_a_new_file_is_taken_away_again(host: Host, main: pathlib.Path, address: str) -> None:
    added = main.parent / "99-nvidia.toml"
    added.write_text("bad\n")
    host.cri = "error"
    with pytest.raises(RestartError, match="the CRI plugin is error"):
        restart(host)(Wish(address=address, timeout=1, restore=(Placed(str(added), None),)), check=False)
    assert not added.exists()


def test_a_handler_that_is_missing_is_a_failure(host: Host, address: str) -> None:
    with pytest.raises(RestartError, match=r"kata is not known to it \(known: nvidia"):
        restart(host)(Wish(address=address, timeout=1, handlers=("kata",)), check=False)


def test_handlers_from_cri_itself_where_crictl_is_there(host: Host, address: str) -> None:
    host.crictl = json.dumps({"config": {"containerd": {"runtimes": {"runc": {}, "nvidia": {}}}}})
    assert restart(host)(Wish(address=address, handlers=("nvidia",)), check=False).handlers == ["nvidia", "runc"]
    host.crictl = "no json"
    assert "nvidia" in restart(host)(Wish(address=address, handlers=("nvidia",)), check=False).handlers


def test_no_socket_means_not_working(host: Host, main: pathlib.Path) -> None:
    with pytest.raises(RestartError, match="nothing answers on /nowhere"):
        restart(host)(Wish(address="/nowhere", timeout=1), check=False)


def test_files_of_a_run_that_was_cut_off_are_taken_back(host: Host, main: pathlib.Path, address: str) -> None:
    root = main.parent
    store = Store(str(root))
    config_files.place([(str(main), b"bad\n", config_files.checksum(b"good\n"))], str(main), "containerd", host, store,
                       run_id="r1", keep=3, backups=str(root / "backups"))
    with pytest.raises(RestartError, match="put back and it runs again"):
        restart(host)(Wish(address=address), check=False)
    assert main.read_text() == "good\n" and store.read()["open"] is None


def test_not_even_with_the_former_files(host: Host, main: pathlib.Path, address: str) -> None:
    saved = main.parent / "saved"
    saved.write_text("bad too\n")
    main.write_text("bad\n")
    with pytest.raises(RestartError, match="does not work with them either"):
        restart(host)(Wish(address=address, timeout=1, restore=(Placed(str(main), str(saved)),)), check=False)


def test_of_several_units_the_one_that_is_there_is_restarted(host: Host, address: str) -> None:
    real = host.__class__.__call__

    def told(self: Host, argv: Any, **more: Any) -> Result:
        if argv[:2] == ["systemctl", "show"]:
            self.calls.append(list(argv))
            return Result(0, "loaded\n" if argv[-1] == "k3s-agent.service" else "not-found\n")
        return real(self, argv, **more)

    host.__class__ = type("Host", (Host,), {"__call__": told})
    restart(host)(Wish(services=("k3s.service", "k3s-agent.service"), address=address), check=False)
    assert ["systemctl", "restart", "k3s-agent.service"] in host.calls and host.restarts() == 1


def test_where_its_owner_restarts_it_we_only_wait_and_look(host: Host, address: str, main: pathlib.Path) -> None:
    outcome = restart(host, 3)(Wish(address=address, by_owner=True, handlers=("nvidia",)), check=False)
    assert not outcome.changed and host.restarts() == 0 and outcome.handlers
    added = main.parent / "99-nvidia.toml"
    added.write_text("new\n")
    with pytest.raises(RestartError, match="kata is not known"):
        restart(host)(Wish(address=address, by_owner=True, handlers=("kata",), timeout=1,
                           restore=(Placed(str(added), None),)), check=False)
    assert not added.exists() and host.restarts() == 0


def test_a_handler_that_should_be_gone_and_is_not(host: Host, address: str) -> None:
    with pytest.raises(RestartError, match="nvidia is still known"):
        restart(host)(Wish(address=address, timeout=1, absent=("nvidia",)), check=False)


def test_the_tools_of_its_own_folder_count(host: Host, address: str, main: pathlib.Path) -> None:
    """k3s and the like bring their own ctr; that of the PATH speaks to another containerd."""
    outcome = restart(host)(Wish(address=address, program=str(main.parent / "containerd")), check=False)
    assert outcome.changed and not any(call[0] == "ctr" for call in host.calls)
    (main.parent / "ctr").write_text("")
    restart(host)(Wish(address=address, program=str(main.parent / "containerd")), check=False)
    assert any(call[0] == str(main.parent / "ctr") for call in host.calls)


def test_looked_at_again_in_the_call_that_restarts(host: Host, address: str) -> None:
    """Containers that came after the plan count; those that a drain took away do not."""
    running = [2]

    def count() -> int:
        return running[0]

    made = Restart(host, count, Store(str(host.main.parent)), pause=lambda _s: None, clock=lambda: 0.0,
                   has_systemd=lambda: True)
    assert made(Wish(address=address), check=False).skipped_reason
    running[0] = 0
    assert made(Wish(address=address), check=False).changed
