# SPDX-License-Identifier: GPL-3.0-or-later
"""The collector of gpu_monitoring: what nvidia-smi and the kernel log say becomes metrics; silence is told, too."""
from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import catalogue

FILE = pathlib.Path(__file__).resolve().parents[3] / "roles" / "gpu_monitoring" / "files" / "gpu_metrics.py"
SPEC = importlib.util.spec_from_file_location("gpu_metrics", FILE)
assert SPEC is not None and SPEC.loader is not None
gpu_metrics = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gpu_metrics)

H100 = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>580.173.02</driver_version>
  <gpu id="00000000:17:00.0">
    <product_name>NVIDIA H100 80GB HBM3</product_name>
    <uuid>GPU-1</uuid>
    <minor_number>3</minor_number>
    <pci><replay_counter>2</replay_counter></pci>
    <fb_memory_usage><total>81559 MiB</total><reserved>600 MiB</reserved>
      <used>40000 MiB</used><free>40959 MiB</free></fb_memory_usage>
    <clocks_event_reasons>
      <clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
      <clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
      <clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>
    </clocks_event_reasons>
    <utilization><gpu_util>97 %</gpu_util><memory_util>40 %</memory_util><encoder_util>0 %</encoder_util></utilization>
    <ecc_errors><volatile>
      <sram_correctable>1</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity>
      <sram_uncorrectable_secded>1</sram_uncorrectable_secded>
      <dram_correctable>2</dram_correctable><dram_uncorrectable>2</dram_uncorrectable>
    </volatile></ecc_errors>
    <remapped_rows>
      <remapped_row_corr>0</remapped_row_corr><remapped_row_unc>1</remapped_row_unc>
      <remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>
    </remapped_rows>
    <temperature><gpu_temp>61 C</gpu_temp><memory_temp>N/A</memory_temp></temperature>
    <gpu_power_readings><instant_power_draw>512.25 W</instant_power_draw>
      <current_power_limit>700.00 W</current_power_limit></gpu_power_readings>
    <clocks><sm_clock>1980 MHz</sm_clock><mem_clock>2619 MHz</mem_clock></clocks>
    <fabric><state>Completed</state><status>Success</status></fabric>
  </gpu>
</nvidia_smi_log>
"""
OLD = """<nvidia_smi_log><driver_version>470.1</driver_version><gpu id="00000000:3B:00.0">
  <uuid>GPU-2</uuid><minor_number>0</minor_number>
  <clocks_throttle_reasons><clocks_throttle_reason_hw_power_brake_slowdown>Active</clocks_throttle_reason_hw_power_brake_slowdown></clocks_throttle_reasons>
  <ecc_errors><volatile><single_bit><total>4</total></single_bit><double_bit><total>5</total></double_bit></volatile></ecc_errors>
  <retired_pages><pending_retirement>No</pending_retirement></retired_pages>
  <power_readings><power_draw>[N/A]</power_draw><enforced_power_limit>70.00 W</enforced_power_limit></power_readings>
  <fabric><state>Completed</state><status>Failure</status></fabric>
