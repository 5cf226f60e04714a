#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: module_proof
short_description: Prove, before they are installed, modules that come ready-made and other DKMS modules
version_added: 0.2.0
description:
  - Fetches packages with prebuilt NVIDIA modules, opens them in a scratch directory, and checks with C(modinfo) that
    they are for this kernel, of this driver version and flavour, and signed where that is asked for, by a key that the
    running kernel has or that is enrolled. Where the host does not tell its keys that is a warning. Nothing is
    installed.
  - Modules that were made for another kernel and lie where they are linked for several (Red Hat's C(extra), SUSE's
    KMPs) count only where every symbol that they or their package ask for is in this kernel with the same checksum -
    by its C(symvers.gz), its headers, or what its package provides. Otherwise the first symbols that differ are named.
  - Builds other DKMS modules of the host (OFED, ZFS, GDRCopy) for the kernel in a scratch directory, against headers
    that are fetched and opened there. Where O(signed) is true the key that DKMS signs with must be one that the kernel
    takes.
  - What does not fit fails the task with the reason; the host is as it was.
  - M(baremetal.nvidia.driver_proof) does the same for a driver that DKMS builds.
extends_documentation_fragment:
  - baremetal.nvidia.host
attributes:
  idempotent:
    support: partial
    description: A second call proves again. It never changes what is installed.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  release:
    description: Kernel release, as C(uname -r) would print it.
    type: str
    required: true
  driver:
    description: Driver version that prebuilt modules must have.
    type: str
    required: true
  flavour:
    description: Flavour that they must have. Empty for either.
    type: str
    choices: [open, proprietary]
  signed:
    description: Whether they, and other modules that DKMS builds, must be signed, as Secure Boot asks.
    type: bool
    default: false
  prebuilt:
    description: Packages with prebuilt NVIDIA modules, each with its exact version.
    type: dict
    default: {}
  files:
    description:
      - Package files on the host that are taken instead of the repositories, each with its SHA-256, or null where it is
        not to be looked at.
    type: dict
    default: {}
  others:
    description: Other DKMS modules, each with C(name) (for messages), C(dkms) (its name in DKMS) and C(version).
    type: list
    elements: dict
    default: []
  scratch_dir:
    description: Where scratch directories are made.
    type: path
    default: /var/tmp
  timeout:
    description: Seconds a single build may take.
    type: int
    default: 3600
  lock_timeout:
    description: Seconds to wait for another proof on this host.
    type: int
    default: 300
  niceness:
    description: How far a build stands back behind other work on the host, from 0 (not at all) to 19.
    type: int
    default: 10
"""

EXAMPLES = r"""
- name: Open the prebuilt module of a kernel before it is installed
  baremetal.nvidia.module_proof:
    release: 6.8.0-149-generic
    driver: 580.178.04
    flavour: open
    prebuilt:
      linux-modules-nvidia-580-server-open-6.8.0-149-generic: 6.8.0-149.149+1
"""

RETURN = r"""
proved:
  description: What was proved, one row each.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Package, or module.
      type: str
    how:
      description: V(opened) or V(built).
      type: str
    version:
      description: Its version.
      type: str
    notes:
      description: What could not be told, and is warned of.
      type: list
      elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import detect
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.backends import Source, backend
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.candidate import Candidate, prove
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.files import Files
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

SPEC: dict[str, Any] = {
    "release": {"type": "str", "required": True},
    "driver": {"type": "str", "required": True},
    "flavour": {"type": "str", "choices": ["open", "proprietary"]},
    "signed": {"type": "bool", "default": False},
    "prebuilt": {"type": "dict", "default": {}},
    "files": {"type": "dict", "default": {}},
    "others": {"type": "list", "elements": "dict", "default": []},
    "scratch_dir": {"type": "path", "default": "/var/tmp"},
    "timeout": {"type": "int", "default": 3600},
    "lock_timeout": {"type": "int", "default": 300},
    "niceness": {"type": "int", "default": 10},
    "lease": {"type": "str"},
}


def source_of(files: dict[str, Any], runner: Any = run) -> Source:
    """Where packages come from: the host's repositories, or the files that take their place. Raises ProofError."""
    if not files:
        return backend(runner)
    wanted = {path: str(digest) if digest else None for path, digest in files.items()}
    return Files(backend(runner), wanted, runner, detect.detect("/") or "apt")


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    asked = module.params
    for other in asked["others"]:
        lacking = [key for key in ("name", "dkms", "version") if not other.get(key)]
        if lacking:
            module.fail_json(msg=f"others has {other!r}, which has no {', '.join(lacking)}")
    if module.check_mode:
        module.exit_json(changed=False, proved=[])
    store = Store()

    def beat() -> None:
        store.renew(asked["lease"], doing=f"module_proof ({asked['release']})")

    wish = Candidate(
        release=asked["release"],
        driver=asked["driver"],
        prebuilt={name: str(version) for name, version in asked["prebuilt"].items()},
        others=tuple(asked["others"]),
        flavour=asked["flavour"],
        signed=asked["signed"],
        scratch_dir=asked["scratch_dir"],
        timeout=asked["timeout"],
        lock_timeout=asked["lock_timeout"],
        niceness=asked["niceness"],
    )
    try:
        beat()
        proved = prove(wish, source_of(asked["files"]), run, store, beat=beat)
    except (HostError, OSError) as exc:
        log = getattr(exc, "log", None) or []
        module.fail_json(msg=str(exc) + "".join(f"\n    {line}" for line in log))
    for note in (note for row in proved for note in row["notes"]):
        module.warn(note)
    module.exit_json(changed=False, proved=proved)


if __name__ == "__main__":
    main()
