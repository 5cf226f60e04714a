# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped rows as data: sourced, consistent, reachable."""

from __future__ import annotations

import datetime
import itertools
import re

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import document, rows
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix.schema import SECTIONS
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import version as v

EL_MINORS = {"rhel 8": ("8.8", "8.10"), "rhel 9": ("9.4", "9.8"), "rhel 10": ("10.0", "10.2"), "sles 15": ("15.6",)}


def every_row(matrix):
    return ((section, row) for section, found in matrix.tables.items() for row in found)


def test_every_section_has_rows(matrix):
    assert [section for section in SECTIONS if not matrix.tables[section]] == []


def test_no_row_is_without_source_and_date(matrix):
    for section, row in every_row(matrix):
        assert row.source and all(text.strip() for text in row.source), (section, row)
        assert datetime.date(2020, 1, 1) <= row.checked <= datetime.date.today(), (section, row)
        assert row.overlay is None


def test_every_written_row_has_its_own_source_and_date(data_files):
    for path in data_files:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        for section, listed in content.items():
            if section != "sources":
                for index, row in enumerate(listed):
                    assert "source" in row and "checked" in row, f"{path.name} {section}[{index}]"


def test_every_source_is_used(data_files):
    text = "".join(path.read_text(encoding="utf-8") for path in data_files if path.name != "sources.yml")
    listed = next(path for path in data_files if path.name == "sources.yml")
    names = yaml.safe_load(listed.read_text(encoding="utf-8"))["sources"]
    used = set(re.findall(r"[\w.+-]+", text))
    assert [name for name in names if name not in used] == []


def test_no_mapping_names_a_key_twice(data_files):
    for path in data_files:
        assert list(document.duplicates(path.read_text(encoding="utf-8"))) == [], path.name


def test_files_are_for_people(data_files):
    for path in data_files:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("# Copyright") and any(line == "---" for line in lines), path.name
        assert [f"{path.name}:{number}" for number, line in enumerate(lines, 1) if len(line) > 120] == []
        assert [number for number, line in enumerate(lines, 1) if line.rstrip() != line or "\t" in line] == [], path


def test_what_low_rows_say_is_marked(matrix):
    for section, row in every_row(matrix):
        if row.confidence == "low" or row.unconfirmed:
            assert not row.decides, (section, row)


# What must agree with each other


def test_versions_belong_to_known_branches(matrix):
    names = {branch.name for branch in matrix.branches()}
    for row in matrix.tables["versions"]:
        assert v.branch(row.version) in names
    for branch in matrix.branches():
        if branch.name != "620":
            assert branch.latest and v.parse(branch.first) <= v.parse(branch.latest), branch.name


def test_versions_of_a_branch_rise_with_their_dates_or_are_known_not_to(matrix):
    """A release with a higher number is not older, but for branches that were served twice a month."""
    odd = []
    for branch in matrix.branches():
        dated = [row for row in matrix.versions(branch.name)[::-1] if row.date]
        odd += [(one.version, two.version) for one, two in itertools.pairwise(dated) if (one.date - two.date).days > 45]
    assert odd == REVIEWED_DATES


# Data-center releases of a long-term branch that came after a newer-looking desktop release.
REVIEWED_DATES = [("418.87.01", "418.88"), ("550.90.12", "550.100")]


def test_security_floors_are_known_versions(matrix):
    for branch in matrix.branches():
        if branch.security_floor:
            assert matrix.version(branch.security_floor), branch.name
            fixed = [row.fixed.get(branch.name) for row in matrix.bulletins("driver")]
            assert branch.security_floor in fixed, branch.name


def test_security_current_is_what_the_newest_bulletin_names(matrix):
    newest = matrix.bulletins("driver")[-1]
    assert {branch.name for branch in matrix.branches() if branch.security_current} == set(newest.fixed)


def test_architectures_end_where_branches_say(matrix):
    for branch in matrix.branches():
        for name in branch.last_for:
            assert matrix.architecture(name).last_branch == branch.name
    for row in matrix.architectures():
        if row.last_branch and row.last_branch in {branch.name for branch in matrix.branches()}:
            assert row.name in matrix.branch(row.last_branch).last_for


def test_products_name_architectures_branches_and_mig_rows_that_are_there(matrix):
    known = {branch.name for branch in matrix.branches()}
    for row in matrix.tables["products"]:
        assert matrix.architecture(row.architecture), row
        assert row.mig is None or matrix.mig(row.mig), row
        for name, version in (row.first_by_branch or {}).items():
            assert name in known and v.branch(version) == name, row
    for row in matrix.tables["chips"]:
        assert matrix.architecture(row.architecture), row.name
        assert set(row.first or {}) <= set(row.ids), row.name


def test_a_device_id_stands_under_one_chip(matrix):
    seen = {}
    for row in matrix.tables["chips"]:
        for device in row.ids:
            assert device not in seen, (device, row.name, seen[device])
            seen[device] = row.name


