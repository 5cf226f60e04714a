# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/operator.yml against a cluster: real helm and kubernetes.core, an emulated API server, a stand-in chart.

A run costs seconds, so one cluster goes through many days in one test.
"""

from __future__ import annotations

import hashlib
import pathlib
import shutil
from typing import Any

import chart
import yaml
from charts import Charts
from cluster import Cluster, Run

OBJECTS = {"driver": {"nvidiaDriverCRD": {"enabled": True}}}
TENANTS = [{"name": "vision", "gpus": 4, "priority": 1000, "max_gpus_per_container": 2}]


def _said(run: Run) -> str:
    return " ".join(run.output.split())


def _policy(cluster: Cluster) -> dict[str, Any]:
    found = cluster.one("clusterpolicies", "cluster-policy")
    assert found is not None
    return found


def _labels(cluster: Cluster, node: str) -> dict[str, str]:
    found = cluster.one("nodes", node)
    assert found is not None
    return dict(found["metadata"]["labels"])


def _written(cluster: Cluster) -> list[str]:
    return [one for one in cluster.store.writes if "dry run" not in one]


def _archive(cluster: Cluster) -> pathlib.Path:
    return pathlib.Path(shutil.make_archive(str(cluster.place / "gpu-operator-v26.7.0"), "gztar", cluster.place,
                                            "gpu-operator"))


def test_from_the_first_look_to_the_last(cluster: Cluster) -> None:
    """Check mode, installation, nothing to do, an upgrade that does not come up, one that does, and the way back."""
    cluster.add("g1", labels={"nvidia.com/gpu.deploy.driver": "pre-installed"})
    cluster.add("g2", labels={"nvidia.com/gpu.deploy.device-plugin": "paused-for-driver-upgrade"})
    before = dict(cluster.store.objects)
    checked = cluster.run("--check", "--diff", gpu_tenants=TENANTS)
    assert checked.code == 0 and checked.changed > 0, checked.output
    assert "+kind: ClusterPolicy" in checked.output and "+kind: Deployment" in checked.output, checked.output
    assert _written(cluster) == [] and cluster.store.objects == before

    archive = _archive(cluster)
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    file = {"gpu_operator_chart": str(archive), "gpu_operator_chart_checksum": checksum}
    first = cluster.run(gpu_tenants=TENANTS, **file)
    assert first.code == 0 and "s] ready" in first.output, first.output
    assert "Not watched: the cluster has no prometheusrules" in first.output, first.output
    namespace = cluster.one("namespaces", "gpu-operator")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert "nvidia.com/gpu.deploy.driver" not in _labels(cluster, "g1")
    assert _labels(cluster, "g2")["nvidia.com/gpu.deploy.device-plugin"] == "true"
    quota = cluster.one("resourcequotas", "gpu-tenant", "vision")
    assert quota is not None and quota["spec"]["hard"] == {"requests.nvidia.com/gpu": "4"}

    # nothing to do: also where a policy was changed by hand, which helm does not look at
    second = cluster.run(gpu_tenants=TENANTS, **file)
    assert second.code == 0 and second.changed == 0, second.output
    assert _policy(cluster)["spec"]["dcgm"]["enabled"] is False

    # the diff of one changed value is that value, in the one object that it changes
    told = cluster.run("--check", "--diff", gpu_operator_values={"dcgm": {"enabled": True}}, **file)
    assert "changed: [localhost] => (item=ClusterPolicy cluster-policy)" in told.output, told.output
    assert "ok: [localhost] => (item=Deployment gpu-operator)" in told.output, told.output
    assert "-            enabled: false\n+            enabled: true" in told.output, told.output
    assert "last-applied" not in told.output and _policy(cluster)["spec"]["dcgm"]["enabled"] is False
    _policy(cluster)["spec"]["dcgm"]["enabled"] = True
    with_objects = {"gpu_driver_version": "580.178.04", **file}

    cluster.controllers.broken.add("nvidia-device-plugin-daemonset")
    broken = cluster.run(gpu_tenants=TENANTS, gpu_operator_values=OBJECTS, **with_objects)
    assert broken.code != 0, broken.output
    assert "DaemonSet nvidia-device-plugin-daemonset: 2 of 2 pods are not ready" in _said(broken), broken.output
    assert "rolled back to revision 1" in _said(broken), broken.output
    assert not [key for key in cluster.store.objects if key[1] == "nvidiadrivers"]
    assert "driver.config" not in _labels(cluster, "g1")

    cluster.controllers.broken.clear()
    upgraded = cluster.run(gpu_operator_values=OBJECTS, gpu_tenants=[{**TENANTS[0], "priority": 5}], **with_objects)
    assert upgraded.code == 0, upgraded.output
    assert _labels(cluster, "g1")["driver.config"] == "driver-580"
    priority = cluster.one("priorityclasses", "gpu-tenant-vision")
    assert priority is not None and priority["value"] == 5

    back = cluster.run("--skip-tags", "gpu_tenants", gpu_operator_state="former")
    assert back.code == 0, back.output
    assert not [key for key in cluster.store.objects if key[1] == "nvidiadrivers"]
    assert "driver.config" not in _labels(cluster, "g1")


def test_pods_prove_the_nodes_and_an_uninstall_leaves_no_finalizer(cluster: Cluster) -> None:
    product = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/cuda.driver-version.full": "580.178.04"}
    for name, more in (("g1", {}), ("g2", {"nvidia.com/gpu.product": "NVIDIA-H100"})):
        cluster.add(name, labels={**product, **more})
        found = cluster.one("nodes", name)
        assert found is not None
        found["status"]["allocatable"] = {"nvidia.com/gpu": "8"}
    cluster.controllers.finalizer = "nvidia.com/operator"
    cluster.create({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"},
                    "handler": "nvidia"})
    wanted = {"gpu_driver_version": "580.178.04", "gpu_operator_values": OBJECTS}
    seen: list[dict[str, Any]] = []

    def pod(given: dict[str, Any]) -> tuple[dict[str, Any], str]:
        seen.append(given)
        return {"phase": "Succeeded"}, "NVIDIA L40S, 580.178.04, GPU-5\n"

    cluster.controllers.pod = pod
    run = cluster.run("--tags", "all,gpu_operator_verify", **wanted)
    assert run.code != 0, run.output
    assert "g2: the container sees NVIDIA L40S, the node's label nvidia.com/gpu.product says NVIDIA-H100" in _said(run)
    assert "g1: NVIDIA L40S / 580.178.04" in run.output, run.output
    assert len(seen) == 2 and seen[0]["spec"]["runtimeClassName"] == "nvidia"
    assert not [key for key in cluster.store.objects if key[1] == "pods"]

    cluster.controllers.stuck = True
    held = cluster.run(gpu_operator_state="absent")
    assert held.code != 0 and "(held by nvidia.com/operator)" in _said(held), held.output
    assert "does not let go of it" in _said(held) and cluster.one("deployments", "gpu-operator", "gpu-operator")
    del cluster.store.objects["apps", "deployments", "gpu-operator", "gpu-operator"]
    run = cluster.run(gpu_operator_state="absent")
    assert run.code == 0, run.output
    left = {key[1] for key in cluster.store.objects}
    assert not left & {"clusterpolicies", "nvidiadrivers", "deployments", "secrets"}, left
    assert "customresourcedefinitions" in left
    assert "driver.config" not in _labels(cluster, "g1")


def test_runs_that_are_refused_or_killed_are_mended(cluster: Cluster) -> None:
    """A webhook that refuses, and kill -9: each in the first installation (pending-install) and in an upgrade."""
    cluster.add("g1")
    denied = (403, "Forbidden", 'admission webhook "policy" denied it')
    cluster.server.faults[r"(POST|PATCH) .*/v1/clusterpolicies"] = denied
    run = cluster.run()
    assert run.code != 0 and "an admission webhook refuses the change" in _said(run), run.output
    assert "what it brought was taken out again" in _said(run), run.output
    assert not {key[1] for key in cluster.store.objects} & {"secrets", "deployments", "clusterpolicies"}
    cluster.server.faults.clear()

    cluster.killed_at(r"POST .*/clusterpolicies")
    assert cluster.one("secrets", "sh.helm.release.v1.gpu-operator.v1", "gpu-operator") is not None
    run = cluster.run()
    assert run.code == 0 and "is pending-install" in _said(run), run.output
    dcgm = {"gpu_operator_values": {"dcgm": {"enabled": True}}}
    cluster.killed_at(r"PATCH .*/clusterpolicies/cluster-policy", **dcgm)
    assert _policy(cluster)["spec"]["dcgm"]["enabled"] is False
    run = cluster.run(**dcgm)
    assert run.code == 0 and "is pending-upgrade" in _said(run) and "goes back to revision 1" in _said(run), run.output
    assert _policy(cluster)["spec"]["dcgm"]["enabled"] is True

    cluster.server.faults[r"PATCH .*/clusterpolicies/cluster-policy"] = denied
    run = cluster.run(gpu_operator_values={})
    assert run.code != 0 and "admission webhook" in _said(run), run.output
    assert _policy(cluster)["spec"]["dcgm"]["enabled"] is True
    cluster.server.faults.clear()
    again = cluster.run(gpu_operator_values={})
    assert again.code == 0 and _policy(cluster)["spec"]["dcgm"]["enabled"] is False, again.output


def test_what_is_refused_before_anything_changes(cluster: Cluster) -> None:
    """No helm, another cluster, a host that is no node, mistyped values and tenants."""
    cluster.add("g1")
    run = cluster.run(gpu_operator_helm="/nowhere/helm")
    assert run.code != 0 and "helm cannot be run as /nowhere/helm" in _said(run), run.output
    run = cluster.run(gpu_operator_cluster_uid="3f0c2a54-7c1e-4a7b-9d58-0d6c7f3b21aa")
    assert run.code != 0 and cluster.uid in run.output and "it is another cluster" in _said(run), run.output
    run = cluster.run(gpu_operator_values={"driver": {"upgradePolicy": {"maxParalelUpgrades": 4}}})
    assert run.code != 0 and "maxParallelUpgrades" in run.output, run.output
    run = cluster.run(gpu_operator_autoscaling=[{"namespace": "ai", "name": "llm"}])
    assert run.code != 0 and "gpu_operator_autoscaling[0].max: None is not allowed" in _said(run), run.output
    run = cluster.run(gpu_tenants=[{"name": "vision", "gpu": 4}])
    assert run.code != 0 and "gpu" in run.output and "gpus" in run.output, run.output
    cluster.hosts.append("g2")
    (cluster.place / "facts" / "g2.json").write_text((cluster.place / "facts" / "g1.json").read_text())
    run = cluster.run()
    assert run.code != 0 and "g2 is no node of this cluster" in _said(run), run.output
    assert cluster.store.writes == []


def test_servers_that_are_away_or_know_us_no_more(cluster: Cluster) -> None:
    cluster.add("g1")
    cluster.server.faults["."] = (503, "ServiceUnavailable", "the server is currently unable to handle the request")
    run = cluster.run()
    assert run.code != 0 and "the API server does not answer" in _said(run), run.output
    cluster.server.faults.clear()
    cluster.server.token = "another"
    run = cluster.run()
    assert run.code != 0 and "the API server does not take the credentials" in _said(run), run.output
    assert cluster.store.writes == []


def test_charts_come_from_repositories_and_registries(cluster: Cluster) -> None:
    cluster.add("g1")
    archive = _archive(cluster)
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    served = Charts(archive.rename(cluster.place / "gpu-operator-v26.7.0.tgz"), "v26.7.0")
    mirror = {"gpu_operator_chart": "gpu-operator", "gpu_operator_chart_repository": f"http://{served.address}/charts"}
    run = cluster.run("--check", **mirror)
    assert run.code != 0 and "cannot be had" in _said(run) and "401" in run.output, run.output
    # it comes, and is what the mirror has: another checksum is told with its own
    run = cluster.run(gpu_operator_chart_username=served.user, gpu_operator_chart_password=served.password,
                      gpu_operator_chart_checksum="0" * 64, **mirror)
    assert run.code != 0 and served.password not in run.output, run.output
    assert f"gpu_operator_chart_checksum is {'0' * 64}" in _said(run) and f"has {checksum}" in _said(run), run.output
    run = cluster.run("--check", gpu_operator_chart=f"oci://{served.address}/charts/gpu-operator",
                      gpu_operator_chart_plain_http=True)
    assert run.code == 0, run.output
    assert _written(cluster) == []
    served.shutdown()


def test_hosts_with_different_drivers_get_an_object_each(cluster: Cluster) -> None:
    cluster.add("g1")
    cluster.add("g2")
    cluster.variables["g1"] = {"gpu_driver_version": "580.178.04"}
    cluster.variables["g2"] = {"gpu_driver_branch": "595"}
    stale = chart.crds(without=("kernelModuleType",))
    kept = {path: path.read_text() for path in (cluster.chart / "crds").iterdir()}
    for crd in stale:
        (cluster.chart / "crds" / f"{crd['metadata']['name']}.yaml").write_text(yaml.safe_dump(crd))
    run = cluster.run()
    assert run.code != 0, run.output
    assert "The API server dropped or changed NVIDIADriver driver-580: spec.kernelModuleType" in _said(run), run.output
    for path, text in kept.items():
        path.write_text(text)
    run = cluster.run()
    assert run.code == 0, run.output
    objects = {key[3]: one for key, one in cluster.store.objects.items() if key[1] == "nvidiadrivers"}
    assert sorted(objects) == ["driver-580", "driver-595"]
    assert objects["driver-580"]["spec"]["version"] == "580.178.04"
    assert _labels(cluster, "g1")["driver.config"] == "driver-580"

    # what never changes in place is replaced, with the reason; what serves no node any more goes
    cluster.variables["g1"] = {"gpu_driver_branch": "595"}
    objects["driver-595"]["spec"].update(usePrecompiled=True, version="595")    # once precompiled
    run = cluster.run()
    assert run.code == 0 and _labels(cluster, "g1")["driver.config"] == "driver-595", run.output
    assert "driver-595: usePrecompiled never change in place" in run.output, run.output
    (left,) = [one for key, one in cluster.store.objects.items() if key[1] == "nvidiadrivers"]
    assert left["metadata"]["name"] == "driver-595" and left["spec"]["usePrecompiled"] is False
    assert left["metadata"]["uid"] != objects["driver-595"]["metadata"]["uid"]

    # a driver that does not come up goes back, also where the release itself did not change
    cluster.variables = {name: {"gpu_driver_version": "595.71.05"} for name in ("g1", "g2")}
    cluster.controllers.broken.add("nvidia-device-plugin-daemonset")
    run = cluster.run()
    assert run.code != 0 and "with its driver objects and labels" in _said(run), run.output
    (left,) = [one for key, one in cluster.store.objects.items() if key[1] == "nvidiadrivers"]
    assert left["spec"]["version"] == "595.91.07", run.output
