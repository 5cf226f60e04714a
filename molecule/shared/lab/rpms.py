# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in rpm files and their repositories, by the real rpmbuild, rpmsign and createrepo_c of a base image.

One spec file makes many packages at once, since a start of rpmbuild costs more than a package. A name or a path can be
in a spec file once only: what would be there twice goes into the next one.
"""
from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import yaml

from . import podman, repository, shell
from .settings import SHARED, Settings
from .standins import Package, hook

_TAGS = {"depends": "Requires", "recommends": "Recommends", "provides": "Provides", "conflicts": "Conflicts",
         "obsoletes": "Obsoletes", "supplements": "Supplements"}
_HEAD = """Name: stand-in-{number}
Version: 1
Release: 1
Summary: Stand-ins of the lab
License: GPL-3.0-or-later
AutoReqProv: no
%global __os_install_post %{{nil}}
%global debug_package %{{nil}}
%global _build_id_links none
%global _binary_payload w1.gzdio
%global source_date_epoch_from_changelog 0
%description
Stand-ins of the lab.
%install
cp -a %{{_sourcedir}}/{number}/. %{{buildroot}}/
"""


def _evr(version: str) -> tuple[str, str, str]:
    epoch, mark, rest = version.partition(":")
    if not mark:
        epoch, rest = "", version
    number, _mark, release = rest.rpartition("-")
    return epoch, number, release


def file_name(one: Package) -> str:
    """The name of the file that rpmbuild writes."""
    _epoch, version, release = _evr(one.version)
    return f"{one.name}-{version}-{release}.{'noarch' if one.arch == 'noarch' else 'x86_64'}.rpm"


def nevra(one: Package) -> str:
    """NAME-EPOCH:VERSION-RELEASE.ARCH, as modulemd wants it."""
    epoch, version, release = _evr(one.version)
    return f"{one.name}-{epoch or 0}:{version}-{release}.{'noarch' if one.arch == 'noarch' else 'x86_64'}"


def specs(packages: list[Package]) -> list[list[Package]]:
    """The packages of each spec file."""
    made: list[tuple[set[str], list[Package]]] = []
    for one in packages:
        taken = {one.name, *one.files, *one.links}
        for there, members in made:
            if not there & taken:
                there |= taken
                members.append(one)
                break
        else:
            made.append((set(taken), [one]))
    return [members for _taken, members in made]


def _section(one: Package) -> str:
    epoch, version, release = _evr(one.version)
    lines = [f"%package -n {one.name}", f"Summary: {one.summary}", f"Version: {version}", f"Release: {release}"]
    lines += [f"Epoch: {epoch}"] if epoch else []
    lines += ["BuildArch: noarch"] if one.arch == "noarch" else []
    lines += [f"{_TAGS[relation]}: {word}" for relation, words in one.relations.items() if relation in _TAGS
              for word in words]
    lines += [f"%description -n {one.name}", "Stand-in of the lab: the real name, version and dependencies."]
    texts = {**one.scripts, "pre": hook(one.name, "pre"), "post": hook(one.name, "post") + one.scripts.get("post", "")}
    for kind, text in texts.items():
        lines += [f"%{kind} -n {one.name}", text.rstrip()]
    lines.append(f"%files -n {one.name}")
    lines += [("%config(noreplace) " if path in one.conffiles else "") + path
              for path in sorted([*one.files, *one.links])]
    return "\n".join(lines) + "\n"


def _tree(members: list[Package], root: Path) -> None:
    for one in members:
        for path, (data, mode) in one.files.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(mode)
        for path, goal in one.links.items():
            link = root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(goal)


def updateinfo(advisories: list[dict[str, Any]], packages: list[Package]) -> str:
    """updateinfo.xml of a repository: what dnf calls advisories and zypper patches."""
    rows = []
    for advisory in advisories:
        listed = []
        for one in packages:
            epoch, version, release = _evr(one.version)
            if f"{version}-{release}" in advisory["of"] or version in advisory["of"]:
                name = file_name(one)
                listed.append(f'<package name={quoteattr(one.name)} epoch="{epoch or 0}" version={quoteattr(version)} '
                              f'release={quoteattr(release)} arch="{"noarch" if one.arch == "noarch" else "x86_64"}">'
                              f"<filename>{escape(name)}</filename></package>")
        rows.append(
            f'<update from="lab@localhost" status="stable" type={quoteattr(advisory["type"])} version="1">'
            f'<id>{advisory["id"]}</id><title>{escape(advisory["title"])}</title><severity>{advisory["severity"]}'
            f'</severity><release>lab</release><issued date="2026-11-20 00:00:00"/><description>stand-in</description>'
            f'<pkglist><collection short="lab"><name>lab</name>{"".join(listed)}</collection></pkglist></update>')
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<updates>{"".join(rows)}</updates>\n'


def modules(described: Mapping[str, Any], packages: list[Package]) -> str:
    """modules.yaml of a repository: the streams and which packages only they make visible."""
    documents: list[dict[str, Any]] = []
    known = described["module"]
    for stream, wanted in known["streams"].items():
        artifacts = sorted(nevra(one) for one in packages if stream in one.row.get("streams", [])
                           and one.row.get("module_kind", "any") in ("any", *wanted["kinds"]))
        documents.append({"document": "modulemd", "version": 2, "data": {
            "name": known["name"], "stream": stream, "version": 20261130000000, "context": "abcdef01", "arch": "x86_64",
            "summary": f"Nvidia driver for {stream} branch", "description": "Stand-in of the lab.",
            "license": {"module": ["MIT"], "content": ["NVIDIA"]}, "dependencies": [{}],
            "profiles": {"default": {"rpms": wanted["profile"]},
                         "fm": {"rpms": [*wanted["profile"], "nvidia-fabricmanager"]}},
            "artifacts": {"rpms": artifacts}}})
    documents.append({"document": "modulemd-defaults", "version": 1, "data": {
        "module": known["name"], "stream": known["default"],
        "profiles": {stream: ["default"] for stream in known["streams"]}}})
    return yaml.safe_dump_all(documents, explicit_start=True, explicit_end=True, sort_keys=False)


def repositories(packages: list[Package], described: Mapping[str, Any], root: Path, image: str, settings: Settings,
                 ) -> None:
    """Build all packages and, for each archive, its repository below root."""
    work = root / "work"
    (work / "SPECS").mkdir(parents=True)
    for number, members in enumerate(specs(packages)):
        _tree(members, work / "SOURCES" / str(number))
        text = _HEAD.format(number=number) + "".join(_section(one) for one in members)
        (work / "SPECS" / f"{number}.spec").write_text(text)
    home = settings.cache / "repository-key" / "gnupg"
    shutil.copytree(home, work / "gnupg", ignore=shutil.ignore_patterns("S.*", "*.lock"))
    (work / "gnupg").chmod(0o700)
    shutil.copy(SHARED / "distros" / "build-rpms.sh", work)
    wanted: dict[str, list[Package]] = {}
    for one in packages:
        for name in one.archives:
            wanted.setdefault(name, []).append(one)
    for name, members in wanted.items():
        (root / name).mkdir()
        (work / f"{name}.list").write_text("".join(f"{file_name(one)}\n" for one in members))
        advisories = described.get("advisories", {}).get(name)
        if advisories:
            (work / f"{name}.updateinfo.xml").write_text(updateinfo(advisories, members))
        if described.get("module", {}).get("in") == name:
            (work / f"{name}.modules.yaml").write_text(modules(described, members))
    log = settings.cache / "lab" / "logs" / f"rpms-{root.name}.log"
    shell.run_long(f"packages of {root.name}", [
        *podman.command(), "run", "--rm", "--pull=never", *podman.run_options(), f"--volume={root}:/build", image,
        "/bin/sh", "/build/work/build-rpms.sh"], log, timeout=600)
    for name in wanted:
        metadata = root / name / "repodata" / "repomd.xml"
        repository.gpg(home, "--armor", "--detach-sign", "--output", f"{metadata}.asc", str(metadata))
    shutil.rmtree(work)
