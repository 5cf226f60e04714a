# SPDX-License-Identifier: GPL-3.0-or-later
"""Repositories: key first, one file for one repository, and all of it with file operations alone."""
from __future__ import annotations

import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import openpgp, sources
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.package_source import (
    Key,
    PackageSource,
    SourceError,
    Wish,
)
from test_openpgp import fingerprint, key

PATH = "/etc/apt/sources.list.d/baremetal-nvidia-container-toolkit.sources"
KEYRING = "/etc/apt/keyrings/baremetal-nvidia-container-toolkit.asc"
URL = "https://nvidia.github.io/libnvidia-container/stable/deb/amd64/"
CONTENT = f"Types: deb\nURIs: {URL}\nSuites: /\nSigned-By: {KEYRING}\n"
OLD = fingerprint(b"old")


def snapshot(root: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def write(root: pathlib.Path, path: str, content: str | bytes) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)


def wish(**changed: object) -> Wish:
    given = {"path": PATH, "content": CONTENT, "key": Key(KEYRING, fingerprint(b"one"), "https://example.net/key"),
             "retired_keys": (OLD,)}
    return Wish(**{**given, **changed})  # type: ignore[arg-type]


@pytest.fixture
def source(tmp_path: pathlib.Path) -> PackageSource:
    return PackageSource(lambda url: openpgp.armored(key(b"one")), str(tmp_path))


def test_fresh_host_then_nothing_more(source: PackageSource, tmp_path: pathlib.Path) -> None:
    planned = source.set(wish(), check=True)
    assert planned.changed and snapshot(tmp_path) == {}
    outcome = source.set(wish(), check=False)
    assert outcome.actions == planned.actions
    assert (tmp_path / PATH.lstrip("/")).read_text() == CONTENT
    assert openpgp.fingerprints((tmp_path / KEYRING.lstrip("/")).read_bytes()) == [fingerprint(b"one")]
    assert not source.set(wish(), check=False).changed


def test_the_right_key_is_not_fetched_again(source: PackageSource, tmp_path: pathlib.Path) -> None:
    source.set(wish(), check=False)

    def offline(url: str) -> bytes:
        raise OSError("no route to host")

    assert not PackageSource(offline, str(tmp_path)).set(wish(), check=False).changed


@pytest.mark.parametrize("fetched", [key(b"two"), key(b"one") + key(b"two"), b"<html>"])
def test_a_wrong_key_ends_it_before_anything_is_written(fetched: bytes, tmp_path: pathlib.Path) -> None:
    write(tmp_path, "/etc/apt/sources.list.d/old.list", f"deb {URL} /\n")
    before = snapshot(tmp_path)
    with pytest.raises(openpgp.KeyFault):
        PackageSource(lambda url: fetched, str(tmp_path)).set(wish(), check=False)
    assert snapshot(tmp_path) == before


def test_no_key_to_be_had(tmp_path: pathlib.Path) -> None:
    def offline(url: str) -> bytes:
        raise OSError("no route to host")

    with pytest.raises(SourceError, match=r"https://example\.net/key.*no route to host"):
        PackageSource(offline, str(tmp_path)).set(wish(), check=False)
    assert snapshot(tmp_path) == {}


def test_old_key_in_the_global_trust_and_a_source_without_signed_by(source: PackageSource,
                                                                    tmp_path: pathlib.Path) -> None:
    """The vendor replaced its key: key, source and removal are listed, then done, and a second run changes nothing."""
    write(tmp_path, "/etc/apt/sources.list.d/nvidia-container-toolkit.list",
          "deb https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n")
    write(tmp_path, "/etc/apt/trusted.gpg", key(b"old") + key(b"debian"))
    write(tmp_path, "/etc/apt/trusted.gpg.d/nvidia.gpg", key(b"old"))
    write(tmp_path, "/etc/apt/trusted.gpg.d/other.asc", openpgp.armored(key(b"debian")))
    before = snapshot(tmp_path)
    listed = source.set(wish(), check=True).actions
    assert snapshot(tmp_path) == before
    assert [action.split()[0] for action in listed] == ["write", "take", "take", "take", "write"]
    outcome = source.set(wish(), check=False)
    assert outcome.actions == listed
    assert (tmp_path / "etc/apt/trusted.gpg").read_bytes() == key(b"debian")
    assert not (tmp_path / "etc/apt/trusted.gpg.d/nvidia.gpg").exists()
    assert not (tmp_path / "etc/apt/sources.list.d/nvidia-container-toolkit.list").exists()
    assert (tmp_path / "etc/apt/trusted.gpg.d/other.asc").exists()
    assert len(outcome.backups) == 3 and all(pathlib.Path(path).exists() for path in outcome.backups)
    assert not source.set(wish(), check=False).changed


