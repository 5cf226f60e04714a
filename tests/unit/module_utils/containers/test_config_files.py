# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on the host: read whole, tried apart, placed all or none, whatever step is cut off."""
from __future__ import annotations

import os
import pathlib
import stat
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import config_files, keepers
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


class Containerd:
    """A program that prints a version and, for a dump, what its file says; ``broken`` texts are refused."""

    def __init__(self, broken: bytes = b"[broken") -> None:
        self.broken = broken
        self.calls: list[list[str]] = []

    def __call__(self, argv: Any, timeout: float = 10, **_other: Any) -> Result:
        self.calls.append(list(argv))
        if "--version" in argv:
            return Result(0, "containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6\n")
        text = pathlib.Path(argv[2]).read_bytes()
        if self.broken in text:
            return Result(1, "", "containerd: failed to load TOML")
        return Result(0, text.decode())


@pytest.fixture
def etc(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "etc/containerd"
    folder.mkdir(parents=True)
    return folder


def place(etc: pathlib.Path, files: list[tuple[str, bytes, str | None]], run: Any, **more: Any) -> Any:
    root = etc.parent.parent
    return config_files.place(files, str(etc / "config.toml"), "containerd", run, Store(str(root)), run_id="r1", keep=3,
                              backups=str(root / "backups"), **more)


def test_reads_imports_and_what_lies_beside(etc: pathlib.Path) -> None:
    (etc / "config.toml").write_bytes(
        b'version = 3\nimports = [\n  "/nowhere/*.toml", # x "no"\n  \'site.d/*.toml\'\n]\n')
    for name, text in {"site.d/a.toml": 'imports = ["../deep.toml"]\n', "deep.toml": "x = 1\n", "conf.d/b.toml": "",
                       "config.d/c.toml": "", "conf.d/d.txt": ""}.items():
        (etc / name).parent.mkdir(exist_ok=True)
        (etc / name).write_text(text)
    found = config_files.read(str(etc / "config.toml"), [], "containerd", Containerd())
    names = {os.path.relpath(path, etc) for path in found.files}
    assert names == {"config.toml", "site.d/a.toml", "deep.toml", "conf.d/b.toml", "config.d/c.toml"}
    assert found.version == "1.7.24~ds1"
    assert "/nowhere/*.toml" in found.looked and str(etc / "deep.toml") in found.looked


def test_a_pattern_takes_hidden_files_as_containerd_does(etc: pathlib.Path) -> None:
    """Go's ``*`` is also a name that begins with a dot."""
    (etc / "config.toml").write_bytes(b'imports = ["conf.d/*.toml"]\n')
    (etc / "conf.d").mkdir()
    for name in (".hidden.toml", "a.toml", ".b"):
        (etc / "conf.d" / name).write_text("")
    found = config_files.read(str(etc / "config.toml"), [], "containerd", Containerd())
    assert {os.path.basename(path) for path in found.files} == {"config.toml", ".hidden.toml", "a.toml"}


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_is_imported_and_no_file_is_told_before_anything_changes(etc: pathlib.Path, kind: str) -> None:
    """containerd does not start with it; the running one does not know yet."""
    (etc / "config.toml").write_bytes(b"version = 3\n")
    odd = etc / "conf.d/10-odd.toml"
    odd.parent.mkdir()
    odd.mkdir() if kind == "folder" else odd.symlink_to(etc / "nothing")
    assert set(config_files.read(str(etc / "config.toml"), [], "containerd", Containerd()).files) == {
        str(etc / "config.toml")}
    for imports in (b'imports = ["conf.d/*.toml"]\n', b'imports = ["conf.d/10-odd.toml"]\n'):
        (etc / "config.toml").write_bytes(imports)
        with pytest.raises(config_files.ConfigError, match="does not start with it") as told:
            config_files.read(str(etc / "config.toml"), [], "containerd", Containerd())
        assert str(odd) in str(told.value)


def test_more_files_than_any_configuration_has(etc: pathlib.Path) -> None:
    (etc / "config.toml").write_bytes(b'imports = ["conf.d/*.toml"]\n')
    (etc / "conf.d").mkdir()
    for number in range(100):
        (etc / f"conf.d/{number}.toml").write_text("")
    with pytest.raises(config_files.ConfigError, match="more than 100 files"):
        config_files.read(str(etc / "config.toml"), [], "containerd", Containerd())


def test_no_containerd_and_no_file(etc: pathlib.Path) -> None:
    found = config_files.read(str(etc / "config.toml"), [], "containerd", lambda *_a, **_k: Result(127))
    assert found.files == {} and found.version is None


def test_a_huge_file_is_refused(etc: pathlib.Path) -> None:
    with open(etc / "config.toml", "wb") as handle:
        handle.truncate(2 * 1024 * 1024)
    with pytest.raises(config_files.ConfigError, match="no configuration"):
        config_files.read(str(etc / "config.toml"), [], "containerd", Containerd())


def test_a_trial_lies_apart_and_leaves_nothing(etc: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(etc))
    dumps = config_files.trial({"after": {"config.toml": b'imports = ["@FOLDER@/001.toml"]', "001.toml": b""},
                                "before": {"config.toml": b"[broken"}}, "containerd", Containerd())
    assert dumps["after"]["rc"] == 0 and dumps["after"]["out"] == 'imports = ["@FOLDER@/001.toml"]'
    assert dumps["before"]["rc"] == 1 and "failed to load" in dumps["before"]["why"]
    assert list(etc.iterdir()) == []


def test_placed_with_backup_owner_and_mode(etc: pathlib.Path) -> None:
    main, drop_in = etc / "config.toml", etc / "conf.d/99-nvidia.toml"
    main.write_bytes(b"old\n")
    main.chmod(0o640)
    expected = config_files.checksum(b"old\n")
    placed = place(etc, [(str(drop_in), b"new drop-in\n", None), (str(main), b"new\n", expected)], Containerd())
    assert main.read_bytes() == b"new\n" and stat.S_IMODE(main.stat().st_mode) == 0o640
    assert drop_in.read_bytes() == b"new drop-in\n" and stat.S_IMODE(drop_in.stat().st_mode) == 0o644
    assert placed[0].backup is None and pathlib.Path(placed[1].backup).read_bytes() == b"old\n"
    assert stat.S_IMODE(pathlib.Path(placed[1].backup).stat().st_mode) == 0o600
    state = Store(str(etc.parent.parent)).read()
    assert state["open"]["role"] == "gpu_containerd"
    assert [step["name"] for step in state["open"]["steps"]] == ["config", "restart"]
    assert {item["path"] for item in state["backups"]} == {str(main), str(drop_in)}


def test_a_link_stays_a_link(etc: pathlib.Path) -> None:
    real = etc / "real.toml"
    real.write_bytes(b"old\n")
    (etc / "config.toml").symlink_to(real)
    place(etc, [(str(etc / "config.toml"), b"new\n", config_files.checksum(b"old\n"))], Containerd())
    assert (etc / "config.toml").is_symlink() and real.read_bytes() == b"new\n"


def test_a_file_that_changed_meanwhile_is_left_alone(etc: pathlib.Path) -> None:
    main = etc / "config.toml"
    main.write_bytes(b"somebody else's\n")
    for expected in (config_files.checksum(b"old\n"), None):
        with pytest.raises(config_files.ConfigError, match="changed by somebody else"):
            place(etc, [(str(main), b"new\n", expected)], Containerd())
    assert main.read_bytes() == b"somebody else's\n" and Store(str(etc.parent.parent)).read()["open"] is None


def test_what_containerd_cannot_read_is_taken_back(etc: pathlib.Path) -> None:
    main, drop_in = etc / "config.toml", etc / "conf.d/99-nvidia.toml"
    main.write_bytes(b"old\n")
    with pytest.raises(config_files.ConfigError, match="former files are back"):
        place(etc, [(str(drop_in), b"x\n", None), (str(main), b"[broken", config_files.checksum(b"old\n"))],
              Containerd())
    assert main.read_bytes() == b"old\n" and not drop_in.exists()
    assert Store(str(etc.parent.parent)).read()["open"] is None


class Cut(Exception):
    """The run ends here."""


CALLS = ("rename", "unlink", "fsync", "makedirs", "open")
OLD, NEW, DROP = b"old\n", b"new\n", b"drop-in\n"


class Power:
    """Every call that touches the file system is a step; before the given one the power goes, for good."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
        self.steps, self.last = 0, last
        for name in CALLS:
            monkeypatch.setattr(f"os.{name}", self._step(getattr(os, name), name))

    def _step(self, real: Any, name: str) -> Any:
        def step(*given: Any, **more: Any) -> Any:
            if name == "open" and not (len(given) > 1 and given[1] & (os.O_WRONLY | os.O_RDWR)):
                return real(*given, **more)
            self.steps += 1
            if self.steps >= self.last:
                raise Cut
            return real(*given, **more)

        return step


def taken_out(etc: pathlib.Path) -> list[tuple[str, bytes | None, str | None]]:
    """The way back: the import first, then the file that it reached."""
    (etc / "conf.d").mkdir()
    (etc / "conf.d/99-nvidia.toml").write_bytes(DROP)
    (etc / "config.toml").write_bytes(NEW)
    return [(str(etc / "config.toml"), OLD, config_files.checksum(NEW)),
            (str(etc / "conf.d/99-nvidia.toml"), None, config_files.checksum(DROP))]


def put_in(etc: pathlib.Path) -> list[tuple[str, bytes | None, str | None]]:
    """The drop-in first, then the import that reaches it."""
    (etc / "config.toml").write_bytes(OLD)
    return [(str(etc / "conf.d/99-nvidia.toml"), DROP, None),
            (str(etc / "config.toml"), NEW, config_files.checksum(OLD))]


@pytest.mark.parametrize("way", [put_in, taken_out])
def test_cut_off_before_any_step_containerd_starts(tmp_path: pathlib.Path, way: Any) -> None:
    """Each step of all of them is the last once: every file is the old or the new one, whole, and no import is missing.

    What was begun is known, so that the next run can finish it or take it back.
    """
    reached = 0
    for last in range(1, 400):
        etc = tmp_path / str(last) / "etc/containerd"
        etc.mkdir(parents=True)
        files = way(etc)
        before = {path: pathlib.Path(path).read_bytes() if os.path.exists(path) else None for path, _n, _c in files}
        with pytest.MonkeyPatch.context() as patch:
            power = Power(patch, last)
            try:
                place(etc, files, Containerd())
                done = True
            except Cut:
                done = False
        main, drop_in = etc / "config.toml", etc / "conf.d/99-nvidia.toml"
        assert main.read_bytes() in (OLD, NEW)
        assert not drop_in.exists() or drop_in.read_bytes() == DROP
        if main.read_bytes() == NEW:
            assert drop_in.exists(), f"step {last}: the import names a file that is not there"
        if done:
            break
        reached = power.steps
        for path, _new, _checksum in files:
            now = pathlib.Path(path).read_bytes() if os.path.exists(path) else None
            if now != before[path]:
                placed = config_files.left_open(Store(str(etc.parent.parent)))
                assert path in [item.path for item in placed], f"step {last}: nobody knows that {path} was written"
        config_files.put_back(config_files.left_open(Store(str(etc.parent.parent))))
        after = {path: pathlib.Path(path).read_bytes() if os.path.exists(path) else None for path in before}
        assert after == before, f"step {last}: what was begun cannot be taken back"
    else:
        pytest.fail("never came to an end")
    assert reached > 15, "the steps were not seen"


def test_what_is_set_is_kept_for_the_way_back(etc: pathlib.Path) -> None:
    main = etc / "config.toml"
    main.write_bytes(OLD)
    store = Store(str(etc.parent.parent))
    entry = {"path": ["a"], "before": 1, "after": 2, "there": True, "header": True}
    record = {str(main): {"sets": [entry], "imports": ["x"], "imports_there": True, "version": False}}
    place(etc, [(str(main), NEW, config_files.checksum(OLD))], Containerd(), records=record)
    assert store.read()["configured"] == record
    again = {**entry, "before": 2, "after": 3}
    place(etc, [(str(main), OLD, config_files.checksum(NEW))], Containerd(),
          records={str(main): {"sets": [again], "imports": [], "version": True}})
    kept = store.read()["configured"][str(main)]
    assert kept["sets"] == [{**entry, "after": 3}] and kept["version"] is True, "the first value comes back"
    place(etc, [(str(main), NEW, config_files.checksum(OLD))], Containerd(),
          records={str(main): {"sets": [{**entry, "before": 9, "after": 2}], "imports": [], "version": False}})
    assert store.read()["configured"][str(main)]["sets"][0]["before"] == 9, "a person changed it in between"


def test_the_selinux_context_goes_with_the_file(etc: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attributes of the old file are set on the new one before it takes its place; without any nothing is set."""
    main = etc / "config.toml"
    main.write_bytes(OLD)
    label = b"system_u:object_r:container_config_t:s0\0"
    given: list[tuple[str, bytes]] = []
    monkeypatch.setattr(os, "listxattr", lambda path: ["security.selinux"], raising=False)
    monkeypatch.setattr(os, "getxattr", lambda path, name: label, raising=False)

    def setxattr(fd: int, name: str, value: bytes) -> None:
        assert main.read_bytes() == OLD, "it is labelled before it is renamed"
        given.append((name, value))

    monkeypatch.setattr(os, "setxattr", setxattr, raising=False)
    place(etc, [(str(main), NEW, config_files.checksum(OLD))], Containerd())
    assert given == [("security.selinux", label)]

    def refuses(*_given: Any) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(os, "listxattr", refuses, raising=False)
    given.clear()
    place(etc, [(str(main), OLD, config_files.checksum(NEW))], Containerd())
    assert given == [] and main.read_bytes() == OLD


def test_the_newest_backups_are_kept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.toml"
    for number in range(6):
        path.write_text(str(number))
        keepers.backup(str(path), 3, str(tmp_path / "b"), now=1_800_000_000 + number)
    kept = sorted((tmp_path / "b").rglob("x.toml.*"))
    assert [item.read_text() for item in kept] == ["3", "4", "5"]
    for _again in range(2):
        keepers.backup(str(path), 9, str(tmp_path / "b"), now=1_800_000_009)
    assert len(list((tmp_path / "b").rglob("x.toml.*"))) == 5


def test_a_link_goes_with_what_it_names(tmp_path: pathlib.Path) -> None:
    """A link that dangles in a folder of imports would keep containerd from starting."""
    real, link = tmp_path / "real.toml", tmp_path / "99-nvidia.toml"
    real.write_text("x")
    link.symlink_to(real)
    keepers.remove(str(link))
    assert not link.is_symlink() and not real.exists()
    keepers.remove(str(link))


def test_restore(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x"
    path.write_text("new")
    (tmp_path / "saved").write_text("old")
    keepers.restore(str(path), str(tmp_path / "saved"))
    assert path.read_text() == "old"
    keepers.restore(str(path), None)
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match="gone"):
        keepers.restore(str(path), str(tmp_path / "missing"))
