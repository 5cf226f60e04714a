# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
from __future__ import annotations

import hashlib
import json

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import containers
from facts_helpers import Programs

MAIN = "/etc/containerd/config.toml"


def containerd(host):
    context = host.read(containers.read)
    return context.facts["containers"]["containerd"], context


def put(host, text='version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n', program="/usr/bin/containerd"):
    host.put(program)
    if text is not None:
        host.put(MAIN, text)


def test_nothing_installed(host):
    context = host.read(containers.read)
    assert context.facts["containers"] == {
        "containerd": None, "docker": None, "crio": None, "toolkit": None, "runc": None, "cdi": [], "dev_char": None,
    }  # fmt: skip
    assert list(context.unknown) == ["containers.gpu"]  # nothing runs in a tree


def test_config_and_drop_ins(host):
    put(host)
    host.put("/etc/containerd/conf.d/99-nvidia.toml", "version = 2\n")
    host.put("/etc/containerd/conf.d/readme.txt", "x")
    facts, _rest = containerd(host)
    text = host.path(MAIN).read_bytes()
    assert facts["config"] == {
        "path": MAIN, "text": text.decode(), "sha256": hashlib.sha256(text).hexdigest(),
        "drop_ins": {"/etc/containerd/conf.d/99-nvidia.toml": "version = 2\n"},
    }  # fmt: skip
    assert facts["owner"] == "host" and facts["socket"] == "/run/containerd/containerd.sock"


def test_no_config_file(host):
    put(host, None)
    facts, _rest = containerd(host)
    assert facts["config"] == {"path": MAIN, "text": None, "sha256": None, "drop_ins": {}}


def test_drop_in_that_nothing_imports(host):
    put(host, "version = 3\n")
    host.put("/etc/containerd/config.d/x.toml", "version = 3\n")
    assert list(containerd(host)[0]["config"]["drop_ins"]) == ["/etc/containerd/config.d/x.toml"]


def test_imports_of_imports_relative_and_circular(host):
    put(
        host,
        "imports = [\n  'extra.toml', # why\n  # '/etc/containerd/off.toml',\n  \"/etc/containerd/missing.toml\",\n]\n",
    )
    host.put(
        "/etc/containerd/extra.toml", 'imports = ["/opt/more.toml", "/etc/containerd/config.toml", "extra.toml"]\n'
    )
    host.put("/opt/more.toml", "version = 2\n")
    host.put("/etc/containerd/off.toml", "version = 2\n")
    facts, context = containerd(host)
    assert list(facts["config"]["drop_ins"]) == ["/etc/containerd/extra.toml", "/opt/more.toml"]
    assert not any("drop_ins" in path for path in context.unknown)


def test_secrets_are_masked_and_it_is_said(host):
    put(
        host,
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.configs."r".auth]\n  username = "u"\n  password = "hunter2"\n',
    )
    host.put("/etc/containerd/conf.d/a.toml", '[x]\nauth = "aHVudGVyMg=="\n')
    facts, _rest = containerd(host)
    assert "hunter2" not in json.dumps(facts) and "aHVudGVyMg" not in json.dumps(facts)
    assert facts["config"]["masked"] is True
    assert facts["config"]["sha256"] == hashlib.sha256(host.path(MAIN).read_bytes()).hexdigest()


def test_nothing_masked_is_not_said(host):
    put(host)
    assert "masked" not in containerd(host)[0]["config"]


def test_bytes_that_are_no_text(host):
    put(host, None)
    host.put(MAIN, b"version = 2 # \xff\xfe\n")
    facts, _rest = containerd(host)
    assert facts["config"]["text"] == "version = 2 # ��\n"
    assert facts["config"]["sha256"] == hashlib.sha256(b"version = 2 # \xff\xfe\n").hexdigest()
    json.dumps(facts).encode()


def test_unreadable_config(host):
    put(host, None)
    host.directory(MAIN)
    facts, context = containerd(host)
    assert "text" not in facts["config"] and "containers.containerd.config.text" in context.unknown


def test_many_drop_ins(host):
    put(host)
    for number in range(30):
        host.put(f"/etc/containerd/conf.d/{number:02}.toml", "version = 2\n")
    facts, context = containerd(host)
    assert len(facts["config"]["drop_ins"]) == 20 and "containers.containerd.config.drop_ins[]" in context.unknown


@pytest.mark.parametrize(
    ("files", "owner", "socket", "path"),
    [
        (
            {"/var/lib/rancher/k3s/agent/etc/containerd/config.toml": "version = 3\n", "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.tmpl": "x"},
            "k3s", "/run/k3s/containerd/containerd.sock", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        ),
        (
            {"/var/lib/rancher/rke2/agent/etc/containerd/config.toml": "version = 3\n"},
            "rke2", "/run/k3s/containerd/containerd.sock", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        ),
        ({"/var/lib/k0s/bin/containerd": "", "/etc/k0s/containerd.toml": "version = 2\n"}, "k0s", "/run/k0s/containerd.sock", "/etc/k0s/containerd.toml"),
        (
            {"/snap/microk8s/current/bin/containerd": "", "/var/snap/microk8s/current/args/containerd-template.toml": "x"},
            "microk8s", "/var/snap/microk8s/common/run/containerd.sock", "/var/snap/microk8s/current/args/containerd.toml",
        ),
        (
            {"/usr/local/bin/containerd": "", MAIN: '# Ansible managed\nversion = 2\nbase_runtime_spec = "/etc/containerd/cri-base.json"\n'},
            "kubespray", "/run/containerd/containerd.sock", MAIN,
        ),
        (
            {"/usr/bin/containerd": "", MAIN: 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n',
             "/etc/containerd/conf.d/99-nvidia.toml": 'BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"\n'},
            "operator", "/run/containerd/containerd.sock", MAIN,
        ),
        ({"/usr/bin/containerd": "", MAIN: "version = 2\n"}, "host", "/run/containerd/containerd.sock", MAIN),
    ],
)  # fmt: skip
def test_owners(host, files, owner, socket, path):
    host.many(files)
    facts, _rest = containerd(host)
    assert (facts["owner"], facts["socket"], facts["config"]["path"]) == (owner, socket, path)


