# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import pci
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree

RESOURCE = (
    "0x00000000c6000000 0x00000000c6ffffff 0x0000000000040200\n"
    "0x000020c000000000 0x000020dfffffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
)


def device(host, address, device="0x2330", kind="0x030200", vendor="0x10de", **files):
    where = f"/sys/bus/pci/devices/{address}"
    values = {
        "vendor": vendor, "device": device, "class": kind, "subsystem_vendor": "0x10de", "subsystem_device": "0x16c1",
        "numa_node": "1", "current_link_width": "16", "max_link_width": "16", "current_link_speed": "32.0 GT/s PCIe",
        "max_link_speed": "32.0 GT/s PCIe", "resource": RESOURCE, **files,
    }  # fmt: skip
    for name, value in values.items():
        if value is not None:
            host.put(f"{where}/{name}", value + ("" if name == "resource" else "\n"))
    return where


def test_gpu(host):
    where = device(host, "0000:3b:00.0")
    host.link(f"{where}/driver", "../../../../bus/pci/drivers/nvidia")
    context = host.read(pci.read)
    assert context.facts["gpus"] == [
        {
            "address": "0000:3b:00.0", "id": "10de:2330", "subsystem": "10de:16c1", "class": "0302", "driver": "nvidia",
            "numa_node": 1, "link": {"width": 16, "width_max": 16, "speed": 32.0, "speed_max": 32.0}, "bar_ok": True,
            "persistence": None, "mig": None, "fabric": None,
        }
    ]  # fmt: skip
    assert context.facts["nvswitches"] == [] and context.unknown == {}


def test_other_devices_are_left_out(host):
    device(host, "0000:01:00.0", vendor="0x8086")
    device(host, "0000:3b:00.1", kind="0x040300")
    device(host, "0000:05:00.0", device="0x22a3", kind="0x068000")
    context = host.read(pci.read)
    assert context.facts["gpus"] == []
    assert context.facts["nvswitches"] == [{"address": "0000:05:00.0", "id": "10de:22a3"}]


def test_no_node_no_subsystem_no_driver_no_link(host):
    device(host, "0000:01:00.0", numa_node="-1", subsystem_vendor="0x0000", current_link_width="0",
           current_link_speed="Unknown")  # fmt: skip
    row = host.read(pci.read).facts["gpus"][0]
    assert (row["numa_node"], row["subsystem"], row["driver"]) == (None, None, None)
    assert row["link"]["width"] is None and row["link"]["speed"] is None and row["link"]["width_max"] == 16


class OtherFileSystem(Tree):
    """A tree in which a directory is another file system than what it lies in, as a mount makes it."""

    def stat(self, path):
        found = super().stat(path)
        return os.stat_result([*found[:2], found.st_dev + 1, *found[3:]]) if path == pci.DEVICES else found


def test_devices_that_are_not_the_kernels_own_tell_no_driver(host):
    device(host, "0000:3b:00.0")
    context = Context(OtherFileSystem(str(host.root)))
    pci.read(context)
    (row,) = context.facts["gpus"]
    assert "driver" not in row and (row["id"], row["numa_node"], row["bar_ok"]) == ("10de:2330", 1, True)
    assert list(context.unknown) == ["gpus[0000:3b:00.0].driver"]
    assert "another file system lies over /sys/bus/pci/devices" in context.unknown["gpus[0000:3b:00.0].driver"]


def test_a_driver_that_such_a_device_names_is_told(host):
    host.link(f"{device(host, '0000:3b:00.0')}/driver", "../../../../bus/pci/drivers/vfio-pci")
    context = Context(OtherFileSystem(str(host.root)))
    pci.read(context)
    assert context.facts["gpus"][0]["driver"] == "vfio-pci" and context.unknown == {}


HOPPER = (
    "0x000021e042000000 0x000021e042ffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    "0x000021c000000000 0x000021dfffffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    "0x000021e040000000 0x000021e041ffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
)


@pytest.mark.parametrize(
    ("lines", "fine"),
    [
        (RESOURCE, True),
        (RESOURCE.replace("0x000020c000000000 0x000020dfffffffff", "0x0000000000000000 0x0000001fffffffff"), False),
        (RESOURCE.replace("0x000000000014220c", "0x000000002014220c"), False),
        (RESOURCE.replace("0x000020c000000000 0x000020dfffffffff 0x000000000014220c", "0x0 0x0 0x0"), False),
        (RESOURCE.replace("00c6000000 0x00000000c6ffffff", "0000000000 0x0000000000ffffff"), False),
        (HOPPER, True),
        (HOPPER.replace("0x000021c000000000 0x000021dfffffffff", "0x0000000000000000 0x0000001fffffffff"), False),
    ],
)
def test_bars(lines, fine):
    assert pci.bars_ok(lines) is fine


@pytest.mark.parametrize(
    "lines", [HOPPER.replace("0x000021c000000000 0x000021dfffffffff 0x000000000014220c", "0x0 0x0 0x0"), "", "x\n"]
)
def test_bars_that_tell_nothing(lines):
    with pytest.raises(ValueError):
        pci.bars_ok(lines)


def test_missing_resource_is_unknown_and_no_verdict(host):
    device(host, "0000:3b:00.0", resource=None)
    context = host.read(pci.read)
    assert "bar_ok" not in context.facts["gpus"][0]
    assert "gpus[0000:3b:00.0].bar_ok" in context.unknown


def test_a_damaged_device_does_not_hide_the_others(host):
    device(host, "0000:3b:00.0", device="")
    device(host, "0000:5e:00.0")
    context = host.read(pci.read)
    assert [row["address"] for row in context.facts["gpus"]] == ["0000:5e:00.0"]
    assert "gpus[0000:3b:00.0]" in context.unknown


def test_without_sysfs(host):
    context = host.read(pci.read)
    assert set(context.unknown) == {"gpus", "nvswitches"} and context.facts == {}
