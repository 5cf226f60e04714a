# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a driver build on a kernel? What is known is weighed from the particular to the general.

1. Somebody compiled exactly this. 2. A breakage was reported for it. 3. The kernel line of the distribution has a
verdict. 4. The distribution's package carries patches up to some kernel. 5. Upstream changes and the release that copes
with each. 6. Ceilings. Rows that decide nothing by themselves (low confidence, unconfirmed) never tip the scale.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..model.version import KernelRelease, branch_of, try_parse
from .ranges import KernelRange
from .row import Row
from .rows import (
    Branch,
    Breakage,
    DistroKernel,
    DriverVersion,
    KernelAbi,
    KernelBuild,
    KernelCeiling,
    KernelFix,
    PatchedPackage,
    Prebuilt,
)
from .systems import matches

Answer = Literal["builds", "fails", "unknown"]
State = Literal["has", "lacks", "unknown"]
_WORDS: dict[str, State] = {"never": "lacks", "unneeded": "has", "unknown": "unknown"}
_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class KernelFit:
    """The answer with the rows it rests on. why: one sentence for a person."""

    answer: Answer
    rows: tuple[Row, ...]
    why: str

    @property
    def overlays(self) -> tuple[str, ...]:
        """Names of overlays that had a say."""
        return tuple(sorted({row.overlay for row in self.rows if row.overlay}))


@dataclass(frozen=True, slots=True)
class _Ask:
    """One question, taken apart."""

    version: str
    branch: str
    flavour: str
    release: KernelRelease
    upstream: KernelRelease  # with the upstream version behind a distribution's ABI number
    os_id: str
    os_version: str
    source: str
    package_version: str | None
    line: DistroKernel | None


def _fits(row_flavour: str, flavour: str) -> bool:
    return row_flavour in ("both", flavour)


