# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How GPUs get into containers: the toolkit's settings, CDI specifications, links in /dev/char, Docker and CRI-O."""

from __future__ import annotations

from typing import Any

from ..model import version as versions
from ..model.facts import UNKNOWN
from ..model.runtimes import Engine
from ..rules.context import Context
from . import toolkit
from .changes import files

MODE = "nvidia-container-runtime.mode"
UNPRIVILEGED = "accept-nvidia-visible-devices-envvar-when-unprivileged"
VOLUMES = "accept-nvidia-visible-devices-as-volume-mounts"
# What the toolkit takes where its file does not name a key: no change is needed to get it.
DEFAULTS: dict[str, Any] = {
    MODE: "auto", UNPRIVILEGED: True, VOLUMES: False, "nvidia-container-cli.no-cgroups": False,
    "disable-require": False, "nvidia-container-runtime-hook.skip-mode-detection": False,
}  # fmt: skip
JUST_IN_TIME = (1, 18)  # first toolkit whose "auto" makes CDI specifications and that has the refresh units
SPEC_FILES = (1, 12)  # first toolkit that writes specifications, and links in /dev/char
SPEC_PATH = "/var/run/cdi/nvidia.yaml"
REFRESH = "nvidia-cdi-refresh.service"
DROP_IN = f"/etc/systemd/system/{REFRESH}.d/baremetal-nvidia.conf"
# The unit runs at boot before the driver answers, fails five times in ten seconds and gives up.
DROP_IN_TEXT = """\
# Managed by baremetal.nvidia: at boot the unit waits for the driver and goes on trying for ten minutes.
[Unit]
After=systemd-modules-load.service systemd-udevd.service nvidia-persistenced.service
StartLimitIntervalSec=900
StartLimitBurst=40

[Service]
RestartSec=15s
"""
DEV_CHAR = "/etc/udev/rules.d/71-baremetal-nvidia-dev-char.rules"
DEV_CHAR_TEXT = """\
# Managed by baremetal.nvidia: runc finds a device for systemd by its link in /dev/char; the driver makes none.
ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", \\
  RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all"
"""
CRIO_DROP_IN = "/etc/crio/crio.conf.d/99-nvidia.conf"
DOCKER_FILE = "/etc/docker/daemon.json"
_DOCKER_CDI = ((25,), (28, 3))  # Docker takes CDI specifications when told so, and later by itself


def settings(context: Context) -> dict[str, Any]:
    """Return what the toolkit's config.toml is to say; an explicit setting outweighs what follows from another one."""
    found: dict[str, Any] = {}
    if context.wishes.container_mode in ("cdi", "legacy"):
        found[MODE] = context.wishes.container_mode
    if context.wishes.container_hardened:
        found.update({UNPRIVILEGED: False, VOLUMES: True})
    found.update(context.wishes.toolkit_config)
    return found


def differing(context: Context) -> dict[str, tuple[Any, Any]]:
    """Return the settings that the host's file does not have: name → (what stands there, what is wanted)."""
    there = context.host.containers.toolkit_config
    if isinstance(there, dict):
        return {name: (there.get(name), value) for name, value in context.toolkit.config.items()
                if there.get(name, DEFAULTS.get(name)) != value}
    gone = there is None or context.host.containers.toolkit is None
    return {name: (None, value) for name, value in context.toolkit.config.items()} if gone else {}


def injection(context: Context) -> str | None:
    """Return how devices get in: cdi or legacy; nri where the operator does it; None if nobody could tell."""
    if context.wishes.container_mode != "auto":
        return context.wishes.container_mode
    asked = context.wishes.toolkit_config.get(MODE) or context.host.containers.toolkit_mode
    if asked in ("cdi", "jit-cdi"):
        return "cdi"
    if asked == "legacy":
        return "legacy"
    release = versions.try_loose(context.toolkit.version)
    if release is None:
        return None
    return "cdi" if release >= JUST_IN_TIME else "legacy"


def fill(context: Context) -> None:
    """Fill in the part of ``context.toolkit`` that is about devices; the version is decided."""
    decision = context.toolkit
    release = versions.try_loose(decision.version)
    if release is None:
        return
    decision.config = settings(context)
    decision.injection = injection(context)
    unit = {"path": DROP_IN, "content": DROP_IN_TEXT} if release >= JUST_IN_TIME and _has_unit(context) else None
    decision.cdi = {"path": SPEC_PATH, "unit": unit} if release >= SPEC_FILES else None
    links = decision.injection == "legacy" and release >= SPEC_FILES
    there = isinstance(files.entry(context, DEV_CHAR), dict)
    if links or there:
        decision.dev_char = {"path": DEV_CHAR, "content": DEV_CHAR_TEXT if links else ""}
    decision.engines = {name: one for name in ("docker", "crio") if (one := _engine(context, name)) is not None}


def _has_unit(context: Context) -> bool:
    """Say whether the refresh unit is there, or comes with the toolkit that is to be installed."""
    if context.host.os.init not in ("systemd", UNKNOWN):
        return False
    services, version = context.host.services, context.toolkit.version
    if not isinstance(services, dict) or context.host.containers.toolkit != version:
        return True
    return services.get(REFRESH, UNKNOWN) is not None


def _engine(context: Context, name: str) -> dict[str, Any] | None:
    here = context.host.containers.engine(name)
    if not context.uses(name) or not isinstance(here, Engine):
        return None
    wished = context.wishes.docker_default_runtime if name == "docker" else context.wishes.crio_default_runtime
    found: dict[str, Any] = {
        "path": DOCKER_FILE if name == "docker" else CRIO_DROP_IN,
        "runtime_path": toolkit.RUNTIME_PATH,
        "default_runtime": wished,
        "cdi": _docker_cdi(context, here) if name == "docker" else None,
    }
    return {**found, "differs": _differs(here, found)}


def _docker_cdi(context: Context, here: Engine) -> bool | None:
    """Return True where Docker has to be told that it may read CDI specifications."""
    release = versions.try_loose(here.version) if isinstance(here.version, str) else None
    since, until = _DOCKER_CDI
    needed = context.wishes.container_mode == "cdi" and release is not None and since <= release < until
    return True if needed else None


def _differs(here: Engine, wanted: dict[str, Any]) -> list[str]:
    """Return what the engine's files do not say yet; [] also where they could not be read: nobody writes blindly."""
    if not isinstance(here.runtimes, dict):
        return []
    found = []
    if here.runtimes.get("nvidia") != wanted["runtime_path"]:
        found.append("runtime nvidia")
    if wanted["default_runtime"] is not None and here.default_runtime != wanted["default_runtime"]:
        found.append(f"default runtime {wanted['default_runtime']}")
    if wanted["cdi"] and here.cdi is not True:
        found.append("CDI")
    return found
