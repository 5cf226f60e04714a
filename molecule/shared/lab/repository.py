# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's package repositories: small .deb files with real names and versions, signed with a key made here."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from . import shell
from .settings import HOST_REPOSITORY, SHARED, Settings

SOURCE = SHARED / "repository"
_AGENT = threading.Lock()  # archives are built side by side: nobody ends the agent while another signs
LABELS = {"cuda_toolkits": "NVIDIA CUDA"}  # by which a preferences file tells NVIDIA's repository
KEY_NAME = "Lab of baremetal.nvidia (throw-away) <lab@localhost>"


def _fill(text: str, version: str) -> str:
    return text.replace("{v}", version.rpartition("-")[0]).replace("@VERSION@", version.rpartition("-")[0])


def _control(entry: Mapping[str, Any], version: str) -> str:
    fields = {"Package": entry["package"], "Version": version, "Architecture": "amd64",
              "Section": entry.get("section", "utils"), "Priority": "optional",
              "Maintainer": "Lab stand-in <lab@localhost>"}
    for key in ("depends", "breaks", "replaces", "provides"):
        if entry.get(key):
            fields[key.capitalize()] = ", ".join(_fill(word, version) for word in entry[key])
    fields["Description"] = f"{entry['description']}\n Stand-in of the lab: the real name, version and dependencies."
    return "".join(f"{key}: {value}\n" for key, value in fields.items())


def _put(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _build(entry: Mapping[str, Any], version: str, target: Path) -> None:
    """Build one package."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        (root / "DEBIAN").mkdir(parents=True)
        root.chmod(0o755)
        _put(root / "DEBIAN" / "control", _control(entry, version), 0o644)
        for kind, mode in (("files", 0o644), ("scripts", 0o755)):
            for path, source in entry.get(kind, {}).items():
                text = (SOURCE / "files" / source).read_text() if source else ""
                _put(root / _fill(path, version).lstrip("/"), _fill(text, version), mode)
        for path, goal in entry.get("links", {}).items():
            link = root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(_fill(goal, version))
        conffiles = entry.get("conffiles", [path for path in entry.get("files", {}) if path.startswith("/etc/")])
        if conffiles:
            _put(root / "DEBIAN" / "conffiles", "".join(f"{path}\n" for path in conffiles), 0o644)
        if entry.get("postinst"):
            _put(root / "DEBIAN" / "postinst", (SOURCE / "files" / entry["postinst"]).read_text(), 0o755)
        shell.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(root), str(target)])


def gpg(home: Path, *arguments: str) -> str:
    """Run gpg with the lab's keyring; its standard output."""
    with _AGENT:
        return shell.run(["gpg", "--homedir", str(home), "--batch", "--quiet", *arguments])


def end_agent(home: Path) -> None:
    """End the agent that gpg started; the next call starts another."""
    with _AGENT:
        shell.ok(["gpgconf", "--homedir", str(home), "--kill", "all"])


def key(folder: Path) -> str:
    """Make the signing key once; its fingerprint."""
    home = folder / "gnupg"
    if not home.exists():
        home.mkdir(parents=True, mode=0o700)
        gpg(home, "--passphrase", "", "--quick-generate-key", KEY_NAME, "ed25519", "sign", "never")
    listed = gpg(home, "--with-colons", "--list-keys")
    return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:"))


def _index(repository: Path, home: Path) -> None:
    """Write Packages, Release and the signatures of a flat repository."""
    packages = shell.run(["sh", "-c", f"cd '{repository}' && apt-ftparchive packages ."])
    (repository / "Packages").write_text(packages)
    label = LABELS.get(repository.name, repository.name)
    release = shell.run(["sh", "-c", f"cd '{repository}' && apt-ftparchive -o APT::FTPArchive::Release::Origin=lab "
                                     f"-o 'APT::FTPArchive::Release::Label={label}' release ."])
    (repository / "Release").write_text(release)
    sign(repository, home)


def sign(folder: Path, home: Path) -> None:
    """Sign the Release file of a folder."""
    for name, option in (("InRelease", "--clear-sign"), ("Release.gpg", "--detach-sign")):
        (folder / name).unlink(missing_ok=True)
        gpg(home, "--armor", option, "--output", str(folder / name), str(folder / "Release"))


def _digest() -> str:
    parts = [path.read_bytes() for path in sorted(SOURCE.rglob("*")) if path.is_file()]
    return hashlib.sha256(b"\0".join([*parts, Path(__file__).read_bytes()])).hexdigest()


def ensure(settings: Settings) -> dict[str, Any]:
    """Build the repositories unless they are up to date; for each what a host has to know."""
    folder = settings.cache / "repository"
    stamp = folder / "repositories.json"
    if stamp.exists():
        known: dict[str, Any] = json.loads(stamp.read_text())
        if known["digest"] == _digest():
            return dict(known["repositories"])
    shell.say("package repository of stand-ins: building")
    fingerprint = key(settings.cache / "repository-key")
    home = settings.cache / "repository-key" / "gnupg"
    fresh = folder.with_name("repository.new")
    shutil.rmtree(fresh, ignore_errors=True)
    repositories: dict[str, Any] = {}
    for entry in yaml.safe_load((SOURCE / "packages.yml").read_text()):
        name = entry["in"]
        (fresh / name).mkdir(parents=True, exist_ok=True)
        for version in entry["versions"]:
            file = f"{entry['package']}_{version.rpartition(':')[2]}_amd64.deb"    # an epoch is in no file's name
            _build(entry, version, fresh / name / file)
        base = f"file:{HOST_REPOSITORY}/{name}"
        repositories[name] = {"url": base, "suite": "/", "components": [], "fingerprint": fingerprint,
                              "key_url": f"file://{HOST_REPOSITORY}/{name}/key.asc"}
    for name in repositories:
        (fresh / name / "key.asc").write_text(gpg(home, "--armor", "--export", fingerprint))
        _index(fresh / name, home)
    (fresh / "repositories.json").write_text(json.dumps({"digest": _digest(), "repositories": repositories}))
    folder.mkdir(parents=True, exist_ok=True)  # stays the same folder: running hosts have it mounted
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in fresh.iterdir():
        os.rename(path, folder / path.name)
    fresh.rmdir()
    end_agent(home)
    return repositories
