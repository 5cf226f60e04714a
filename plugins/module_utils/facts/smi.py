# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi: asked once, in XML, which every driver version answers (a field list fails as a whole on an older one).

Source: ``nvidia-smi -q -x`` and its DTD (nvsmi_device_v*.dtd).
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from .context import Context
from .health import long_address

OPERATOR_ROOT = "/run/nvidia/driver"


def read(ctx: Context, unloaded: bool = False) -> None:
    """``driver.smi``, ``health`` and ``smi_gpus`` (address → what the driver says of it; joined by the collector).

    With ``unloaded`` it is not started: as root it would load the module, and facts change nothing.
    """
    tree = ctx.tree
    program = ctx.which("nvidia-smi")
    argv = [program, "-q", "-x"] if program else None
    if argv is None and tree.isfile(f"{OPERATOR_ROOT}/usr/bin/nvidia-smi"):
        argv = ["chroot", OPERATOR_ROOT, "nvidia-smi", "-q", "-x"]
    if argv is None:
        ctx.set("driver.smi", answer("missing"))
        without(ctx, None)
        return
    if not tree.is_host:
        ctx.cannot("driver.smi", "another tree is read: nvidia-smi is not started")
        without(ctx, "nvidia-smi is not started")
        return
    if unloaded:
        failed = answer("failed")
        failed["error"] = "not started: the nvidia module is not loaded"
        ctx.set("driver.smi", failed)
        without(ctx, None)
        return
    result = ctx.run(argv, timeout=ctx.smi_timeout)
    if result.timed_out:
        ctx.set("driver.smi", answer("timeout"))
        without(ctx, result.why("nvidia-smi"))
        return
    if result.rc != 0:
        failed = answer("failed", rc=result.rc)
        failed["error"] = message(result.out, result.err)
        ctx.set("driver.smi", failed)
        without(ctx, result.why("nvidia-smi"))
        return
    try:
        report = parse(result.out)
    except (ElementTree.ParseError, ValueError) as error:
        failed = answer("failed", rc=result.rc)
        failed["error"] = f"its answer cannot be read: {error}"[:200]
        ctx.set("driver.smi", failed)
        without(ctx, "the answer of nvidia-smi cannot be read")
        return
    ctx.set("driver.smi", answer("ok", 0, report["driver"], report["cuda"], len(report["gpus"])))
    ctx.set("smi_gpus", report["gpus"])
    rows = report["gpus"].values()
    ctx.set("health.ecc_uncorrected", sum(row["ecc_uncorrected"] for row in rows if row["ecc_uncorrected"] is not None))
    ctx.set("health.row_remap_failure", any(row["row_remap_failure"] for row in rows))


def answer(
    status: str, rc: int | None = None, driver: str | None = None, cuda: str | None = None, gpus: int | None = None
) -> dict[str, Any]:
    return {"status": status, "rc": rc, "driver": driver, "cuda": cuda, "gpus": gpus}


def without(ctx: Context, why: str | None) -> None:
    """What only the driver can tell: null without a driver, unknown when it does not answer."""
    for path in ("health.ecc_uncorrected", "health.row_remap_failure"):
        if why is None:
            ctx.set(path, None)
        else:
            ctx.cannot(path, why)
    if why is not None:
        ctx.set("smi_silent", why)


def message(out: str, err: str) -> str:
    """The first line that a failed nvidia-smi printed."""
    for line in (out + "\n" + err).splitlines():
        if line.strip() and not line.lstrip().startswith("<"):
            return line.strip()[:200]
    return "it printed nothing"


def parse(xml: str) -> dict[str, Any]:
    """``{driver, cuda, gpus: {address: {persistence, mig, fabric, ecc_uncorrected, row_remap_failure}}}``.

    Raises ValueError or ElementTree.ParseError for anything else than nvidia-smi's report.
    """
    if "<!ENTITY" in xml:
        raise ValueError("entities in the report")
    root = ElementTree.fromstring(xml)
    if root.tag != "nvidia_smi_log":
        raise ValueError(f"the report begins with <{root.tag}>")
    gpus = {}
    for node in root.findall("gpu"):
        address = long_address(node.get("id") or _text(node, "pci/pci_bus_id") or "")
        gpus[address] = {
            "persistence": _on(_text(node, "persistence_mode")),
            "mig": _mig(node),
            "fabric": _fabric(node),
            "ecc_uncorrected": _ecc(node),
            "row_remap_failure": _text(node, "remapped_rows/remapped_row_failure") == "Yes",
        }
    return {"driver": _text(root, "driver_version"), "cuda": _text(root, "cuda_version"), "gpus": gpus}


def _text(node: ElementTree.Element, path: str) -> str | None:
    """The text of an element; None where the driver says that it does not apply."""
    value = (node.findtext(path) or "").strip()
    return None if value in ("", "N/A", "[N/A]", "Not Found", "Not Supported") else value


def _on(text: str | None) -> bool | None:
    return None if text is None else text in ("Enabled", "On")


def _mig(node: ElementTree.Element) -> dict[str, bool | None] | None:
    mode = _on(_text(node, "mig_mode/current_mig"))
    return None if mode is None else {"mode": mode, "pending": _on(_text(node, "mig_mode/pending_mig"))}


def _fabric(node: ElementTree.Element) -> dict[str, str | None] | None:
    state = _text(node, "fabric/state")
    return None if state is None else {"state": state, "status": _text(node, "fabric/status")}


def _ecc(node: ElementTree.Element) -> int | None:
    """Uncorrected errors since the driver was loaded, over all kinds of memory; None without ECC."""
    volatile = node.find("ecc_errors/volatile")
    if volatile is None:
        return None
    old = _text(volatile, "double_bit/total")
    values = [old] if old is not None else [item.text for item in volatile.iter() if "_uncorrectable" in item.tag]
    numbers = [int(value) for value in values if value and value.strip().isdigit()]
    return sum(numbers) if numbers else None