class Kernels:
    """The kernel rows, indexed."""

    def __init__(
        self,
        branches: dict[str, Branch],
        versions: dict[str, DriverVersion],
        fixes: tuple[KernelFix, ...],
        ceilings: tuple[KernelCeiling, ...],
        builds: tuple[KernelBuild, ...],
        breakages: tuple[Breakage, ...],
        patched: tuple[PatchedPackage, ...],
        lines: tuple[DistroKernel, ...],
        abis: tuple[KernelAbi, ...],
        prebuilt: tuple[Prebuilt, ...],
    ) -> None:
        self.branches, self.versions = branches, versions
        self._answers: dict[tuple[str | None, ...], KernelFit] = {}
        self._states: dict[tuple[str, str], State | tuple[int, ...]] = {}
        self.fixes, self.breakages, self.patched, self.lines, self.prebuilt = fixes, breakages, patched, lines, prebuilt
        self.builds: dict[tuple[str, str], list[KernelBuild]] = {}
        for build in builds:
            self.builds.setdefault((build.driver, build.flavour), []).append(build)
        self.abis = {(row.os, KernelRelease.parse(row.series).series): row for row in abis}
        self._touching: dict[str, tuple[Breakage, ...]] = {
            name: tuple(
                row for row in breakages if not row.drivers or any(one.reaches(int(name)) for one in row.drivers)
            )
            for name in branches
        }
        self.ceilings: list[tuple[tuple[int, ...], datetime.date, KernelCeiling, tuple[int, int]]] = []
        for row in ceilings:
            for text in row.drivers:
                known = versions.get(text)
                self.ceilings.append(
                    (
                        try_parse(text) or (),
                        (known.date if known else None) or datetime.date.max,
                        row,
                        KernelRelease.parse(row.highest).series,
                    )
                )
        for fix in fixes:
            for name in branches:
                self._states[fix.id, name] = self._state(fix, name)
        self.ceilings.sort(key=lambda entry: entry[3], reverse=True)

    def line(self, os_id: str, os_version: str, release: str | KernelRelease) -> DistroKernel | None:
        """The kernel line of a distribution that a release belongs to; the most particular row wins."""
        found = release if isinstance(release, KernelRelease) else KernelRelease.try_parse(release)
        if found is None:
            return None
        key = KernelRange.of(found)
        fits = [row for row in self.lines if matches(row.os, os_id, os_version) and row.kernels.holds(key)]
        return max(fits, key=lambda row: (len(row.os), len(row.kernels.text)), default=None)

    def upstream(self, os_id: str, os_version: str, release: KernelRelease) -> KernelRelease:
        """The release with the upstream version that its ABI number stands for, where the distribution hides it."""
        row = self.abis.get((f"{os_id} {os_version.split('.')[0]}", release.series))
        if row is None or not release.abi:
            return release
        number = release.abi[-1]
        known = {int(abi): text for abi, text in row.abis.items() if abi.isdigit()}
        at = max((abi for abi in known if abi <= number), default=None)
        if at is None:
            return release
        return KernelRelease(release.text, KernelRelease.parse(known[at]).version, (), release.distro, release.flavour)

    def fit(
        self,
        version: str,
        flavour: str,
        release: str,
        os_id: str,
        os_version: str,
        source: str = "nvidia",
        package_version: str | None = None,
    ) -> KernelFit:
        """Whether the module of a driver version and flavour builds on a kernel release. Never raises."""
        key = (version, flavour, release, os_id, os_version, source, package_version)
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) > _REMEMBERED:
                self._answers.clear()
            found = self._answers[key] = self._fit(*key)
        return found

    def _fit(
        self,
        version: str,
        flavour: str,
        release: str,
        os_id: str,
        os_version: str,
        source: str,
        package_version: str | None,
    ) -> KernelFit:
        parsed = KernelRelease.try_parse(release)
        if parsed is None or try_parse(version) is None:
            return KernelFit("unknown", (), f"{release!r} with {version!r} cannot be read as kernel and driver")
        ask = _Ask(
            version,
            branch_of(version),
            flavour,
            parsed,
            self.upstream(os_id, os_version, parsed),
            os_id,
            os_version,
            source,
            package_version,
            self.line(os_id, os_version, parsed),
        )
        for step in (self._compiled, self._broken, self._by_line, self._by_patches, self._canonical):
            found = step(ask)
            if found is not None:
                return found
        return self._by_upstream(ask)

    def _compiled(self, ask: _Ask) -> KernelFit | None:
        key = KernelRange.of(ask.release)
        found: list[KernelBuild] = []
        for row in self.builds.get((ask.version, ask.flavour), ()):
            packaged = row.package is not None
            if packaged != (ask.source == "distro") or not row.decides:
                continue
            if packaged and ask.package_version and row.package_version != ask.package_version:
                continue
            tested = KernelRelease.parse(row.release)
            if row.release == ask.release.text or (
                KernelRange.of(tested) == key and tested.distro == ask.release.distro
            ):
                found.append(row)
        results = {row.result for row in found}
        if len(results) != 1:
            return None
        row = found[0]
        what = f"{row.package} {row.package_version}" if row.package else f"{ask.version} ({ask.flavour})"
        why = f"{what} {'was compiled' if row.result == 'builds' else 'does not compile'} against {row.release}"
        return KernelFit(row.result, tuple(found), f"{why}: {row.error}" if row.error else why)

    def breakages_for(
        self,
        version: str,
        release: str | None,
        os_id: str,
        os_version: str,
        flavour: str | None = None,
        source: str | None = None,
    ) -> tuple[Breakage, ...]:
        """Reported breakages that touch a driver version on a system and kernel; None = any kernel, flavour, source."""
        parsed = KernelRelease.try_parse(release) if release else None
        line = self.line(os_id, os_version, parsed) if parsed else None
        keys = []
        if parsed is not None:
            keys = [KernelRange.of(parsed), KernelRange.of(self.upstream(os_id, os_version, parsed))]
        return self._reported(version, keys, line, os_id, os_version, flavour, source)

    def _reported(
        self,
        version: str,
        keys: list[tuple[int, ...]],
        line: DistroKernel | None,
        os_id: str,
        os_version: str,
        flavour: str | None,
        source: str | None,
    ) -> tuple[Breakage, ...]:
        return tuple(
            row
            for row in self._touching.get(branch_of(version), self.breakages)
            if self._touches(row, version, keys, os_id, os_version, flavour, source)
            and not (row.preempt_rcu and line is not None and line.preempt_rcu is False)
        )

    @staticmethod
    def _touches(
        row: Breakage,
        version: str,
        keys: list[tuple[int, ...]],
        os_id: str,
        os_version: str,
        flavour: str | None,
        source: str | None,
    ) -> bool:
        if row.drivers and not any(version in one for one in row.drivers):
            return False
        if row.os and not any(matches(one, os_id, os_version) for one in row.os):
            return False
        if row.package_source and source and row.package_source != source:
            return False
        if flavour and not _fits(row.flavour, flavour):
            return False
        return not (row.kernels and keys) or any(one.holds(key) for one in row.kernels for key in keys)

    def _broken(self, ask: _Ask) -> KernelFit | None:
        keys = [KernelRange.of(ask.release), KernelRange.of(ask.upstream)]
        reported = self._reported(ask.version, keys, ask.line, ask.os_id, ask.os_version, ask.flavour, ask.source)
        found = tuple(
            row
            for row in reported
            if row.kind == "build"
            and row.decides
            and row.drivers
            and row.kernels
            and not (row.preempt_rcu and (ask.line is None or ask.line.preempt_rcu is not True))
        )
        if not found or self._patched_over(ask):
            return None
        row = found[0]
        return KernelFit(
            "fails", found, f"{ask.version} ({ask.flavour}) does not build on {ask.release.text}: {row.symptom}"
        )

    def _by_line(self, ask: _Ask) -> KernelFit | None:
        if ask.line is None or not ask.line.decides:
            return None
        for answer, ranges in (("fails", ask.line.fails), ("builds", ask.line.builds)):
            if any(ask.version in one for one in ranges):
                verb = "builds" if answer == "builds" else "does not build"
                return KernelFit(
                    "fails" if answer == "fails" else "builds",
                    (ask.line,),
                    f"{ask.version} {verb} on the kernels of {ask.line.os} ({ask.line.kernels})",
                )
        return None

    def _patched_rows(self, ask: _Ask) -> tuple[PatchedPackage, ...]:
        if ask.source != "distro":
            return ()
        return tuple(
            row
            for row in self.patched
            if row.driver == ask.version
            and row.flavour == ask.flavour
            and row.decides
            and matches(row.os, ask.os_id, ask.os_version)
            and (ask.package_version is None or row.package_version == ask.package_version)
        )

    def _patched_over(self, ask: _Ask) -> bool:
        """True if the distribution's own patches reach beyond the series this kernel belongs to."""
        return any(KernelRelease.parse(row.highest).series > ask.release.series for row in self._patched_rows(ask))

    def _by_patches(self, ask: _Ask) -> KernelFit | None:
        found = self._patched_rows(ask)
        if not found:
            return None
        highest = max(found, key=lambda row: KernelRelease.parse(row.highest).series)
        if ask.release.series <= KernelRelease.parse(highest.highest).series:
            return KernelFit(
                "builds",
                (highest,),
                f"{highest.package} {highest.package_version} is patched up to kernel {highest.highest}",
            )
        return None

    def _canonical(self, ask: _Ask) -> KernelFit | None:
        if ask.source != "distro":
            return None
        have = try_parse(ask.version)
        for row in self.prebuilt:
            if row.branch != ask.branch or not row.decides or not matches(row.os, ask.os_id, ask.os_version):
                continue
            kernel = KernelRelease.parse(row.kernel)
            if not _fits(row.flavour, ask.flavour) or kernel.series != ask.release.series:
                continue
            wanted = try_parse(row.driver) if row.driver else None
            if wanted is None or (have is not None and have >= wanted):
                return KernelFit(
                    "builds", (row,), f"Canonical publishes prebuilt R{row.branch} modules for {row.kernel}"
                )
        return None

    def fix_state(self, fix: KernelFix, version: str) -> State:
        """Whether a driver version carries what a kernel change needs."""
        branch = branch_of(version)
        known = self._states.get((fix.id, branch))
        if known is None:
            known = self._states[fix.id, branch] = self._state(fix, branch)
        if isinstance(known, str):
            return known
        have = try_parse(version)
        return "has" if have is not None and have >= known else "lacks"

    def _state(self, fix: KernelFix, branch: str) -> State | tuple[int, ...]:
        """What is known of a branch as a whole, or the release that brought the fix."""
        listed = fix.fixed.get(branch)
        if listed is not None:
            return _WORDS.get(listed) or try_parse(listed) or "unknown"
        fixed = {name: text for name, text in fix.fixed.items() if text not in _WORDS}
        if fixed and branch.isdigit() and int(branch) > max(map(int, fixed)):
            return "has"  # branches made after the newest fixed one start from it
        dates = [row.date for text in fixed.values() if (row := self.versions.get(text)) and row.date]
        mine = self.branches.get(branch)
        if dates and mine is not None and mine.latest_date and mine.latest_date < min(dates):
            return "lacks"  # the branch ended before anybody had the fix
        return "unknown"

    def _fixes_for(self, ask: _Ask) -> Iterable[KernelFix]:
        key = KernelRange.of(KernelRelease(ask.upstream.text, ask.upstream.version))
        for fix in self.fixes:
            if _fits(fix.flavour, ask.flavour) and any(one.holds(key) for one in fix.kernels):
                if fix.preempt_rcu and (ask.line is None or ask.line.preempt_rcu is not True):
                    continue
                yield fix

    def _by_upstream(self, ask: _Ask) -> KernelFit:
        title = f"{ask.version} ({ask.flavour})"
        if ask.line is not None and ask.line.backported:
            return KernelFit(
                "unknown",
                (ask.line,),
                f"nothing is known about {title} on {ask.release.text}, whose kernel carries changes of later ones",
            )
        branch = self.branches.get(ask.branch)
        if branch is not None:
            lowest = KernelRelease.try_parse(branch.min_kernel)
            if lowest is not None and ask.release.series < lowest.series:
                return KernelFit("fails", (branch,), f"R{ask.branch} needs kernel {branch.min_kernel} or later")
        unknown: list[Row] = []
        for fix in self._fixes_for(ask):
            state = self.fix_state(fix, ask.version)
            if state == "lacks" and fix.decides:
                with_fix = fix.fixed.get(ask.branch, "never")
                tail = (
                    f"{with_fix} is the first of R{ask.branch} that does"
                    if try_parse(with_fix)
                    else (f"no release of R{ask.branch} does")
                )
                return KernelFit(
                    "fails",
                    (fix,),
                    f"{title} does not cope with a change of kernel {fix.kernels[0]} ({fix.change}); {tail}",
                )
            if state != "has":
                unknown.append(fix)
        ceiling = self._ceiling(ask, borrow=not unknown)
        if ceiling is not None and ask.release.series <= ceiling[1]:
            return KernelFit("builds", (ceiling[0],), f"{title} is known to build up to kernel {ceiling[0].highest}")
        rows = (*unknown, *((ceiling[0],) if ceiling else ()))
        known = f"; it is known to build up to {ceiling[0].highest}" if ceiling else ""
        return KernelFit(
            "unknown",
            rows,
            f"nobody is known to have built {title} on kernel {ask.release.series[0]}.{ask.release.series[1]}{known}",
        )

    def _ceiling(self, ask: _Ask, borrow: bool) -> tuple[KernelCeiling, tuple[int, int]] | None:
        """The highest series that this release, or one it grew from, is known to build on.

        borrow: also count releases of older branches that came out earlier.
        """
        have, mine = try_parse(ask.version) or (), self.versions.get(ask.version)
        date = mine.date if mine and mine.date else None
        for key, released, row, series in self.ceilings:  # highest series first
            if not row.decides or not _fits(row.flavour, ask.flavour) or key > have:
                continue
            if key[:1] != have[:1] and (not borrow or date is None or released > date):
                continue  # a later release of an older branch says nothing
            return row, series
        return None
