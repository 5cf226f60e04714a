# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host itself says of its toolkits and of the Python environment."""

from __future__ import annotations

import re


def test_two_toolkits_side_by_side_the_first_of_the_list_is_the_default(host):
    for series, version in (("12.8", "12.8.2"), ("12.9", "12.9.1")):
        assert f"V{version}" in host.check_output(f"/usr/local/cuda-{series}/bin/nvcc")
    assert host.check_output("readlink -f /usr/local/cuda") == "/usr/local/cuda-12.8"


def test_shells_and_units_find_it(host):
    told = host.check_output("sh -c '. /etc/profile && nvcc && . /etc/baremetal-nvidia/cuda.env && echo $CUDA_HOME'")
    assert told.splitlines() == ["Cuda compilation tools, release 12.8, V12.8.2", "/usr/local/cuda-12.8"]


def test_no_driver_came_or_comes_with_it(host):
    assert not host.run("dpkg-query -W '*nvidia-open*' 'nvidia-driver*'").stdout.strip()
    told = host.run("apt-get install -s -y cuda")
    assert not re.search(r"^Inst (lib)?nvidia", told.stdout, re.M) and told.rc != 0
    offered = host.check_output("apt-cache policy nvidia-open")
    assert "Candidate: (none)" in offered and "580.178.04-1" in offered, offered


def test_the_framework_is_the_build_for_the_cuda_that_was_asked_for(host):
    assert host.check_output("/opt/torch/bin/python -c 'import torch; print(torch.__version__)'") == "2.7.1+cu126"
    assert host.package("python3-venv").is_installed
