# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to no host: modules are answered from a file, so that only the controller's own work is measured."""

from __future__ import annotations

import os

from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: canned
short_description: Answer modules from files (bench only)
description: Runs nothing. gpu_facts is answered from $GPU_BENCH_CANNED/HOST.json, a ping by itself.
options:
  host:
    description: Name of the host.
    vars:
      - name: inventory_hostname
"""


class Connection(ConnectionBase):
    """Takes a module's payload and hands the canned answer back."""

    transport = "canned"
    has_pipelining = True
    always_pipeline_modules = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Return the canned answer to a module, and an empty one to anything else."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        if in_data is None:
            return 0, b"", b""
        if b"gpu_facts" not in in_data:
            return 0, b'{"changed": false, "ping": "pong"}\n', b""
        with open(os.path.join(os.environ["GPU_BENCH_CANNED"], f"{self.get_option('host')}.json"), "rb") as stream:
            return 0, stream.read(), b""

    def put_file(self, in_path: str, out_path: str) -> None:
        """Do nothing."""

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
        self._connected = False