</gpu></nvidia_smi_log>"""


def _smi(place: pathlib.Path, body: str) -> str:
    program = place / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(program)


def _report(place: pathlib.Path, text: str) -> str:
    (place / "report.xml").write_text(text)
    return _smi(place, f"cat {place}/report.xml")


def _values(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))


def _one(values: dict[str, str], name: str) -> str | None:
    return next((value for key, value in values.items() if key.split("{")[0] == name), None)


def test_a_report_becomes_the_metrics_of_dcgm_exporter(tmp_path: pathlib.Path) -> None:
    text = gpu_metrics.collect(_report(tmp_path, H100), 20, True)
    values = _values(text)
    wanted = {
        "DCGM_FI_DEV_GPU_UTIL": "97", "DCGM_FI_DEV_FB_USED": "40000", "DCGM_FI_DEV_FB_FREE": "40959",
        "DCGM_FI_DEV_POWER_USAGE": "512.25", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": "700", "DCGM_FI_DEV_GPU_TEMP": "61",
        "DCGM_FI_DEV_SM_CLOCK": "1980", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "3", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "3",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": str(0x4 | 0x40), "DCGM_FI_DEV_ROW_REMAP_PENDING": "1",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": "0", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "1",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "2", "DCGM_FI_DEV_FABRIC_MANAGER_STATUS": "3",
        "baremetal_nvidia_smi_up": "1", "baremetal_nvidia_gpus": "1", "DCGM_FI_DEV_MEMORY_TEMP": None,
    }
    assert {name: _one(values, name) for name in wanted} == wanted
    series = next(key for key in values if key.startswith("DCGM_FI_DEV_GPU_TEMP"))
    assert series == ('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",pci_bus_id="0000:17:00.0",device="nvidia3",'
                      'modelName="NVIDIA H100 80GB HBM3",DCGM_FI_DRIVER_VERSION="580.173.02"}')


def test_an_older_driver_says_the_same_in_other_words(tmp_path: pathlib.Path) -> None:
    values = _values(gpu_metrics.collect(_report(tmp_path, OLD), 20, True))
    assert _one(values, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS") == str(0x80)
    assert _one(values, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL") == "5" and _one(values, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL") == "4"
    assert _one(values, "DCGM_FI_DEV_POWER_USAGE") is None and _one(values, "DCGM_FI_DEV_RETIRED_PENDING") == "0"
    assert _one(values, "DCGM_FI_DEV_FABRIC_MANAGER_STATUS") == "4"


def test_it_writes_what_the_alerts_count_on_and_nothing_else(tmp_path: pathlib.Path) -> None:
    written: set[str] = set()
    for report in (H100, OLD):
        text = gpu_metrics.collect(_report(tmp_path, report), 20, True)
        written |= set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
        assert text.endswith("\n") and all(
            re.fullmatch(r'# (HELP|TYPE) .+|[A-Za-z_]+(\{.*\})? -?[0-9.]+', line) for line in text.splitlines())
    names = {name for name, *_rest in (*gpu_metrics.FIELDS, *gpu_metrics.FLAGS)}
    assert names | written | {"DCGM_EXP_XID_ERRORS_COUNT"} == set(catalogue.TEXTFILE)


@pytest.mark.parametrize(("body", "said"), [
    ("sleep 60", "did not answer within 0.5 s"), ("exit 9", "ended with 9"), ("echo nonsense", "cannot be read"),
    ("echo '<other/>'", "begins with <other>"),
    ("echo '<!DOCTYPE x [<!ENTITY a \"b\">]><nvidia_smi_log/>'", "entities")])
def test_a_driver_that_does_not_answer_is_told(body: str, said: str, tmp_path: pathlib.Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    values = _values(gpu_metrics.collect(_smi(tmp_path, body), 0.5 if "sleep" in body else 20, True))
    assert _one(values, "baremetal_nvidia_smi_up") == "0" and _one(values, "baremetal_nvidia_gpus") is None
    assert _one(values, "baremetal_nvidia_collected_timestamp_seconds") is not None
    assert said in capsys.readouterr().err and time.monotonic() - begun < 30


def test_without_the_module_nvidia_smi_is_not_started(tmp_path: pathlib.Path) -> None:
    program = _smi(tmp_path, f"touch {tmp_path}/started")
    values = _values(gpu_metrics.collect(program, 20, False))
    assert _one(values, "baremetal_nvidia_smi_up") == "0" and not (tmp_path / "started").exists()


def test_xids_of_the_last_minutes_are_counted() -> None:
    log = ["4,1,100000000,-;NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\n",
           "4,2,900000000,-;NVRM: Xid (PCI:0000:17:00): 63, Row remapper\n",
           "4,3,950000000,-;NVRM: Xid (PCI:0000:17:00): 63, Row remapper\n",
           "4,4,950000000,-;NVRM: Xid (0000:3b:00.0): 31, pid=2\n", "6,5,950000000,-;usb 1-1: Xid (x): 7\n", "broken"]
    assert gpu_metrics.xids(log, now=1000.0) == {"0000:17:00.0": {"63": 2}, "0000:3b:00.0": {"31": 1}}


def test_xids_go_to_their_gpu(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    line = f"4,1,{int(now * 1e6)},-;NVRM: Xid (PCI:0000:17:00): 94, Contained ECC error\n"
    monkeypatch.setattr(gpu_metrics, "kernel_log", lambda: [line])
    values = _values(gpu_metrics.collect(_report(tmp_path, H100), 20, True))
    series = [key for key in values if key.startswith("DCGM_EXP_XID_ERRORS_COUNT")]
    assert len(series) == 1 and 'xid="94"' in series[0] and 'window_size_in_ms="300000"' in series[0]
    monkeypatch.setattr(gpu_metrics, "kernel_log", list)
    quiet = [key for key in _values(gpu_metrics.collect(_report(tmp_path, H100), 20, True)) if "XID" in key]
    assert len(quiet) == 1 and "xid=" not in quiet[0]


def test_a_kernel_log_that_ends_in_an_error_is_no_quiet_one(
        tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    records = [b"4,1,100,-;NVRM: Xid (PCI:0000:17:00): 79\n", OSError(5, "Input/output error")]

    def read(_fd: int, _size: int) -> bytes:
        record = records.pop(0)
        if isinstance(record, OSError):
            raise record
        return record  # type: ignore[return-value]

    real = gpu_metrics.kernel_log
    (tmp_path / "kmsg").touch()
    monkeypatch.setattr(gpu_metrics, "kernel_log", lambda: real(str(tmp_path / "kmsg")))
    with monkeypatch.context() as patched:
        patched.setattr(gpu_metrics.os, "read", read)
        values = _values(gpu_metrics.collect("/bin/false", 20, False))
    assert not [key for key in values if "XID" in key]
    assert "XIDs are not counted: [Errno 5]" in capsys.readouterr().err and records == []


def test_gpus_on_the_bus_are_counted(tmp_path: pathlib.Path) -> None:
    for name, vendor, kind, driver in (("a", "0x10de", "0x030200", "nvidia"), ("b", "0x10de", "0x030000", "vfio-pci"),
                                       ("c", "0x10de", "0x068000", "nvidia"), ("d", "0x8086", "0x030000", "i915"),
                                       ("e", "0x10de", "0x030200", "")):
        place = tmp_path / name
        place.mkdir()
        (place / "vendor").write_text(vendor + "\n")
        (place / "class").write_text(kind + "\n")
        if driver:
            (place / "driver").symlink_to(tmp_path / driver)
    assert gpu_metrics.on_bus(str(tmp_path)) == 2
    assert gpu_metrics.on_bus(str(tmp_path / "none")) == 0


def test_the_file_is_replaced_as_a_whole_and_leftovers_go(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".baremetal-nvidia.prom.cut").write_text("half")
    (tmp_path / "other.prom").write_text("theirs 1\n")
    loaded = tmp_path / "version"
    loaded.write_text("")
    done = subprocess.run(
        [sys.executable, "-I", str(FILE), "--directory", str(tmp_path), "--timeout", "20", "--nvidia-smi",
         _report(tmp_path, H100), "--loaded", str(loaded)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = tmp_path / "baremetal-nvidia.prom"
    assert "DCGM_FI_DEV_GPU_TEMP" in written.read_text() and os.stat(written).st_mode & 0o777 == 0o644
    assert not list(tmp_path.glob(".baremetal-nvidia.prom.*")) and (tmp_path / "other.prom").exists()


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: pathlib.Path) -> None:
    (tmp_path / "baremetal-nvidia.prom").mkdir()    # a rename onto it fails
    with pytest.raises(OSError):
        gpu_metrics.publish(str(tmp_path), "a 1\n")
    assert [path.name for path in tmp_path.iterdir()] == ["baremetal-nvidia.prom"]
