#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: mok_enrolment
short_description: Have the key that kernel modules are signed with enrolled for Secure Boot
version_added: 0.2.0
description:
  - With Secure Boot on, a kernel loads modules that are signed with an enrolled key alone. Modules that DKMS builds on
    a host are signed with a key of that host. This makes the key where there is none (a private key for root alone,
    mode 0600, and its certificate), at the paths where DKMS of the distribution looks for them, and asks for its
    enrolment.
  - No program can enrol a key. C(mokutil) leaves the request with the firmware, and at the next start shim's MokManager
    asks a person at the console for the same one-time password. RV(console_steps) says what to do there. MokManager
    waits ten seconds; a request that was not confirmed by then is gone, and the next run asks for it again.
  - A key that is enrolled, or whose request still waits, is recognised by the certificate itself, not by its name, and
    nothing is changed.
  - The password goes to C(mokutil) by its standard input. It is in no output and on no command line.
  - An existing key is never replaced. A certificate whose private key is lost is put aside.
requirements:
  - mokutil and openssl, on the host
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  certificate:
    description: The certificate (DER) that is enrolled. C(/var/lib/dkms/mok.pub) with DKMS of Debian, EL and SUSE,
      C(/var/lib/shim-signed/mok/MOK.der) with that of Ubuntu, unless F(/etc/dkms/framework.conf) says otherwise.
    type: path
    required: true
  private_key:
    description: The private key of O(certificate).
    type: path
    required: true
  name:
    description: Common name of a key that is made, which MokManager shows. Empty for one with the host's name.
    type: str
  password:
    description:
      - One-time password of 8 to 64 characters, as they are on a US keyboard, which is what MokManager has.
      - Needed only while the key is neither enrolled nor asked for.
    type: str
seealso:
  - module: baremetal.nvidia.driver_proof
"""

EXAMPLES = r"""
- name: Ask for the enrolment of the key that DKMS signs with
  baremetal.nvidia.mok_enrolment:
    certificate: /var/lib/dkms/mok.pub
    private_key: /var/lib/dkms/mok.key
    password: "{{ gpu_mok_password }}"
  register: enrolment

- name: Say what is to be done at the console
  ansible.builtin.debug:
    msg: "{{ enrolment.console_steps }}"
  when: enrolment.state == 'requested'
"""

RETURN = r"""
state:
  description:
    - How the key stands after the call. V(enrolled); V(requested), when a person has to confirm it at the console; or,
      in check mode alone, V(wanted).
  returned: success
  type: str
  sample: requested
name:
  description: Common name of the certificate, None before it is made.
  returned: success
  type: str
  sample: gpu-a01 module signing key
fingerprint:
  description: SHA-1 fingerprint of the certificate, as MokManager shows it.
  returned: success
  type: str
  sample: "9F:3C:00:5D:53:17:9B:0D:5F:86:67:79:F7:4C:0C:45:E6:6F:3B:21"
console_steps:
  description: What a person does at the console, in order. Empty when the key is enrolled.
  returned: success
  type: list
  elements: str
  sample: ["restart the host with a person at its console (the BMC's remote console will do)"]
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
  sample: [ask for the enrolment of /var/lib/dkms/mok.pub (mokutil --import)]
"""

import os
import platform
import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.mok.enrol import ENROLLED, Enrolment, console_steps
from ansible_collections.baremetal.nvidia.plugins.module_utils.mok.keys import Pair
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def default_name() -> str:
    """A name that tells the host at its console."""
    host = re.sub(r"[^A-Za-z0-9.-]", "", platform.node().partition(".")[0]).lstrip(".-") or "host"
    return f"{host[:40]} module signing key"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "certificate": {"type": "path", "required": True},
            "private_key": {"type": "path", "required": True, "no_log": False},
            "name": {"type": "str"},
            "password": {"type": "str", "no_log": True},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    os.umask(0o077)
    try:
        if not module.check_mode:
            Store().renew(asked["lease"], doing="mok_enrolment")
        enrolment = Enrolment(Pair(asked["certificate"], asked["private_key"], run), run)
        before = enrolment.state()
        outcome = enrolment.bring(asked["name"] or default_name(), asked["password"], module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    steps = [] if outcome.state == ENROLLED else console_steps(outcome.name, outcome.fingerprint)
    module.exit_json(
        changed=outcome.changed, state=outcome.state, name=outcome.name, fingerprint=outcome.fingerprint,
        console_steps=steps, actions=outcome.actions,
        diff={"before_header": asked["certificate"], "after_header": asked["certificate"], "before": f"{before}\n",
              "after": "".join(f"{line}\n" for line in outcome.actions) or f"{before}\n"},
    )


if __name__ == "__main__":
    main()
