# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof as a whole on a made-up host: what is proved, what is refused, and what is left alone then."""

from __future__ import annotations

import os
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import scratch
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.errors import ProofError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
from proof_host import KERNEL, NAME, VERSION, Host

OVERRIDE = f"etc/dkms/{NAME}-{VERSION}-{KERNEL}.conf"
PUBLISHED = f"var/lib/baremetal-nvidia/proved/{NAME}-{VERSION}-{KERNEL}"


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return Host(tmp_path)


def refused(host: Host, **changes: object) -> str:
    """The message of the one kernel that gets no proof; sees that nothing was published or left in scratch."""
    before = host.tree()
    report = host.prover(**changes).prove()
    assert len(report.failed) == 1
    assert host.tree() == before
    assert not (host.root / PUBLISHED).exists()
    assert not Store(str(host.root)).read()["proved_kernels"]
    assert list(host.scratch.iterdir()) == []
    return str(report.failed[0].error)


def test_a_build_is_proved_recorded_and_offered_to_dkms(host: Host) -> None:
    host.headers()
    report = host.prover().prove()
    assert [(item.kernel, item.how, item.error) for item in report.kernels] == [(KERNEL, "built", None)]
    assert report.changed
    assert "sha256sum --status --check" in (host.root / OVERRIDE).read_text()
    assert sorted(path.name for path in (host.root / PUBLISHED / "files").iterdir()) == [
        "nvidia-drm.ko",
        "nvidia-modeset.ko",
        "nvidia-peermem.ko",
        "nvidia-uvm.ko",
        "nvidia.ko",
    ]
    proof = Store(str(host.root)).read()["proved_kernels"][KERNEL]
    assert (proof["driver"], proof["flavour"], proof["how"]) == (VERSION, "proprietary", "built")
    assert list(host.scratch.iterdir()) == []


def test_nothing_of_the_driver_is_installed_and_no_key_of_the_host_is_used(host: Host) -> None:
    host.headers()
    host.prover().prove()
    ran = [call[:2] for call in host.calls]
    assert ["apt-get", "install"] not in ran
    assert not [call for call in host.calls if call[0] == "dpkg"]
    assert host.environment["sign_file"] == "/nonexistent"


def test_installed_headers_are_named_to_dkms(host: Host) -> None:
    """DKMS 3.2 would look for them below --installtree."""
    build = host.headers()
    host.prover().prove()
    (call,) = [call for call in host.calls if call[:1] == ["nice"] and call[3:5] == ["dkms", "build"]]
    assert call[call.index("--kernelsourcedir") + 1] == str(build)
    assert "SYSSRC" not in host.environment


def test_headers_that_are_not_installed_are_opened_in_scratch(host: Host) -> None:
    report = host.prover().prove()
    assert report.kernels[0].how == "built" and not report.kernels[0].headers_installed
    assert host.environment["SYSOUT"].endswith(f"tree/usr/src/linux-headers-{KERNEL}")
    assert host.environment["SYSSRC"].endswith("tree/usr/src/linux-headers-6.1.0-50-common")
    fetched = {
        spec.partition("=")[0]
        for call in host.calls
        if call[0] == "apt-get"
        for spec in call
        if "=" in spec and "linux-" in spec
    }
    assert fetched == {f"linux-headers-{KERNEL}", "linux-headers-6.1.0-50-common", "linux-kbuild-6.1"}


def test_a_second_call_finds_it_published_and_builds_nothing(host: Host) -> None:
    host.headers()
    host.prover().prove()
    again = host.prover().prove()
    assert (again.kernels[0].how, again.changed, host.builds) == ("published", False, 1)


def test_an_installed_module_that_is_right_needs_no_build(host: Host) -> None:
    host.headers()
    host.install()
    report = host.prover().prove()
    assert (report.kernels[0].how, host.builds) == ("installed", 0)
    assert not host.prover().prove().changed


def test_an_installed_module_for_another_kernel_is_built_anew(host: Host) -> None:
    host.headers()
    host.install(for_kernel="6.1.0-47-amd64")
    assert host.prover().prove().kernels[0].how == "built"


def test_another_revision_of_the_source_package_is_built_anew(host: Host) -> None:
    host.headers()
    host.install()
    host.installed["nvidia-kernel-dkms"] = "535.261.03-0"
    assert host.prover().prove().kernels[0].how == "built"


def test_check_mode_says_needs_build_and_writes_nothing(host: Host, tmp_path: pathlib.Path) -> None:
    host.headers()
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    report = host.prover().check_only()
    assert (report.kernels[0].how, report.changed) == ("needs_build", True)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


# refusals


