# SPDX-License-Identifier: GPL-3.0-or-later
"""The action containerd_config: how often it asks the host, what it writes, when it refuses, what it never shows."""

from __future__ import annotations

import base64
import pathlib
from typing import Any
from unittest import mock

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.baremetal.nvidia.plugins.action import containerd_config
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import config_files
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

SECRET = "s3cret-of-the-registry"
V2 = f"""version = 2
# kept
[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example.net".auth]
  password = "{SECRET}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"""


class Host:
    """The host module, on files below a folder, with a containerd that prints what it reads."""

    def __init__(self, root: pathlib.Path, version: str | None = "1.7.24") -> None:
        self.root, self.version = root, version
        self.modes: list[str] = []
        self.dump: Any = lambda text: Result(0, text)

    def run(self, argv: Any, timeout: float = 10, **_other: Any) -> Result:
        if "--version" in argv:
            return Result(0, f"containerd x {self.version} y\n") if self.version else Result(127)
        return self.dump(pathlib.Path(argv[2]).read_text())  # type: ignore[no-any-return]

    def __call__(self, module_name: str, module_args: dict[str, Any], **_other: Any) -> dict[str, Any]:
        assert module_name == "baremetal.nvidia.containerd_files"
        self.modes.append(module_args["mode"])
        try:
            return self._answer(module_args)
        except config_files.ConfigError as error:
            return {"failed": True, "msg": str(error)}

    def _answer(self, given: dict[str, Any]) -> dict[str, Any]:
        main = given["path"]
        if given["mode"] == "read":
            found = config_files.read(main, given["extra"], "containerd", self.run)
            return {
                "version": found.version,
                "looked": found.looked,
                "files": {path: base64.b64encode(text).decode() for path, text in found.files.items()},
            }
        if given["mode"] == "trial":
            trees = {
                name: {file: base64.b64decode(text) for file, text in files.items()}
                for name, files in given["trees"].items()
            }
            dumps = config_files.trial(trees, "containerd", self.run)
            return {"dumps": {
                name: {**dump, "out": base64.b64encode(dump["out"].encode()).decode()} for name, dump in dumps.items()
            }}  # fmt: skip
        placed = config_files.place(
            [(item["path"], base64.b64decode(item["content"]), item["sha256"]) for item in given["files"]],
            main,
            "containerd",
            self.run,
            Store(str(self.root)),
            run_id=given["lease"],
            keep=given["backup_keep"],
            backups=str(self.root / "backups"),
        )
        return {"backups": [{"path": item.path, "backup": item.backup} for item in placed]}


