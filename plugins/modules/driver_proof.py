#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: driver_proof
short_description: Prove that a driver's kernel module builds, before any package is touched
version_added: 0.1.0
description:
  - Builds the NVIDIA kernel module of a DKMS source package for each given kernel in a scratch directory. The source,
    and the headers of kernels whose headers are not installed, are fetched and opened there; dpkg installs nothing, and
    the DKMS tree, C(/lib/modules) and C(/usr/src) of the host stay as they are.
  - Each module file is checked with C(modinfo) against driver version, flavour and kernel release. One kernel without a
    proof fails the task, names the first error of its build, and nothing is published.
  - What was proved is offered to DKMS by its per-kernel override files in C(/etc/dkms), so that the package transaction
    that follows copies the proved files instead of building again, and DKMS signs and installs them as ever.
    O(state=settled) checks the installed modules after the transaction and takes the offer away.
  - Proved builds are kept in O(cache_dir) under a digest of everything they depend on, and used again after their
    checksums and C(modinfo) were checked.
  - What a killed run left behind is removed by the next one.
  - The proof of each kernel is written to C(/var/lib/baremetal-nvidia/state.json).
requirements:
  - dkms, and the compilers of the kernels, on the host
  - apt (Debian, Ubuntu)
extends_documentation_fragment:
  - baremetal.nvidia.host
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  state:
    description:
      - V(proved) proves and publishes.
      - V(settled) sees, after the package transaction, that DKMS has installed what was proved, has it do so for
        kernels that the packages left out, and removes what was published.
    type: str
    choices: [proved, settled]
    default: proved
  packages:
    description: Names of the packages with the DKMS source, each with its exact version, such as V(535.261.03-1).
    type: dict
    required: true
  dkms_name:
    description: Name of the module in DKMS, such as V(nvidia-current) (Debian) or V(nvidia).
    type: str
    required: true
  version:
    description: Driver version, which is the version of the module in DKMS.
    type: str
    required: true
  flavour:
    description: Which flavour the modules must be.
    type: str
    choices: [open, proprietary]
    required: true
  kernels:
    description: Kernel releases to prove, all or none.
    type: list
    elements: str
    required: true
  cache_dir:
    description: Where proved builds are kept, for root alone. Empty for none.
    type: str
    default: /var/cache/baremetal-nvidia
  scratch_dir:
    description: Where scratch directories are made.
    type: path
    default: /var/tmp
  files:
    description:
      - Package files on the host that are taken instead of the repositories, each with its SHA-256, or null where it is
        not to be looked at.
    type: dict
    default: {}
  min_free_mb:
    description: Megabytes that have to be free in O(scratch_dir) before a build.
    type: int
    default: 2500
  timeout:
    description: Seconds a single build may take.
    type: int
    default: 3600
  lock_timeout:
    description: Seconds to wait for another proof on this host.
    type: int
    default: 300
  jobs:
    description: Parallel compiler jobs. Default is what DKMS takes, the number of processors.
    type: int
  certificate:
    description:
      - With Secure Boot, the certificate (DER) of the key that DKMS signs with. Installed modules that are not signed
        with it are no proof; they are signed where O(state=settled) finds them. Empty where the kernel does not
        insist.
    type: path
    version_added: 0.2.0
  private_key:
    description: The private key of O(certificate).
    type: path
    version_added: 0.2.0
  niceness:
    description: How far a build stands back behind other work on the host, from 0 (not at all) to 19.
    type: int
    default: 10
seealso:
  - module: baremetal.nvidia.initramfs
"""

EXAMPLES = r"""
- name: Prove the driver for both kernels before it is installed
  baremetal.nvidia.driver_proof:
    packages:
      nvidia-kernel-dkms: 535.261.03-1
    dkms_name: nvidia-current
    version: 535.261.03
    flavour: proprietary
    kernels: [6.1.0-47-amd64, 6.1.0-50-amd64]
  async: 7200
  poll: 15

- name: See that what dpkg installed is what was proved
  baremetal.nvidia.driver_proof:
    state: settled
    packages:
      nvidia-kernel-dkms: 535.261.03-1
    dkms_name: nvidia-current
    version: 535.261.03
    flavour: proprietary
    kernels: [6.1.0-47-amd64, 6.1.0-50-amd64]
"""

RETURN = r"""
kernels:
  description: What became of each kernel.
  returned: always, once the arguments are good
  type: list
  elements: dict
  contains:
    kernel: {description: Kernel release., type: str}
    how:
      description:
        - V(installed), V(published) (by a run that was cut off), V(cached), V(built), or V(needs_build), which only
          check mode and failures have.
      type: str
    headers: {description: Headers package and version it is built against., type: str}
    headers_installed: {description: Whether those headers are installed on the host., type: bool}
    compiler: {description: Compiler and its version., type: str}
    shape: {description: Digest of everything the build depends on., type: str}
    seconds: {description: How long the build took., type: float}
    tarball: {description: Where the build is kept in O(cache_dir)., type: str}
    error: {description: Why there is no proof., type: str}
    log: {description: The telling lines of the build log., type: list, elements: str}
