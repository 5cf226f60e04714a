# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be asked for, and how the rest is refused."""
from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import containers, cuda_request, policy, wishes


def test_defaults_are_the_files_and_are_new_each_time() -> None:
    one, two = policy.load_defaults(), policy.load_defaults()
    assert one == two
    one["gpu_frameworks"]["pytorch"] = "2.7"
    one["gpu_findings_waived"].append({})
    assert policy.load_defaults() == two
    assert set(one) == set(policy.names())


def test_every_variable_is_described() -> None:
    for name, entry in policy.spec().items():
        assert name.startswith("gpu_") and entry["description"] and entry["type"] and entry["roles"], name


def test_wishes_have_all_variables() -> None:
    seen = wishes.wishes(policy.validate({}))
    for name in policy.names():
        assert hasattr(seen, name.removeprefix("gpu_")), name
    assert not seen.driver_is_asked
    assert wishes.wishes(policy.validate({"gpu_driver_version": "580.95.05"})).driver_is_asked


def test_only_given_keys_and_foreign_names() -> None:
    checked = policy.validate({"gpu_driver_branch": 580, "ansible_user": "x", "gpu_something_else": 1})
    assert checked["gpu_driver_branch"] == "580"
    assert "ansible_user" not in checked and "gpu_something_else" not in checked
    assert policy.validate(None) == policy.load_defaults()


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("gpu_driver_branch", "auto", "auto"),
        ("gpu_driver_version", "580.142", "580.142"),
        ("gpu_driver_version", "", None),
        ("gpu_driver_version", None, None),
        ("gpu_cuda", 12, "12"),
        ("gpu_cuda", ">=12.4,<13", ">=12.4,<13"),
        ("gpu_frameworks", {"pytorch": "2.7.1"}, {"pytorch": "2.7.1"}),
        ("gpu_kernel_policy", False, "off"),
        ("gpu_reboot_allowed", "yes", True),
        ("gpu_reboot_allowed", 0, False),
        ("gpu_cache_max_age", "600", 600),
        ("gpu_kernel_release", "6.12.117+deb13-amd64", "6.12.117+deb13-amd64"),
    ],
)
def test_taken(name: str, value: Any, kept: Any) -> None:
    assert policy.validate({name: value})[name] == kept


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("gpu_driver_branch", "58", ["58", "580"]),
        ("gpu_driver_branch", 580.1, ["580.1", "quote"]),
        ("gpu_driver_branch", True, ["True"]),
        ("gpu_driver_version", "580", ["580.173.02"]),
        ("gpu_driver_version", 580.95, ["580.95", "quote"]),
        ("gpu_driver_version", "580.95.05-1", ["580.95.05-1"]),
        ("gpu_driver_version", ["580.95.05"], ["text"]),
        ("gpu_driver_source", "ubuntu", ["ubuntu", "distro", "nvidia", "custom"]),
        ("gpu_cuda", 12.10, ["12.1", "quote"]),
        ("gpu_cuda", ">=13,<12.4", [">=13,<12.4", "above"]),
        ("gpu_cuda", "twelve", ["twelve", "12.4"]),
        ("gpu_frameworks", ["pytorch"], ["mapping"]),
        ("gpu_frameworks", {"pytorch": 2.10}, ["gpu_frameworks.pytorch", "2.1", "quote"]),
        ("gpu_frameworks", {1: "2.7"}, ["name of a framework"]),
        ("gpu_kernel_policy", "freeze", ["freeze", "hold", "gated", "off"]),
        ("gpu_kernel_release", "latest", ["latest", "uname -r"]),
        ("gpu_kernel_release", 6.1, ["quote"]),
        ("gpu_reboot_allowed", "maybe", ["maybe", "true or false"]),
        ("gpu_reboot_allowed", [], ["true or false"]),
        ("gpu_cache_max_age", -1, ["-1", "whole number"]),
        ("gpu_cache_max_age", True, ["whole number"]),
        ("gpu_matrix_overlay", "rows.yml", ["list"]),
        ("gpu_findings_waived", {"rule": "KRN001"}, ["list"]),
        ("gpu_findings_waived", ["KRN001"], ["gpu_findings_waived[0]", "mapping"]),
        ("gpu_findings_waived", [{"rule": "krn1", "reason": "x", "until": "2027-01-01"}], ["rule", "KRN004"]),
        ("gpu_findings_waived", [{"rule": "KRN001", "until": "2027-01-01"}], ["reason"]),
        ("gpu_findings_waived", [{"rule": "KRN001", "reason": "x", "until": "soon"}], ["until", "soon", "2027-01-31"]),
        ("gpu_findings_waived", [{"rule": "KRN001", "reason": "x", "until": "2027-01-01", "forever": 1}], ["forever"]),
        ("gpu_findings_waived", [{"rule": "KRN001", "reason": "x", "until": "2027-01-01", "host": ""}], ["host"]),
        ("gpu_toolkit_repository", {"url": "mirror", "fingerprint": "0" * 40}, ["gpu_toolkit_repository.url"]),
        ("gpu_toolkit_repository", {"url": "https://m/x"}, ["gpu_toolkit_repository.fingerprint", "40"]),
        ("gpu_toolkit_repository", {"url": "https://m/x", "fingerprint": "0" * 40, "trusted": True}, ["trusted"]),
        ("gpu_container_runtime", "podman", ["podman", "containerd, docker, crio, none"]),
        ("gpu_container_runtime", ["containerd", "none"], ["none alone"]),
        ("gpu_container_runtime", 3, ["containerd"]),
        ("gpu_container_mode", "csv", ["auto, legacy, cdi, nri"]),
        ("gpu_toolkit_config", {"nvidia-container-cli.no_cgroups": True}, ["nvidia-container-cli.no-cgroups"]),
        ("gpu_toolkit_config", {"nvidia-container-cli.no-cgroups": "yes"}, ["true or false"]),
        ("gpu_toolkit_config", {"nvidia-container-runtime.mode": "fast"}, ["jit-cdi"]),
        ("gpu_toolkit_config", {"nvidia-container-runtime.runtimes": "runc"}, ["a list of texts"]),
        ("gpu_toolkit_config", ["x"], ["mapping"]),
        ("gpu_toolkit_offline", {"path": "x", "sha256": {"a": "b"}}, ["gpu_toolkit_offline.path"]),
        ("gpu_toolkit_offline", {"path": "/x", "sha256": {}}, ["gpu_toolkit_offline.sha256"]),
        ("gpu_toolkit_offline", {"path": "/x", "on": "moon", "sha256": {"a": "b"}}, ["host or controller"]),
        ("gpu_toolkit_offline", {"path": "/x", "sha256": {"libnvidia-container1_1.20.0-1_amd64.deb": "12"}}, ["64"]),
        ("gpu_toolkit_offline", {"path": "/x", "sha256": {"docker_1.20.0-1_amd64.deb": "ab" * 32}}, ["files of"]),
        ("gpu_toolkit_offline", {"path": "/x", "sha256": {"libnvidia-container1_1.20.0-1_amd64.deb": "ab" * 32}},
         ["all four", "missing", "nvidia-container-toolkit-base"]),
    ],
)
def test_refused(name: str, value: Any, words: list[str]) -> None:
    with pytest.raises(policy.PolicyError) as caught:
        policy.validate({name: value})
    assert caught.value.variable.startswith(name)
    for word in words:
        assert word in str(caught.value)


