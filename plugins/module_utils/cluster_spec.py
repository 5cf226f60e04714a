# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that all who ask a cluster have; documented in plugins/doc_fragments/cluster.py."""

from __future__ import annotations

from typing import Any

CONNECTION: dict[str, Any] = {"kubeconfig": {"type": "path"}, "context": {"type": "str"}}
OBJECTS: dict[str, Any] = {"type": "list", "elements": "dict", "required": True, "options": {
    "kind": {"type": "str", "required": True},
    "api_version": {"type": "str", "default": "v1"},
    "namespace": {"type": "str"},
    "name": {"type": "str"},
    "label_selectors": {"type": "list", "elements": "str", "default": []},
    "whole": {"type": "list", "elements": "str", "default": []},
}}
WAIT: dict[str, Any] = {"timeout": {"type": "int", "default": 1800}, "interval": {"type": "int", "default": 15}}
