#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_facts
short_description: Read everything about a host that decides over its GPUs
version_added: 0.1.0
description:
  - Reads operating system, kernels, boot loader, PCI devices, driver, packages, container runtime and CUDA in one
    call, and returns them as C(ansible_facts.gpu_facts). It never writes and never decides.
  - V(null) means that it was looked for and is not there. What could not be read is absent and stands
    in RV(ansible_facts.gpu_facts.unknown) under its path, with the reason. In a path,
    C([...]) names an element of a list, and C([]) says that something is
    missing from the list as such.
  - Children have deadlines, and one that hangs in the kernel is left behind. When processes already hang in the driver,
    nothing that touches the driver is called.
  - Passwords, tokens and credentials in URLs are masked where they are read.
  - Works unprivileged, in containers without systemd, and with parts of C(/proc) and C(/sys) missing; what could
    not be read then is unknown. Packages are read with apt, dnf (4 and 5) and zypper.
  - The facts of a host are at most 32 KB of JSON; what had to be left out is named in
    RV(ansible_facts.gpu_facts.unknown).
options:
  root:
    description:
      - Read another tree than the running system, such as a mounted image.
      - No program is then asked about the running system, and what only a running system has is unknown unless the
        tree has it in C(proc) and C(sys).
    type: path
    default: /
  timeout:
    description: Seconds that the whole module may take. What was not read by then is unknown.
    type: int
    default: 90
  smi_timeout:
    description: Seconds that C(nvidia-smi) may take.
    type: int
    default: 60
  command_timeout:
    description: Seconds that any other program may take.
    type: int
    default: 10
  candidates:
    description:
      - Ask the package manager's resolver which kernels the next full upgrade would bring (C(kernel.candidates)),
        in a dry run without the holds that are ours. That takes the resolver's time, a second or two, so it is asked
        only where a decision needs it.
      - Without it C(kernel.candidates) is absent.
    type: bool
    default: false
    version_added: 0.2.0
attributes:
  check_mode:
    support: full
    description: Can run in check mode, where it does the same, since it never changes anything.
  diff_mode:
    support: none
    description: Returns no details on changes in diff mode, since there are none.
  facts:
    support: full
    description: Returns C(ansible_facts).
  idempotent:
    support: full
    description: Never reports a change.
  platform:
    support: full
    platforms: posix
    description: Linux hosts with Python 3.9 or later.
notes:
  - Run it as root, otherwise what needs root is unknown, for instance who holds the GPUs.
seealso:
  - module: baremetal.nvidia.gpu_plan
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
"""

EXAMPLES = r"""
- name: Read a host
  baremetal.nvidia.gpu_facts:

- name: Show what the next boot would start
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_facts'].kernel.default_boot }}"

- name: Read with the kernels that an upgrade would bring
  baremetal.nvidia.gpu_facts:
    candidates: true

- name: Read a mounted image
  baremetal.nvidia.gpu_facts:
    root: /mnt/image