def test_products_agree_with_their_chip(matrix):
    """products.yml and chips.yml were made from different lists; they must tell the same architecture."""
    chips = {f"10de:{device}": row for row in matrix.tables["chips"] for device in row.ids}
    for row in matrix.tables["products"]:
        assert chips[row.id].architecture == row.architecture, row.id


def test_cuda_floors_rise(matrix):
    floors = [(row.version, v.parse(row.toolkit_min)) for row in matrix.cudas() if row.toolkit_min and row.decides]
    for (one, low), (two, high) in itertools.pairwise(floors):
        assert v.parse(one) < v.parse(two) and low <= high, (one, two)


def test_cuda_of_a_branch_agrees_with_the_toolkits(matrix):
    """The newest CUDA a branch announces is the newest toolkit its last release satisfies; 12.7 never was a toolkit."""
    for branch in matrix.branches():
        if branch.latest and branch.cuda and branch.name not in ("565",) and int(branch.name) >= 410:
            fits = [
                row.series
                for row in matrix.cudas()
                if row.decides
                and (row.toolkit_min or row.bundled_driver)
                and v.parse(row.toolkit_min or row.bundled_driver) <= v.parse(branch.latest)
            ]
            assert branch.cuda == max(fits, key=v.parse), branch.name


def test_frameworks_name_known_cuda_series_and_floors(matrix):
    for row in matrix.tables["frameworks"]:
        for wheel in row.wheels:
            assert matrix.cuda(wheel.cuda), (row.name, row.version, wheel.cuda)
            family = matrix.cuda_family(wheel.cuda)
            if family.min_driver:
                assert wheel.min_driver == family.min_driver, (row.name, row.version, wheel.cuda)
        assert list(row.cudas) == sorted(row.cudas, key=v.parse)


# Ranges


def test_ceilings_do_not_contradict_the_fixes(matrix):
    """A driver that is said to build up to a series has the fix of every change up to it."""
    wrong = []
    for row in matrix.tables["kernel_ceilings"]:
        series = v.KernelRelease.parse(row.highest)
        for version in row.drivers:
            for fix in matrix.tables["kernel_fixes"]:
                applies = row.flavour == "both" or fix.flavour in ("both", row.flavour)
                whole = any(one.low and not one.high and one.low <= series.version[:2] for one in fix.kernels)
                if row.flavour == "both" and fix.flavour != "both":
                    continue
                if (
                    applies
                    and whole
                    and not fix.preempt_rcu
                    and fix.decides
                    and row.decides
                    and matrix.kernels.fix_state(fix, version) == "lacks"
                ):
                    wrong.append((version, row.highest, fix.id))
    assert wrong == REVIEWED_CEILINGS


REVIEWED_CEILINGS: list[tuple[str, str, str]] = []


def test_lines_of_one_system_do_not_overlap_with_different_answers(matrix):
    lines = matrix.tables["kernel_lines"]
    for one, two in itertools.combinations(lines, 2):
        if one.os == two.os and one.kernels.overlaps(two.kernels):
            assert (one.compiler, one.builds, one.fails, one.backported) == (
                two.compiler,
                two.builds,
                two.fails,
                two.backported,
            ), (one.os, one.line, two.line)


def test_a_line_does_not_answer_both_ways(matrix):
    for row in matrix.tables["kernel_lines"]:
        for good, bad in itertools.product(row.builds, row.fails):
            assert not good.overlaps(bad) or good.low < bad.prefix, (row.os, row.line, good, bad)


def test_builds_and_breakages_do_not_contradict_each_other(matrix):
    """What somebody compiled does not fall under a breakage that decides, and the other way round."""
    for row in matrix.tables["kernel_builds"]:
        os_version = "12" if "6.1.0" in row.release or "deb12" in row.release else "13"
        source = "distro" if row.package else "nvidia"
        fit = matrix.kernel_fit(row.driver, row.flavour, row.release, "debian", os_version, source, row.package_version)
        assert fit.answer == row.result, row
        hits = [
            one
            for one in matrix.breakages(row.driver, row.release, "debian", os_version, row.flavour, source)
            if one.kind == "build" and one.decides
        ]
        assert not (hits and row.result == "builds"), (row, hits)


def test_one_series_per_name_and_priority(matrix):
    """Two series of the same branch, source, method and flavour are told apart by priority or by being the default."""
    for os in {row.os for row in matrix.tables["series"]}:
        found = [row for row in matrix.systems.series if row.os == os and row.decides and not row.transitional_to]
        for one, two in itertools.combinations(found, 2):
            same = (one.package_source, one.branch, one.method) == (two.package_source, two.branch, two.method)
            both = (one.open and two.open) or (one.proprietary and two.proprietary)
            if same and both:
                assert (one.default, one.priority) != (two.default, two.priority), (os, one, two)


