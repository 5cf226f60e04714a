# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repository files that the decisions need, with the key that each is trusted by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ...module_utils.containers import proxies
from ..model.facts import each
from ..rules import sources
from ..rules.context import Candidate, Context
from . import candidates, family

# the last part of an archive's address, on whatever mirror it is
_ARCHIVES = ("debian", "debian-security", "ubuntu", "ubuntu-ports")


def for_driver(context: Context, chosen: Candidate) -> list[dict[str, Any]]:
    """Return the repository files for a driver and its fabric; empty where the host's own sources serve."""
    if context.wishes.driver_offline is not None:
        return []
    found = _for_source(context, chosen)
    for one in found:
        if one["purpose"] == "driver":  # the same repository for another release: the newest version would win
            one["replaces"] = [repository.url for repository in wrong(context)]
    wish = context.wishes.fabricmanager_repository
    if chosen.fabric and wish is not None:
        found.append(own(context, "fabricmanager", wish))
    return found


def _for_source(context: Context, chosen: Candidate) -> list[dict[str, Any]]:
    if context.packaging is None or chosen.series is None or context.wishes.driver_source == "custom":
        return []
    if chosen.source == "nvidia" and context.wishes.driver_repository is not None:
        return [own(context, "cuda", context.wishes.driver_repository)]
    if chosen.source == "nvidia":
        if candidates.cuda_repository(context) and not _ours(context, "cuda"):
            return []
        row = context.packaging.driver_repository("nvidia", chosen.branch)
    else:
        missing = candidates.missing_components(context, chosen.series)
        if not missing:
            return []
        row = context.packaging.driver_repository("distro", chosen.branch)
        if row is not None:
            return [{**describe(context, row), "content": _same_archive(context, missing) or row.content}]
    return [describe(context, row)] if row is not None else []


def _same_archive(context: Context, components: list[str]) -> str:
    """Return the archive's stanzas as the host has them, mirror and key alike, for the components that are missing.

    apt refuses to work when two entries for one address name different keys.
    """
    codename = context.host.os.codename
    stanzas: dict[tuple[str, str | None], list[str]] = {}
    for one in each(context.host.packages.repositories):
        archive = one.url.rstrip("/").rpartition("/")[2] in _ARCHIVES
        if archive and one.enabled and isinstance(one.components, tuple) and "main" in one.components:
            key = (one.url, one.signed_by if isinstance(one.signed_by, str) else None)
            suites = [suite for suite in one.suites if isinstance(codename, str) and suite.startswith(codename)]
            stanzas.setdefault(key, []).extend(one for one in suites if not one.endswith(("backports", "proposed")))
    texts = []
    for (url, signed_by), suites in stanzas.items():
        if suites:
            key_line = f"Signed-By: {signed_by}\n" if signed_by else ""
            texts.append(f"Types: deb\nURIs: {url}\nSuites: {' '.join(dict.fromkeys(suites))}\n"
                         f"Components: {' '.join(components)}\n{key_line}")
    return "\n".join(texts)


def for_toolkit(context: Context) -> list[dict[str, Any]]:
    """Return the repository file of the container toolkit, if no source of the host has it yet."""
    if context.packaging is None:
        return []
    if context.wishes.toolkit_repository is not None:
        wish = context.wishes.toolkit_repository
        # one mirror for both is one source: a second file for it would be taken for a twin of the first
        if any(same(address_in(one), wish["url"]) for one in context.driver.repositories if one["purpose"] != "distro"):
            return []
        return [own(context, "container-toolkit", wish)]
    row = context.packaging.toolkit_repository
    if row is None or (_toolkit_is_offered(context) and not _is_there(context, str(row.path))):
        return []
    return [describe(context, row)]


def _toolkit_is_offered(context: Context) -> bool:
    host = context.host.packages
    return bool(host.offers("nvidia-container-toolkit")) or isinstance(host.version("nvidia-container-toolkit"), str)


def _ours(context: Context, word: str) -> bool:
    """Say whether a source file of this collection is there: then its content is ours to keep."""
    for repository in each(context.host.packages.repositories):
        named = word in repository.file or family.is_cuda_url(repository.url)
        if named and "baremetal-nvidia" in repository.file:
            return True
    return False


