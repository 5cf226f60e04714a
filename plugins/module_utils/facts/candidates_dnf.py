# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels that ``dnf upgrade`` would bring: dnf's own library is asked, in a child, from its cache alone.

Its text would have to be cut out of columns, and its locks could not be left out: the plugin versionlock and the
exclusions that are ours are not loaded there, those of people are.

Source: dnf's API (dnf.Base, fill_sack_from_repos_in_cache), libdnf5's Python bindings (Goal, PackageSack).
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..packages import families
from . import advisories, packages_dnf
from .candidate import Candidate, ours, ours_in_files
from .context import Context
from .kernel import natural

# dnf 4 runs with the system's own Python, which may be 3.6
_DNF4 = r"""
import json, sys
import dnf, hawkey
ours = set(json.loads(sys.argv[1]))
base = dnf.Base()
conf = base.conf
conf.read()
conf.substitutions.update_from_etc(conf.installroot, varsdir=conf._get_value('varsdir'))
conf.excludepkgs = [word for word in conf.excludepkgs if word not in ours]
conf.cacheonly = True
base.read_all_repos()
base.fill_sack_from_repos_in_cache(load_system_repo=True)
def row(pkg):
    kinds = [one.type for one in pkg.get_advisories(hawkey.EQ)]
    security = any(kind == hawkey.ADVISORY_SECURITY for kind in kinds) if kinds else None
    return [pkg.name, pkg.epoch, pkg.version + '-' + pkg.release, pkg.arch, pkg.reponame, security]
base.upgrade_all()
base.resolve()
coming = [pkg for pkg in (base.transaction.install_set if base.transaction else []) if pkg.name.startswith('kernel')]
names = sorted(set(pkg.name for pkg in coming))
there = base.sack.query().available().filter(name=names) if names else []
print(json.dumps({'coming': [row(pkg) for pkg in coming], 'there': [row(pkg) for pkg in there]}))
"""

_DNF5 = r"""
import json, sys
import libdnf5
ours = set(json.loads(sys.argv[1]))
base = libdnf5.base.Base()
base.load_config()
conf = base.get_config()
conf.get_cacheonly_option().set('all')
conf.get_excludepkgs_option().set([word for word in conf.get_excludepkgs_option().get_value() if word not in ours])
base.setup()
repos = base.get_repo_sack()
repos.create_repos_from_system_configuration()
repos.load_repos()
base.get_rpm_package_sack().clear_versionlock_excludes()
kinds = {}
for one in libdnf5.advisory.AdvisoryQuery(base).get_advisory_packages_sorted_by_name_arch_evr():
    if one.get_name().startswith('kernel'):
        kinds.setdefault(one.get_nevra(), set()).add(one.get_advisory().get_type())
def row(pkg):
    found = kinds.get(pkg.get_nevra())
    security = 'security' in found if found else None
    return [pkg.get_name(), int(pkg.get_epoch() or 0), pkg.get_version() + '-' + pkg.get_release(), pkg.get_arch(),
            pkg.get_repo_id(), security]
goal = libdnf5.base.Goal(base)
goal.add_rpm_upgrade()
plan = goal.resolve()
coming = [one.get_package() for one in plan.get_transaction_packages()
          if libdnf5.transaction.transaction_item_action_is_inbound(one.get_action())]
coming = [pkg for pkg in coming if pkg.get_name().startswith('kernel')]
there = []
if coming:
    query = libdnf5.rpm.PackageQuery(base)
    query.filter_available()
    query.filter_name(sorted(set(pkg.get_name() for pkg in coming)))
    there = list(query)
print(json.dumps({'coming': [row(pkg) for pkg in coming], 'there': [row(pkg) for pkg in there]}))
"""

_FLAVOURED = re.compile(r"^kernel-(?P<flavour>rt|64k|rt-64k|debug|rt-debug|64k-debug)-")
_CORE = re.compile(r"^kernel(?:6\.\d+)?(?:-[a-z0-9-]+)?-core$|^kernel6\.\d+$|^kernel-uek$")
_SHEBANG = re.compile(r"^#!\s*(/\S+)")