def test_templates_of_k3s_are_shown(host):
    base = "/var/lib/rancher/k3s/agent/etc/containerd"
    host.many({f"{base}/config.toml": "version = 3\n", f"{base}/config-v3.toml.tmpl": "{{ template }}"})
    assert containerd(host)[0]["config"]["drop_ins"] == {f"{base}/config-v3.toml.tmpl": "{{ template }}"}


@pytest.mark.parametrize(
    ("out", "version"),
    [
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n", "1.6.20"),
        ("containerd containerd.io 1.7.24 88bf19b2105c8b17560993bee28a01ddc2f97182\n", "1.7.24"),
        ("containerd github.com/containerd/containerd/v2 v2.1.5 fcd43222d6b07379a4be9786bda52438f0dd16a1\n", "2.1.5"),
        ("containerd github.com/k3s-io/containerd v2.2.7-k3s1\n", "2.2.7-k3s1"),
    ],
)
def test_version_printed(host, as_host, out, version):
    put(host)
    context = as_host(containers.read, Programs(containerd=children.Result(rc=0, out=out)))
    assert context.facts["containers"]["containerd"]["version"] == version


def test_version_of_the_package_when_it_does_not_answer(host, as_host):
    put(host)
    programs = Programs(containerd=children.Result(rc=124, timed_out=True, pid=5))
    assert "containers.containerd.version" in as_host(containers.read, programs).unknown
    host.put(
        "/var/lib/dpkg/status",
        "Package: containerd.io\nStatus: install ok installed\nVersion: 2.3.4-1~debian.12~bookworm\n\n",
    )
    assert as_host(containers.read, programs).facts["containers"]["containerd"]["version"] == "2.3.4"


def test_active_by_the_service_manager(host):
    put(host)
    for active in (True, False):
        known = {"services": {"containerd.service": {"enabled": True, "active": active, "failed": False}}}
        context = host.read(containers.read, known=known)
        assert context.facts["containers"]["containerd"]["active"] is active


def test_active_by_the_processes_without_systemd(host, as_host):
    put(host)
    host.put("/proc/1/comm", "sh\n")
    assert as_host(containers.read).facts["containers"]["containerd"]["active"] is False
    host.put("/proc/20/comm", "containerd\n")
    assert as_host(containers.read).facts["containers"]["containerd"]["active"] is True


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ('[nvidia-container-cli]\nmode = "x"\n[nvidia-container-runtime]\n#mode = "legacy"\nmode = "cdi"\n', "cdi"),
        ('[nvidia-container-runtime]\nlog-level = "info"\n[nvidia-container-runtime.modes.csv]\nmode = "no"\n', "auto"),
        ("", "auto"),
    ],
)
def test_toolkit_mode(text, mode):
    assert containers.mode(text) == mode


def test_toolkit(host):
    host.put(
        "/var/lib/dpkg/status", "Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.20.0-1\n\n"
    )
    host.put("/etc/nvidia-container-runtime/config.toml", '[nvidia-container-runtime]\nmode = "legacy"\n')
    assert host.read(containers.read).facts["containers"]["toolkit"] == {
        "version": "1.20.0", "mode": "legacy", "config": {"nvidia-container-runtime.mode": "legacy"}}


def test_toolkit_without_a_package(host, as_host):
    host.put("/usr/bin/nvidia-ctk")
    programs = Programs(
        nvidia_ctk=children.Result(rc=0, out="NVIDIA Container Toolkit CLI version 1.17.4\ncommit: x\n")
    )
    assert as_host(containers.read, programs).facts["containers"]["toolkit"]["version"] == "1.17.4"


def test_runc(host, as_host):
    host.put("/usr/sbin/runc")
    programs = Programs(runc=children.Result(rc=0, out="runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1\n"))
    assert as_host(containers.read, programs).facts["containers"]["runc"] == "1.1.5"


def test_cdi(host):
    spec = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  mounts:\n  - hostPath: /usr/lib/libnvidia-ml.so.580.95.05\n"
    host.put("/run/cdi/nvidia.yaml", spec)
    host.link("/var/run", "/run")
    host.put("/etc/cdi/other.json", '{"kind": "example.com/x"}')
    host.put("/etc/cdi/empty.yaml", "kind: nvidia.com/gpu\n")
    assert host.read(containers.read).facts["containers"]["cdi"] == [
        {"path": "/etc/cdi/empty.yaml", "driver": None},
        {"path": "/var/run/cdi/nvidia.yaml", "driver": "580.95.05"},
    ]