@pytest.mark.parametrize(("name", "text", "left"), [
    ("a.list", f"deb [signed-by=/usr/share/keyrings/x.gpg] {URL} /\n", None),
    ("b.list", f"# mine\ndeb http://deb.debian.org/debian bookworm main\ndeb {URL.rstrip('/')} /\n",
     "# mine\ndeb http://deb"),
    ("c.sources", f"Types: deb\nURIs: {URL}\nSuites: /\n", None),
    ("d.sources", "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\n\nTypes: deb\n"
     f"URIs: {URL}\nSuites: /\n", "Types: deb\nURIs: http://deb"),
    ("e.sources", f"Types: deb\nURIs: http://mirror.example.net/debian\n {URL}\nSuites: /\n", "URIs: http://mirror"),
])
def test_one_file_is_left_for_a_repository(source: PackageSource, tmp_path: pathlib.Path, name: str, text: str,
                                           left: str | None) -> None:
    """Two files that disagree about Signed-By keep apt from working at all, so nothing here may call it."""
    write(tmp_path, f"/etc/apt/sources.list.d/{name}", text)
    outcome = source.set(wish(), check=False)
    assert outcome.removed == [f"/etc/apt/sources.list.d/{name}"] and len(outcome.backups) == 1
    assert pathlib.Path(outcome.backups[0]).read_text() == text
    target = tmp_path / "etc/apt/sources.list.d" / name
    if left is None:
        assert not target.exists()
    else:
        assert left in target.read_text()
        assert URL.rstrip("/") not in " ".join(sources.uris(target.read_text(), name.endswith(".sources")))
    assert not source.set(wish(), check=False).changed


def test_other_repositories_stay(source: PackageSource, tmp_path: pathlib.Path) -> None:
    write(tmp_path, "/etc/apt/sources.list", "deb http://deb.debian.org/debian bookworm main\n")
    write(tmp_path, "/etc/apt/sources.list.d/cuda.sources",
          "Types: deb\nURIs: https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/\nSuites: /\n")
    assert source.set(wish(), check=False).removed == []


@pytest.mark.parametrize(("changed", "word"), [
    ({"content": CONTENT + "Trusted: yes\n"}, "signature checks"),
    ({"content": CONTENT + "Allow-Insecure: yes\n"}, "signature checks"),
    ({"content": "Types: deb\n"}, "URIs"),
    ({"content": CONTENT.replace("Signed-By", "X-Signed")[:-1].replace(KEYRING, "x")}, "Signed-By"),
    ({"path": "/etc/apt/sources.list.d/x.list"}, r"\.sources"),
])
def test_what_weakens_the_checks_is_refused(source: PackageSource, tmp_path: pathlib.Path, changed: dict[str, str],
                                            word: str) -> None:
    with pytest.raises(SourceError, match=word):
        source.set(wish(**changed), check=False)
    assert snapshot(tmp_path) == {}


def test_secrets_are_not_shown(source: PackageSource) -> None:
    mirror = CONTENT.replace("https://", "https://user:s3cret@")
    assert "s3cret" not in str(source.set(wish(content=mirror), check=True))


@pytest.mark.parametrize(("one", "two"), [
    ("https://x.example/deb/$(ARCH) ", "http://X.example/deb/amd64/"),
    ("mirror+http://a.example/b//c", "http://a.example/b/c/")])
def test_addresses_that_are_the_same(one: str, two: str) -> None:
    assert sources.uri_key(one) == sources.uri_key(two)


@pytest.mark.parametrize("folder", ["/etc/apt/sources.list.d", "/etc/yum.repos.d", "/etc/zypp/repos.d"])
def test_of_two_files_one_stays(folder: str, source: PackageSource, tmp_path: pathlib.Path) -> None:
    text, end = (f"deb {URL} /\n", "list") if "apt" in folder else (f"[a]\nname=a\nbaseurl={URL}\n", "repo")
    for name in ("kept", "gone", "other"):
        write(tmp_path, f"{folder}/{name}.{end}", text if name != "other" else text.replace("stable", "testing"))
    before = snapshot(tmp_path)
    planned = source.take_out([URL], f"{folder}/kept.{end}", check=True)
    assert planned.removed == [f"{folder}/gone.{end}"] and snapshot(tmp_path) == before
    outcome = source.take_out([URL], f"{folder}/kept.{end}", check=False)
    assert outcome.removed == planned.removed and len(outcome.backups) == 1
    assert pathlib.Path(outcome.backups[0]).read_text() == text
    after = snapshot(tmp_path)
    assert after[f"{folder[1:]}/kept.{end}"] == text.encode() and f"{folder[1:]}/other.{end}" in after
    assert not source.take_out([URL], f"{folder}/kept.{end}", check=False).changed
    assert source.take_out([URL], None, check=False).removed == [f"{folder}/kept.{end}"]
