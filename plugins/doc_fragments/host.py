# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    """What all modules that change a host have in common."""

    DOCUMENTATION = r"""
options:
  lease:
    type: str
    description:
      - Run id of this run, as in RV(baremetal.nvidia.gpu_plan#module:ansible_facts.gpu_plan.run_id).
      - The lease of the host (M(baremetal.nvidia.host_lease)) is taken or renewed for it before anything is changed.
      - Without it the module only refuses to work while another run has the lease.
attributes:
  check_mode:
    support: full
    description: Says what it would do, and changes nothing.
  diff_mode:
    support: full
    description: Shows what changes, before and after.
  idempotent:
    support: full
    description: A second call with the same arguments changes nothing.
  platform:
    support: full
    platforms: linux
    description: Where it runs.
"""
