# SPDX-License-Identifier: GPL-3.0-or-later
"""What containerd itself says, and that neither a broken file nor a broken change leaves the host without it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import tomllib

MAIN = "/etc/containerd/config.toml"
CRI = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")


@pytest.fixture(scope="module")
def dumped(host: Any) -> dict[str, Any]:
    with host.sudo():
        return tomllib.loads(host.check_output("containerd config dump"))


@pytest.fixture
def untouched(host: Any) -> Iterator[str]:
    """The main file as it is, put back after the test, with containerd on it."""
    with host.sudo():
        host.check_output(f"cp -a {MAIN} /root/kept.toml")
        yield "/root/kept.toml"
        host.check_output(f"cp -a /root/kept.toml {MAIN}")
        host.check_output("systemctl reset-failed containerd.service; systemctl restart containerd.service")


def module(host: Any, name: str, arguments: str = "", check: bool = False) -> dict[str, Any]:
    """Run a module of the collection on the host. A failure is one that has a message: ad-hoc results say no more."""
    from testinfra.modules.ansible import AnsibleException

    try:
        result = dict(host.ansible(f"baremetal.nvidia.{name}", arguments, check=check, become=True))
    except AnsibleException as error:
        result = dict(error.result)
    return {**result, "failed": "msg" in result}


def started(host: Any) -> str:
    return str(host.check_output("systemctl show --property ExecMainStartTimestampMonotonic containerd.service"))


def test_it_runs_and_is_enabled(host: Any) -> None:
    service = host.service("containerd")
    assert service.is_running and service.is_enabled


def test_it_knows_the_runtime(dumped: dict[str, Any]) -> None:
    plugin = next(dumped["plugins"][name] for name in CRI if name in dumped["plugins"])
    runtimes = plugin["containerd"]["runtimes"]
    assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert runtimes["nvidia"]["runtime_type"] == "io.containerd.runc.v2"
    assert "runc" in runtimes and plugin["containerd"]["default_runtime_name"] == "runc"


def test_cri_is_loaded(host: Any) -> None:
    with host.sudo():
        rows = host.check_output("ctr plugins ls")
    assert re.search(r"^\S+\s+cri\s+\S+\s+ok\s*$", rows, re.MULTILINE), rows


def test_what_the_package_had_is_still_there(host: Any) -> None:
    with host.sudo():
        text = host.file(MAIN).content_string
        backup = host.check_output("ls /var/lib/baremetal-nvidia/backups/etc/containerd").split()[0]
        former = host.file(f"/var/lib/baremetal-nvidia/backups/etc/containerd/{backup}").content_string
        mode = host.file(f"/var/lib/baremetal-nvidia/backups/etc/containerd/{backup}").mode
    missing = [line for line in former.splitlines() if line not in text.splitlines()]
    assert missing == [] and mode == 0o600


def test_it_is_held_and_nothing_is_left_open(host: Any) -> None:
    assert "containerd" in host.check_output("apt-mark showhold").split()
    with host.sudo():
        state = json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json"))
    assert state["open"] is None and state["lease"] is None


def test_a_second_look_restarts_nothing(host: Any) -> None:
    before = started(host)
    assert module(host, "containerd_config")["changed"] is False
    assert started(host) == before


def test_a_broken_file_is_refused_and_containerd_runs_on(host: Any, untouched: str) -> None:
    before = started(host)
    host.check_output(f"printf 'version = 2\\n[plugins.\"x\"\\n' > {MAIN}")
    result = module(host, "containerd_config")
    assert result["failed"] and MAIN in result["msg"]
    assert host.file(MAIN).content_string.startswith("version = 2\n[plugins")
    assert host.service("containerd").is_running and started(host) == before


BROKEN = {
    "no TOML": "version = 2\nroot = 5\n[",
    "a socket where none can be": 'version = 2\n[grpc]\naddress = "/proc/none/containerd.sock"\n',
    "an import that is not there": 'version = 2\nimports = ["/etc/containerd/none.toml"]\n',
    "CRI switched off": 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n',
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_change_that_breaks_it_is_taken_back(host: Any, untouched: str, what: str) -> None:
    """Whatever is wrong with the new file: the former one is put back, containerd runs on it, the reason is told."""
    host.check_output("printf %%s %s > %s", BROKEN[what], MAIN)
    restore = json.dumps({"restore": [{"path": MAIN, "backup": untouched}], "handlers": ["nvidia"], "timeout": 5})
    result = module(host, "containerd_restart", restore)
    assert result["failed"] and "were put back and it runs again" in result["msg"], result
    assert host.service("containerd").is_running
    assert host.run(f"cmp {untouched} {MAIN}").rc == 0


def test_with_its_program_gone_nothing_is_changed_and_it_runs_on(host: Any, untouched: str) -> None:
    before = started(host)
    host.check_output("mv /usr/bin/containerd /usr/bin/containerd.away")
    try:
        result = module(host, "containerd_config", "default_runtime=nvidia")
        assert result["failed"] and "does not tell its version" in result["msg"]
        assert host.service("containerd").is_running and started(host) == before
        restart = module(host, "containerd_restart", json.dumps({
            "restore": [{"path": MAIN, "backup": untouched}], "timeout": 5}))
        assert restart["failed"] and "does not work with them either" in restart["msg"]
    finally:
        host.check_output("mv /usr/bin/containerd.away /usr/bin/containerd")
    assert host.run(f"cmp {untouched} {MAIN}").rc == 0


def test_a_trial_that_fails_writes_nothing(host: Any, untouched: str) -> None:
    """containerd itself is asked on a copy; one that cannot read it ends the run before a file is touched."""
    program = "/root/containerd-no"
    script = '#!/bin/sh\ncase "$*" in *dump*) echo no >&2; exit 1;; esac\nexec containerd "$@"\n'
    host.check_output("printf %%s %s > %s; chmod 755 %s", script, program, program)
    result = module(host, "containerd_config", f"default_runtime=nvidia program={program}")
    assert result["failed"] and "nothing was written" in result["msg"]
    assert host.run(f"cmp {untouched} {MAIN}").rc == 0


def test_killed_between_its_files_and_its_restart(host: Any, untouched: str) -> None:
    """kill -9 right after the files lie there: containerd starts on what is there, and the next call finishes."""
    program = "/root/containerd-kills"
    script = f'#!/bin/sh\ncase "$2 $*" in "{MAIN} "*dump*) kill -9 $PPID; exit 9;; esac\nexec containerd "$@"\n'
    host.check_output("printf %%s %s > %s; chmod 755 %s", script, program, program)
    assert module(host, "containerd_config", "state=absent")["changed"] is True
    assert module(host, "containerd_restart", json.dumps({"absent": ["nvidia"]}))["changed"] is True
    result = module(host, "containerd_config", f"program={program}")
    assert result.get("changed") is not True, result
    state = json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json"))
    assert state["open"]["role"] == "gpu_containerd"
    host.check_output("systemctl restart containerd.service")
    assert host.service("containerd").is_running
    again = module(host, "containerd_config")
    assert not again["failed"], again
    done = module(host, "containerd_restart", json.dumps({"handlers": ["nvidia"]}))
    assert not done["failed"] and "nvidia" in done["handlers"], done
    assert json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json"))["open"] is None


def test_a_handler_that_does_not_come_is_a_failure(host: Any, untouched: str) -> None:
    restore = json.dumps({"restore": [{"path": MAIN, "backup": untouched}], "handlers": ["absent"], "timeout": 3})
    result = module(host, "containerd_restart", restore)
    assert result["failed"] and "absent is not known" in result["msg"]
    assert host.service("containerd").is_running


def play(host: Any, *variables: str) -> str:
    """Run the scenario's playbook on this host; what it prints."""
    scenario = pathlib.Path(__file__).resolve().parents[1]
    root = scenario.parents[1]
    inventory = root / ".cache/lab" / os.environ.get("LAB_NAME", "gpu_containerd") / "inventory"
    program = pathlib.Path(sys.executable).with_name("ansible-playbook")
    command = [str(program), "-i", str(inventory), "--limit", host.backend.host, str(scenario / "converge.yml")]
    for variable in variables:
        command += ["-e", variable]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout


def test_taken_out_and_put_in_again(host: Any) -> None:
    """What the package brought is there to the byte, containerd knows no nvidia, and a second run changes nothing."""
    with host.sudo():
        now = host.check_output(f"cat {MAIN}")
        packaged = host.check_output("dpkg-query --show --showformat '${Conffiles}\\n' containerd")
        assert "changed=0 " not in play(host, "gpu_containerd_state=absent")
        digest = host.check_output(f"md5sum {MAIN}").split()[0]
        assert f"{MAIN} {digest}" in packaged
        assert "runtimes.nvidia" not in host.check_output("containerd config dump")
        assert host.service("containerd").is_running
        assert "changed=0 " in play(host, "gpu_containerd_state=absent")
        assert "changed=0 " not in play(host)
        assert host.check_output(f"cat {MAIN}") == now
        assert "changed=0 " in play(host)


def test_two_changes_are_one_restart(host: Any) -> None:
    """One tool's restart never meets another one of the same run."""
    if host.backend.host != "gpu-deb13":
        pytest.skip("once is enough")
    with host.sudo():
        since = host.check_output("date +%s")
        play(host, "gpu_containerd_default_runtime=nvidia", "gpu_containerd_sandbox_image=registry.k8s.io/pause:3.10")
        log = host.check_output(f"journalctl --unit containerd.service --output cat --since @{since}")
        assert sum(line.startswith("Started containerd") for line in log.splitlines()) == 1, log
        assert "pause:3.10" in host.check_output("containerd config dump")
        play(host, "gpu_containerd_state=absent")
        assert "pause:3.10" not in host.check_output("containerd config dump")
        play(host)


