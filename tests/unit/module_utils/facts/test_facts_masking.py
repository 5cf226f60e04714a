# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing secret leaves a host, and what is no secret stays readable."""

from __future__ import annotations

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import masking


@pytest.mark.parametrize(
    "line",
    [
        'password = "hunter2secret"',
        "password = 'hunter2secret'",
        'auth = "hunter2secret"',
        'identitytoken = "hunter2secret"',
        "  identity_token=hunter2secret",
        'password = """hunter2secret"""',
        'password = """\nhunter2secret\n"""',
        "passwd: hunter2secret",
        '"secret_key" = "hunter2secret"',
        'Authorization = ["Basic hunter2secret"]',
        'authorization = "Bearer hunter2secret"',
        '[a.auth]\n  password = "a\\"hunter2secret"',
        "http://user:hunter2secret@proxy.example.net:3128",
        "https://user:p@hunter2secret@proxy.example.net/",
        "https://hunter2secret@repo.example.net/debian",
        "https://repo.example.net/debian?token=hunter2secret&x=1",
        'env = ["HTTPS_PROXY=http://u:hunter2secret@p:1"]',
        "root=/dev/sda1 rd.password=hunter2secret quiet",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2secret\n-----END RSA PRIVATE KEY-----",
        "header: Basic hunter2secretAAAA=",
        'registry_token = "hunter2secret"',
        "api-key: hunter2secret",
    ],
)
def test_secret_is_gone(line):
    masked = masking.text(line)
    assert "hunter2secret" not in masked
    assert masking.MASK in masked


@pytest.mark.parametrize(
    "line",
    [
        'runtime_type = "io.containerd.runc.v2"',
        'sandbox_image = "registry.example.net/pause:3.10"',
        '[plugins."io.containerd.grpc.v1.cri".registry.configs."x".auth]',
        'endpoint = ["https://mirror.example.net:5000"]',
        'username = "robot"',
        "enable_unprivileged_ports = true",
        "root=/dev/mapper/vg0-root ro quiet console=ttyS0,115200",
        "stream_server_address = '127.0.0.1'",
        "auth = false",
        'tls = {ca_file = "/etc/ca.pem", key_file = "/etc/key.pem"}',
        "git@example.net:path",
        "max_concurrent_downloads = 3",
    ],
)
def test_the_rest_is_left_alone(line):
    assert masking.text(line) == line


def test_masked_toml_is_still_toml():
    tomllib = pytest.importorskip("tomllib")
    text = """version = 2
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example.net".auth]
  username = "robot"
  password = "hunter2secret"
  auth = '''multi
hunter2secret'''
  identitytoken = ""
[plugins."io.containerd.grpc.v1.cri".registry.headers]
  Authorization = ["Basic hunter2secret", "hunter2secret"]
  X-Other = ["value"]
"""
    masked = masking.text(text)
    assert "hunter2secret" not in masked
    loaded = tomllib.loads(masked)
    registry = loaded["plugins"]["io.containerd.grpc.v1.cri"]["registry"]
    assert registry["configs"]["registry.example.net"]["auth"]["username"] == "robot"
    assert registry["headers"]["X-Other"] == ["value"]


def test_masking_twice_changes_nothing():
    once = masking.text('password = "hunter2secret" http://a:hunter2secret@b/')
    assert masking.text(once) == once


def test_a_long_text_takes_no_time():
    import time

    before = time.monotonic()
    masking.text("a" * 200_000 + " token_" * 20_000 + "http://" * 20_000)
    assert time.monotonic() - before < 5