def test_a_policy_that_is_no_mapping() -> None:
    with pytest.raises(policy.PolicyError, match="mapping"):
        policy.validate(["gpu_driver_branch"])  # type: ignore[arg-type]


@pytest.mark.parametrize("until", ["2027-01-31", datetime.date(2027, 1, 31), datetime.datetime(2027, 1, 31, 12)])
def test_dates_come_as_date_or_text(until: Any) -> None:
    checked = policy.validate({"gpu_findings_waived": [{"rule": "KRN001", "reason": "x", "until": until}]})
    assert checked["gpu_findings_waived"][0] == {
        "rule": "KRN001", "host": "*", "reason": "x", "until": datetime.date(2027, 1, 31)}


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("12.4", [(12, 4), (12, 4, 1)], [(12, 5), (12,), (11, 8)]),
        (">=12.4,<13", [(12, 4), (12, 9)], [(13, 0), (12, 3)]),
        (">11.8", [(11, 9), (12, 0)], [(11, 8)]),
        ("<=12.4", [(12, 4), (11, 0)], [(12, 5)]),
        ("12", [(12, 0), (12, 9)], [(13, 0)]),
    ],
)
def test_cuda_requests(text: str, inside: list[tuple[int, ...]], outside: list[tuple[int, ...]]) -> None:
    request = cuda_request.parse(text)
    assert all(request.holds(version) for version in inside)
    assert not any(request.holds(version) for version in outside)