"""

RETURN = r"""
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    gpu_facts:
      description: The facts of this host.
      returned: always
      type: dict
      contains:
        host:
          description: Name the host has for itself.
          type: str
          returned: when known
          sample: gpu-a01
        read_at:
          description: When it was read, in seconds since 1970 by the host's clock.
          type: int
          returned: always
          sample: 1796000000
        os:
          description: The operating system; C(family) is debian, redhat or suse.
          type: dict
          returned: always
          sample:
            {id: ubuntu, version: "22.04", codename: jammy, family: debian, arch: x86_64, virt: none, init: systemd}
        kernel:
          description:
            - The running kernel, the one that boots by default (C(default_boot), without regard to
              C(boot.next_entry)), loaded modules that matter, and the installed kernels, oldest first.
            - C(nvidia) of an installed kernel is the module it would load; C(origin) is dkms, precompiled or runfile,
              C(module) the name of the file. C(nvidia_in_initrd) is the one in its initial ramdisk, null where none is.
            - With O(candidates), C(candidates) are the newest three kernels that an upgrade would bring or could bring
              in its place, with the packages at their versions, whether they come as a security update (null where
              the sources do not tell), and the repository or suite. An empty list means that none would come.
          type: dict
          returned: always
          sample:
            running: 5.15.0-112-generic
            running_compiler: gcc-11
            default_boot: 5.15.0-112-generic
            cmdline: "..."
            modules: [nvidia, nvidia_uvm]
            installed:
              - release: 5.15.0-112-generic
                image: true
                initrd: true
                headers: true
                compiler: gcc-11
                nvidia:
                  {version: 535.183.01, flavour: open, origin: dkms, signed: false, vermagic_ok: true, module: nvidia}
                extra_modules: [mlnx-ofed]
                nouveau_in_initrd: false
                nvidia_in_initrd: null
                packages: {image: linux-image-5.15.0-112-generic, headers: linux-headers-5.15.0-112-generic}
                arrived:
                  when: "2026-11-02T08:15:00Z"
                  record: "dpkg.log has: install linux-image-5.15.0-112-generic:amd64 <none> 5.15.0-112.122"
            candidates:
              - release: 5.15.0-113-generic
                packages: {linux-image-5.15.0-113-generic: 5.15.0-113.123, linux-image-generic: 5.15.0.113.113}
                security: true
                origin: jammy-updates
        boot:
          description:
            - Firmware and boot loader. C(default_mode) is what decides in the boot loader's own configuration, saved,
              index (a position) or entry (a fixed one); C(configured_default) is GRUB_DEFAULT of the settings.
            - C(menu) is where entries come from, grub_cfg or bls (files); C(default_entry) is the one that starts, as
              ids from the top.
            - C(env_writable) says whether GRUB can write its environment while booting, and C(env_reason) why not.
              C(boot_layout) is partition, disk, mdraid, lvm, crypt, multipath, btrfs, zfs or null (no block device).
            - C(kexec) says whether a restart goes past the boot loader, by a kernel that is loaded for kexec now
              (C(loaded)), or by LOAD_KEXEC=true of Debian's kexec-tools, in the file C(load_at_restart).
            - C(trial) is the trial boot that is open (M(baremetal.nvidia.boot_once)). Its C(phase) is armed, booted,
              healthy or failed.
          type: dict
          returned: always
          sample:
            firmware: uefi
            loader: grub
            menu: grub_cfg
            default_mode: saved
            default_entry: gnulinux-advanced-1>gnulinux-5.15.0-112-generic-advanced-1
            configured_default: saved
            saved_entry: gnulinux-advanced-1>gnulinux-5.15.0-112-generic-advanced-1
            env_writable: true
            env_reason: null
            next_entry: null
            entries: [{id: gnulinux-simple-1, title: Ubuntu, release: 5.15.0-112-generic}]
            boot_fs: ext4
            boot_layout: partition
            watchdog: {device: /dev/watchdog0, identity: iTCO_wdt}
            kexec: {loaded: false, load_at_restart: null}
            trial: null
        storage:
          description: Free space in MB and whether it is read-only, of /, /boot, /var and /usr/src.
          type: dict
          returned: always
          sample: {/: {free_mb: 41000, read_only: false}}
        gpus:
          description:
            - NVIDIA GPUs on the PCI bus. Persistence, MIG and fabric come from the driver, null without one.
            - C(driver) is the one that drives the GPU, null without one; absent where the devices are not the kernel's
              own (another file system over C(/sys/bus/pci/devices), as in a test lab).
          type: list
          elements: dict
          returned: when readable
          sample:
            - address: "0000:3b:00.0"
              id: "10de:2330"
              subsystem: "10de:16c1"
              class: "0302"
              driver: nvidia
              numa_node: 0
              link: {width: 16, width_max: 16, speed: 32.0, speed_max: 32.0}
              bar_ok: true
              persistence: true
              mig: {mode: false, pending: false}
              fabric: {state: Completed, status: Success}
        nvswitches:
          description: NVSwitches on the PCI bus.
          type: list
          elements: dict
          returned: when readable
          sample: [{address: "0000:05:00.0", id: "10de:22a3"}]
        secure_boot:
          description:
            - Whether Secure Boot is on and enforced (shim validates), the names of the machine owner's keys and of
              those whose enrolment waits for the console, and the key that DKMS signs with.
          type: dict
          returned: always
          sample:
            enabled: true
            enforced: true
            lockdown: integrity
            mok: [DKMS module signing key]
            requested: []
            key:
              certificate: /var/lib/dkms/mok.pub
              private_key: /var/lib/dkms/mok.key
              name: DKMS module signing key
              mode: "0600"
              enrolled: true
              requested: false
        driver:
          description:
            - The driver that is loaded, the library on disk, what nvidia-smi answers (C(status) is ok, failed, timeout
              or missing, with C(error) when failed), where it came from, nouveau, DKMS, hung tasks,
              its daemons.
            - C(runfile) has the version and the uninstaller where the origin is a runfile, else null.
            - C(processes) counts holders of /dev/nvidia*, the driver's own daemons left out.
          type: dict
          returned: always
          sample:
            loaded: {version: 535.183.01, flavour: open}
            library: 535.183.01
            smi: {status: ok, rc: 0, driver: 535.183.01, cuda: "12.2", gpus: 8}
            origin: packages
            runfile: null
            nouveau: {loaded: false, blocked: true, in_initramfs: false}
            dkms: [{name: nvidia, version: 535.183.01, kernel: 5.15.0-112-generic, state: installed}]
            hung_tasks: []
            fabricmanager: {version: null, active: false}
            persistenced: {active: true}
            processes: 3
        health:
          description: Xid errors in the kernel log since boot, uncorrected ECC errors, and failed row remapping.
          type: dict
          returned: always
          sample: {xids: [{address: "0000:3b:00.0", xid: 79, count: 1}], ecc_uncorrected: 0, row_remap_failure: false}
        packages:
          description:
            - The package manager and the packages that matter to a GPU host. C(available) lists the newest three
              versions in the package lists, whatever is pinned; C(origins) which repository offers a version;
              C(made_for) with Ubuntu the driver that each package of ready modules asks for.
              With dnf, C(modules) are the module streams that are switched on or off.
          type: dict
          returned: always
          sample:
            manager: apt
            installed: {linux-image-generic: 5.15.0.112.112}
            available: {linux-image-generic: [5.15.0.113.113]}
            origins: {linux-image-generic: {5.15.0.113.113: ubuntu}}
            made_for: {linux-modules-nvidia-580-open-5.15.0-113-generic: {5.15.0-113.123: 580.173.02}}
            held: [linux-image-generic]
            manual: [linux-image-generic]
            pins: [{package: "nvidia-*", pin: "version 535.*", priority: 1001, file: /etc/apt/preferences.d/x}]
            repositories:
              - id: ubuntu
                url: "http://archive.ubuntu.com/ubuntu"
                suites: [jammy]
                components: [main]
                signed_by: /usr/share/keyrings/ubuntu-archive-keyring.gpg
                file: /etc/apt/sources.list.d/ubuntu.sources
                enabled: true
            broken: []
            auto_upgrades: {enabled: true, excluded: []}
            locked_by: null
            cache_age: 3600
        containers:
          description:
            - containerd with its configuration, Docker, CRI-O, the NVIDIA container toolkit, runc, CDI specifications.
            - C(gpu.detachable) counts the GPU containers that would lose their GPUs at C(systemctl daemon-reload).
            - C(config.masked) is true when secrets were taken out of a text; C(sha256) is that of the file itself.
          type: dict
          returned: always
          sample:
            containerd:
              version: 1.7.24
              active: true
              socket: /run/containerd/containerd.sock
              owner: host
              config: {path: /etc/containerd/config.toml, text: "version = 2", sha256: "...", drop_ins: {}}
              gpu_containers: 2
            docker: null
            crio: null
            toolkit: {version: 1.20.0, mode: auto, config: {nvidia-container-runtime.mode: auto}}
            runc: 1.1.15
            cdi: [{path: /var/run/cdi/nvidia.yaml, driver: 535.183.01}]
            gpu: {running: 2, detachable: 0}
            dev_char: {devices: 11, missing: 0}
        cuda:
          description:
            - CUDA toolkits, compiler, the one behind C(/usr/local/cuda), forward compatibility libraries, and the
              Python environments that the collection made.
          type: dict
          returned: always
          sample: {toolkits: [12.4.1], default: 12.4.1, nvcc: "12.4", compat: null, environments: {}}
        services:
          description: Units that matter; null when not there.
          type: dict
          returned: when readable
          sample: {nvidia-persistenced.service: {enabled: true, active: true, failed: false}, docker.service: null}
        files:
          description: Files that the collection manages; null when not there.
          type: dict
          returned: always
          sample: {/etc/modprobe.d/baremetal-nvidia.conf: {sha256: "...", mode: "0644", owner: root}}
        state:
          description:
            - What earlier runs left on the host; null when none did.
            - C(left) has the paths of a kernel's coming in that lie there without an open transaction, since a run was
              cut off.
          type: dict
          returned: when readable
          sample: {proved_kernels: [5.15.0-112-generic], holds: [], open: null, left: []}
        unknown:
          description: What could not be read, by its path, and why.
          type: dict
          returned: always
          sample: {boot.next_entry: "permission denied: needs root to read /boot/grub/grubenv"}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.collector import collect


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "timeout": {"type": "int", "default": 90},
            "smi_timeout": {"type": "int", "default": 60},
            "command_timeout": {"type": "int", "default": 10},
            "candidates": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    root: str = module.params["root"]
    if not os.path.isdir(root):
        module.fail_json(msg=f"root is {root}, which is no directory: name the directory that holds the tree's /etc")
    for name in ("timeout", "smi_timeout", "command_timeout"):
        if module.params[name] < 1:
            module.fail_json(msg=f"{name} is {module.params[name]}: allowed are whole seconds from 1 on")
    facts = collect(
        root=root,
        timeout=float(module.params["timeout"]),
        smi_timeout=float(module.params["smi_timeout"]),
        command_timeout=float(module.params["command_timeout"]),
        ask_resolver=module.params["candidates"],
    )
    module.exit_json(changed=False, ansible_facts={"gpu_facts": facts})


if __name__ == "__main__":
    main()