CGROUP = "/sys/fs/cgroup/" + "ab" * 32


@pytest.fixture
def gpu_container(host: Any) -> Iterator[None]:
    """What a GPU container looks like from outside: a process in a container's control group that holds a GPU."""
    with host.sudo():
        host.check_output(f"touch /dev/nvidiactl; mkdir -p {CGROUP}")
        script = f"echo $$ > {CGROUP}/cgroup.procs; exec 9</dev/nvidiactl; exec sleep 900"
        host.check_output("setsid nohup sh -c %s </dev/null >/dev/null 2>&1 & sleep 1", script)
        yield
        host.check_output(f"kill $(cat {CGROUP}/cgroup.procs) 2>/dev/null || true; sleep 1; rmdir {CGROUP}; "
                          "rm -f /dev/nvidiactl")


def test_under_gpu_containers(host: Any, gpu_container: None, tmp_path: pathlib.Path) -> None:
    """Without leave nothing is restarted or written; with it the host is drained first, and looked at again."""
    drain, undrain = tmp_path / "drain.yml", tmp_path / "undrain.yml"
    task = "- name: Hook\n  ansible.builtin.shell: {}\n  become: true\n  changed_when: true\n"
    drain.write_text(task.format(f"kill $(cat {CGROUP}/cgroup.procs); date +%s%N > /root/drained"))
    undrain.write_text(task.format("date +%s%N > /root/undrained"))
    before, text = started(host), host.check_output(f"cat {MAIN}")
    result = module(host, "containerd_restart")
    assert result["changed"] is False and "1 GPU containers run here" in result["skipped_reason"]
    wish = "gpu_containerd_default_runtime=nvidia"
    play(host, wish)
    assert started(host) == before and host.check_output(f"cat {MAIN}") == text
    hooks = (f"gpu_drain_tasks={drain}", f"gpu_undrain_tasks={undrain}")
    out = play(host, wish, "gpu_containerd_restart_allowed=true", *hooks)
    assert started(host) != before and "default_runtime_name = \"nvidia\"" in host.check_output(f"cat {MAIN}"), out
    drained, undrained = (int(host.check_output(f"cat /root/{name}")) for name in ("drained", "undrained"))
    assert drained < undrained
    host.check_output("rm /root/drained /root/undrained")
    play(host, "gpu_containerd_state=absent", "gpu_containerd_restart_allowed=true", *hooks)
    play(host)
    assert host.run("ls /root/drained").rc != 0, "with nothing to drain the hook does not run"
