# SPDX-License-Identifier: GPL-3.0-or-later
"""Make ``ansible_collections.baremetal.nvidia`` importable from a checkout, outside of Ansible.

The ``ansible`` package brings a regular ``ansible_collections`` package that would hide the checkout's, so its search
path is extended rather than replaced.
"""
from __future__ import annotations

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
_COLLECTIONS = ROOT / "collections"


def install() -> None:
    """Extend ``ansible_collections`` by this checkout; safe to call twice."""
    if str(_COLLECTIONS) not in sys.path:
        sys.path.insert(0, str(_COLLECTIONS))
    import ansible_collections

    ours = str(_COLLECTIONS / "ansible_collections")
    if ours not in list(ansible_collections.__path__):
        ansible_collections.__path__ = [ours, *ansible_collections.__path__]


install()
