# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller lacks to work with a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_cluster_tools
author: baremetal.nvidia maintainers (@baremetal-nvidia)
short_description: What the controller lacks to work with a cluster
version_added: 0.2.0
description:
  - Looks at helm, the collection C(kubernetes.core), the Python package C(kubernetes), and whether clients would take
    the service account of a pod since no kubeconfig is named. All that is missing is returned at once.
  - Asks no cluster.
options:
  _terms:
    description: The helm program.
    required: true
    type: list
    elements: str
  kubeconfig:
    description: The kubeconfig that will be used, where one is named.
    type: str
  cluster_uid:
    description: The uid of the cluster that is meant, where it is known.
    type: str
"""

EXAMPLES = r"""
- name: Stop where something is missing
  ansible.builtin.assert:
    that: query('baremetal.nvidia.gpu_cluster_tools', 'helm') | length == 0
"""

RETURN = r"""
_raw:
  description: What is missing or does not fit, in words; empty where all is there.
  type: list
  elements: str
"""

import os
from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import cluster_tools, edge


class LookupModule(LookupBase):
    """The lookup."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        """Return what is missing, for each helm that is named."""
        self.set_options(var_options=variables, direct=kwargs)
        kubeconfig, uid = self.get_option("kubeconfig"), self.get_option("cluster_uid")
        return [words for term in edge.plain(list(terms))
                for words in cluster_tools.problems(str(term), kubeconfig, uid, os.environ)]
