# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    """What all who ask a cluster have in common."""

    DOCUMENTATION = r"""
notes:
  - Takes its credentials from the same environment variables as C(kubernetes.core) (E(K8S_AUTH_KUBECONFIG) and others).
requirements:
  - the collection kubernetes.core
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Can run in check mode.
  diff_mode:
    support: none
    description: Says what would change, if there is something.
"""

    CONNECTION = r"""
options:
  kubeconfig:
    description: File with the address of the cluster and the credentials. Empty means the client library's defaults.
    type: path
  context:
    description: The context of the kubeconfig. Empty means its current one.
    type: str
"""

    OBJECTS = r"""
options:
  objects:
    description: What is read.
    type: list
    elements: dict
    required: true
    suboptions:
      kind:
        description: Kind of the objects.
        type: str
        required: true
      api_version:
        description: Their group and version.
        type: str
        default: v1
      namespace:
        description: Their namespace. Empty means all.
        type: str
      name:
        description: Name of a single object. Empty means all of them.
        type: str
      label_selectors:
        description: Labels that they have to have.
        type: list
        elements: str
        default: []
      whole:
        description: Names of the objects that are returned whole, of the others the name alone. Empty means all.
        type: list
        elements: str
        default: []
"""

    WAIT = r"""
options:
  timeout:
    description: Seconds after which it gives up.
    type: int
    default: 1800
  interval:
    description: Seconds between two looks.
    type: int
    default: 15
attributes:
  action:
    support: full
    description: Runs on the controller; what asks the cluster is a module.
"""