@pytest.fixture
def main(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "etc/containerd/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(V2)
    return path


def act(host: Host, main: pathlib.Path, check_mode: bool = False, **arguments: Any) -> dict[str, Any]:
    task = mock.MagicMock(
        check_mode=check_mode,
        async_val=0,
        args={"path": str(main), **arguments},
        diff=False,
        environment=None,
        no_log=False,
    )
    loader = DataLoader()
    action = containerd_config.ActionModule(
        task,
        mock.MagicMock(_shell=mock.MagicMock(tmpdir=None)),
        mock.MagicMock(check_mode=check_mode),
        loader,
        Templar(loader=loader),
        None,
    )
    action._execute_module = host  # type: ignore[method-assign]
    return action.run(task_vars={})


def test_changes_once_then_costs_one_call(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    host = Host(tmp_path)
    result = act(host, main)
    assert result["changed"] and host.modes == ["read", "trial", "place"], result
    assert main.read_text().startswith(V2.rstrip("\n")) and result["backups"][0]["path"] == str(main)
    host.modes.clear()
    assert act(host, main)["changed"] is False and host.modes == ["read"]


def test_check_mode_says_which_settings_change_and_only_those(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    host = Host(tmp_path)
    result = act(host, main, check_mode=True)
    assert result["changed"] and host.modes == ["read"] and main.read_text() == V2
    paths = [item["path"] for item in result["differences"]]
    assert paths == sorted(paths) and all("runtimes.nvidia" in path or "enable_cdi" in path for path in paths)
    assert "BinaryName = '/usr/bin/nvidia-container-runtime'" in result["diff"]["after"]
    assert result["diff"]["before"] == ""


@pytest.mark.parametrize("check_mode", [True, False])
def test_secrets_never_come_back(tmp_path: pathlib.Path, main: pathlib.Path, check_mode: bool) -> None:
    assert SECRET not in str(act(Host(tmp_path), main, check_mode=check_mode))


def test_a_broken_file_is_named(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    main.write_text("version = 2\n[x")
    result = act(Host(tmp_path), main)
    assert result["failed"] and str(main) in result["msg"] and main.read_text() == "version = 2\n[x"


def test_not_utf8(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    main.write_bytes(b"# caf\xe9\n")
    assert "not UTF-8" in act(Host(tmp_path), main)["msg"]


def test_what_containerd_cannot_read_is_not_placed(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    host = Host(tmp_path)
    host.dump = lambda text: Result(1, "", "unexpected token") if "nvidia" in text else Result(0, text)
    result = act(host, main)
    assert result["failed"] and "unexpected token" in result["msg"] and "nothing was written" in result["msg"]
    assert host.modes == ["read", "trial"] and main.read_text() == V2


def test_what_containerd_reads_otherwise_is_not_placed(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    host = Host(tmp_path)
    host.dump = lambda text: Result(0, text.replace("/usr/bin/nvidia-container-runtime", ""))
    assert "has the program ''" in act(host, main)["msg"] and main.read_text() == V2
    host.dump = lambda text: Result(0, text + "\n[metrics]\naddress = 'x'\n" if "nvidia" in text else text)
    assert "would also change metrics.address" in act(host, main)["msg"] and main.read_text() == V2


def test_without_containerd(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    host = Host(tmp_path, version=None)
    assert "install containerd first" in act(host, main)["msg"]
    main.unlink()
    result = act(host, main, check_mode=True, version="2.1.9")
    assert result["changed"] and result["strategy"] == "drop_in" and len(result["files"]) == 2


def test_a_drop_in_is_placed_before_it_is_imported(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    main.write_text(
        'version = 3\n[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]\nruntime_type = "x"\n'
    )
    host = Host(tmp_path, "2.1.9")
    host.dump = lambda text: Result(
        0,
        '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]\n'
        'BinaryName = "/usr/bin/nvidia-container-runtime"\n',
    )
    result = act(host, main)
    assert [item["path"] for item in result["backups"]] == [str(main.parent / "conf.d/99-nvidia.toml"), str(main)]


def test_imports_written_in_an_odd_way_are_read_too(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    """The host looks for plain imports by itself; what it does not see is asked for in a second call."""
    odd = main.parent / "odd]name.toml"
    odd.write_text("version = 2\noom_score = -5\n")
    main.write_text(V2.replace("# kept\n", f"imports = ['{odd}']\n"))
    host = Host(tmp_path)
    result = act(host, main, check_mode=True)
    assert host.modes == ["read", "read"] and result["changed"], result


def test_a_foreign_owner_is_told_what_to_set(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    result = act(Host(tmp_path), main, owner="k3s")
    assert result["failed"] and "k3s" in result["msg"] and main.read_text() == V2


def test_a_change_in_between_is_not_overwritten(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    host = Host(tmp_path)

    def meddle(text: str) -> Result:
        main.write_text(V2 + "# somebody\n")
        return Result(0, text)

    host.dump = meddle
    result = act(host, main)
    assert result["failed"] and "changed by somebody else" in result["msg"] and main.read_text() == V2 + "# somebody\n"


def test_bad_arguments(tmp_path: pathlib.Path, main: pathlib.Path) -> None:
    with pytest.raises(Exception, match="nonsense"):
        act(Host(tmp_path), main, nonsense=1)
