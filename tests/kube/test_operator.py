# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/operator.yml against a cluster: real helm and kubernetes.core, an emulated API server, a stand-in chart."""

from __future__ import annotations

import shutil

import chart
import release
import yaml
from cluster import Cluster


def test_an_empty_cluster_gets_the_operator_and_the_second_run_changes_nothing(cluster: Cluster) -> None:
    cluster.add("g1")
    first = cluster.run()
    assert first.code == 0, first.output
    assert first.changed > 0
    policy = cluster.one("clusterpolicies", "cluster-policy")
    assert policy is not None and policy["status"]["state"] == "ready"
    namespace = cluster.one("namespaces", "gpu-operator")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    cluster.store.writes.clear()
    second = cluster.run()
    assert second.code == 0 and second.changed == 0, second.output


def test_check_mode_shows_each_object_and_writes_nothing(cluster: Cluster) -> None:
    cluster.add("g1")
    before = dict(cluster.store.objects)
    checked = cluster.run("--check", "--diff")
    assert checked.code == 0, checked.output
    assert "+kind: ClusterPolicy" in checked.output and "+kind: Deployment" in checked.output, checked.output
    assert checked.changed > 0, checked.output
    assert [one for one in cluster.store.writes if "dry run" not in one] == []
    assert cluster.store.objects == before
    assert cluster.run().code == 0
    cluster.store.writes.clear()
    again = cluster.run("--check", "--diff", gpu_operator_values={"dcgm": {"enabled": True}})
    assert again.code == 0 and "ClusterPolicy cluster-policy" in again.output, again.output
    assert [one for one in cluster.store.writes if "dry run" not in one] == []


def test_another_cluster_than_the_one_that_is_meant_is_left_alone(cluster: Cluster) -> None:
    cluster.add("g1")
    run = cluster.run(gpu_operator_cluster_uid="3f0c2a54-7c1e-4a7b-9d58-0d6c7f3b21aa")
    assert run.code != 0
    assert cluster.uid in run.output and "it is another cluster" in run.output, run.output
    assert cluster.store.writes == []


def test_a_host_that_is_no_node_stops_the_run(cluster: Cluster) -> None:
    cluster.add("g1")
    cluster.hosts.append("g2")
    (cluster.place / "facts" / "g2.json").write_text((cluster.place / "facts" / "g1.json").read_text())
    run = cluster.run()
    assert run.code != 0 and "g2 is no node of this cluster" in run.output, run.output
    assert cluster.store.writes == []


def test_a_mistyped_value_is_named_with_its_nearest_match(cluster: Cluster) -> None:
    cluster.add("g1")
    run = cluster.run(gpu_operator_values={"driver": {"upgradePolicy": {"maxParalelUpgrades": 4}}})
    assert run.code != 0 and "maxParallelUpgrades" in run.output, run.output
    assert cluster.store.writes == []


def test_labels_left_behind_are_mended(cluster: Cluster) -> None:
    cluster.add("g1", labels={"nvidia.com/gpu.deploy.driver": "pre-installed"})
    cluster.add("g2", labels={"nvidia.com/gpu.deploy.device-plugin": "paused-for-driver-upgrade"})
    run = cluster.run()
    assert run.code == 0, run.output
    first, second = cluster.one("nodes", "g1"), cluster.one("nodes", "g2")
    assert first is not None and "nvidia.com/gpu.deploy.driver" not in first["metadata"]["labels"]
    assert second is not None and second["metadata"]["labels"]["nvidia.com/gpu.deploy.device-plugin"] == "true"


def test_hosts_with_different_drivers_get_an_object_each(cluster: Cluster) -> None:
    cluster.add("g1")
    cluster.add("g2")
    cluster.variables["g1"] = {"gpu_driver_version": "580.178.04"}
    cluster.variables["g2"] = {"gpu_driver_branch": "595"}
    run = cluster.run()
    assert run.code == 0, run.output
    objects = {key[3]: one for key, one in cluster.store.objects.items() if key[1] == "nvidiadrivers"}
    assert sorted(objects) == ["driver-580", "driver-595"]
    assert objects["driver-580"]["spec"]["version"] == "580.178.04"
    node = cluster.one("nodes", "g1")
    assert node is not None and node["metadata"]["labels"]["driver.config"] == "driver-580"