def read(ctx: Context, installed: set[str]) -> tuple[list[Candidate], set[str]]:
    """Candidates, and the names that people hold. Raises OSError or ValueError when dnf does not answer."""
    own = ours(ctx.tree, "holds")
    held, _pins = packages_dnf.version_locks(ctx, None)
    kept = {name for name in set(held) - own if families.kernel_part(name) not in (None, "tools")}
    excluded = {entry for entries in ours_in_files(ctx.tree).values() for entry in entries}
    answer = _ask(ctx, sorted(excluded))
    found = candidates(answer, installed)
    rows = [row for text in advisories.texts(ctx, advisories.PATHS["dnf"])
            for row in advisories.of(text, {name for one in found for name in one.packages if _CORE.match(name)})]
    for one in found:
        secure = [row for row in rows if row.kind == "security" and one.packages.get(row.name) == row.version]
        one.since = min((row.since for row in secure if row.since), default=None)
        one.cves = sorted({cve for row in secure for cve in row.cves})
    return found, kept


def _ask(ctx: Context, own: list[str]) -> dict[str, Any]:
    dnf4 = ctx.which("dnf-3", "dnf4")
    if dnf4 is None and ctx.which("dnf5") is None:
        dnf4 = ctx.which("dnf")
    if dnf4 is not None:
        match = _SHEBANG.match(ctx.tree.read(dnf4, 256))
        if match is None:
            raise ValueError(f"{dnf4} does not say which Python runs it")
        program, text = match.group(1), _DNF4
    else:
        program, text = "python3", _DNF5
    answer = ctx.run([program, "-c", text, json.dumps(own)], timeout=max(ctx.command_timeout, 60.0))
    if not answer.ok:
        lines = answer.err.strip().splitlines()
        more = f": {lines[-1][:200]}" if lines and not answer.timed_out and not answer.missing else ""
        raise ValueError(f"dnf's library does not say what an upgrade would bring ({answer.rc}){more}")
    found = json.loads(answer.out.strip().splitlines()[-1])
    if not isinstance(found, dict):
        raise ValueError("dnf's library answers with something else than was asked for")
    return found


def candidates(answer: dict[str, Any], installed: set[str]) -> list[Candidate]:
    """From what would come and what the repositories have of the same names."""
    coming = _group(answer["coming"])
    newest = {_flavour_of(release): release for release in sorted(coming, key=natural)}
    found = []
    for release, one in {**_group(answer["there"]), **coming}.items():
        top = newest.get(_flavour_of(release))
        floor = max(
            (natural(other) for other in installed if _flavour_of(other) == _flavour_of(release)), default=[]
        )
        if top is None or release in installed or (release not in coming and not floor < natural(release)):
            continue
        if natural(release) <= natural(top):
            found.append(one)
    return found


def _group(rows: list[list[Any]]) -> dict[str, Candidate]:
    """Kernels by their release: a row of an image makes one, the rows of the same version belong to it."""
    kernels: dict[str, Candidate] = {}
    flavours: dict[str, tuple[str, str]] = {}
    for name, _epoch, version, arch, origin, security in rows:
        if _CORE.match(name) and families.kernel_part(name) == "image":
            release = f"{version}.{arch}{_suffix(name)}"
            kernels[release] = Candidate(release, {}, security, origin)
            flavours[release] = (version, _suffix(name))
    for name, epoch, version, _arch, _origin, _security in rows:
        if families.kernel_part(name) in (None, "tools"):
            continue
        for release, (wanted, suffix) in flavours.items():
            if version == wanted and _suffix(name) == suffix:
                kernels[release].packages[name] = f"{epoch}:{version}" if epoch else version
    return kernels


def _suffix(name: str) -> str:
    """``+rt`` of kernel-rt-core: what its kernels have at the end of their releases."""
    match = _FLAVOURED.match(f"{name}-")
    return f"+{match.group('flavour').replace('rt-64k', 'rt64k')}" if match else ""


def _flavour_of(release: str) -> str:
    return release.partition("+")[2]
