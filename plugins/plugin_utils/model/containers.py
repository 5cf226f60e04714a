# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be asked for about containers: runtimes, the toolkit's own settings, its package files.

Each function returns the checked value in its plain type, or raises ValueError with (where, value, what is allowed).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RUNTIMES = ("containerd", "docker", "crio")
TOOLKIT_PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
_FEATURES = (
    "allow-cuda-compat-libs-from-container", "allow-ldconfig-from-container", "allow-unknown-oci-spec-fields",
    "disable-cuda-compat-lib-hook", "disable-imex-channel-creation", "ignore-imex-channel-requests",
    "no-additional-gids-for-device-nodes",
)  # fmt: skip
# Every key of the toolkit's config.toml (1.20) with the type of its value.
CONFIG_KEYS: Mapping[str, type] = {
    "accept-nvidia-visible-devices-as-volume-mounts": bool,
    "accept-nvidia-visible-devices-envvar-when-unprivileged": bool,
    "disable-require": bool,
    "supported-driver-capabilities": str,
    "swarm-resource": str,
    "nvidia-container-cli.debug": str,
    "nvidia-container-cli.environment": list,
    "nvidia-container-cli.ldcache": str,
    "nvidia-container-cli.ldconfig": str,
    "nvidia-container-cli.load-kmods": bool,
    "nvidia-container-cli.no-cgroups": bool,
    "nvidia-container-cli.path": str,
    "nvidia-container-cli.root": str,
    "nvidia-container-cli.user": str,
    "nvidia-container-runtime.debug": str,
    "nvidia-container-runtime.log-level": str,
    "nvidia-container-runtime.mode": str,
    "nvidia-container-runtime.runtimes": list,
    "nvidia-container-runtime.modes.cdi.annotation-prefixes": list,
    "nvidia-container-runtime.modes.cdi.default-kind": str,
    "nvidia-container-runtime.modes.cdi.spec-dirs": list,
    "nvidia-container-runtime.modes.csv.mount-spec-path": str,
    "nvidia-container-runtime.modes.legacy.cuda-compat-mode": str,
    "nvidia-container-runtime-hook.path": str,
    "nvidia-container-runtime-hook.skip-mode-detection": bool,
    "nvidia-ctk.path": str,
    **{f"features.{name}": bool for name in _FEATURES},
}
_KIND = {bool: "true or false", str: "a text", list: "a list of texts"}
_WORDS = {
    "nvidia-container-runtime.mode": ("auto", "jit-cdi", "cdi", "legacy", "csv"),
    "nvidia-container-runtime.log-level": ("debug", "info", "warning", "error"),
    "nvidia-container-runtime.modes.legacy.cuda-compat-mode": ("ldconfig", "mount", "hook", "disabled"),
}
_FILE = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]*?)[_-](?P<version>[0-9]+\.[0-9]+\.[0-9]+)-(?P<release>[A-Za-z0-9.~+]+?)"
    r"[_.](?P<arch>amd64|arm64|x86_64|aarch64)\.(?P<kind>deb|rpm)\Z"
)


class Fault(ValueError):
    """What cannot be meant: where in the variable, the value, and what is allowed."""

    def __init__(self, where: str, value: object, allowed: str) -> None:
        super().__init__(allowed)
        self.where, self.value, self.allowed = where, value, allowed


def runtimes(name: str, value: Any) -> list[str]:
    """Return the runtimes that are asked for; none at all is ``[]``."""
    given = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise Fault(name, value, "containerd, docker and crio, one or several, or none")
    for one in given:
        if one not in (*RUNTIMES, "none"):
            raise Fault(name, one, "one of containerd, docker, crio, none")
    if "none" in given and len(given) > 1:
        raise Fault(name, list(given), "none alone, or runtimes without it")
    return [] if "none" in given else list(dict.fromkeys(str(one) for one in given))


def config(name: str, value: Any) -> dict[str, Any]:
    """Return the toolkit's settings by dotted key."""
    if not isinstance(value, Mapping):
        raise Fault(name, value, "a mapping of dotted keys, such as {nvidia-container-cli.no-cgroups: true}")
    checked: dict[str, Any] = {}
    for key, one in value.items():
        kind = CONFIG_KEYS.get(key) if isinstance(key, str) else None
        if kind is None:
            raise Fault(f"{name}.{key}", one, "a key of the toolkit's config.toml, such as "
                                              "nvidia-container-cli.no-cgroups: " + ", ".join(_near(str(key))))
        words = _WORDS.get(key)
        texts = isinstance(one, (list, tuple)) and all(isinstance(word, str) for word in one)
        if (texts if kind is list else isinstance(one, kind)) is False or (words and one not in words):
            raise Fault(f"{name}.{key}", one, f"one of {', '.join(words)}" if words else _KIND[kind])
        checked[str(key)] = [str(word) for word in one] if kind is list else kind(one)
    return checked


def _near(key: str) -> list[str]:
    last = key.rpartition(".")[2].replace("_", "-").lower()
    near = [one for one in CONFIG_KEYS if last and (last in one or one.rpartition(".")[2] in last)]
    return near[:3] or sorted(CONFIG_KEYS)[:3]


def offline(name: str, value: Any) -> dict[str, Any]:
    """Return where the package files are and their checksums: ``{path, on, sha256: {file: digest}}``."""
    if not isinstance(value, Mapping):
        raise Fault(name, value, "a mapping with path, on and sha256")
    for key in value:
        if key not in ("path", "on", "sha256"):
            raise Fault(f"{name}.{key}", value[key], "one of path, on and sha256")
    path, place, sums = value.get("path"), value.get("on", "host"), value.get("sha256")
    if not isinstance(path, str) or not path.startswith("/"):
        raise Fault(f"{name}.path", path, "an absolute path")
    if place not in ("host", "controller"):
        raise Fault(f"{name}.on", place, "host or controller")
    if not isinstance(sums, Mapping) or not sums:
        raise Fault(f"{name}.sha256", sums, "a mapping of file names and their SHA-256")
    for file, digest in sums.items():
        match = _FILE.match(file) if isinstance(file, str) else None
        if match is None or match["name"] not in TOOLKIT_PACKAGES:
            raise Fault(f"{name}.sha256", file, f"files of {', '.join(TOOLKIT_PACKAGES)}, as "
                                                "nvidia-container-toolkit_1.20.0-1_amd64.deb")
        if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
            raise Fault(f"{name}.sha256.{file}", digest, "the file's SHA-256, 64 hex digits")
    files = {str(file): str(digest).lower() for file, digest in sums.items()}
    packages = offline_packages(files)
    missing = [one for one in TOOLKIT_PACKAGES if one not in packages]
    if missing or len(set(packages.values())) != 1 or len(files) != len(packages):
        raise Fault(f"{name}.sha256", sorted(files), "all four packages at one version; missing: "
                                                     f"{', '.join(missing) or 'none'}")
    return {"path": path.rstrip("/") or "/", "on": str(place), "sha256": files}


def offline_packages(files: Mapping[str, str]) -> dict[str, str]:
    """Return what the names of package files say: package → version."""
    found = [match for match in map(_FILE.match, files) if match is not None]
    return {match["name"]: f"{match['version']}-{match['release']}" for match in found}
