# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and containers over CRI, as a kubelet asks for them: start NAME HANDLER [DEVICE…] | list | version | remove POD.

Debian has no crictl. The few messages that are needed are written by hand in protobuf's wire form, with the field
numbers of k8s.io/cri-api runtime/v1; python3-grpcio carries them. What is found is printed as JSON.
"""
from __future__ import annotations

import json
import sys
from typing import Any

import grpc

SOCKET = "unix:///run/containerd/containerd.sock"
IMAGE = "localhost/lab/sleeper:1"
HOST_NETWORK = {2: {1: {1: 2}}}  # LinuxPodSandboxConfig.security_context.namespace_options.network = NODE


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def encode(message: dict[int, Any]) -> bytes:
    """A message from {field number: int, text, message or list of these}."""
    out = b""
    for field, value in message.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int):
                out += varint(field << 3) + varint(one)
            else:
                data = one.encode() if isinstance(one, str) else encode(one)
                out += varint(field << 3 | 2) + varint(len(data)) + data
    return out


def decode(data: bytes) -> dict[int, list[Any]]:
    """The fields of a message: numbers, and bytes for texts and messages."""
    fields: dict[int, list[Any]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            value: Any = number()
        elif key & 7 == 2:
            size = number()
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {key & 7} is not used by these messages")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def call(channel: grpc.Channel, method: str, message: dict[int, Any]) -> dict[int, list[Any]]:
    ask = channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")
    return decode(ask(encode(message), timeout=240))


def pod(name: str) -> dict[int, Any]:
    return {1: {1: name, 2: f"uid-{name}", 3: "lab"}, 4: {}, 8: HOST_NETWORK}


def start(channel: grpc.Channel, name: str, handler: str, devices: list[str]) -> dict[str, str]:
    sandbox = call(channel, "RunPodSandbox", {1: pod(name), 2: handler})[1][0].decode()
    container = {1: {1: name}, 2: {1: IMAGE}, 8: [{1: one, 2: one, 3: "rwm"} for one in devices], 15: {}}
    created = call(channel, "CreateContainer", {1: sandbox, 2: container, 3: pod(name)})[1][0].decode()
    call(channel, "StartContainer", {1: created})
    return {"pod": sandbox, "container": created}


def containers(channel: grpc.Channel) -> list[dict[str, Any]]:
    rows = [decode(one) for one in call(channel, "ListContainers", {}).get(1, [])]
    return [{"container": row[1][0].decode(), "pod": row[2][0].decode(), "name": decode(row[3][0])[1][0].decode(),
             "running": row.get(6, [0])[0] == 1} for row in rows]


def main(words: list[str]) -> Any:
    with grpc.insecure_channel(SOCKET, options=[("grpc.default_authority", "localhost")]) as channel:
        if words[0] == "start":
            return start(channel, words[1], words[2], words[3:])
        if words[0] == "list":
            return containers(channel)
        if words[0] == "remove":
            call(channel, "StopPodSandbox", {1: words[1]})
            call(channel, "RemovePodSandbox", {1: words[1]})
            return {}
        told = call(channel, "Version", {})
        return {"name": told[2][0].decode(), "version": told[3][0].decode()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
