# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of other distributions: a Debian with their package manager and os-release, and an archive of stand-ins.

Two images a distribution: the base (mmdebstrap, minutes, kept until its recipe or the week changes) and, on it, the
host as someone installed it from the archive's first release (seconds, made anew when the archive changes).
"""
from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

from . import debs, images, podman, repository, rpms, shell, standins
from .settings import HOST_ARCHIVE, Settings

FOLDER = standins.FOLDER
KEPT = 4  # archives of one distribution, so that hosts made before a change still have theirs


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _texts(*paths: Path) -> list[str]:
    found = []
    for path in paths:
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if one.is_symlink():
                found.append(f"{one.name} -> {one.readlink()}")
            elif one.is_file():
                found.append(f"{one.name}\n{one.read_text()}")
    return found


def _packages(family: str) -> list[str]:
    names = []
    for line in (FOLDER / "packages.txt").read_text().splitlines():
        word = line.partition("#")[0].strip()
        only, _colon, name = word.rpartition(":")
        if name and only in ("", family):
            names.append(name.strip())
    return names


def base(family: str, suite: str, settings: Settings) -> str:
    """The name of the base image; made unless it is here."""
    recipe = [*_packages(family), *images.sources(suite, settings.mirror), *images.apt_options(),
              time.strftime("%G-W%V"),
              *_texts(FOLDER / "customize.sh", FOLDER / "root" / family, images.RECIPE / "grub-probe")]
    image = f"localhost/baremetal-nvidia-lab/{family}-{suite}:{_digest(*recipe)}"
    if not podman.image_exists(image):
        images.make(image, f"{family}-{suite}", suite, _packages(family),
                    f'{shlex.quote(str(FOLDER / "customize.sh"))} "$1" {family}', settings)
    return image


def archive(system: str, suite: str, settings: Settings) -> Path:
    """The folder of a distribution's archive, built unless it is there.

    Its name has the digest of all that it was made from: a running host keeps the one that it has mounted.
    """
    described = standins.load(system)
    code = [Path(module.__file__ or "") for module in (debs, rpms, standins, standins.kmodule)]
    digest = _digest(json.dumps(described, sort_keys=True, default=str),
                     *_texts(FOLDER / "files", FOLDER / "install.sh", FOLDER / "build-rpms.sh", *code, Path(__file__)))
    folder = settings.cache / "distros" / f"{system}-{digest}"
    if folder.exists():
        return folder
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with shell.Beat(f"archive of {system}"):
        _build(described, suite, fresh, settings)
    fresh.rename(folder)
    for old in sorted(folder.parent.glob(f"{system}-????????????"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old)
    return folder


def _build(described: dict[str, Any], suite: str, fresh: Path, settings: Settings) -> None:
    fingerprint = repository.key(settings.cache / "repository-key")
    home = settings.cache / "repository-key" / "gnupg"
    packages = standins.packages(described)
    if described["family"] == "ubuntu":
        for suite_folder in debs.suites(packages, fresh, "Ubuntu"):
            repository.sign(suite_folder, home)
    else:
        rpms.repositories(packages, described, fresh, base(described["family"], suite, settings), settings)
    (fresh / "key.asc").write_text(repository.gpg(home, "--armor", "--export", fingerprint))
    repository.gpg(home, "--output", str(fresh / "key.gpg"), "--export", fingerprint)
    for name, text in _repo_files(described).items():
        (fresh / name).write_text(text)
    (fresh / "host.sh").write_text(_shell(described))
    (fresh / "os-release").write_text("".join(f'{key}="{value}"\n' for key, value in described["os_release"].items()))
    shutil.copy(FOLDER / "install.sh", fresh / "install.sh")
    repository.end_agent(home)


def source(settings: Settings) -> dict[str, str]:
    """What a host's inventory says of the archive's stand-in of NVIDIA's repository."""
    return {"url": f"file:{HOST_ARCHIVE}/cuda", "suite": "/", "key_url": f"file://{HOST_ARCHIVE}/key.asc",
            "fingerprint": repository.key(settings.cache / "repository-key")}


def _repo_files(described: dict[str, Any]) -> dict[str, str]:
    """The .repo files of an rpm distribution: what NVIDIA's is called stands in the archive, for whoever adds it."""
    files = {}
    for name, known in described.get("repositories", {}).items():
        lines = {"name": known["name"], "baseurl": f"file://{HOST_ARCHIVE}/{name}",
                 "enabled": int(known.get("enabled", True)), "gpgcheck": 1, "gpgkey": f"file://{HOST_ARCHIVE}/key.asc",
                 **known.get("settings", {})}
        files[f"{name}.repo"] = f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in lines.items())
    return files


def _shell(described: dict[str, Any]) -> str:
    """What install.sh has to know, as shell assignments."""
    first = described["install"]
    values = {"family": described["family"], "first_archives": " ".join(first["archives"]),
              "first_packages": " ".join(first["packages"]),
              "first_sources": " ".join(name for name, known in described.get("repositories", {}).items()
                                        if not known.get("later")), "archives": " ".join(described["archives"])}
    return "".join(f"{key}={shlex.quote(value)}\n" for key, value in values.items())


def ensure(system: str, suite: str, settings: Settings) -> str:
    """Make the image of a host unless it is here; its name."""
    below = base(standins.load(system)["family"], suite, settings)
    folder = archive(system, suite, settings)
    key = repository.key(settings.cache / "repository-key")    # each checkout signs with its own, and the host knows it
    image = f"localhost/baremetal-nvidia-lab/{system}:{_digest(below, folder.name, key)}"
    if podman.image_exists(image):
        return image
    name = f"{settings.prefix}make-{system}"
    podman.podman("rm", "--force", "--ignore", "--time=0", name)
    try:
        shell.run_long(f"image of {system}", [
            *podman.command(), "run", "--name", name, "--pull=never", *podman.run_options(),
            f"--volume={folder}:{HOST_ARCHIVE}:ro", below, "/bin/sh", f"{HOST_ARCHIVE}/install.sh"],
            settings.cache / "lab" / "logs" / f"image-{system}.log", timeout=600)
        podman.podman("commit", "--quiet", name, image, timeout=900)
    finally:
        podman.podman("rm", "--force", "--ignore", "--time=0", name)
    return image