def test_fabric_packages_answer_once(matrix):
    for one, two in itertools.combinations(matrix.tables["fabric_packages"], 2):
        if (one.component, one.package_source) == (two.component, two.package_source) and set(one.os) & set(two.os):
            assert not one.branches.overlaps(two.branches), (one.component, one.branches, two.branches)


# Reachability


def test_each_row_is_reached_by_some_query(matrix):
    reached = set()

    def see(*found):
        reached.update(id(row) for row in found if row is not None)

    see(*(row for row in matrix.tables["branches"] if matrix.branch(row.name)))
    see(*(matrix.version(row.version) for row in matrix.tables["versions"]))
    see(*matrix.bulletins())
    see(*(matrix.architecture(row.name) for row in matrix.tables["architectures"]))
    for row in matrix.tables["chips"]:
        if all(matrix.product(f"10de:{device}") for device in row.ids):
            see(row)
    for row in matrix.tables["products"]:
        found = [matrix.product(row.id, subsystem) for subsystem in row.subsystems or (None,)]
        if all(one is not None and one.name == row.name for one in found):
            see(row)
    see(
        *(matrix.nvswitch(f"10de:{device}") for row in matrix.tables["nvswitches"] for device in row.ids),
        *(matrix.fabric_of(device) for row in matrix.tables["nvswitches"] for device in row.products),
        *(row for row in matrix.nvswitches() if not row.ids and not row.products),
    )
    see(*(matrix.fabric_component(row.name) for row in matrix.tables["fabric_components"]))
    see(*(matrix.mig(row.name) for row in matrix.tables["mig"]))
    see(*(matrix.cuda(row.version) for row in matrix.tables["cuda_toolkits"]))
    see(*(matrix.cuda_family(row.major) for row in matrix.tables["cuda_families"]))
    see(*(matrix.cuda_compat(row.cuda) for row in matrix.tables["cuda_compat"]))
    see(*(matrix.framework(row.name, row.version) for row in matrix.tables["frameworks"]))
    see(*(one for name in ("pytorch", "tensorflow", "jax") for one in matrix.frameworks(name)))
    see(
        *matrix.kernels.fixes,
        *(entry[2] for entry in matrix.kernels.ceilings),
        *(row for found in matrix.kernels.builds.values() for row in found),
        *matrix.kernels.abis.values(),
    )
    see(*matrix.kernels.breakages, *matrix.kernels.patched, *matrix.kernels.lines, *matrix.kernels.prebuilt)
    see(*(hint for row in matrix.tables["kernel_patches"] for hint in matrix.kernel_patches(*_inside(row))))
    for os_row in matrix.tables["systems"]:
        name, _space, number = os_row.os.partition(" ")
        for minor in EL_MINORS.get(os_row.os, (number,)):
            for arch in os_row.archs:
                packaging = matrix.packaging(name, minor, arch)
                see(packaging.system, packaging.kernel)
                reached.update(
                    ("series", row.os, row.branch, row.variant, row.method, row.suite) for row in packaging.series
                )
                reached.update(("lying", row.os, row.name) for row in packaging.lying)
                reached.update(("repository", row.name) for row in packaging.repositories)
                reached.update(("key", row.key) for row in packaging.repositories)
                reached.update(("fabric", row.component, row.package_source, row.branches) for row in packaging.fabric)
    for section, mark in (
        ("series", lambda r: ("series", r.os, r.branch, r.variant, r.method, r.suite)),
        ("lying_names", lambda r: ("lying", r.os, r.name)),
        ("repositories", lambda r: ("repository", r.name)),
        ("fabric_packages", lambda r: ("fabric", r.component, r.package_source, r.branches)),
    ):
        see(*(row for row in matrix.tables[section] if mark(row) in reached))
    see(*(matrix.signing_key(row.name) for row in matrix.tables["signing_keys"]))
    see(*matrix.toolkit_releases(), *matrix.containerd_lines(), *matrix.operators())
    see(*(row for found in matrix.runtimes.cves.values() for row in found))
    see(*(matrix.kubernetes(row.version) for row in matrix.tables["kubernetes_releases"]))
    see(*(matrix.distro_package(row.os, row.package, row.suite) for row in matrix.tables["distro_packages"]))
    see(*(fact for component in {row.component for row in matrix.tables["facts"]} for fact in matrix.facts(component)))
    missed = [(section, row) for section, row in every_row(matrix) if id(row) not in reached]
    assert missed == [], missed[:5]


def _inside(row):
    """A driver version and a kernel that a hint speaks of."""
    key = row.drivers.prefix or row.drivers.low or row.drivers.high or (1,)
    kernel = row.kernels.low or (6, 1)
    return ".".join(map(str, key)), ".".join(map(str, kernel))


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_row_types_are_exported(name):
    assert SECTIONS[name].row.__name__ in rows.__all__
