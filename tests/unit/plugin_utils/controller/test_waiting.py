# SPDX-License-Identifier: GPL-3.0-or-later
"""What one look at a cluster says, and what errors of its server mean."""

from __future__ import annotations

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import trouble, waiting

READY = {"metadata": {"name": "cluster-policy"}, "status": {"state": "ready"}}


def _daemon(name="plugin", wanted=2, ready=2, **status):
    return {"metadata": {"name": name, "generation": 3}, "spec": {"updateStrategy": {"type": "RollingUpdate"}},
            "status": {"desiredNumberScheduled": wanted, "numberReady": ready, "observedGeneration": 3,
                       "updatedNumberScheduled": wanted, **status}}


def test_ready_is_believed_only_where_the_daemonsets_are_in_the_generation_that_was_asked_for():
    assert waiting.operator({"ClusterPolicy": [READY], "DaemonSet": [_daemon()]}).done
    stale = waiting.operator({"ClusterPolicy": [READY], "DaemonSet": [_daemon(observedGeneration=2)]})
    assert not stale.done and "plugin was not looked at yet" in stale.words
    rolling = waiting.operator({"ClusterPolicy": [READY], "DaemonSet": [_daemon(updatedNumberScheduled=1)]})
    assert rolling.words == "plugin 1 of 2 renewed"


def test_what_is_missing_is_said():
    look = waiting.operator({"ClusterPolicy": [], "DaemonSet": [_daemon(ready=1)], "NVIDIADriver": []}, ["h100"])
    assert look.words == "there is no ClusterPolicy; NVIDIADriver h100 missing; plugin 1 of 2"
    nodes = [{"metadata": {"labels": {waiting.UPGRADE: state}}} for state in ("cordon-required", "upgrade-done")]
    look = waiting.operator({"ClusterPolicy": [READY], "Node": nodes})
    assert not look.done and look.moving == 1 and "exchanged on 1 nodes, 1 are done" in look.words


def test_pods_and_finalizers():
    pod = {"metadata": {"name": "p"}, "status": {"phase": "Pending"}}
    assert waiting.pods({"Pod": [pod]}).words == "0 of 1 ended: p is Pending"
    held = {"metadata": {"name": "a", "finalizers": ["nvidia.com/x"]}}
    look = waiting.gone({"NVIDIADriver": [held]})
    assert not look.done and look.words == "NVIDIADriver a (held by nvidia.com/x)"
    assert waiting.gone({"NVIDIADriver": []}).done


@pytest.mark.parametrize(("told", "words", "final"), [
    ('ApiException: {"message":"Unauthorized","code":401}', "does not take the credentials", True),
    ("MaxRetryError: Max retries exceeded with url (Connection refused)", "does not answer", False),
    ('{"message":"admission webhook \\"policy\\" denied it","code":403}', "an admission webhook refuses", False),
    ('{"message":"nodes is forbidden: User x cannot list","code":403}', "may not do this", False),
    ("SSLError CERTIFICATE_VERIFY_FAILED", "certificate of the API server", True),
    ("Invalid kube-config file. No configuration found.", "names nothing that can be read", True),
    ('Error: UPGRADE FAILED: conflict occurred while applying object cluster-policy nvidia.com/v1, Kind=ClusterPolicy: '
     'Apply failed with 1 conflict: conflict with "kubectl-edit" using nvidia.com/v1: .spec.dcgm.enabled',
     "somebody else set a field", False),
    ("Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress", "another helm run", False),
])
def test_errors_in_words(told, words, final):
    assert words in trouble.words(told)
    assert trouble.is_final(trouble.words(told)) is final


def test_an_unknown_error_stays_what_it_is():
    assert trouble.words("  the chart\n is odd ") == "the chart is odd"