def test_fields_that_the_api_server_dropped_fail_the_run(cluster: Cluster) -> None:
    cluster.add("g1")
    stale = chart.crds(without=("kernelModuleType",))
    for crd in stale:
        (cluster.chart / "crds" / f"{crd['metadata']['name']}.yaml").write_text(yaml.safe_dump(crd))
    run = cluster.run(gpu_driver_version="580.178.04",
                      gpu_operator_values={"driver": {"nvidiaDriverCRD": {"enabled": True}}})
    assert run.code != 0, run.output
    words = " ".join(run.output.split())
    assert "The API server dropped or changed NVIDIADriver driver-580: spec.kernelModuleType" in words, run.output


def test_what_does_not_come_up_is_told_and_rolled_back(cluster: Cluster) -> None:
    cluster.add("g1")
    assert cluster.run().code == 0
    cluster.controllers.broken.add("nvidia-device-plugin-daemonset")
    run = cluster.run(gpu_operator_values={"dcgm": {"enabled": True}})
    assert run.code != 0
    assert "DaemonSet nvidia-device-plugin-daemonset: 1 of 1 pods are not ready" in run.output, run.output
    assert "rolled back to revision 1" in run.output, run.output
    policy = cluster.one("clusterpolicies", "cluster-policy")
    assert policy is not None and policy["spec"]["dcgm"]["enabled"] is False


def test_a_release_that_was_cut_off_is_mended(cluster: Cluster) -> None:
    cluster.add("g1")
    assert cluster.run().code == 0
    secret = cluster.one("secrets", "sh.helm.release.v1.gpu-operator.v1", "gpu-operator")
    assert secret is not None
    cluster.create({"apiVersion": "v1", "kind": "Secret", "type": secret["type"], "metadata": {
        "name": "sh.helm.release.v1.gpu-operator.v2", "namespace": "gpu-operator",
        "labels": {**secret["metadata"]["labels"], "status": "pending-upgrade", "version": "2"}},
        "data": {"release": release.with_status(secret["data"]["release"], "pending-upgrade", 2)}})
    run = cluster.run(gpu_operator_values={"dcgm": {"enabled": True}})
    assert run.code == 0, run.output
    policy = cluster.one("clusterpolicies", "cluster-policy")
    assert policy is not None and policy["spec"]["dcgm"]["enabled"] is True


def test_an_api_server_that_is_away_ends_in_a_clear_message(cluster: Cluster) -> None:
    cluster.add("g1")
    cluster.server.faults["."] = (503, "ServiceUnavailable", "the server is currently unable to handle the request")
    run = cluster.run()
    assert run.code != 0 and "unable to handle the request" in run.output, run.output
    assert cluster.store.writes == []


def test_a_token_that_is_no_longer_good_ends_in_a_clear_message(cluster: Cluster) -> None:
    cluster.add("g1")
    cluster.server.token = "another"
    run = cluster.run()
    assert run.code != 0 and "Unauthorized" in run.output, run.output
    assert cluster.store.writes == []


def test_a_webhook_that_refuses_leaves_no_half_release(cluster: Cluster) -> None:
    cluster.add("g1")
    denied = (403, "Forbidden", 'admission webhook "policy" denied it')
    cluster.server.faults[r"(POST|PATCH) .*/clusterpolicies"] = denied
    run = cluster.run()
    assert run.code != 0 and "admission webhook" in run.output, run.output
    cluster.server.faults.clear()
    again = cluster.run()
    assert again.code == 0, again.output


def test_a_chart_of_another_checksum_is_refused(cluster: Cluster) -> None:
    cluster.add("g1")
    archive = shutil.make_archive(str(cluster.place / "gpu-operator-v26.7.0"), "gztar", cluster.place, "gpu-operator")
    run = cluster.run(gpu_operator_chart=archive, gpu_operator_chart_checksum="0" * 64)
    assert run.code != 0 and "gpu_operator_chart_checksum is 000" in run.output, run.output
    assert cluster.store.writes == []


def test_absent_takes_everything_out_again_but_the_crds(cluster: Cluster) -> None:
    cluster.add("g1")
    assert cluster.run(gpu_driver_version="580.178.04",
                       gpu_operator_values={"driver": {"nvidiaDriverCRD": {"enabled": True}}}).code == 0
    run = cluster.run(gpu_operator_state="absent")
    assert run.code == 0, run.output
    left = {key[1] for key in cluster.store.objects}
    assert not left & {"clusterpolicies", "nvidiadrivers", "deployments", "secrets"}
    assert "customresourcedefinitions" in left
    node = cluster.one("nodes", "g1")
    assert node is not None and "driver.config" not in node["metadata"]["labels"]
    again = cluster.run(gpu_operator_state="absent")
    assert again.code == 0 and again.changed == 0, again.output