needs_build:
  description: Kernels that have no proof yet.
  returned: always, once the arguments are good
  type: list
  elements: str
removed:
  description: What a killed run had left behind and this one removed.
  returned: always, once the arguments are good
  type: list
  elements: str
"""

import signal
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.prove import NEEDS_BUILD, Prover, Report, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

SPEC: dict[str, Any] = {
    "state": {"type": "str", "choices": ["proved", "settled"], "default": "proved"},
    "packages": {"type": "dict", "required": True},
    "dkms_name": {"type": "str", "required": True},
    "version": {"type": "str", "required": True},
    "flavour": {"type": "str", "choices": ["open", "proprietary"], "required": True},
    "kernels": {"type": "list", "elements": "str", "required": True},
    "cache_dir": {"type": "str", "default": "/var/cache/baremetal-nvidia"},
    "scratch_dir": {"type": "path", "default": "/var/tmp"},
    "min_free_mb": {"type": "int", "default": 2500},
    "files": {"type": "dict", "default": {}},
    "timeout": {"type": "int", "default": 3600},
    "lock_timeout": {"type": "int", "default": 300},
    "jobs": {"type": "int"},
    "niceness": {"type": "int", "default": 10},
    "certificate": {"type": "path"},
    "private_key": {"type": "path", "no_log": False},
    "lease": {"type": "str"},
}


def result_of(report: Report, state: str) -> dict[str, Any]:
    """The module's result, with a diff that says what a kernel had and has."""
    kernels = [item.as_dict() for item in report.kernels]
    waiting = [item.kernel for item in report.kernels if item.how == NEEDS_BUILD]
    after = "".join(f"{item.kernel}: {item.how}\n" for item in report.kernels)
    before = (
        "".join(
            f"{item.kernel}: {item.how if item.how in ('installed', 'published') else 'no proof'}\n"
            for item in report.kernels
        )
        if state == "proved"
        else after + ("offer to DKMS stands\n" if report.changed else "")
    )
    return {
        "changed": report.changed,
        "kernels": kernels,
        "needs_build": waiting,
        "removed": report.removed,
        "diff": {"before_header": "proofs", "after_header": "proofs", "before": before, "after": after},
    }


def failure(report: Report) -> str:
    """One message for all kernels without proof, each with the end of its build log."""
    parts = []
    for item in report.failed:
        log = "".join(f"\n    {line}" for line in item.log)
        parts.append(f"{item.error}{log}")
    return "\n".join(parts)


def stop(number: int, _frame: object) -> NoReturn:
    """A connection that goes away takes the build with it: leaving the scratch directory ends what runs in it."""
    raise SystemExit(128 + number)


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    asked = module.params
    if not asked["kernels"]:
        module.fail_json(msg="kernels is empty: name the kernel releases this host can boot")
    if not asked["packages"]:
        module.fail_json(msg="packages is empty: name the packages that hold the driver's DKMS source")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    store = Store()

    def beat() -> None:
        store.renew(asked["lease"])

    try:
        prover = Prover(
            Wish(
                sources={name: str(version) for name, version in asked["packages"].items()},
                dkms_name=asked["dkms_name"],
                version=asked["version"],
                flavour=asked["flavour"],
                kernels=tuple(dict.fromkeys(asked["kernels"])),
                cache_dir=asked["cache_dir"] or None,
                scratch_dir=asked["scratch_dir"],
                files={path: str(digest) if digest else None for path, digest in asked["files"].items()},
                timeout=asked["timeout"],
                lock_timeout=asked["lock_timeout"],
                min_free_mb=asked["min_free_mb"],
                jobs=asked["jobs"],
                niceness=asked["niceness"],
                certificate=asked["certificate"] or None,
                private_key=asked["private_key"] or None,
            ),
            run,
            store=store,
            beat=beat,
        )
        if not module.check_mode:
            beat()
        if asked["state"] == "settled":
            report = prover.settle(check=module.check_mode)
        else:
            report = prover.check_only() if module.check_mode else prover.prove()
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    for note in report.notes:
        module.warn(note)
    result = result_of(report, asked["state"])
    if report.failed and not module.check_mode:
        module.fail_json(msg=failure(report), **result)
    if report.failed:  # a real run would install headers and compilers first, so what is missing now is only shown
        module.warn(failure(report))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
