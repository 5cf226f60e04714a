# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the metrics of this host's GPUs as a text file for node_exporter: nvidia-smi once, and the kernel log.

Names, units and labels are those of dcgm-exporter where it has the same number, so that the same alerts and dashboards
serve. Run by a systemd timer. Needs Python 3.6 and nothing else. The file is replaced as a whole: a reader sees the old
one or the new one.

    python3 -I gpu_metrics.py --directory DIR [--timeout SECONDS]
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

NAME = "baremetal-nvidia.prom"
WINDOW = 300    # seconds of the kernel log that are counted, as dcgm-exporter's window
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)[^)]*\): ([0-9]+)")
MIB = re.compile(r"([0-9]+) MiB")
# metric: (kind, help, path in nvidia-smi -q -x). The first path that has a number counts.
FIELDS = (
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock in MHz", ("clocks/sm_clock",)),
    ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock in MHz", ("clocks/mem_clock",)),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature in degrees Celsius", ("temperature/gpu_temp",)),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature in degrees Celsius", ("temperature/memory_temp",)),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw in W",
     ("gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw")),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power limit in force in W",
     ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit", "power_readings/power_limit")),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilisation in percent", ("utilization/gpu_util",)),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilisation in percent", ("utilization/memory_util",)),
    ("DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilisation in percent", ("utilization/encoder_util",)),
    ("DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilisation in percent", ("utilization/decoder_util",)),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "Free memory in MiB", ("fb_memory_usage/free",)),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Used memory in MiB", ("fb_memory_usage/used",)),
    ("DCGM_FI_DEV_FB_RESERVED", "gauge", "Reserved memory in MiB", ("fb_memory_usage/reserved",)),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe replays", ("pci/replay_counter",)),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for corrected errors",
     ("remapped_rows/remapped_row_corr",)),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for uncorrected errors",
     ("remapped_rows/remapped_row_unc",)),
)
# metric: (help, path), where Yes is 1 and No is 0
FLAGS = (
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether a row could not be remapped", "remapped_rows/remapped_row_failure"),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", "Whether a remapped row waits for a reset", "remapped_rows/remapped_row_pending"),
    ("DCGM_FI_DEV_RETIRED_PENDING", "Whether retired pages wait for a reset", "retired_pages/pending_retirement"),
)
# bits of nvml.h, by the tag that the report has for each (clocks_event_reason_… since R535, before clocks_throttle_…)
REASONS = (
    (0x1, "gpu_idle"), (0x2, "applications_clocks_setting"), (0x4, "sw_power_cap"), (0x8, "hw_slowdown"),
    (0x10, "sync_boost"), (0x20, "sw_thermal_slowdown"), (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"), (0x100, "display_clocks_setting"),
)
FABRIC = {"Not Started": 1, "In Progress": 2, "Completed": 3}


def text(node, path):
    """The text of an element, None where the driver says that it does not apply."""
    value = (node.findtext(path) or "").strip()
    return None if value.strip("[]") in ("", "N/A", "Not Supported", "Not Found", "Unknown Error") else value


def number(value):
    """The number that a text begins with, None if it begins with none."""
    found = re.match(r"-?[0-9]+(?:\.[0-9]+)?", value or "")
    return float(found.group()) if found else None


def address(value):
    """A PCI address without the zeros that NVML puts before its domain: 0000:17:00.0."""
    domain, _colon, rest = (value or "").lower().partition(":")
    return "{}:{}".format(domain[-4:].rjust(4, "0"), rest)


def ecc(gpu, names):
    """Errors since the driver was loaded over all kinds of memory, None without ECC."""
    volatile = gpu.find("ecc_errors/volatile")
    if volatile is None:
        return None
    total = number(text(volatile, names[0] + "/total"))
    if total is not None:
        return total
    found = [number(item.text) for item in volatile.iter() if item.tag.endswith(names[1:])]
    found = [one for one in found if one is not None]
    return sum(found) if found else None


def reasons(gpu):
    """The bit mask of what holds clocks back, None where it is not told."""
    for group, prefix in (("clocks_event_reasons", "clocks_event_reason_"),
                          ("clocks_throttle_reasons", "clocks_throttle_reason_")):
        node = gpu.find(group)
        if node is not None and list(node):
            return sum(bit for bit, name in REASONS if (node.findtext(prefix + name) or "").strip() == "Active")
    return None


def fabric(gpu):
    """The fabric's state as DCGM numbers it, None without one."""
    state = text(gpu, "fabric/state")
    value = FABRIC.get(state)
    return 4 if value == 3 and text(gpu, "fabric/status") not in (None, "Success") else value


def of_gpu(gpu):
    """Yield (metric, kind, help, value) of one GPU."""
    for name, kind, about, paths in FIELDS:
        value = next((found for found in (number(text(gpu, path)) for path in paths) if found is not None), None)
        yield name, kind, about, value
    for name, about, path in FLAGS:
        value = text(gpu, path)
        yield name, "gauge", about, None if value is None else float(value == "Yes")
    yield ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Uncorrected ECC errors since the driver was loaded",
           ecc(gpu, ("double_bit", "_uncorrectable", "_uncorrectable_parity", "_uncorrectable_secded")))
    yield ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Corrected ECC errors since the driver was loaded",
           ecc(gpu, ("single_bit", "_correctable")))
    yield ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "Why clocks are held back as a bit mask", reasons(gpu))
    yield ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "gauge",
           "Fabric: 1 not started 2 in progress 3 success 4 failure", fabric(gpu))


