# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of the compatibility matrix, for people's own playbooks."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_matrix
author: baremetal.nvidia maintainers (@baremetal-nvidia)
short_description: Rows of the compatibility matrix
version_added: 0.1.0
description:
  - Returns what the compatibility matrix of this collection knows, row by row, with sources and the day of the check.
  - Rows of O(overlay) are included; each row says in C(overlay) which one set it.
  - Questions that need thinking ("which driver for this GPU") are answered by the filters of this collection, not here.
options:
  _terms:
    description:
      - A section such as V(branches), or one row of it as V(branches/580).
      - V(products/10de:1eb8) finds every PCI id that any list knows. V(products/10de:25b6/10de:14a9) has a subsystem.
      - The sections are listed in C(docs/matrix.md).
    required: true
    type: list
    elements: str
  where:
    description: Keep rows that have these values. A value that is a list in the row is matched by any of its items.
    type: dict
    default: {}
  overlay:
    description: Overlays as file names or inline rows.
    type: list
    elements: raw
    default: []
    vars:
      - name: gpu_matrix_overlay
"""

EXAMPLES = r"""
- name: When does the branch end?
  ansible.builtin.debug:
    msg: "{{ lookup('baremetal.nvidia.gpu_matrix', 'branches/580').eol }}"

- name: Which cards has this fleet?
  ansible.builtin.debug:
    msg: "{{ query('baremetal.nvidia.gpu_matrix', 'products/10de:1eb8') | map(attribute='name') | list }}"

- name: All production branches
  ansible.builtin.debug:
    msg: "{{ query('baremetal.nvidia.gpu_matrix', 'branches', where={'type': 'production'}) | map(attribute='name') }}"
"""

RETURN = r"""
_raw:
  description:
    - The rows, each with its own fields and C(source), C(checked), C(confidence), C(unconfirmed), C(note), C(overlay).
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import MatrixError, load
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix.export import UnknownSection, rows


def _matches(row: dict[str, Any], where: dict[str, Any]) -> bool:
    for name, wanted in where.items():
        if name not in row:
            raise AnsibleLookupError(f"where: rows have no field {name!r}; they have {', '.join(sorted(row))}")
        value = row[name]
        if wanted not in value if isinstance(value, list) else value != wanted:
            return False
    return True


class LookupModule(LookupBase):
    """``lookup('baremetal.nvidia.gpu_matrix', 'branches/580')``."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[dict[str, Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        where = edge.plain(self.get_option("where"), "where")
        overlay = [self._overlay(one, variables or {}) for one in edge.plain(self.get_option("overlay"), "overlay")]
        try:
            matrix = load(overlay)
            found = [row for term in terms for row in rows(matrix, str(term))]
        except (MatrixError, UnknownSection) as error:
            raise AnsibleLookupError(f"gpu_matrix: {error}") from error
        return [row for row in found if _matches(row, where)]

    def _overlay(self, given: Any, variables: dict[str, Any]) -> Any:
        """A file as the playbook sees it (beside it, or in its ``files``); inline rows as they are."""
        if not isinstance(given, str):
            return given
        return self.find_file_in_search_path(variables, "files", given, ignore_missing=True) or given