def _is_there(context: Context, path: str) -> bool:
    files = context.host.files
    if isinstance(files, dict) and files.get(path) is not None:
        return True
    return any(repository.file == path for repository in each(context.host.packages.repositories))


def own(context: Context, name: str, wish: Mapping[str, Any]) -> dict[str, Any]:
    """Return a repository that the person named, in the shape of :func:`describe`."""
    if context.packaging is not None and context.packaging.manager != "apt":
        dnf = context.packaging.manager == "dnf"
        path = f"{'/etc/yum.repos.d' if dnf else '/etc/zypp/repos.d'}/baremetal-nvidia-{name}.repo"
        key = f"/etc/pki/rpm-gpg/baremetal-nvidia-{name}.asc"
        content = (f"[baremetal-nvidia-{name}]\nname=baremetal-nvidia-{name}\nbaseurl={wish['url']}\nenabled=1\n"
                   f"gpgcheck=1\ngpgkey=file://{key}\n")
        if name == "cuda":  # first among equals: module and libraries never come from two places
            content += "priority=50\nmodule_hotfixes=1\n" if dnf else "priority=50\n"
    else:
        path = f"/etc/apt/sources.list.d/baremetal-nvidia-{name}.sources"
        key = f"/etc/apt/keyrings/baremetal-nvidia-{name}.asc"
        components = f"Components: {' '.join(wish['components'])}\n" if wish["components"] else ""
        content = f"Types: deb\nURIs: {wish['url']}\nSuites: {wish['suite']}\n{components}Signed-By: {key}\n"
    return _through(context, wish.get("proxy"), {
        "name": f"baremetal-nvidia-{name}",
        "purpose": "toolkit" if name == "container-toolkit" else "driver",
        "path": path,
        "content": content,
        "key": {"url": wish["key_url"], "path": key, "fingerprint": wish["fingerprint"]},
        "missing": not _is_there(context, path),
    })


def twins(context: Context, repositories: list[dict[str, Any]]) -> list[str]:
    """Return other source files that name the address of one of ours (never the system's own): apt refuses both."""
    found = []
    for repository in repositories:
        if repository["purpose"] == "distro":
            continue
        address = address_in(repository)
        found += [one.file for one in each(context.host.packages.repositories)
                  if one.enabled and one.file != repository["path"] and address and same(one.url, address)]
    return list(dict.fromkeys(found))


def address_in(repository: dict[str, Any]) -> str:
    """Return the address in the text of a source file, empty where there is none."""
    words = repository["content"].replace("=", " ").split()
    return next((word for word in words if "://" in word or word.startswith("file:/")), "")


def wrong(context: Context) -> list[Any]:
    """Return the sources that are NVIDIA's for another system or release."""
    return [one for one in each(context.host.packages.repositories)
            if one.enabled and family.is_of_other_release(context, one.url)]


def same(left: str, right: str) -> bool:
    """Say whether two addresses mean one repository; the module that takes files out compares them alike."""
    return sources.address(left) == sources.address(right)


def describe(context: Context, row: Any) -> dict[str, Any]:
    """Return a repository row of the matrix as the roles write it; ``missing`` says that it is not on the host."""
    key = row.signing_key
    return _through(context, None, {
        "name": row.name,
        "purpose": row.purpose,
        "path": row.path,
        "content": row.content,
        "key": None if key is None else {"url": key.url, "path": key.path, "fingerprint": key.fingerprint},
        "missing": not _is_there(context, str(row.path)),
    })


def _through(context: Context, own_proxy: str | None, row: dict[str, Any]) -> dict[str, Any]:
    """Have a repository asked through the proxy that is asked for; what its file does not say counts as missing."""
    proxy = context.wishes.proxy if own_proxy is None else own_proxy or None
    row["proxy"] = proxy if row["purpose"] != "distro" else None
    if row["proxy"] and str(row["path"]).endswith(".repo"):
        row["content"] = proxies.repo_text(row["content"], str(row["path"]), row["proxy"])
    elif str(row["path"]).endswith(".sources"):
        files = context.host.files if isinstance(context.host.files, dict) else {}
        there = files.get(proxies.apt_path(str(row["path"])))
        wanted = proxies.apt_text(row["content"], row["proxy"]) if row["proxy"] else None
        digest = hashlib.sha256(wanted.encode()).hexdigest() if wanted else None
        row["missing"] = row["missing"] or (there or {}).get("sha256") != digest
    return row
