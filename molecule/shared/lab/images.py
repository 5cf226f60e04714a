# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of the hosts: Debian by mmdebstrap, kept in podman's storage until the recipe or the week changes."""
from __future__ import annotations

import hashlib
import shlex
import time
from pathlib import Path

from . import podman, shell
from .settings import SHARED, LabError, Settings

RECIPE = SHARED / "image"
SMALLEST = 100_000_000  # bytes


def _packages(suite: str) -> list[str]:
    names = []
    for line in (RECIPE / "packages.txt").read_text().splitlines():
        word = line.partition("#")[0].strip()
        only, _colon, name = word.rpartition(":")
        if name and only in ("", suite):
            names.append(name.strip())
    return names


def sources(suite: str, mirror: str) -> list[str]:
    components = "main non-free-firmware"
    return [f"deb {mirror}/debian {suite} {components}", f"deb {mirror}/debian {suite}-updates {components}",
            f"deb {mirror}/debian-security {suite}-security {components}"]


def apt_options() -> list[str]:
    """This machine's own apt settings that its mirror may need, for the hosts too."""
    wanted = ("Acquire::Check-Valid-Until", "Acquire::Check-Date", "Acquire::http::Proxy", "Acquire::https::Proxy")
    options = []
    for line in shell.run(["apt-config", "dump"]).splitlines():
        name = line.split(" ", 1)[0]
        if name in wanted and line.rstrip().endswith('";') and '""' not in line:
            options.append(line.rstrip())
    return options


def name(suite: str, settings: Settings) -> str:
    """The name of the image: its tag is the digest of all that goes in."""
    parts = [suite, time.strftime("%G-W%V"), *_packages(suite), *sources(suite, settings.mirror), *apt_options()]
    parts += [path.read_text() for path in sorted(RECIPE.iterdir()) if path.is_file()]
    return f"localhost/baremetal-nvidia-lab/{suite}:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def ensure(suite: str, settings: Settings) -> str:
    """Make the image unless it is here; its name."""
    image = name(suite, settings)
    if not podman.image_exists(image):
        customize = f'{shlex.quote(str(RECIPE / "customize.sh"))} "$1" {suite}'
        make(image, suite, suite, _packages(suite), customize, settings)
    return image


def make(image: str, title: str, suite: str, packages: list[str], customize: str, settings: Settings) -> None:
    """Make an image: a Debian of these packages, and a shell command that finishes its tree (``$1``)."""
    logs = settings.cache / "lab" / "logs"
    tarball = settings.cache / "lab" / f"{title}.tar"
    tarball.parent.mkdir(parents=True, exist_ok=True)
    tarball.unlink(missing_ok=True)
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", "--skip=cleanup/apt/lists",
               f"--customize-hook={customize}"]
    command += [f"--aptopt={option}" for option in apt_options()]
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    command += [f"--keyring={keyring}"] if keyring.exists() else []
    shell.run_long(f"image of {title} (mmdebstrap, about 2 minutes)",
                   [*command, suite, str(tarball), *sources(suite, settings.mirror)], logs / f"image-{title}.log")
    with shell.Beat(f"image of {title}: import"):
        podman.podman("import", "--quiet", "--change", 'CMD ["/sbin/init"]', str(tarball), image, timeout=900)
    tarball.unlink()
    size = int(podman.podman("image", "inspect", "--format", "{{.Size}}", image))
    if size < SMALLEST:  # half an image that looks like one would be worse than none
        podman.podman("image", "rm", image)
        raise LabError(f"image of {title}: only {size} bytes came in; run the command again")