def ask(program, timeout):
    """What nvidia-smi reports, as (root element, None) or (None, why). One that hangs in the kernel is left behind."""
    child = subprocess.Popen([program, "-q", "-x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        out = child.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return None, f"it did not answer within {timeout:g} s"
    if child.returncode != 0:
        return None, f"it ended with {child.returncode}"
    if b"<!ENTITY" in out:
        return None, "entities in its report"
    try:
        root = ElementTree.fromstring(out)
    except ElementTree.ParseError as error:
        return None, f"its report cannot be read: {error}"
    return (root, None) if root.tag == "nvidia_smi_log" else (None, f"its report begins with <{root.tag}>")


def kernel_log(path="/dev/kmsg"):
    """The records of the kernel's ring buffer, without waiting for new ones. Each is "prio,seq,microseconds,-;text".

    Raises OSError for a log that cannot be read to its end: half of it would count as quiet GPUs.
    """
    found = []
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                record = os.read(fd, 8192)
            except BlockingIOError:
                return found
            except BrokenPipeError:    # overwritten while it was read: go on with the next
                continue
            if not record:
                return found
            found.append(record.decode("utf-8", "replace"))
    finally:
        os.close(fd)


def xids(records, now):
    """{address: {xid: how many}} of the last minutes. now: seconds of the clock that the kernel log has."""
    found = {}
    for record in records:
        head, _mark, said = record.partition(";")
        match = XID.search(said)
        parts = head.split(",")
        if match and len(parts) > 2 and parts[2].isdigit() and now - int(parts[2]) / 1e6 <= WINDOW:
            where = match.group(1) if "." in match.group(1) else match.group(1) + ".0"
            codes = found.setdefault(address(where), {})
            codes[match.group(2)] = codes.get(match.group(2), 0) + 1
    return found


def on_bus(devices="/sys/bus/pci/devices"):
    """How many GPUs of NVIDIA there are on the PCI bus, less those that are kept for virtual machines."""
    count = 0
    for name in os.listdir(devices) if os.path.isdir(devices) else ():
        here = os.path.join(devices, name)
        try:
            with open(os.path.join(here, "vendor")) as vendor, open(os.path.join(here, "class")) as kind:
                ours = vendor.read().strip() == "0x10de" and kind.read().strip()[:6] in ("0x0300", "0x0302")
        except OSError:
            continue
        driver = os.path.basename(os.path.realpath(os.path.join(here, "driver")))
        count += ours and driver not in ("vfio-pci", "pci-stub")
    return count


def escape(value):
    """A label's value as the text format wants it."""
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Page:
    """The file as it grows: each metric once, with its series."""

    def __init__(self):
        self.metrics = {}

    def add(self, name, kind, about, value, labels=()):
        """Add a series; a value of None is none."""
        if value is not None:
            listed = ",".join(f'{key}="{escape(told)}"' for key, told in labels)
            number_ = f"{value:.3f}".rstrip("0").rstrip(".")
            series = "{}{} {}".format(name, "{" + listed + "}" if listed else "", number_)
            self.metrics.setdefault(name, (kind, about, []))[2].append(series)

    def text(self):
        """The whole file."""
        lines = []
        for name, (kind, about, series) in self.metrics.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            lines += series
        return "\n".join(lines) + "\n"


def fill(page, root, logged):
    """Add what nvidia-smi reports, and the XIDs of each GPU."""
    driver = text(root, "driver_version") or ""
    gpus = root.findall("gpu")
    for index, gpu in enumerate(gpus):
        where = address(gpu.get("id") or text(gpu, "pci/pci_bus_id"))
        minor = text(gpu, "minor_number")
        labels = (("gpu", index), ("UUID", text(gpu, "uuid") or ""), ("pci_bus_id", where),
                  ("device", f"nvidia{index if minor is None else minor}"),
                  ("modelName", text(gpu, "product_name") or ""), ("DCGM_FI_DRIVER_VERSION", driver))
        for name, kind, about, value in of_gpu(gpu):
            page.add(name, kind, about, value, labels)
        for xid, count in sorted((logged or {}).get(where, {}).items()):
            page.add("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "XIDs of the last five minutes", count,
                     (*labels, ("window_size_in_ms", WINDOW * 1000), ("xid", xid)))
        if logged is not None and where not in logged:
            page.add("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "XIDs of the last five minutes", 0,
                     (*labels, ("window_size_in_ms", WINDOW * 1000)))
    return len(gpus)


def warn(said):
    """Tell the journal, as a warning: of less than that the unit keeps nothing, since it runs each few seconds."""
    print(f"<4>{said}", file=sys.stderr)


def collect(program, timeout, loaded):
    """The text of the file."""
    page = Page()
    try:
        logged = xids(kernel_log(), time.clock_gettime(time.CLOCK_MONOTONIC))
    except OSError as error:
        logged = None
        warn(f"the kernel log cannot be read, so XIDs are not counted: {error}")
    begun = time.monotonic()
    if not loaded:    # as root, nvidia-smi would load the module
        root, why = None, "not started: the nvidia module is not loaded"
    else:
        try:
            root, why = ask(program, timeout)
        except OSError as error:
            root, why = None, str(error)
    if why:
        warn(f"nvidia-smi: {why}")
    page.add("baremetal_nvidia_smi_up", "gauge", "Whether nvidia-smi answered", int(root is not None))
    page.add("baremetal_nvidia_smi_seconds", "gauge", "How long nvidia-smi took", time.monotonic() - begun)
    page.add("baremetal_nvidia_collected_timestamp_seconds", "gauge", "When this was written", int(time.time()))
    page.add("baremetal_nvidia_gpus_on_bus", "gauge", "GPUs on the PCI bus", on_bus())
    if root is not None:
        page.add("baremetal_nvidia_gpus", "gauge", "GPUs that nvidia-smi shows", fill(page, root, logged))
    return page.text()


def publish(directory, content):
    """Replace the file in one step. node_exporter reads *.prom alone, so it never sees the half of it."""
    fd, beside = tempfile.mkstemp(prefix="." + NAME + ".", dir=directory)
    try:
        with os.fdopen(fd, "w") as handle:
            handle.write(content)
            os.fchmod(handle.fileno(), 0o644)
        os.rename(beside, os.path.join(directory, NAME))
    except BaseException:
        os.unlink(beside)
        raise


def main():
    """Collect once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", required=True, help="the directory that node_exporter reads")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that nvidia-smi may take")
    parser.add_argument("--nvidia-smi", default="nvidia-smi", help="the program")
    parser.add_argument("--loaded", default="/proc/driver/nvidia/version", help="there while the module is loaded")
    options = parser.parse_args()
    for left in os.listdir(options.directory):    # of a run that was cut off
        if left.startswith("." + NAME + "."):
            os.unlink(os.path.join(options.directory, left))
    publish(options.directory, collect(options.nvidia_smi, options.timeout, os.path.exists(options.loaded)))


if __name__ == "__main__":
    main()