def test_a_failed_build_is_refused_with_its_first_error_and_the_log(host: Host) -> None:
    host.headers()
    host.build_result = Result(rc=10, err="Error! Bad return status for module build\n")
    host.build_log = (
        "gcc-12 -O2 nv-pci.c\n" + "ok\n" * 90 + "nv-pci.c:237:9: error: too few arguments\nmake: *** [all] Error 2\n"
    )
    report = host.prover().prove()
    assert "the build failed" in str(report.failed[0].error)
    assert "nv-pci.c:237:9: error: too few arguments" in str(report.failed[0].error)
    assert "make: *** [all] Error 2" in report.failed[0].log
    assert not any(line.startswith("gcc-12") for line in report.failed[0].log)
    assert "does not fit this kernel" in refused(host)


def test_one_kernel_of_two_without_proof_publishes_neither(host: Host) -> None:
    host.headers()
    report = host.prover(kernels=(KERNEL, "7.2.12+deb13-amd64")).prove()
    assert [item.error is None for item in report.kernels] == [True, False]
    assert not (host.root / OVERRIDE).exists()
    assert not Store(str(host.root)).read()["proved_kernels"]


def test_wrong_vermagic(host: Host) -> None:
    host.headers()
    host.built_kernel = "6.1.0-47-amd64"
    assert f"nvidia.ko is for kernel 6.1.0-47-amd64, not {KERNEL}" in refused(host)


def test_wrong_version(host: Host) -> None:
    host.headers()
    host.built_version = "535.216.03"
    assert "nvidia.ko has version 535.216.03, not 535.261.03" in refused(host)


def test_wrong_flavour(host: Host) -> None:
    host.headers()
    host.built_licence = "Dual MIT/GPL"
    assert "the proprietary flavour has 'NVIDIA'" in refused(host)


def test_a_missing_module(host: Host) -> None:
    host.headers()
    host.missing = ("nvidia-uvm",)
    assert "nvidia-uvm.ko is missing" in refused(host)


def test_disk_too_small(host: Host) -> None:
    host.headers()
    message = refused(host, free=lambda _directory: 1200, min_free_mb=2500)
    assert "has 1200 MB free" in message and "2500 MB" in message
    assert host.builds == 0


def test_a_build_that_does_not_end_is_stopped_and_said(host: Host) -> None:
    host.headers()
    host.build_result = Result(rc=124, timed_out=True)
    assert "did not end within 10 s" in refused(host)


def test_a_kernel_without_headers_anywhere(host: Host) -> None:
    assert "linux-headers-5.9.9 is neither installed nor offered" in refused(host, kernels=("5.9.9",))


def test_a_kernel_whose_compiler_is_not_installed(host: Host) -> None:
    host.headers()
    host.compiler = None
    assert "install the package gcc-12" in refused(host)


def test_a_kernel_that_dkms_conf_rules_out(host: Host) -> None:
    host.headers()
    host.build_result = Result(rc=77)
    assert "BUILD_EXCLUSIVE" in refused(host)


def test_a_source_version_that_is_not_offered(host: Host) -> None:
    host.headers()
    assert "Version '999' for 'nvidia-kernel-dkms' was not found" in refused(
        host, sources={"nvidia-kernel-dkms": "999"}
    )


def test_the_source_proper_comes_with_a_package_that_has_dkms_conf_alone(host: Host) -> None:
    host.headers()
    host.offers["nvidia-dkms-535"] = ("535.261.03-1", "dkms, nvidia-kernel-source-535 (= 535.261.03-1), libc6")
    host.offers["nvidia-kernel-source-535"] = ("535.261.03-1", "")
    host.source_in = "nvidia-dkms-535"
    report = host.prover(sources={"nvidia-dkms-535": "535.261.03-1"}).prove()
    assert not report.failed
    fetched = next(call for call in host.calls if "download" in call)
    assert fetched[-2:] == ["nvidia-dkms-535=535.261.03-1", "nvidia-kernel-source-535=535.261.03-1"]


def test_a_source_package_that_holds_another_driver(host: Host) -> None:
    host.headers()
    host.offers["nvidia-open-kernel-dkms"] = ("1", "")
    message = refused(host, sources={"nvidia-open-kernel-dkms": "1"})
    assert f"does not hold the source {NAME}-{VERSION}" in message


def test_an_override_that_a_person_made_is_not_replaced(host: Host) -> None:
    host.headers()
    theirs = host.root / OVERRIDE
    theirs.parent.mkdir(parents=True)
    theirs.write_text("MAKE[0]=mine\n")
    with pytest.raises(ProofError, match="is not ours"):
        host.prover().prove()
    assert theirs.read_text() == "MAKE[0]=mine\n"


@pytest.mark.parametrize("change", [{"dkms_name": "../../etc"}, {"version": "5;rm"}, {"kernels": ("a b",)}])
def test_names_that_would_end_in_a_path_or_a_shell_are_refused(host: Host, change: dict[str, object]) -> None:
    with pytest.raises(ProofError, match="has characters that no"):
        host.prover(**change)


# bad days


