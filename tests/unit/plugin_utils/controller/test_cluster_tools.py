# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller lacks to work with a cluster is said at once, before anything is asked."""

from __future__ import annotations

import importlib.util
import pathlib
import re

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import cluster_tools

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": "/nonexistent"}


@pytest.fixture
def helm(tmp_path, monkeypatch):
    """A program that says it is a helm of some version, beside a kubernetes.core of some version."""
    def make(version, core=(6, 5)):
        program = tmp_path / "helm"
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
        monkeypatch.setattr(cluster_tools, "collection", lambda: (core, "/collections/kubernetes/core"))
        return str(program)

    return make


@pytest.mark.parametrize(("version", "core"), [("v3.18.6", (6, 2)), ("v3.13.0", (6, 5)), ("v4.2.0", (6, 5)),
                                               ("v4.0.1", (6, 4))])
def test_what_fits_is_taken(helm, version, core):
    assert cluster_tools.problems(helm(version, core), None, None, {}) == []


@pytest.mark.parametrize(
    ("version", "core", "said"),
    [
        ("v4.0.0", (6, 2), r"helm 4\.0 .*/helm\) needs kubernetes\.core 6\.4 .* 6\.2 \(/collections/kubernetes/core\)"),
        ("v3.18.0", (5, 3), r"needs kubernetes\.core 6\.2 .* is 5\.3"),
        ("v3.9.4", (6, 5), r"is v3\.9\.4, and helm 3\.13 or newer"),
        ("nothing", (6, 5), "is nothing, and helm"),
        ("v3.18.0", None, "kubernetes.core is not there: ansible-galaxy"),
    ],
)
def test_what_does_not_fit_is_named_with_both_versions(helm, version, core, said):
    (words,) = cluster_tools.problems(helm(version, core), None, None, {})
    assert re.search(said, words), words


def test_all_that_is_missing_is_said_at_once(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "kubernetes" else find(name))
    told = cluster_tools.problems("/nowhere/helm", None, None, POD)
    assert [words.split(" ")[0] for words in told] == ["helm", "the", "this"], told
    assert "gpu_operator_helm" in told[0] and "pip install kubernetes" in told[1] and "is a pod" in told[2]


@pytest.mark.parametrize(
    ("kubeconfig", "uid", "more"),
    [("/a/kubeconfig", None, {}), (None, "3f0c", {}), (None, None, {"K8S_AUTH_KUBECONFIG": "/a"}),
     (None, None, {"KUBECONFIG": "/a"}), (None, None, {"KUBERNETES_SERVICE_HOST": ""})],
)
def test_a_pod_that_says_which_cluster_is_taken(helm, kubeconfig, uid, more):
    assert cluster_tools.problems(helm("v3.19.0"), kubeconfig, uid, {**POD, **more}) == []


def test_a_kubeconfig_of_the_user_counts(helm, tmp_path: pathlib.Path):
    assert len(cluster_tools.problems(helm("v3.19.0"), None, None, {**POD, "HOME": str(tmp_path)})) == 1
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    assert cluster_tools.problems(helm("v3.19.0"), None, None, {**POD, "HOME": str(tmp_path)}) == []


def test_the_collection_that_is_loaded_is_found():
    version, where = cluster_tools.collection()
    assert version is not None and version >= (6, 2) and where.endswith("kubernetes/core")
    assert cluster_tools.collection("nobody.nothing") == (None, "")