@pytest.mark.parametrize(("given", "checked"), [
    ("containerd", ["containerd"]), ("none", []), (["none"], []), ("containerd, docker", ["containerd", "docker"]),
    (["crio", "crio"], ["crio"]), (None, ["containerd"]), ([], []),
])
def test_runtimes_come_as_text_or_list(given: Any, checked: list[str]) -> None:
    found = policy.validate({"gpu_container_runtime": given})["gpu_container_runtime"]
    assert found == checked
    assert policy.validate({"gpu_container_runtime": found})["gpu_container_runtime"] == checked


@pytest.mark.parametrize("form", ["{}_1.20.0-1_amd64.deb", "{}-1.20.0-1.x86_64.rpm"])
def test_package_files_say_their_version(form: str) -> None:
    sums = {form.format(name): "AB" * 32 for name in containers.TOOLKIT_PACKAGES}
    found = policy.validate({"gpu_toolkit_offline": {"path": "/srv/x/", "sha256": sums}})
    assert policy.validate(found) == found  # it is checked more than once on its way
    offline = found["gpu_toolkit_offline"]
    assert (offline["path"], offline["on"]) == ("/srv/x", "host")
    assert containers.offline_packages(offline["sha256"]) == dict.fromkeys(containers.TOOLKIT_PACKAGES, "1.20.0-1")


def test_a_secret_is_known_to_be_there_and_nothing_more() -> None:
    assert policy.validate({"gpu_mok_password": "Once-only-7"})["gpu_mok_password"] is True
    assert policy.validate({"gpu_mok_password": ""})["gpu_mok_password"] is None
    assert policy.validate(policy.validate({"gpu_mok_password": "Once-only-7"}))["gpu_mok_password"] is True
    for wrong in ("seven77", "with a blank", "x" * 65, "passwörter", 12345678):
        with pytest.raises(policy.PolicyError) as refused:
            policy.validate({"gpu_mok_password": wrong})
        assert str(wrong) not in str(refused.value) and "gpu_mok_password" in str(refused.value)


def test_module_options_are_data() -> None:
    asked = {"nvidia": {"NVreg_RegistryDwords": "RMa=1;RMb=2"}, "nvidia-drm": {"modeset": True, "fbdev": 0}}
    assert policy.validate({"gpu_driver_module_options": asked})["gpu_driver_module_options"] == {
        "nvidia": {"NVreg_RegistryDwords": "RMa=1;RMb=2"}, "nvidia_drm": {"modeset": "1", "fbdev": "0"}}


@pytest.mark.parametrize(("asked", "words"), [
    ({"nouveau": {"modeset": 0}}, "the modules nvidia, nvidia_drm"),
    ({"nvidia": {}}, "a mapping of options"),
    ({"nvidia": {"NVreg_X": "1 NVreg_Y=2"}}, "gpu_driver_module_options.nvidia.NVreg_X"),
    ({"nvidia": {"NVreg_X": "1\ninstall x y"}}, "without blanks"),
    ({"nvidia": {"NVreg_X=1 y": 2}}, "without blanks"),
    ({"nvidia": {"NVreg_X": [1]}}, "a whole number"),
])
def test_module_options_that_cannot_be_meant(asked: Any, words: str) -> None:
    with pytest.raises(policy.PolicyError) as refused:
        policy.validate({"gpu_driver_module_options": asked})
    assert words in str(refused.value)
