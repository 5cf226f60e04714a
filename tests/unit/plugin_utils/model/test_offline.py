# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu_driver_offline: what it takes, and what is refused with variable, value and what is allowed."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import offline, policy

SUM = "0" * 64
DEB = "nvidia-dkms-580_580.178.04-1ubuntu1_amd64.deb"
RPM = "kmod-nvidia-open-dkms-580.178.04-1.el9.noarch.rpm"


def test_a_mapping_and_the_text_of_sha256sum_are_the_same() -> None:
    want = {"path": "/srv/driver", "on": "controller", "sha256": {DEB: SUM, "gcc_4%3a13.2.0-7_amd64.deb": SUM}}
    text = f"{SUM}  {DEB}\n{SUM} *./gcc_4%3a13.2.0-7_amd64.deb\n"
    for sums in (want["sha256"], text):
        given = {"gpu_driver_offline": {"path": "/srv/driver/", "on": "controller", "sha256": sums}}
        assert policy.validate(given)["gpu_driver_offline"] == want


def test_names_tell_packages_and_versions() -> None:
    assert offline.packages({DEB: SUM, "gcc_4%3a13.2.0-7_amd64.deb": SUM, RPM: SUM}) == {
        "nvidia-dkms-580": ["580.178.04-1ubuntu1"], "gcc": ["4:13.2.0-7"],
        "kmod-nvidia-open-dkms": ["580.178.04-1.el9"]}


@pytest.mark.parametrize(("value", "said"), [
    ("/srv", "a mapping with path, on and sha256"),
    ({"path": "srv", "sha256": {DEB: SUM}}, "an absolute path"),
    ({"path": "/srv", "on": "nfs", "sha256": {DEB: SUM}}, "host or controller"),
    ({"path": "/srv"}, "the text that sha256sum writes"),
    ({"path": "/srv", "sha256": "what\n"}, "lines as sha256sum writes them"),
    ({"path": "/srv", "sha256": {DEB: "12"}}, "64 hex digits"),
    ({"path": "/srv", "sha256": {"../x.deb": SUM}}, "names of package files"),
    ({"path": "/srv", "sha256": {"dkms_3.0-1_all.deb": SUM}}, "the driver's package files among them"),
    ({"path": "/srv", "sha256": {DEB: SUM, RPM: SUM}}, "files of one kind"),
    ({"path": "/srv", "sha256": {DEB: SUM}, "url": "x"}, "one of path, on and sha256"),
])
def test_what_cannot_be_meant(value: Any, said: str) -> None:
    with pytest.raises(policy.PolicyError, match=r"^gpu_driver_offline") as caught:
        policy.validate({"gpu_driver_offline": value})
    assert said in str(caught.value)