def test_a_second_proof_waits_and_names_the_first(host: Host) -> None:
    host.headers()
    path = os.path.join(str(host.root), "var/lib/baremetal-nvidia/proof.lock")
    with (
        scratch.Lock(path, 1, "x"),
        pytest.raises(ProofError, match=rf"another proof on this host is being done by pid {os.getpid()}"),
    ):
        host.prover().prove()


def test_what_a_killed_run_left_is_removed(host: Host) -> None:
    host.headers()
    # a kill leaves no chance to clean up: keep the directory as it is at that moment
    left = host.scratch / (scratch.PREFIX + "left")
    (left / "dkms").mkdir(parents=True)
    left.chmod(0o700)
    (left / scratch.MARKER).write_text("1\n")
    half = host.root / "var/lib/baremetal-nvidia/proved/.partial-x"
    half.mkdir(parents=True)
    foreign = host.scratch / (scratch.PREFIX + "no-marker")
    foreign.mkdir(mode=0o700)
    report = host.prover().prove()
    assert sorted(report.removed) == sorted([str(left), str(half)])
    assert not left.exists() and not half.exists() and foreign.exists()
    assert report.kernels[0].how == "built"


def test_what_survives_of_a_killed_build_is_ended(host: Host, tmp_path: pathlib.Path) -> None:
    import subprocess

    left = host.scratch / (scratch.PREFIX + "left")
    left.mkdir(mode=0o700)
    (left / scratch.MARKER).write_text("1\n")
    with subprocess.Popen(["sleep", "60"], cwd=left) as child:
        assert scratch.remove_left_over(str(host.scratch)) == [str(left)]
        assert child.wait(5) == -9


def test_a_signal_in_the_middle_of_a_build_ends_it_and_leaves_nothing(host: Host) -> None:
    import subprocess

    host.headers()
    children: list[subprocess.Popen[bytes]] = []

    def interrupted() -> None:
        (place,) = scratch.left_over(str(host.scratch))
        children.append(subprocess.Popen(["sleep", "60"], cwd=place, start_new_session=True))
        raise SystemExit(143)

    host.during_build = interrupted
    with pytest.raises(SystemExit):
        host.prover().prove()
    assert children[0].wait(5) == -9
    assert list(host.scratch.iterdir()) == []


def test_a_proof_without_dkms(host: Host) -> None:
    host._dkms = lambda _call, _cwd: Result(rc=127)  # type: ignore[method-assign]
    with pytest.raises(ProofError, match="dkms is not installed"):
        host.prover().prove()


# afterwards


def test_settle_checks_the_installed_modules_and_takes_the_offer_away(host: Host) -> None:
    host.headers()
    host.prover().prove()
    host.install()
    assert host.prover().settle(check=True).changed and (host.root / OVERRIDE).exists()
    report = host.prover().settle()
    assert report.changed and not report.failed
    assert not (host.root / OVERRIDE).exists() and not (host.root / PUBLISHED).exists()
    assert not host.prover().settle().changed


def test_settle_gives_modules_the_labels_of_their_place_where_selinux_is(host: Host) -> None:
    host.headers()
    host.prover().prove()
    host.install()
    host.prover().settle()
    assert not [call for call in host.calls if call[0] == "restorecon"], "without SELinux nobody asks for it"
    (host.root / "sys/fs/selinux").mkdir(parents=True)
    (host.root / "sys/fs/selinux/enforce").write_text("1")
    host.relabelled = "Relabeled nvidia.ko from var_lib_t to modules_object_t\n"
    assert host.prover().settle().changed
    called = next(call for call in host.calls if call[0] == "restorecon")
    assert [os.path.basename(path) for path in called[3:]] and all("updates/dkms" in path for path in called[3:])
    host.relabelled = ""
    assert not host.prover().settle().changed


def test_settle_installs_what_the_packages_left_out(host: Host) -> None:
    host.headers()
    host.prover().prove()
    assert host.prover().settle(check=True).changed and "installed" not in host.dkms_status
    report = host.prover().settle()
    assert report.changed and not report.failed
    assert not (host.root / OVERRIDE).exists()


def test_settle_keeps_the_offer_while_dkms_cannot_install(host: Host) -> None:
    host.headers()
    host.prover().prove()
    host.install_result = Result(rc=1, err="Error! Your kernel headers cannot be found\n")
    report = host.prover().settle()
    assert "Your kernel headers cannot be found" in str(report.failed[0].error)
    assert (host.root / OVERRIDE).exists()


def test_settle_builds_nothing_that_was_not_proved(host: Host) -> None:
    host.headers()
    report = host.prover().settle()
    assert "DKMS says not built" in str(report.failed[0].error)
    assert not [call for call in host.calls if call[:2] == ["dkms", "install"]]


def test_settle_sees_a_module_that_is_not_the_proved_one(host: Host) -> None:
    host.headers()
    host.install(for_kernel="6.1.0-47-amd64")
    assert "is for kernel 6.1.0-47-amd64" in str(host.prover().settle().failed[0].error)
