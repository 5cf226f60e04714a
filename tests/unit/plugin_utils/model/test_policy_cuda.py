# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be asked for about CUDA on the host: taken in its plain form, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy

ENV = {"path": "/opt/torch", "framework": "torch", "version": "2.7"}


def test_an_environment_is_filled_in() -> None:
    asked = {**ENV, "cuda": "12.8", "index_url": "https://mirror.local/whl/", "packages": ["torchvision==0.22.1"]}
    assert policy.validate({"gpu_python_env": asked})["gpu_python_env"] == {
        "path": "/opt/torch", "framework": "pytorch", "version": "2.7", "cuda": "12.8", "python": "python3",
        "index_url": "https://mirror.local/whl", "packages": ["torchvision==0.22.1"]}


def test_toolkits_of_several_series() -> None:
    assert policy.validate({"gpu_cuda_toolkit": ["12.8.1", "13.0"]})["gpu_cuda_toolkit"] == ["12.8.1", "13.0"]
    assert policy.validate({})["gpu_cuda_toolkit"] == []


@pytest.mark.parametrize(("variable", "value", "words"), [
    ("gpu_cuda_toolkit", [12.8], ["gpu_cuda_toolkit[0]", "12.8", "quote it"]),
    ("gpu_cuda_toolkit", "12.8", ["gpu_cuda_toolkit", "a list"]),
    ("gpu_cuda_toolkit", ["12.8", "12.8.1"], ["gpu_cuda_toolkit[1]", "12.8", "each series"]),
    ("gpu_cuda_toolkit", ["cuda"], ["gpu_cuda_toolkit[0]", "cuda"]),
    ("gpu_cuda_toolkit_default", 12.8, ["gpu_cuda_toolkit_default", "quote it"]),
    ("gpu_cuda_toolkit_source", "pypi", ["gpu_cuda_toolkit_source", "distro"]),
    ("gpu_python_env", {**ENV, "version": 2.7}, ["gpu_python_env.version", "quote it"]),
    ("gpu_python_env", {**ENV, "framework": "mxnet"}, ["gpu_python_env.framework", "pytorch"]),
    ("gpu_python_env", {**ENV, "path": "/usr/bin"}, ["gpu_python_env.path", "/opt"]),
    ("gpu_python_env", {**ENV, "path": "/etc/torch"}, ["gpu_python_env.path"]),
    ("gpu_python_env", {**ENV, "path": "opt/torch"}, ["gpu_python_env.path", "absolute"]),
    ("gpu_python_env", {**ENV, "path": "/opt/../etc"}, ["gpu_python_env.path"]),
    ("gpu_python_env", {**ENV, "index_url": "mirror.local"}, ["gpu_python_env.index_url"]),
    ("gpu_python_env", {**ENV, "packages": ["--pre"]}, ["gpu_python_env.packages[0]", "--pre"]),
    ("gpu_python_env", {**ENV, "python": "sh -c x"}, ["gpu_python_env.python"]),
    ("gpu_python_env", {**ENV, "pip": "x"}, ["gpu_python_env.pip", "keys"]),
    ("gpu_python_env", "torch", ["gpu_python_env", "a mapping"]),
])
def test_refused_by_name(variable: str, value: Any, words: list[str]) -> None:
    with pytest.raises(policy.PolicyError) as refused:
        policy.validate({variable: value})
    assert all(word in str(refused.value) for word in words), str(refused.value)
